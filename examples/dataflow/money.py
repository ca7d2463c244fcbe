"""Money that goes in a circle: transfers a → b → c → … → a, each a little smaller than the one before, within an hour.

::

    python examples/dataflow/money.py

A chain of transfers remembers where it began and what it carries. The next transfer comes later, from the account that the chain
has reached, and passes on most of the money: between 80 % and all of it, less a fee. A chain that is back at its first account is
suspicious. A transfer lives for an hour, so that a chain, which lives as long as all of its transfers do, takes no longer.

A transfer that is cancelled is retracted: the chains that went through it, and the alarms that they gave, are taken back.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from stretto.dataflow import Dataflow, Stream, fixpoint, stream

#: Seconds in which a circle must close, and how many transfers it may have.
WINDOW, MOST_TRANSFERS = 3600, 5

#: What the next transfer passes on, at least.
PASSED_ON = 0.8

#: How long a transfer can be cancelled, in seconds: no longer ago is anything certain.
CANCELLED_WITHIN = 3600


def circles() -> Stream:
    """The first and the last transfer of each circle, how many there are, and what came back of what was sent."""
    transfers = stream("transfers", {"id": int, "payer": str, "payee": str, "amount": float, "at": int}).window(WINDOW)
    begun = transfers.project(
        first="id", account="payer", last="id", reached="payee", at="at", sent="amount", amount="amount", length=1
    )

    def once(chains: Stream) -> Stream:
        open_ = chains.where(f"account != reached AND length < {MOST_TRANSFERS}")
        following = open_.join(
            transfers,
            on={"reached": "payer"},
            where=f"at_right > at AND amount_right < amount AND amount_right >= amount * {PASSED_ON}",
        )
        longer = following.project(
            "first",
            "account",
            "sent",
            last="id",
            reached="payee",
            at="at_right",
            amount="amount_right",
            length="length + 1",
        )
        return begun.union(longer)

    chains = fixpoint(once, schema=begun, bound=MOST_TRANSFERS, name="chains")
    closed = chains.where("account = reached AND length >= 3")
    return closed.project("account", "first", "last", "length", "sent", came_back="amount")


def transfers_of(seed: int, count: int = 3000, accounts: int = 150, circles: int = 6) -> list[dict[str, Any]]:
    """Made-up transfers, ordered by time, with a few circles among them."""
    chance = random.Random(seed)
    found = []
    for _ in range(count):
        payer, payee = chance.sample(range(accounts), 2)
        found.append([payer, payee, round(chance.lognormvariate(5, 1.5), 2), chance.randrange(8 * 3600)])
    for _ in range(circles):
        length = chance.randint(3, MOST_TRANSFERS)
        around = chance.sample(range(accounts), length)
        amount = chance.uniform(5_000, 10_000)
        at = chance.randrange(7 * 3600)
        for payer, payee in zip(around, [*around[1:], around[0]], strict=True):
            found.append([payer, payee, round(amount, 2), at])
            amount *= chance.uniform(0.9, 0.99)
            at += chance.randint(30, 600)
    found.sort(key=lambda one: one[3])
    return [
        {"id": number, "payer": f"a{payer}", "payee": f"a{payee}", "amount": amount, "at": at, "vs": at}
        for number, (payer, payee, amount, at) in enumerate(found)
    ]


def run(
    transfers: list[dict[str, Any]], cancelled: Mapping[int, int], every: int = 600
) -> Iterator[tuple[int, pa.Table]]:
    """The changes of the alarms every ten minutes; ``cancelled`` says when a transfer is, within an hour."""
    flow = Dataflow(circles=circles())
    last = max(one["vs"] for one in transfers)
    for time in range(0, last + every, every):
        flow.push("transfers", [one for one in transfers if time <= one["vs"] < time + every])
        gone = [transfers[number] for number, at in cancelled.items() if time <= at < time + every]
        flow.push("transfers", [{**one, "ve_new": one["vs"]} for one in gone])
        flow.advance(time + every - CANCELLED_WITHIN)
        flow.run_until_idle()
        yield time + every, flow.output("circles")


def told(row: dict[str, Any], transfers: list[dict[str, Any]]) -> str:
    first, last = transfers[row["first"]], transfers[row["last"]]
    sent, back = f"{row['sent']:,.2f} sent", f"{row['came_back']:,.2f} came back"
    return f"{row['account']}: {sent} at {first['at']} s, {back} at {last['at']} s, over {row['length']} transfers"


def main() -> None:
    transfers = transfers_of(seed=4)
    suspect = next(iter(row for _, found in run(transfers, {}) for row in found.to_pylist()))
    cancelled = {suspect["last"]: transfers[suspect["last"]]["at"] + 1800}
    print(f"{len(transfers)} transfers; number {suspect['last']} is cancelled half an hour after it was made")
    for time, found in run(transfers, cancelled):
        for row in found.to_pylist():
            print(f"  {time:6} s  {'circle    ' if row['ve_new'] is None else 'taken back'}  {told(row, transfers)}")


if __name__ == "__main__":
    main()
