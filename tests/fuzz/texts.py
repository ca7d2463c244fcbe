"""Random texts of every language: known queries, these with parts and tokens changed, and texts that grammars give."""

from __future__ import annotations

import ast
import json
import random
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from lark import Token

from stretto.languages.afa.parser import AFA
from stretto.languages.ceql.parser import CEQL
from stretto.languages.datalog.parser import _DATALOG as DATALOG
from stretto.languages.eql.functions import FUNCTIONS as EQL_FUNCTIONS
from stretto.languages.eql.parser import EQL
from stretto.languages.match_recognize.parser import ROWS
from stretto.languages.sase.parser import SASE
from stretto.query.scalar_functions import COMMON, SQL
from tests.fuzz.grammars import Grammar, sample
from tests.fuzz.tables import DURATIONS, NUMBERS, TEXTS

__all__ = ["KINDS", "Kind", "Text", "automaton"]

ROOT = Path(__file__).parents[2]

#: Terminals whose tokens name columns, and those that name types of events, in any language.
COLUMNS = ("COLUMN", "ATTRIBUTE", "FIELD", "VARIABLE")
TYPES = ("NAME", "TYPE", "CATEGORY")

#: Names that tests and pages give columns.
NAMES = ("t", "v", "k", "x", "y", "price", "user", "name", "id")


