"""``python -m benchmarks.papers.afa``."""

import sys

from benchmarks.papers.afa.cli import main

if __name__ == "__main__":
    sys.exit(main())
