"""Random texts of a language by its own grammar: whole ones, and known ones in which a part is another one of the same rule."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lark import Token, Tree
from lark.exceptions import LarkError
from lark.grammar import Rule, Symbol

from stretto.errors import StrettoError
from stretto.languages.expressions.reading import Language, parser

__all__ = ["Grammar", "sample"]

#: Makes the text of a terminal.
Words = Callable[[str], str]

#: So many tokens of a derivation are free; those that follow are as few as the grammar allows.
MOST_TOKENS = 60


@dataclass(frozen=True, eq=False)
class Grammar:
    """One kind of text of a language: its rules, as Lark has expanded them."""

    language: Language
    start: str

    @cached_property
    def _lark(self) -> Any:
        return parser(self.language, self.start, trees=True)

    @cached_property
    def _rules(self) -> dict[str, list[Rule]]:
        rules: dict[str, list[Rule]] = defaultdict(list)
        for rule in self._lark.rules:
            rules[rule.origin.name].append(rule)
        return rules

    @cached_property
    def _patterns(self) -> dict[str, str]:
        return {one.name: one.pattern.to_regexp() for one in self._lark.terminals}

    @cached_property
    def _origins(self) -> dict[str, str]:
        """The rule behind each name of a node of a tree."""
        return {str(rule.alias or rule.origin.name): rule.origin.name for rule in self._lark.rules}

    @cached_property
    def _depths(self) -> dict[str, int]:
        """How deep the least deep text of each rule is nested."""
        depths: dict[str, int] = {}
        while len(depths) < len(self._rules):
            known = dict(depths)
            for name, rules in self._rules.items():
                found = [depth for rule in rules if (depth := _depth(rule, known)) is not None]
                if found and name not in depths:
                    depths[name] = 1 + min(found)
        return depths

    def pattern(self, terminal: str) -> str:
        """The regular expression of a terminal."""
        return self._patterns[terminal]

    def tree(self, text: str) -> Tree[Token] | None:
        """What Lark makes of a text, or ``None`` where it is none of the language."""
        try:
            read: Tree[Token] = self._lark.parse(text)
        except (LarkError, StrettoError):
            return None
        return read

    def derived(self, rng: random.Random, words: Words, rule: str | None = None, depth: int = 14) -> str:
        """A text of a rule; ``words`` gives the text of each terminal."""
        tokens: list[str] = []
        self._derive(rule or self.start, rng, words, depth, tokens)
        return " ".join(tokens) if rng.random() < 0.9 else re.sub(r" (?=\W)", "", " ".join(tokens))

    def _derive(self, name: str, rng: random.Random, words: Words, depth: int, tokens: list[str]) -> None:
        rules = self._rules[name]
        if depth <= 0 or len(tokens) > MOST_TOKENS:
            least = [(_depth(rule, self._depths) or 0) for rule in rules]
            rules = [rule for rule, one in zip(rules, least, strict=True) if one == min(least)]
        for symbol in rng.choice(rules).expansion:
            if symbol.is_term:
                tokens.append(words(symbol.name))
            else:
                self._derive(symbol.name, rng, words, depth - 1, tokens)

    def grafted(self, text: str, rng: random.Random, words: Words) -> str | None:
        """A text with one of its parts another one of the same rule; ``None`` where it cannot be read."""
        tree = self.tree(text)
        if tree is None:
            return None
        parts = [(part, tokens) for part in tree.iter_subtrees() if (tokens := _tokens(part)) and part is not tree]
        if not parts:
            return None
        part, tokens = rng.choice(parts)
        first, last = min(one.start_pos or 0 for one in tokens), max(one.end_pos or 0 for one in tokens)
        rule = self._origins.get(str(part.data), str(part.data))
        if rule not in self._rules:
            return None
        return f"{text[:first]} {self.derived(rng, words, rule, rng.choice((2, 4, 6)))} {text[last:]}"

    def tokens(self, text: str) -> list[Token]:
        """The tokens of a text, or none where it cannot be read."""
        tree = self.tree(text)
        return [] if tree is None else sorted(_tokens(tree), key=lambda token: token.start_pos or 0)


def _depth(rule: Rule, known: dict[str, int]) -> int | None:
    """How deep the least deep text of an expansion is, as far as it is known."""
    below = [_known(symbol, known) for symbol in rule.expansion]
    return None if None in below else max((one or 0 for one in below), default=0)


def _known(symbol: Symbol, known: dict[str, int]) -> int | None:
    return 0 if symbol.is_term else known.get(symbol.name)


def _tokens(tree: Tree[Token]) -> list[Token]:
    return list(tree.scan_values(lambda value: isinstance(value, Token)))


# -- texts of regular expressions -------------------------------------------------------------------------------------

_REPEATS = frozenset({"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"})
_WORDS = "abcxyzABC_019é"


def sample(pattern: str, rng: random.Random) -> str:
    """A text that a regular expression takes, whatever must stand around it."""
    from re import _parser  # type: ignore[attr-defined]

    return _sampled(_parser.parse(pattern), rng)


def _sampled(parsed: Sequence[tuple[Any, Any]], rng: random.Random) -> str:
    return "".join(_piece(str(kind), value, rng) for kind, value in parsed)


def _piece(kind: str, value: Any, rng: random.Random) -> str:
    if kind in _REPEATS:
        least, most, inside = value
        return "".join(_sampled(inside, rng) for _ in range(rng.randint(least, min(most, least + 2))))
    made: dict[str, Callable[[], str]] = {
        "LITERAL": lambda: chr(value),
        "NOT_LITERAL": lambda: rng.choice([letter for letter in _WORDS if letter != chr(value)]),
        "ANY": lambda: rng.choice(_WORDS),
        "BRANCH": lambda: _sampled(rng.choice(value[1]), rng),
        "SUBPATTERN": lambda: _sampled(value[3], rng),
        "ATOMIC_GROUP": lambda: _sampled(value, rng),
        "IN": lambda: _of_set(value, rng),
    }
    return made[kind]() if kind in made else ""  # what only looks ahead or back


def _of_set(items: Sequence[tuple[Any, Any]], rng: random.Random) -> str:
    if str(items[0][0]) == "NEGATE":
        shown = "".join(_excluded(str(kind), value) for kind, value in items[1:])
        return rng.choice([one for one in _WORDS if one not in shown])
    kind, value = rng.choice(list(items))
    match str(kind):
        case "LITERAL":
            return chr(value)
        case "RANGE":
            return chr(rng.randint(*value))
    return rng.choice({"CATEGORY_DIGIT": "0123456789", "CATEGORY_SPACE": " "}.get(str(value), _WORDS))


def _excluded(kind: str, value: Any) -> str:
    if kind == "LITERAL":
        return chr(value)
    if kind == "RANGE":
        return "".join(map(chr, range(value[0], value[1] + 1)))
    digits = "0123456789"
    return {"CATEGORY_NOT_WORD": "", "CATEGORY_DIGIT": digits, "CATEGORY_SPACE": " \t\n"}.get(str(value), "")
