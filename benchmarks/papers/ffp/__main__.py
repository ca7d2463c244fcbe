"""``python -m benchmarks.papers.ffp``."""

import sys

from benchmarks.papers.ffp.cli import main

if __name__ == "__main__":
    sys.exit(main())
