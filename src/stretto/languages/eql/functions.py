"""The functions of EQL as conditions and values: names ignore case, and ``~`` behind one lets letters do so."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lark import Token

from stretto.errors import Span
from stretto.languages.expressions.tokens import Mistake, at
from stretto.languages.expressions.transformer import ExpressionPart, value_of
from stretto.query import predicate as p

#: What a call becomes: of its arguments, whether letters fold, and its place.
_Make = Callable[[Sequence[ExpressionPart], bool, Span], p.Expression]


@dataclass(frozen=True)
class _Function:
    name: str
    least: int
    most: int | None
    shown: str
    make: _Make
    folds: bool = False  #: whether it has a variant with ``~``


def call(function: Token, parts: Sequence[ExpressionPart], span: Span) -> p.Expression:
    """Make a call of a known function.

    Raises
    ------
    Mistake
        The arguments do not suit the function, or it has no variant with ``~``.
    """
    known = FUNCTIONS[function.removesuffix("~").lower()]
    if not known.least <= len(parts) <= (known.most or len(parts)):
        count = "one argument" if len(parts) == 1 else f"{len(parts)} arguments"
        raise Mistake(f"{known.name}({known.shown}) does not take {count}", span)
    folds = function.endswith("~")
    if folds and not known.folds:
        raise Mistake(f"{known.name} has no variant with '~'", at(function), f"write {known.name}(…)")
    return known.make(parts, folds, span)


def _text(part: ExpressionPart) -> str:
    value = getattr(part.expression, "value", None)
    if not isinstance(value, str):
        raise Mistake("a string is needed here, not a field or a number", part.span, 'constants only: "text"')
    return value


def _search(name: str, before: str, after: str) -> _Make:
    """Texts with anything before or behind them: an expression where they are constants."""

    def make(parts: Sequence[ExpressionPart], folds: bool, span: Span) -> p.Expression:
        operand, *texts = map(value_of, parts)
        known = [getattr(one, "value", None) for one in texts]
        if all(isinstance(one, str) for one in known):
            regex = "|".join(f"{before}{p.escaped(str(one))}{after}" for one in known)
            return p.Rlike(operand, f"(?{'is' if folds else 's'}){regex}", span)
        each = [p.Function(name, (operand, one, p.Constant(folds)), span) for one in texts]
        return (
            each[0] if len(each) == 1 else p.Or(tuple(p.Comparison("=", one, p.Constant(True)) for one in each), span)
        )

    return make


def _match(parts: Sequence[ExpressionPart], folds: bool, span: Span) -> p.Expression:
    regex = "|".join(f"(?:{_text(one)})" for one in parts[1:])
    return p.Rlike(value_of(parts[0]), rf"(?{'is' if folds else 's'})\A(?:{regex})\z", span)


def _wildcard(parts: Sequence[ExpressionPart], folds: bool, span: Span) -> p.Expression:
    return p.Wildcard(value_of(parts[0]), tuple(map(_text, parts[1:])), folds, span=span)


def _arithmetic(op: str) -> _Make:
    return lambda parts, _, span: p.Arithmetic(op, value_of(parts[0]), value_of(parts[1]), span)


def _function(name: str, *defaults: Any, folding: bool = False) -> _Make:
    """A function of values, of which the last ones have defaults; ``folding``: behind them stands whether letters fold."""

    def make(parts: Sequence[ExpressionPart], folds: bool, span: Span) -> p.Expression:
        left_out = defaults[len(defaults) - (most - len(parts)) :] if (most := _MOST[name]) > len(parts) else ()
        more = [p.Constant(one) for one in (*left_out, *((folds,) if folding else ()))]
        return p.Function(name, (*map(value_of, parts), *more), span)

    return make


#: How many arguments a text may write.
_MOST = {"between": 4, "indexOf": 3, "length": 1, "number": 2, "string": 1, "subString": 2}


def _concat(parts: Sequence[ExpressionPart], folds: bool, span: Span) -> p.Expression:
    """Whatever is joined is text."""
    texts: list[p.Operand] = []
    for part in parts:
        value = value_of(part)
        known = getattr(value, "value", None)
        if isinstance(known, str):
            texts.append(value)
        else:
            texts.append(p.Function("string", (value,), part.span))
    return texts[0] if len(texts) == 1 else p.Function("concat", tuple(texts), span)


def _network(part: ExpressionPart) -> str:
    text = _text(part)
    try:
        return str(ipaddress.ip_network(text, strict=False))
    except ValueError:
        raise Mistake(
            f"'{text}' is no block of addresses", part.span, "write it like 10.0.0.0/8 or fe80::/10"
        ) from None


def _cidr(parts: Sequence[ExpressionPart], folds: bool, span: Span) -> p.Expression:
    networks = (p.Constant(_network(one), one.span) for one in parts[1:])
    return p.Function("cidrMatch", (value_of(parts[0]), *networks), span)


_KNOWN = (
    _Function("add", 2, 2, "x, y", _arithmetic("+")),
    _Function("subtract", 2, 2, "x, y", _arithmetic("-")),
    _Function("multiply", 2, 2, "x, y", _arithmetic("*")),
    _Function("divide", 2, 2, "x, y", _arithmetic("/")),
    _Function("modulo", 2, 2, "x, y", _arithmetic("%")),
    _Function("between", 3, 4, "s, left, right, greedy", _function("between", False, folding=True), folds=True),
    _Function("cidrMatch", 2, None, "ip, block, …", _cidr),
    _Function("concat", 1, None, "x, y, …", _concat),
    _Function("endsWith", 2, None, "s, end, …", _search("endsWith", "", r"\z"), folds=True),
    _Function("indexOf", 2, 3, "s, part, start", _function("indexOf", 0, folding=True), folds=True),
    _Function("length", 1, 1, "s", _function("length")),
    _Function("match", 2, None, "s, regex, …", _match, folds=True),
    _Function("matchLite", 2, None, "s, regex, …", _match, folds=True),
    _Function("number", 1, 2, "s, base", _function("number", 10)),
    _Function("startsWith", 2, None, "s, start, …", _search("startsWith", r"\A", ""), folds=True),
    _Function("string", 1, 1, "x", _function("string")),
    _Function("stringContains", 2, None, "s, part, …", _search("stringContains", "", ""), folds=True),
    _Function("substring", 2, 3, "s, start, end", _function("subString")),
    _Function("wildcard", 2, None, "s, pattern, …", _wildcard, folds=True),
)

#: By their names in small letters.
FUNCTIONS = {one.name.lower(): one for one in _KNOWN}
