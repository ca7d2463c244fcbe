"""Random cases of every language, in processes with bounded memory: a result or an error of stretto, and nothing else.

``python -m tests.fuzz LANGUAGE FROM TO`` tries those cases, and names those that go wrong: a process that dies, another error, or
nothing within :data:`tests.children.MOST_SECONDS`; ``LANGUAGE`` may be ``all``. ``… LANGUAGE NUMBER --show`` does one in this
process, after showing it. ``… all --minutes N`` goes on for so long, from a number on that it prints.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter

from tests import children
from tests.fuzz.cases import LANGUAGES, case, run

#: Bytes of memory of a process that tries cases.
MOST_BYTES = 4 << 30

#: What may come of a case. A snapshot is restored as it was made, so that none may be refused.
FINE = ("result", "empty", "QueryError", "DataError", "OptionError", "LimitError", "EngineError")

#: So many cases of a language are tried before the next one has its turn.
TURN = 200


def named(language: str, number: int) -> tuple[str, int]:
    """Of which language a case is, and its number there: those of ``all`` take turns."""
    return (LANGUAGES[number % len(LANGUAGES)], number // len(LANGUAGES)) if language == "all" else (language, number)


def tried(language: str, number: int) -> tuple[str, str]:
    """What comes of a case, and which one it is."""
    place = f"{language} {number}"
    given = case(language, number)
    try:
        return run(given), place
    except Exception as error:
        return children.told(given.call, error), place


def turn(language: str, first: int, count: int, until: float | None = None) -> children.Outcome:
    """Try the cases of some numbers in a process of their own."""
    return children.run(["tests.fuzz", language, "--serve"], first, count, FINE, until=until)


def main() -> int:
    """Try cases; 1 where some go wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("language", choices=[*LANGUAGES, "all"])
    parser.add_argument("first", nargs="?", type=int)
    parser.add_argument("last", nargs="?", type=int)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--first", dest="served", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--count", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        children.serve(
            range(options.served, options.served + options.count),
            MOST_BYTES,
            lambda number: "{} {}".format(*named(options.language, number)),
            lambda number: tried(*named(options.language, number)),
        )
        return 0
    if options.show:
        given = case(options.language, options.first)
        print(given.shown(), flush=True)
        print(run(given))
        return 0
    languages = LANGUAGES if options.language == "all" else (options.language,)
    until = None if options.minutes is None else time.monotonic() + 60 * options.minutes
    seed = random.SystemRandom().randrange(1 << 40)
    first = options.first if options.first is not None else seed
    last = options.last or (first + 1 if until is None else first + (1 << 40))
    counts: dict[str, Counter[str]] = {language: Counter() for language in languages}
    slowest, faults = dict.fromkeys(languages, (-1, 0.0)), 0
    print(f"cases from {first}", flush=True)
    while first < last and (until is None or time.monotonic() < until):
        more = last - first if until is None else min(TURN, last - first)
        for language in languages:
            outcome = turn(language, first, more, until)
            counts[language] += outcome.counts
            slowest[language] = max(slowest[language], outcome.slowest, key=lambda one: one[1])
            for _, what, place in outcome.faults:
                print(f"  {place}: {what}", flush=True)
            faults += len(outcome.faults)
        first += more
    for language in languages:
        number, seconds = slowest[language]
        told = json.dumps(dict(counts[language]))
        print(f"{language}: {counts[language].total()} cases, {told}; slowest {number}: {seconds:.1f} s")
    print(f"{faults} faults")
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
