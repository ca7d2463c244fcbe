"""The command line, one file a command.

Exit codes: 0 success (also when nothing matched); 1 the events or the engine failed; 2 wrong use (also of options);
3 the query is wrong.
"""

from stretto.cli.main import main

__all__ = ["main"]
