"""``python -m benchmarks.users``."""

import sys

from benchmarks.users.cli import main

if __name__ == "__main__":
    sys.exit(main())
