"""The parser's callbacks: each makes the value of one rule of ``grammar.lark`` as soon as the rule is read.

No tree is built and nothing recurses, so that a formula may have any number of steps.
"""

from __future__ import annotations

import decimal
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from lark import Token, Transformer, v_args

from stretto.errors import Span, nearest
from stretto.languages.ceql.lowering import Clauses, Selection, filtered, unique
from stretto.languages.ceql.parts import (
    AllOf,
    AnyOf,
    Condition,
    Conditions,
    ExpressionPart,
    Mistake,
    Name,
    PatternPart,
    bounded,
)
from stretto.pattern import algebra as a
from stretto.pattern import predicate as p
from stretto.pattern.query import Consume, SelectItem, Strategy, Window

__all__ = ["RESERVED", "CeqlTransformer", "Draft", "reserve"]

RESERVED = {
    "NAME": a.RESERVED,
    "ATTRIBUTE": frozenset({"AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "IS", "NULL", "TRUE", "FALSE"}),
}
"""The words that are no names without quotes, by the kind of place (a terminal of the grammar)."""

LONGEST_NUMBER = 400
"""Digits of a number, and its largest power of ten."""

_EXACT = decimal.Context(prec=4 * LONGEST_NUMBER)

_SECONDS = {
    unit: Decimal(size)
    for units, size in (
        ("ns nanosecond nanoseconds", "1e-9"),
        ("us µs μs microsecond microseconds", "1e-6"),
        ("ms millisecond milliseconds", "1e-3"),
        ("s sec secs second seconds", "1"),
        ("m min mins minute minutes", "60"),
        ("h hr hrs hour hours", "3600"),
        ("d day days", "86400"),
        ("w week weeks", "604800"),
    )
    for unit in units.split()
}
_COUNTS = ("events", "event")
_UNITS_SHOWN = ("events", "seconds", "minutes", "hours", "days", "weeks", "ms", "us", "ns")

_EQUAL = {"==": "=", "<>": "!="}


def reserve(token: Token) -> Token:
    """A lexer callback: a reserved word is a keyword wherever it stands."""
    word = token.upper()
    if word in RESERVED[token.type]:
        token.type = word
    return token


def _at(token: Token) -> Span:
    assert token.start_pos is not None
    assert token.end_pos is not None
    return Span(token.start_pos, token.end_pos)


class Draft:
    """A query of which all clauses are read."""

    __slots__ = ("clauses", "formula", "selection", "streams")

    def __init__(self, selection: Selection, streams: Sequence[Name], formula: PatternPart, clauses: Clauses) -> None:
        self.selection = selection
        self.streams = streams
        self.formula = formula
        self.clauses = clauses


@v_args(inline=True)
class CeqlTransformer(Transformer[Token, Draft]):
    """One method for each rule and alias of ``grammar.lark``; without state, so that threads may share it."""

    # ---- Clauses

    def query(self, selection: Selection, streams: tuple[Name, ...], formula: PatternPart, *rest: object) -> Draft:
        clauses = Clauses()
        for clause in rest:
            if isinstance(clause, _Clause):
                clause.put(clauses)
        return Draft(selection, streams, formula, clauses)

    def select(self, _: Token, *rest: Token | tuple[SelectItem, ...] | None) -> Selection:
        *strategy, items = rest
        assert not isinstance(items, Token)
        return Selection(Strategy(str(strategy[0]).upper()) if strategy else Strategy.ALL, items)

    def everything(self, _: Token) -> None:
        return None

    def items(self, *parts: Token | tuple[Name, _Columns | None]) -> tuple[SelectItem, ...]:
        pairs = [part for part in parts if not isinstance(part, Token)]
        if len(pairs) == 1:
            name, columns = pairs[0]
            if name.bare and name.text.upper() == "NONE" and columns is None:
                return ()
        return tuple(_select_item(name, columns) for name, columns in pairs)

    def item(self, ref: tuple[Name, ...], columns: _Columns | None = None) -> tuple[Name, _Columns | None]:
        return _label(ref), columns

    def item_called_as_a_strategy(self, word: Token, columns: _Columns | None = None) -> tuple[Name, _Columns | None]:
        return Name(str(word), _at(word)), columns

    def columns(self, *parts: Token | Name) -> _Columns:
        first, last = parts[0], parts[-1]
        assert isinstance(first, Token)
        assert isinstance(last, Token)
        return _Columns(tuple(part for part in parts if isinstance(part, Name)), _at(first) | _at(last))

    def column(self, word: Token) -> Name:
        return _name(word)

    def streams(self, _: Token, *names: Token | Name) -> tuple[Name, ...]:
        return tuple(name for name in names if isinstance(name, Name))

    def where(self, _: Token, formula: PatternPart) -> PatternPart:
        return formula

    def filter_clause(self, keyword: Token, conditions: Conditions) -> _Clause:
        return _Clause("FILTER", keyword, "conditions", conditions)

    def partition_clause(self, keyword: Token, _: Token, *lists: Token | _Columns) -> _Clause:
        names = tuple(name for part in lists if not isinstance(part, Token) for name in part.names)
        unique(names, "attribute", "PARTITION BY")
        return _Clause("PARTITION BY", keyword, "partition_by", names)

    def within_clause(self, keyword: Token, *parts: _Measure | _Columns) -> _Clause:
        measures = [part for part in parts if isinstance(part, _Measure)]
        columns = next((part for part in parts if isinstance(part, _Columns)), None)
        return _Clause("WITHIN", keyword, "window", _window(measures, columns))

    def measure(self, *tokens: Token) -> _Measure:
        sign, number, unit = (_find(tokens, kind) for kind in ("MINUS", "NUMBER", "UNIT"))
        assert number is not None
        span = _at(tokens[0]) | _at(tokens[-1])
        if sign is not None:
            raise Mistake("a window cannot be negative", _at(sign) | _at(number))
        return _Measure(_number(number), str(number), unit, span)

    def consume_clause(self, keyword: Token, _: Token, mode: Token) -> _Clause:
        modes = [mode.value for mode in Consume]
        if mode.upper() not in modes:
            close = nearest(str(mode), modes)
            raise Mistake(
                f"CONSUME BY takes ANY, PARTITION or NONE, not '{mode}'",
                _at(mode),
                f"did you mean '{close}'?" if close else None,
            )
        return _Clause("CONSUME BY", keyword, "consume", Consume(mode.upper()))

    def limit_clause(self, keyword: Token, *tokens: Token) -> _Clause:
        number = _number(tokens[-1])
        if len(tokens) > 1 or not isinstance(number, int) or number < 1:
            raise Mistake("LIMIT takes a positive integer", _at(tokens[0]) | _at(tokens[-1]))
        return _Clause("LIMIT", keyword, "limit", number)

    # ---- Formulas

    def name(self, word: Token) -> Name:
        return _name(word)

    def ref(self, *parts: Token | Name) -> tuple[Name, ...]:
        return tuple(part for part in parts if isinstance(part, Name))

    def atom(self, ref: tuple[Name, ...]) -> PatternPart:
        span = ref[0].span | ref[-1].span
        atom = a.Atom(ref[-1].text, ref[0].text if len(ref) > 1 else None, span)
        return PatternPart(atom, span, bound=atom.labels, qualified=(atom,) if len(ref) > 1 else ())

    def group(self, opening: Token, formula: PatternPart, *rest: Token) -> PatternPart:
        return bounded(replace(formula, span=_at(opening) | _at(rest[-1]), parens=formula.parens + 1))

    def dangling(self, opening: Token, formula: PatternPart, _: Token, closing: Token) -> PatternPart:
        return self.group(opening, formula, closing)

    def labelled(self, formula: PatternPart, _: Token, name: Name) -> PatternPart:
        return self.named(formula, name)

    def named(self, formula: PatternPart, name: Name) -> PatternPart:
        pattern = a.As(formula.pattern, name.text, name.span)
        span = formula.span | name.span
        return bounded(replace(_above(formula, pattern, span), bound=formula.bound | frozenset({name.text})))

    def plus(self, formula: PatternPart, sign: Token) -> PatternPart:
        pattern = a.Plus(formula.pattern, contiguous=sign.type == "COLON_PLUS")
        return bounded(_above(formula, pattern, formula.span | _at(sign)))

    def steps(self, *parts: PatternPart | Token) -> PatternPart:
        formulas, joints = _operands(parts)
        contiguous = tuple(joint.type == "COLON" for joint in joints)
        return _joined(formulas, a.Sequence(tuple(part.pattern for part in formulas), contiguous))

    def alternatives(self, *parts: PatternPart | Token) -> PatternPart:
        formulas, _ = _operands(parts)
        return _joined(formulas, a.Or(tuple(part.pattern for part in formulas)))

    def filtered(self, formula: PatternPart, _: Token, conditions: Conditions) -> PatternPart:
        return filtered(formula, conditions)

    # ---- FILTER

    def condition(self, ref: tuple[Name, ...], _: Token, predicate: ExpressionPart, closing: Token) -> Condition:
        label = _label(ref)
        return Condition(label.text, _predicate(predicate), label.span | _at(closing), label.span)

    def condition_group(self, opening: Token, conditions: Conditions, closing: Token) -> Conditions:
        span = _at(opening) | _at(closing)
        return bounded(replace(conditions, span=span, parens=conditions.parens + 1))

    def negated_condition(self, sign: Token, _: Conditions) -> Conditions:
        raise Mistake("FILTER has no NOT outside brackets", _at(sign), "put it inside: x[NOT (price > 3)]")

    def all_conditions(self, *parts: Conditions | Token) -> Conditions:
        conditions = tuple(part for part in parts if not isinstance(part, Token))
        copies = 1
        for part in conditions:
            copies = min(copies * part.copies, 10**9)
        return bounded(AllOf(conditions, *_measures(conditions), copies))

    def any_condition(self, *parts: Conditions | Token) -> Conditions:
        conditions = tuple(part for part in parts if not isinstance(part, Token))
        copies = min(sum(part.copies for part in conditions), 10**9)
        return bounded(AnyOf(conditions, *_measures(conditions), copies))

    # ---- Predicates

    def any_of(self, *parts: ExpressionPart | Token) -> ExpressionPart:
        operands = [part for part in parts if not isinstance(part, Token)]
        predicates: list[p.Predicate] = []
        for part in operands:
            predicate = _predicate(part)
            predicates += predicate.parts if isinstance(predicate, p.Or) else (predicate,)
        return _expression(p.Or(tuple(predicates), _span(operands)), operands)

    def all_of(self, *parts: ExpressionPart | Token) -> ExpressionPart:
        operands = [part for part in parts if not isinstance(part, Token)]
        predicates: list[p.Predicate] = []
        for part in operands:
            predicate = _predicate(part)
            predicates += predicate.parts if isinstance(predicate, p.And) else (predicate,)
        return _expression(p.And(tuple(predicates), _span(operands)), operands)

    def negation(self, sign: Token, part: ExpressionPart) -> ExpressionPart:
        span = _at(sign) | part.span
        return _expression(p.Not(_predicate(part), span), (part,), span)

    def compare(self, left: ExpressionPart, sign: Token, right: ExpressionPart) -> ExpressionPart:
        for part in (left, right):
            if part.expression is None:
                raise Mistake("no value compares with NULL", part.span, _NULL_HINTS.get(str(sign), _NULL_HINT))
        operator = _EQUAL.get(str(sign), str(sign))
        both = (left, right)
        return _expression(p.Comparison(operator, _value(left), _value(right), _span(both)), both)

    def among(self, part: ExpressionPart, *rest: ExpressionPart | Token) -> ExpressionPart:
        values = [value for value in rest if not isinstance(value, Token)]
        closing = rest[-1]
        assert isinstance(closing, Token)
        span = part.span | _at(closing)
        inside = p.In(_value(part), tuple(_constant(value) for value in values), span)
        return _perhaps_not(rest, inside, span, [part, *values])

    def between(self, part: ExpressionPart, *rest: ExpressionPart | Token) -> ExpressionPart:
        low, high = (bound for bound in rest if not isinstance(bound, Token))
        span = part.span | high.span
        inside = p.Between(_value(part), _value(low), _value(high), span)
        return _perhaps_not(rest, inside, span, [part, low, high])

    def like(self, part: ExpressionPart, *rest: Token) -> ExpressionPart:
        span = part.span | _at(rest[-1])
        return _perhaps_not(rest, p.Like(_value(part), _unquoted(rest[-1]), span), span, [part])

    def is_null(self, part: ExpressionPart, *rest: Token) -> ExpressionPart:
        span = part.span | _at(rest[-1])
        return _perhaps_not(rest, p.IsNull(_value(part), span), span, [part])

    def arithmetic(self, left: ExpressionPart, sign: Token, right: ExpressionPart) -> ExpressionPart:
        both = (left, right)
        return _expression(p.Arithmetic(str(sign), _value(left), _value(right), _span(both)), both)

    def negative(self, sign: Token, part: ExpressionPart) -> ExpressionPart:
        span = _at(sign) | part.span
        operand = _value(part)
        if isinstance(operand, p.Constant):
            negated = _negated(operand.value)
            if negated is None:
                raise Mistake(f"{operand} has no negative", span)
            return _expression(p.Constant(negated, span), (part,), span)
        return _expression(p.Negative(operand, span), (part,), span)

    def attribute(self, word: Token) -> ExpressionPart:
        if word.startswith('"'):
            # Inside conditions double quotes are those of strings, as in the paper's figure 1: name="MSFT".
            return self.string(word)
        name = _name(word)
        return ExpressionPart(p.Attribute(name.text, name.span), name.span)

    def number(self, token: Token) -> ExpressionPart:
        return ExpressionPart(p.Constant(_number(token), _at(token)), _at(token))

    def string(self, token: Token) -> ExpressionPart:
        return ExpressionPart(p.Constant(_unquoted(token), _at(token)), _at(token))

    def true(self, token: Token) -> ExpressionPart:
        return ExpressionPart(p.Constant(True, _at(token)), _at(token))

    def false(self, token: Token) -> ExpressionPart:
        return ExpressionPart(p.Constant(False, _at(token)), _at(token))

    def null(self, token: Token) -> ExpressionPart:
        return ExpressionPart(None, _at(token))

    def expression_group(self, opening: Token, part: ExpressionPart, closing: Token) -> ExpressionPart:
        return bounded(replace(part, span=_at(opening) | _at(closing), parens=part.parens + 1))


class _Columns:
    """``[a, b]``."""

    __slots__ = ("names", "span")

    def __init__(self, names: tuple[Name, ...], span: Span) -> None:
        self.names = names
        self.span = span


class _Clause:
    """A clause after WHERE: its keyword, and the field of :class:`Clauses` that it fills."""

    __slots__ = ("field", "keyword", "title", "value")

    def __init__(self, title: str, keyword: Token, field: str, value: object) -> None:
        self.title = title
        self.keyword = keyword
        self.field = field
        self.value = value

    def put(self, clauses: Clauses) -> None:
        if self.title in clauses.seen:
            hint = "join the conditions with AND" if self.title == "FILTER" else None
            raise Mistake(f"a second {self.title} clause", _at(self.keyword), hint)
        clauses.seen[self.title] = _at(self.keyword)
        setattr(clauses, self.field, self.value)


class _Measure:
    """A number of a WITHIN clause with its unit, if it has one."""

    __slots__ = ("number", "span", "unit", "written")

    def __init__(self, number: int | Decimal, written: str, unit: Token | None, span: Span) -> None:
        self.number = number
        self.written = written
        self.unit = unit
        self.span = span


def _find(tokens: Sequence[object], kind: str) -> Token | None:
    return next((token for token in tokens if isinstance(token, Token) and token.type == kind), None)


# ---- Names and literals


def _name(word: Token) -> Name:
    if word.type != "QUOTED":
        return Name(str(word), _at(word), bare=True)
    quote = word[0]
    if len(word) == 2:
        raise Mistake("a name cannot be empty", _at(word))
    return Name(word[1:-1].replace(quote * 2, quote), _at(word))


def _label(ref: tuple[Name, ...]) -> Name:
    """``x`` or ``S>R`` as the variable that it names."""
    if len(ref) == 1:
        return ref[0]
    return Name(f"{ref[0].text}>{ref[1].text}", ref[0].span | ref[1].span)


def _unquoted(token: Token) -> str:
    closing = token[-1]
    return token[1:-1].replace(closing * 2, closing)


def _number(token: Token) -> int | Decimal:
    digits, _, power = token.lower().partition("e")
    if len(digits) > LONGEST_NUMBER or len(power) > 5 or abs(int(power or 0)) > LONGEST_NUMBER:
        raise Mistake(f"a number of more than {LONGEST_NUMBER} digits", _at(token))
    return int(digits) if digits.isdigit() and not power else Decimal(str(token))


def _negated(value: object) -> int | Decimal | None:
    if isinstance(value, Decimal):
        return value.copy_negate()
    return -value if isinstance(value, int) and not isinstance(value, bool) else None


# ---- SELECT and WITHIN


def _select_item(name: Name, columns: _Columns | None) -> SelectItem:
    if columns is None:
        return SelectItem(name.text, None, name.span)
    unique(columns.names, "attribute", "SELECT")
    texts, spans = (tuple(c.text for c in columns.names), tuple(c.span for c in columns.names))
    return SelectItem(name.text, texts, name.span, spans)


def _window(measures: Sequence[_Measure], columns: _Columns | None) -> Window:
    """WITHIN: events, or a duration, or a number in an attribute's own unit (figure 1, appendices D to G)."""
    span = measures[0].span | (columns.span if columns else measures[-1].span)
    attribute = _window_attribute(columns)
    bare = next((measure for measure in measures if measure.unit is None), None)
    if bare is not None:
        return _number_window(bare, measures, attribute, span)
    units = [measure.unit for measure in measures if measure.unit is not None]
    if any(unit.casefold() in _COUNTS for unit in units):
        return _count_window(measures, columns, span)
    total = Decimal(0)
    for measure, unit in zip(measures, units, strict=True):
        total = _EXACT.add(total, _EXACT.multiply(Decimal(measure.number), _seconds(unit)))
    if attribute is None:
        return Window(seconds=total, span=span)
    return Window(seconds=total, attribute=attribute.text, span=span, attribute_span=attribute.span)


def _window_attribute(columns: _Columns | None) -> Name | None:
    if columns is None:
        return None
    if len(columns.names) > 1:
        raise Mistake("WITHIN takes one attribute", columns.names[1].span)
    return columns.names[0]


def _number_window(bare: _Measure, measures: Sequence[_Measure], attribute: Name | None, span: Span) -> Window:
    if len(measures) > 1 or attribute is None:
        number = bare.written
        raise Mistake(
            f"WITHIN {number}: {number} of what?",
            bare.span,
            f"write {number} EVENTS, {number} SECONDS (or another unit), or {number} [attribute]",
        )
    return Window(number=bare.number, attribute=attribute.text, span=span, attribute_span=attribute.span)


def _count_window(measures: Sequence[_Measure], columns: _Columns | None, span: Span) -> Window:
    if len(measures) > 1 or columns is not None:
        raise Mistake("a window of EVENTS has one number and no attribute", span)
    if not isinstance(measures[0].number, int):
        raise Mistake("a number of EVENTS is an integer", span)
    return Window(events=measures[0].number, span=span)


def _seconds(unit: Token) -> Decimal:
    size = _SECONDS.get(unit.casefold())
    if size is None:
        close = nearest(str(unit), [*_SECONDS, *_COUNTS])
        hint = f"did you mean '{close}'?" if close else f"known units: {', '.join(_UNITS_SHOWN)}"
        raise Mistake(f"unknown unit '{unit}'", _at(unit), hint)
    return size


# ---- Formulas


def _above(part: PatternPart, pattern: a.Pattern, span: Span) -> PatternPart:
    """An operator with one operand."""
    return replace(part, pattern=pattern, span=span, height=part.height + 1, size=part.size + 1)


def _operands(parts: Sequence[PatternPart | Token]) -> tuple[list[PatternPart], list[Token]]:
    return (
        [part for part in parts if not isinstance(part, Token)],
        [part for part in parts if isinstance(part, Token)],
    )


def _joined(parts: Sequence[PatternPart], pattern: a.Pattern) -> PatternPart:
    """An operator with several operands."""
    return bounded(
        PatternPart(
            pattern,
            parts[0].span | parts[-1].span,
            height=1 + max(part.height for part in parts),
            parens=max(part.parens for part in parts),
            size=1 + sum(part.size for part in parts),
            copies=max(part.copies for part in parts),
            bound=frozenset().union(*(part.bound for part in parts)),
            qualified=tuple(atom for part in parts for atom in part.qualified),
        )
    )


def _measures(parts: Sequence[Conditions]) -> tuple[Span, int, int]:
    span = parts[0].span | parts[-1].span
    return span, 1 + max(part.height for part in parts), max(part.parens for part in parts)


# ---- Predicates


_NULL_HINT = "NULL stands only in IS NULL and IS NOT NULL"
_NULL_HINTS = {
    "=": "write IS NULL",
    "==": "write IS NULL",
    "!=": "write IS NOT NULL",
    "<>": "write IS NOT NULL",
}


def _span(parts: Sequence[ExpressionPart]) -> Span:
    return parts[0].span | parts[-1].span


def _expression(expression: p.Expression, parts: Sequence[ExpressionPart], span: Span | None = None) -> ExpressionPart:
    return bounded(
        ExpressionPart(
            expression,
            span or _span(parts),
            1 + max(part.height for part in parts),
            max(part.parens for part in parts),
        )
    )


def _perhaps_not(
    rest: Sequence[object],
    predicate: p.In | p.Between | p.Like | p.IsNull,
    span: Span,
    parts: Sequence[ExpressionPart],
) -> ExpressionPart:
    """``x NOT IN …`` and its like are ``NOT (x IN …)``."""
    negated = _find(rest, "NOT") is not None
    return _expression(p.Not(predicate, span) if negated else predicate, parts, span)


def _value(part: ExpressionPart) -> p.Operand:
    expression = part.expression
    if expression is None:
        raise Mistake("NULL is no value to compute with", part.span, _NULL_HINT)
    if not isinstance(expression, p.Operand):
        raise Mistake("a value is needed here, not a condition", part.span)
    return expression


def _constant(part: ExpressionPart) -> p.Constant:
    value = _value(part)
    if not isinstance(value, p.Constant):
        raise Mistake("IN lists constants only", part.span, "write x = a OR x = b for attributes")
    return value


def _predicate(part: ExpressionPart) -> p.Predicate:
    """A condition; a boolean attribute or constant by itself means that it is TRUE."""
    expression = part.expression
    if isinstance(expression, p.Attribute) or (
        isinstance(expression, p.Constant) and isinstance(expression.value, bool)
    ):
        return p.Comparison("=", expression, p.Constant(True), part.span)
    if expression is None or isinstance(expression, p.Operand):
        raise Mistake("a condition is needed here, not a value", part.span, "compare it: price > 3")
    return expression