@dataclass(frozen=True)
class Text:
    """A text with what it names, as far as the known one did from which it came."""

    text: str
    #: … each with the terminal of a constant that stands behind it, or "".
    columns: Mapping[str, str]
    types: tuple[str, ...]
    texts: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Kind:
    """A kind of text: its grammar, known texts, names of functions, and texts of other terminals."""

    grammar: Grammar
    begins: str
    functions: Sequence[str] = ()
    known: Sequence[str] = ()
    given: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @cached_property
    def texts(self) -> list[str]:
        """Those of pages and tests that are of this kind."""
        begins = re.compile(self.begins)
        found = (one for one in (*self.known, *_written()) if begins.match(one.strip()) and len(one) < 1500)
        return [one for one in dict.fromkeys(found) if self.grammar.tree(one) is not None]

    @cached_property
    def _tokens(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for text in self.texts:
            for token in self.grammar.tokens(text):
                found[token.type].append(str(token))
        return found

    def text(self, rng: random.Random, known: float = 0.05) -> Text:
        """A random text; ``known``: how often it is one of the known ones, as it is."""
        text = rng.choice(self.texts)
        tokens = self.grammar.tokens(text)
        own: dict[str, list[str]] = defaultdict(list)
        for token in tokens:
            own[token.type].append(str(token))

        def word(terminal: str) -> str:
            return self._word(terminal, own, rng)

        draw = rng.uniform(0.0, 0.95) if rng.random() > known else 1.0
        if draw < 0.15:
            text = self.grammar.derived(rng, word, depth=rng.choice((6, 10, 14)))
        elif draw < 0.75:
            for _ in range(rng.choice((1, 1, 2, 3))):
                text = self.grammar.grafted(text, rng, word) or text
        if 0.6 < draw < 0.95:
            text = self._mistyped(text, rng, word)
        return Text(
            text,
            _columns(tokens),
            tuple(dict.fromkeys(_bare(one) for name in TYPES for one in own[name])),
            tuple(dict.fromkeys(one[1:-1] for one in own["STRING"])),
        )

    def _word(self, terminal: str, own: Mapping[str, list[str]], rng: random.Random) -> str:
        draw = rng.random()
        if terminal in ("NUMBER", "INTEGER") and draw < 0.5:
            return rng.choice(NUMBERS)
        if terminal == "STRING" and draw < 0.5:
            quote = '"' if self.grammar.language is EQL else "'"
            return quote + rng.choice(TEXTS) + quote
        if terminal == "DURATION" and draw < 0.5:
            return rng.choice(DURATIONS)
        if terminal in ("CALLED", "FUNCTION") and self.functions and draw < 0.5:
            return rng.choice(self.functions)
        if terminal in self.given and draw < 0.8:
            return rng.choice(self.given[terminal])
        for tokens in (own.get(terminal), self._tokens.get(terminal)):
            if tokens and rng.random() < 0.8:
                return rng.choice(tokens)
        return sample(self.grammar.pattern(terminal), rng)

    def _mistyped(self, text: str, rng: random.Random, word: Any) -> str:
        """A text with some of its tokens deleted, doubled, swapped, or others of their kind."""
        tokens = self.grammar.tokens(text)
        pieces, at = [], 0
        for token in tokens:
            pieces += [text[at : token.start_pos], str(token)]
            at = token.end_pos or at
        if not tokens:
            return text
        for _ in range(rng.choice((1, 1, 2, 4))):
            i, j = (2 * rng.randrange(len(tokens)) + 1 for _ in range(2))
            match rng.randrange(8):
                case 0:
                    pieces[i] = ""
                case 1:
                    pieces[i] += " " + pieces[i]
                case 2:
                    pieces[i], pieces[j] = pieces[j], pieces[i]
                case 3:
                    pieces[i] = pieces[j]
                case _:
                    pieces[i] = word(tokens[i // 2].type)
        return "".join(pieces) + text[at:]


def _bare(name: str) -> str:
    return name[1:-1] if name[:1] in "`\"'" else name.lstrip("?")


def _columns(tokens: Sequence[Token]) -> dict[str, str]:
    """What may be columns, and the kind of constant that each is compared with."""
    found: dict[str, str] = {}
    for place, token in enumerate(tokens):
        if token.type in COLUMNS:
            constants = [
                one.type for one in tokens[place + 1 : place + 4] if one.type in ("STRING", "NUMBER", "DURATION")
            ]
            name = _bare(str(token))
            found[name] = found.get(name) or "".join(constants[:1])
    return found


def _written() -> Iterator[str]:
    """Texts in pages and tests: values of TOML, strings of Python, blocks of code."""
    for path in sorted(
        [
            *ROOT.glob("tests/conformance/*.toml"),
            *ROOT.glob("tests/match_recognize/*.toml"),
            *ROOT.glob("tests/conformance/*/*.toml"),
        ]
    ):
        yield from _strings(tomllib.loads(path.read_text(encoding="utf-8")))
    for path in sorted(ROOT.glob("tests/languages/test_*.py")):
        yield from _constants(path.read_text(encoding="utf-8"))
    for path in sorted(ROOT.glob("docs/*.md")):
        for language, block in re.findall(r"^```(\w*)\n(.*?)^```", path.read_text(encoding="utf-8"), flags=re.M | re.S):
            yield block
            if language == "python":
                yield from _constants(block)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
        yield from (one for one in re.split(r" when | then ", value)[1:])
        yield from re.findall(r"(?is)MATCH_RECOGNIZE\s*\(.*\)", value)
    elif isinstance(value, dict | list):
        for inside in value.values() if isinstance(value, dict) else value:
            yield from _strings(inside)


def _constants(code: str) -> Iterator[str]:
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from _strings(node.value)


_AFA = {"VARIABLE": ("e", "r"), "COLUMN": ("x", "y", "v", "type", "n", "m", "s", "t"), "FIELD": ("n", "m", "s")}
_FENCES = (
    *("e.v > 3", "e.type = 'A'", "e.type = 'B' AND e.v > r.n", "r.n < 3", "e.x - r.m > 1.5 OR e.y IS NULL"),
    *(
        "e.s LIKE 'a%' AND NOT e.x BETWEEN 1 AND r.n",
        "CASE WHEN e.v > 1 THEN r.n ELSE 2 END = 2",
        "abs(e.v) IN (1, 2, 3)",
    ),
    *("e.t - r.n > 5", "e.s = r.s", "e.s RLIKE 'a.*'", "e.x / r.m > e.y % 3"),
)
_TRANSFERS = (
    *("n = r.n + 1", "n = e.v, m = e.x", "(r.n + 1, 2.0, 'x')", "s = e.s", "m = r.m * e.x - 1", "n = r.n * r.n + e.v"),
    "s = r.s || e.s, n = length(e.s)",
)
_CHOICES = {
    "STRATEGY": ("strict_contiguity", "partition_contiguity", "skip_till_next_match", "skip_till_any_match"),
    "CHOICE": ("LONGEST", "SHORTEST", "SKIP", "PAST", "LAST", "NEXT", "FIRST", "TO"),
}

KINDS = {
    "ceql": Kind(
        Grammar(CEQL, "query"),
        r"(?i)select\b",
        tuple(COMMON),
        given={"MODE": ("ANY", "PARTITION", "NONE"), "CHOICE": _CHOICES["CHOICE"]},
    ),
    "sase": Kind(
        Grammar(SASE, "query"),
        r"(?i)pattern\b",
        tuple(COMMON),
        given={"MODE": ("compressed", "non_overlap", "all"), **_CHOICES},
    ),
    "eql": Kind(
        Grammar(EQL, "query"),
        r"\S+\s+(where|by|with|\[)|sequence|sample",
        tuple(EQL_FUNCTIONS),
        given={"PIPE": ("head", "tail")},
    ),
    "rows": Kind(Grammar(ROWS, "clause"), r"(?i)match_recognize\b", (*COMMON, *SQL)),
    "datalog": Kind(Grammar(DATALOG, "program"), r"[a-z]\w*\(|%", tuple(COMMON)),
    "fence": Kind(Grammar(AFA, "fence"), r".*\b[er]\.", tuple(COMMON), _FENCES, _AFA),
    "transfer": Kind(Grammar(AFA, "transfer"), r".*\b[er]\.", tuple(COMMON), _TRANSFERS, _AFA),
}


def automaton(rng: random.Random) -> tuple[str, Text]:
    """The text of an automaton in JSON, and the names in its fences."""
    states = ["q0", "q1", "q2", "q3"][: rng.choice((2, 3, 3, 4))]
    arcs: list[dict[str, Any]] = []
    named = []
    for number in range(rng.choice((1, 2, 3, 4))):
        source = states[min(number, len(states) - 2)] if rng.random() < 0.6 else rng.choice(states)
        target = states[min(number + 1, len(states) - 1)] if rng.random() < 0.6 else rng.choice(states)
        arc: dict[str, Any] = {"source": source, "target": target}
        if rng.random() < 0.8:
            named.append(KINDS["fence"].text(rng, known=0.6))
            arc["when"] = named[-1].text
        if rng.random() < 0.4:
            named.append(KINDS["transfer"].text(rng, known=0.6))
            arc["then"] = named[-1].text
        draw = rng.random()
        if draw < 0.1:
            arc["kind"] = "epsilon"
        elif draw < 0.2:
            arc |= {"kind": "ignore"}
            del arc["target"]
            arc.pop("then", None)
        arcs.append(arc)
    given: dict[str, Any] = {"final": [states[-1]], "arcs": arcs}
    if rng.random() < 0.1:
        given["final"] = {states[-1]: rng.choice(("on_enter", "every"))}
    if rng.random() < 0.8:
        given["register"] = {"n": "int64", "m": "double", "s": "string"}
    if rng.random() < 0.6:
        given["window"] = rng.choice((1, 5, 5, 100, 100, "5 seconds", "1 hour", 1 << 62, 0))
    if rng.random() < 0.3:
        given["partition_by"] = [rng.choice(("k", "x", "s"))]
    columns = {"v": "NUMBER", "x": "NUMBER", "y": "NUMBER", "k": "", "s": "STRING"}
    for one in named:
        columns |= {name: kind for name, kind in one.columns.items() if name not in "er" and kind}
    return json.dumps(given), Text("", columns, (), tuple(text for one in named for text in one.texts))
