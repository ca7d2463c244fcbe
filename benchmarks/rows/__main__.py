"""``python -m benchmarks.rows``."""

import sys

from benchmarks.rows.cli import main

if __name__ == "__main__":
    sys.exit(main())
