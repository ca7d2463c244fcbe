"""``python -m benchmarks.papers.sase``."""

import sys

from benchmarks.papers.sase.cli import main

if __name__ == "__main__":
    sys.exit(main())
