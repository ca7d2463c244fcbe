"""Steps that no reader saw: a book's way through a library, filled in where one reading is missing.

::

    python examples/afa/missing_steps.py

Appendix A of the AFA paper, stream data cleaning. The automaton recognizes the expected way with one step missing, and its output
is that step, with a time between those of its neighbours. Two rows of states: in the upper one nothing is missing so far, in the
lower one the register says what is.

The readings are made: books that go round, at random times, and some readings are lost. No public data set says which are lost.
"""

from __future__ import annotations

import random

import pyarrow as pa

import stretto

#: The way of a book, with the part of the time from its beginning to its end that has usually passed at each step.
WAY = {"shelf": 0.0, "desk": 0.1, "gate": 0.15, "return": 0.9, "cart": 0.97, "reshelf": 1.0}


def automaton() -> stretto.AFA:
    """One arc for each reading that comes, and one for each that comes when its predecessor has not."""
    afa = stretto.AFA(
        {"book": str, "step": str, "minute": int},
        register={"last": int, "step": str, "minute": float},
        partition_by="book",
        window=60 * 24 * 40,
    )
    steps = list(WAY)
    afa.arc("q0", "all 0", when=f"e.step = '{steps[0]}'", then="last = e.minute", id=steps[0])
    for at in range(1, len(steps)):
        for row in ("all", "filled"):
            if row == "all" or at > 2:
                afa.arc(f"{row} {at - 1}", f"{row} {at}", when=f"e.step = '{steps[at]}'", then="last = e.minute")
        if at >= 2:
            before, missing, here = (WAY[step] for step in steps[at - 2 : at + 1])
            part = (missing - before) / (here - before)
            afa.arc(
                f"all {at - 2}",
                f"filled {at}",
                when=f"e.step = '{steps[at]}'",
                then={
                    "last": "e.minute",
                    "step": f"'{steps[at - 1]}'",
                    "minute": f"r.last + {part} * (e.minute - r.last)",
                },
                id=f"{steps[at - 1]} is missing",
            )
    return afa.final(f"filled {len(steps) - 1}")


def readings(books: int, lost: float, seed: int) -> tuple[pa.Table, pa.Table]:
    """What readers saw, and what they did not, of books that each go round once: some lose one reading of the middle."""
    chance = random.Random(seed)
    seen, unseen = [], []
    for number in range(books):
        begin, length = chance.randrange(20_000), chance.randrange(2_000, 40_000)
        hidden = chance.choice(list(WAY)[1:-1]) if chance.random() < lost else None
        for step, part in WAY.items():
            row = {"book": f"B{number:04}", "step": step, "minute": begin + round(part * length)}
            (unseen if step == hidden else seen).append(row)
    seen.sort(key=lambda row: row["minute"])
    return pa.Table.from_pylist(seen), pa.Table.from_pylist(unseen)


def fill_ins(seen: pa.Table) -> pa.Table:
    """The events that are missing: book, step, minute."""
    found = stretto.match(automaton(), seen, time="minute")
    register = found.column("register").combine_chunks()
    return pa.table(
        {
            "book": found.column("book"),
            "step": register.field("step"),
            "minute": register.field("minute"),
        }
    )


def main() -> None:
    seen, unseen = readings(books=200, lost=0.2, seed=1)
    found = fill_ins(seen)
    print(f"{seen.num_rows} readings of 200 books; {unseen.num_rows} were lost, {found.num_rows} are filled in")
    for row in found.slice(0, 5).to_pylist():
        print(f"  {row['book']}: {row['step']} at minute {row['minute']:.0f}")


if __name__ == "__main__":
    main()
