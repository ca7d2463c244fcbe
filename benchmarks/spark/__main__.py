"""``python -m benchmarks.spark``."""

import sys

from benchmarks.spark.cli import main

if __name__ == "__main__":
    sys.exit(main())
