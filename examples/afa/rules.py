"""Many rules at once over a log, and rules that are found while it is read: monitor, manage, mine.

::

    python examples/afa/rules.py

As Snort does with its rules (AFA paper, appendix A and figure 1), all rules are one automaton, whose registers hold the address
that a match is about and the rule's name. A rule is a sequence of conditions on events of one address within ten minutes.

*Monitor*: the automaton gives alerts. *Manage*: they are counted and printed. *Mine*: a user name that several addresses guess
becomes a rule of its own, and one of these that has been quiet for two days is retired. The automaton goes on meanwhile: what it
has half matched is kept.

Reads the log of an sshd from ``STRETTO_DATA`` (``auth_log_ssh.csv.gz``) where it is, else the small made-up one beside this file.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

import stretto

HERE = Path(__file__).parent
DATA = Path(os.environ.get("STRETTO_DATA", HERE.parents[2] / "shared" / "data"))
MINIATURE = HERE / "data" / "ssh.csv"

#: Rules that are there from the beginning.
RULES = {
    "guessing": ["e.event = 'FAILED_PASSWORD'", "e.event = 'FAILED_PASSWORD'", "e.event = 'MAX_AUTH_ATTEMPTS'"],
    "break-in": ["e.event = 'FAILED_PASSWORD'", "e.event = 'FAILED_PASSWORD'", "e.event = 'ACCEPTED'"],
}

SECONDS = 600
DAY = 24 * 3600

#: So many addresses must have tried a name until it becomes a rule.
ADDRESSES = 3


def source() -> Path:
    """The log to read."""
    real = DATA / "auth_log_ssh.csv.gz"
    return real if real.is_file() else MINIATURE


def log(path: Path) -> pa.Table:
    """The events that have an address."""
    table = csv.read_csv(path, convert_options=csv.ConvertOptions(strings_can_be_null=True))
    return table.select(["timestamp", "event", "user", "src_ip"]).filter(pc.field("src_ip").is_valid())


def arcs(rule: str, conditions: list[str]) -> Iterator[dict[str, Any]]:
    """A chain from the start state. In its middle states, what is not the next event of this address passes by."""
    states = ["q0", *(f"{rule} {at}" for at in range(1, len(conditions) + 1))]
    for at, condition in enumerate(conditions):
        when = f"({condition}) AND e.src_ip = r.ip" if at else condition
        then = None if at else {"ip": "e.src_ip", "rule": f"'{rule}'"}
        yield {"source": states[at], "target": states[at + 1], "when": when, "then": then, "id": states[at + 1]}
        if at:
            yield {
                "source": states[at],
                "target": states[at],
                "when": f"NOT ({when})",
                "id": f"{states[at]} waits",
                "kind": "ignore",
            }


class Monitor:
    """The matcher with its rules, and what mining remembers."""

    def __init__(self) -> None:
        afa = stretto.AFA(
            {"event": str, "user": str, "src_ip": str},
            register={"ip": str, "rule": str},
            window=SECONDS,
        )
        for rule, conditions in RULES.items():
            for arc in arcs(rule, conditions):
                if arc.pop("kind", None) == "ignore":
                    afa.ignore(arc["source"], arc["when"], id=arc["id"])
                else:
                    afa.arc(**arc)
            afa.final(f"{rule} {len(conditions)}")
        self.matcher = stretto.Matcher(afa, time="timestamp")
        self.rules = dict(RULES)
        self.fired: dict[str, int] = {}
        self.addresses: defaultdict[str, set[str]] = defaultdict(set)

    def watch(self, batch: pa.Table) -> pa.Table:
        """Monitor: the alerts of a batch, after which nothing before its last event comes."""
        alerts = self.matcher.push(batch)
        self.matcher.advance(batch.column("timestamp")[-1].as_py())
        for row in alerts.to_pylist():
            self.fired[row["register"]["rule"]] = row["end_time"]
        return alerts

    def mine(self, batch: pa.Table) -> Iterator[str]:
        """Names that enough addresses have tried become rules; a quiet rule of this kind goes. What was changed, in words."""
        now = batch.column("timestamp")[-1].as_py()
        for row in batch.to_pylist():
            if row["event"] in ("INVALID_USER", "FAILED_PASSWORD") and row["user"]:
                self.addresses[row["user"]].add(row["src_ip"])
        for user, addresses in self.addresses.items():
            rule = f"name {user}"
            if len(addresses) >= ADDRESSES and rule not in self.rules and "'" not in user:
                tried = f"e.event IN ('INVALID_USER', 'FAILED_PASSWORD') AND e.user = '{user}'"
                self.add(rule, [tried, "e.event IN ('INVALID_USER', 'FAILED_PASSWORD')"], now)
                yield f"added '{rule}': {len(addresses)} addresses tried it"
        for rule in [rule for rule in self.rules if rule not in RULES and now - self.fired[rule] > 2 * DAY]:
            self.retire(rule)
            yield f"retired '{rule}'"

    def add(self, rule: str, conditions: list[str], now: int) -> None:
        """Manage: a rule more, from the next second on."""
        chain = list(arcs(rule, conditions))
        for arc in chain:
            last = arc["target"] == f"{rule} {len(conditions)}"
            self.matcher.add_arc(**arc, final="every" if last else None)
        self.rules[rule], self.fired[rule] = conditions, now

    def retire(self, rule: str) -> None:
        """Manage: a rule less. The name must be tried by new addresses to come back."""
        for arc in list(self.matcher.arcs()):
            if arc.id.startswith(f"{rule} ") and arc.until is None:
                self.matcher.retire_arc(arc.id)
        del self.rules[rule]
        del self.addresses[rule.removeprefix("name ")]


def hours(table: pa.Table) -> Iterator[pa.Table]:
    """The log, hour by hour."""
    hour = pc.divide(table.column("timestamp"), 3600).to_numpy()
    first = 0
    while first < len(hour):
        end = int(hour.searchsorted(hour[first], side="right"))
        yield table.slice(first, end - first)
        first = end


def run(table: pa.Table) -> Iterator[tuple[int, pa.Table, list[str]]]:
    """For each hour its last time, the alerts, and what mining changed after it."""
    monitor = Monitor()
    for batch in hours(table):
        alerts = monitor.watch(batch)
        yield batch.column("timestamp")[-1].as_py(), alerts, list(monitor.mine(batch))


def main() -> None:
    path = source()
    table = log(path)
    alerts: Counter[str] = Counter()
    addresses: defaultdict[str, set[str]] = defaultdict(set)
    changes: list[str] = []
    for now, found, changed in run(table):
        day = (now - table.column("timestamp")[0].as_py()) // DAY
        for row in found.column("register").to_pylist():
            alerts[row["rule"]] += 1
            addresses[row["rule"]].add(row["ip"])
        changes += [f"day {day}: {change}" for change in changed]
    print(f"{path.name}: {table.num_rows} events; the rules changed {len(changes)} times, first:")
    for change in changes[:5]:
        print(f"  {change}")
    for rule, count in alerts.most_common(5):
        print(f"{rule}: {count} alerts about {len(addresses[rule])} addresses")


if __name__ == "__main__":
    main()
