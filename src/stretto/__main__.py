"""``python -m stretto``: the command line, where the script ``stretto`` is not on the path."""

from __future__ import annotations

from stretto.cli import main

if __name__ == "__main__":
    main()
