"""Checks the cases of a range of seeds, and shows those that fail, made small where that is known how to:

    python -m tests.cases LANGUAGE FROM TO [MOST]

``MOST`` failures are shown (3); the languages are the modules of this folder. ``LANGUAGE.NAME`` draws the cases with that function of
the module, where it has several: ``patterns.mixture``.
"""

from __future__ import annotations

import importlib
import sys
import time
import traceback
from collections.abc import Sequence

LANGUAGES = (
    "ceql",
    "timed",
    "restored",
    "sase",
    "variants",
    "negations",
    "apart",
    "disordered",
    "afa",
    "dataflow",
    "datalog",
    "reorder",
    "patterns",
    "keeping",
    "moving",
    "mixed",
    "timeouts",
    "rows",
    "row_streams",
    "eql",
    "totals",
    "revised",
    "why",
    "why_rows",
    "why_afa",
    "near",
    "counts",
    "counts_afa",
    "dry",
)


def main(arguments: Sequence[str]) -> int:
    """Check a range; how many cases fail."""
    name, _, draw = arguments[0].partition(".") if arguments else ("", "", "")
    if len(arguments) < 3 or name not in LANGUAGES:
        print(__doc__, f"LANGUAGE: {', '.join(LANGUAGES)}", file=sys.stderr)
        return 2
    language = importlib.import_module(f"tests.cases.{name}")
    drawn = getattr(language, draw or "case")
    first, last, most = int(arguments[1]), int(arguments[2]), int(arguments[3]) if len(arguments) > 3 else 3
    failed = found = 0
    began = time.monotonic()
    for seed in range(first, last):
        case = drawn(seed)
        try:
            found += max(language.check(case, seed), 0)
        except Exception as error:
            failed += 1
            if failed > most:
                continue
            print(f"==== seed {seed}: {error}", flush=True)
            if not isinstance(error, AssertionError):
                traceback.print_exc()
            if hasattr(language, "shrunk"):
                print(f"---- made small:\n{language.shown(language.shrunk(case, seed))}", flush=True)
    print(f"{last - first} cases, {found} found, {failed} failed, {time.monotonic() - began:.1f} s")
    return failed


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 125))
