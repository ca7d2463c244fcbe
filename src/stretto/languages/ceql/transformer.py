"""The parser's callbacks: each makes the value of one rule of ``grammar.lark`` as soon as the rule is read.

No tree is built and nothing recurses, so that a formula may have any number of steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lark import Token, v_args

from stretto.errors import Span, nearest
from stretto.languages.ceql.formulas import Condition, Conditions, Joined, PatternPart, alone, bounded
from stretto.languages.ceql.lowering import Clauses, Selection, filtered
from stretto.languages.expressions.clauses import Clause, ClauseTransformer, Columns, Counts, Measure, window_of
from stretto.languages.expressions.tokens import Mistake, Name, at, at_end, name_of, unique
from stretto.languages.expressions.totals import AskingTransformer, Called, Item, count_all, function_of
from stretto.languages.expressions.transformer import (
    ExpressionPart,
    PredicateTransformer,
    attribute_of,
    predicate_of,
    value_of,
)
from stretto.query import algebra as a
from stretto.query import predicate as p
from stretto.query.functions import known
from stretto.query.moving import of_variable
from stretto.query.query import Consume, JoinedKey, SelectItem, Strategy
from stretto.query.totals import Function
from stretto.query.windows import Window

RESERVED = {
    "NAME": a.RESERVED,
    "ATTRIBUTE": p.WORDS,
}
"""The words that are no names without quotes, by the kind of place (a terminal of the grammar)."""


class Draft:
    """A query of which all clauses are read."""

    __slots__ = ("clauses", "formula", "selection", "streams")

    def __init__(self, selection: Selection, streams: Sequence[Name], formula: PatternPart, clauses: Clauses) -> None:
        self.selection = selection
        self.streams = streams
        self.formula = formula
        self.clauses = clauses


@v_args(inline=True)
class CeqlTransformer(PredicateTransformer, ClauseTransformer, AskingTransformer):
    """One method for each rule and alias of ``grammar.lark``; without state, so that threads may share it."""

    second_window = "a window of the last steps alone stands in their parentheses: A ; (B ; C WITHIN 5 minutes)"

    # ---- Clauses

    def query(self, selection: Selection, streams: tuple[Name, ...], formula: PatternPart, *rest: object) -> Draft:
        clauses = Clauses()
        for clause in rest:
            if isinstance(clause, Clause):
                clause.put(clauses)
        return Draft(selection, streams, formula, clauses)

    def select(self, _: Token, *rest: Token | Selection) -> Selection:
        *strategy, selection = rest
        assert isinstance(selection, Selection)
        return replace(selection, strategy=Strategy(str(strategy[0]).upper())) if strategy else selection

    def everything(self, _: Token) -> Selection:
        return Selection(Strategy.ALL, None)

    def items(self, *parts: Token | Item | tuple[Name, Columns | None]) -> Selection:
        pairs = [part for part in parts if isinstance(part, tuple)]
        totals = tuple(part for part in parts if isinstance(part, Item))
        if totals:
            groups = tuple(group for name, columns in pairs for group in _groups(name, columns))
            return Selection(Strategy.ALL, None, totals, groups)
        if len(pairs) == 1:
            name, columns = pairs[0]
            if name.bare and name.text.upper() == "NONE" and columns is None:
                return Selection(Strategy.ALL, ())
        return Selection(Strategy.ALL, tuple(_select_item(name, columns) for name, columns in pairs))

    def item(self, ref: tuple[Name, ...], columns: Columns | None = None) -> tuple[Name, Columns | None]:
        return _label(ref), columns

    def item_called_as_a_strategy(self, word: Token, columns: Columns | None = None) -> tuple[Name, Columns | None]:
        return Name(str(word), at(word)), columns

    def called(self, function: Token, _: Token, *rest: Any) -> Called:
        if isinstance(rest[0], Token):
            return count_all(function, rest[-1])
        variable, span = _label(rest[0]), at(function) | at(rest[-1])
        found = function_of(function)
        if len(rest) > 2:
            value = value_of(rest[2])
            if p.moves(value):
                raise Mistake("a moving aggregate stands in FILTER, where it decides which events match", rest[2].span)
            return Called(found, span, variable, value)
        if found is not Function.COUNT:
            name = variable.text
            hint = f"{found}({name}[…]) where '{name}' is a variable, {found}(a[{name}]) where it is an attribute of a"
            raise Mistake(f"{found} needs a value", span, hint)
        return Called(found, span, variable, p.Constant(1, span))

    def distinct(self, function: Token, *rest: Token | tuple[Name, Columns | None]) -> Called:
        pairs = [part for part in rest if not isinstance(part, Token)]
        columns = next((columns for _, columns in pairs if columns is not None), None)
        if function_of(function) is not Function.COUNT or columns is not None:
            raise Mistake(
                "DISTINCT counts the matches of SELECT a, b, each once, and no values",
                at(function) if columns is None else columns.span,
                "write COUNT(DISTINCT a, b)",
            )
        names = tuple(name for name, _ in pairs)
        unique(names, "variable", "DISTINCT")
        return Called(Function.COUNT, at(function) | at_end(rest), distinct=names)

    def group_key(self, *parts: tuple[Name, ...] | Columns) -> tuple[tuple[Name | None, Name], ...]:
        columns = parts[-1]
        assert isinstance(columns, Columns)
        if not isinstance(parts[0], tuple):
            return tuple((None, name) for name in columns.names)
        variable = _label(parts[0])
        if len(columns.names) == 1:  # so that errors show b[region] as a whole
            return ((variable, replace(columns.names[0], span=columns.span)),)
        return tuple((variable, name) for name in columns.names)

    def streams(self, _: Token, *names: Token | Name) -> tuple[Name, ...]:
        return tuple(name for name in names if isinstance(name, Name))

    def where(self, _: Token, formula: PatternPart) -> PatternPart:
        return alone(formula, whole=True)

    def filter_clause(self, keyword: Token, conditions: Conditions) -> Clause:
        return Clause("FILTER", keyword, "conditions", conditions, "join the conditions with AND")

    def partition_clause(self, keyword: Token, _: Token, *lists: Token | Columns | JoinedKey) -> Clause:
        found = [part for part in lists if not isinstance(part, Token)]
        keys = tuple(key for part in found for key in (part.names if isinstance(part, Columns) else (part,)))
        shown = [Name(key.shown, key.span) if isinstance(key, JoinedKey) else key for key in keys]
        unique(shown, "attribute", "PARTITION BY")
        return Clause("PARTITION BY", keyword, "partition_by", keys)

    def keyed(self, word: Token, _: Token, column: Name, __: Token) -> tuple[Name, Name]:
        quoted = word[0] in '`"'
        return Name(word[1:-1].replace(word[0] * 2, word[0]) if quoted else str(word), at(word)), column

    def joined(self, *parts: Token | tuple[Name, Name]) -> JoinedKey:
        found = tuple(part for part in parts if not isinstance(part, Token))
        stream, column = found[0]
        unique([one for one, _ in found], "stream", "a key of PARTITION BY")
        if len(found) == 1:
            hint = f"[{column.text}], or {stream.text}[{column.text}] = other[its name there]"
            raise Mistake("a key that names a stream says what it is called in the others, too", stream.span, hint)
        return JoinedKey(
            tuple((one.text, own.text) for one, own in found), tuple(one.span | own.span for one, own in found)
        )

    def consume_clause(self, keyword: Token, _: Token, mode: Token) -> Clause:
        modes = [mode.value for mode in Consume]
        if mode.upper() not in modes:
            close = nearest(str(mode), modes)
            raise Mistake(
                f"CONSUME BY takes ANY, PARTITION or NONE, not '{mode}'",
                at(mode),
                f"did you mean '{close}'?" if close else None,
            )
        return Clause("CONSUME BY", keyword, "consume", Consume(mode.upper()))

    def refuse_call(self, function: Token, span: Span, parts: Sequence[ExpressionPart]) -> None:
        if str(function) in known():
            hint = "SASE+, AFAs and dataflows call them; here compute a column with it before"
            raise Mistake(f"'{function}' is a registered function, which CEQL does not call", span, hint)

    def path(self, *words: Token) -> ExpressionPart:
        return attribute_of(self.column(*words))

    # ---- Formulas

    def name(self, word: Token) -> Name:
        return name_of(word)

    def ref(self, *parts: Token | Name) -> tuple[Name, ...]:
        return tuple(part for part in parts if isinstance(part, Name))

    def atom(self, ref: tuple[Name, ...]) -> PatternPart:
        span = ref[0].span | ref[-1].span
        atom = a.Atom(ref[-1].text, ref[0].text if len(ref) > 1 else None, span)
        return PatternPart(atom, span, bound=atom.labels, qualified=(atom,) if len(ref) > 1 else ())

    def group(self, opening: Token, formula: PatternPart, *rest: Token) -> PatternPart:
        whole = alone(formula, whole=True)
        return bounded(replace(whole, span=at(opening) | at(rest[-1]), parens=formula.parens + 1))

    def group_within(
        self, opening: Token, formula: PatternPart, _: Token, window: Window, closing: Token
    ) -> PatternPart:
        pattern = a.Within(alone(formula).pattern, window)
        return self.group(opening, bounded(_above(formula, pattern, formula.span)), closing)

    def within(self, formula: PatternPart, keyword: Token, window: Window) -> PatternPart:
        if a.is_one_event(formula.pattern):
            raise Mistake(
                "WITHIN inside a formula is of steps in parentheses, and this is one event",
                at(keyword),
                "write (A ; B) WITHIN 5 minutes ; C, or for the time between two steps: A ; B AFTER 0 seconds WITHIN 5 minutes",
            )
        return bounded(_above(alone(formula), a.Within(formula.pattern, window), formula.span | _place(window)))

    def spaced(self, formula: PatternPart, keyword: Token, window: Window) -> PatternPart:
        names: list[a.As] = []
        pattern = formula.pattern
        while isinstance(pattern, a.As):
            names.append(pattern)
            pattern = pattern.body
        if not isinstance(pattern, a.Plus | a.Repeat) or pattern.gap is not None:
            raise Mistake(
                "GAP stands behind a repetition: the most that its neighbours are apart",
                at(keyword),
                "A+ GAP 5 minutes; between two steps: A ; B AFTER 0 seconds WITHIN 5 minutes",
            )
        spaced: a.Pattern = replace(pattern, gap=window)
        for name in reversed(names):
            spaced = replace(name, body=spaced)
        return replace(formula, pattern=spaced, span=formula.span | _place(window))

    def after(self, formula: PatternPart, _: Token, least: Window, *rest: Window | Token) -> PatternPart:
        most = rest[-1] if rest else None
        assert not isinstance(most, Token)
        pattern = a.After(alone(formula).pattern, least, most)
        return bounded(_above(formula, pattern, formula.span | _place(most or least)))

    def distance(self, *parts: Measure | Columns) -> Window:
        return window_of(parts)

    def dangling(self, opening: Token, formula: PatternPart, _: Token, closing: Token) -> PatternPart:
        return self.group(opening, formula, closing)

    def labelled(self, formula: PatternPart, _: Token, name: Name) -> PatternPart:
        return self.named(formula, name)

    def named(self, formula: PatternPart, name: Name) -> PatternPart:
        pattern = a.As(formula.pattern, name.text, name.span)
        span = formula.span | name.span
        return bounded(
            replace(_above(alone(formula, whole=True), pattern, span), bound=formula.bound | frozenset({name.text}))
        )

    def plus(self, formula: PatternPart, sign: Token) -> PatternPart:
        pattern = a.Plus(alone(formula).pattern, contiguous=sign.type == "COLON_PLUS")
        return bounded(_above(formula, pattern, formula.span | at(sign)))

    def optional(self, formula: PatternPart, sign: Token) -> PatternPart:
        return _repeated(formula, 0, 1 if sign.type == "QUESTION" else None, sign, formula.span | at(sign))

    def counted(self, formula: PatternPart, opening: Token, counts: Counts) -> PatternPart:
        return _repeated(formula, counts.least, counts.most, opening, formula.span | counts.span)

    def absent(self, sign: Token, formula: PatternPart) -> PatternPart:
        if not a.is_one_event(formula.pattern):
            raise Mistake("NOT takes a single event", formula.span, "NOT T, NOT (T AS n FILTER n[x > 3]), NOT (T OR U)")
        part = _above(formula, a.Not(formula.pattern, at(sign) | formula.span), at(sign) | formula.span)
        return replace(part, bound=frozenset(), absent=formula.bound)

    def steps(self, *parts: PatternPart | Token) -> PatternPart:
        formulas, joints = _operands(parts)
        _check_beside(formulas, joints)
        contiguous = tuple(joint.type == "COLON" for joint in joints)
        return _joined(formulas, a.Sequence(tuple(part.pattern for part in formulas), contiguous))

    def alternatives(self, *parts: PatternPart | Token) -> PatternPart:
        formulas = [alone(part) for part in _operands(parts)[0]]
        return _joined(formulas, a.Or(tuple(part.pattern for part in formulas)))

    def filtered(self, formula: PatternPart, _: Token, conditions: Conditions) -> PatternPart:
        return filtered(alone(formula, whole=True), conditions)

    # ---- FILTER

    def condition(self, ref: tuple[Name, ...], _: Token, predicate: ExpressionPart, closing: Token) -> Condition:
        label = _label(ref)
        asked = of_variable(predicate_of(predicate), label.text)
        return Condition(label.text, asked, label.span | at(closing), label.span)

    def condition_group(self, opening: Token, conditions: Conditions, closing: Token) -> Conditions:
        span = at(opening) | at(closing)
        return bounded(replace(conditions, span=span, parens=conditions.parens + 1))

    def negated_condition(self, sign: Token, _: Conditions) -> Conditions:
        raise Mistake("FILTER has no NOT outside brackets", at(sign), "put it inside: x[NOT (price > 3)]")

    def all_conditions(self, *parts: Conditions | Token) -> Conditions:
        return _conditions(parts, every=True)

    def any_condition(self, *parts: Conditions | Token) -> Conditions:
        return _conditions(parts, every=False)


# ---- Names


def _label(ref: tuple[Name, ...]) -> Name:
    """``x`` or ``S>R`` as the variable that it names."""
    if len(ref) == 1:
        return ref[0]
    return Name(f"{ref[0].text}>{ref[1].text}", ref[0].span | ref[1].span)


# ---- SELECT


def _select_item(name: Name, columns: Columns | None) -> SelectItem:
    if columns is None:
        return SelectItem(name.text, None, name.span)
    unique(columns.names, "attribute", "SELECT")
    texts, spans = (tuple(c.text for c in columns.names), tuple(c.span for c in columns.names))
    return SelectItem(name.text, texts, name.span, spans)


def _groups(name: Name, columns: Columns | None) -> tuple[tuple[Name | None, Name], ...]:
    """What stands beside totals: a key, or attributes of a variable."""
    if columns is None:
        return ((None, name),)
    return tuple((name, replace(column, span=name.span | column.span)) for column in columns.names)


# ---- Formulas


def _above(part: PatternPart, pattern: a.Pattern, span: Span) -> PatternPart:
    """An operator with one operand."""
    return replace(part, pattern=pattern, span=span, height=part.height + 1, size=part.size + 1)


def _repeated(part: PatternPart, least: int, most: int | None, sign: Token, span: Span) -> PatternPart:
    pattern = a.Repeat(alone(part).pattern, least, most, contiguous=sign.startswith(":"))
    repeated = _above(part, pattern, span)
    return bounded(replace(repeated, size=1 + part.size * max(least, most or 1, 1)))


def _operands(parts: Sequence[PatternPart | Token]) -> tuple[list[PatternPart], list[Token]]:
    return (
        [part for part in parts if not isinstance(part, Token)],
        [part for part in parts if isinstance(part, Token)],
    )


def _place(window: Window) -> Span:
    assert window.span is not None
    return window.span


def _check_beside(parts: Sequence[PatternPart], joints: Sequence[Token]) -> None:
    """What must not happen stands beside steps with gaps, and what comes after another behind one."""
    if all(isinstance(part.pattern, a.Not) for part in parts):
        alone(parts[0])
    for number, part in enumerate(parts):
        if isinstance(part.pattern, a.After):
            if all(isinstance(one.pattern, a.Not) for one in parts[:number]):
                alone(part)
        elif not isinstance(part.pattern, a.Not):
            alone(part)
        else:
            beside = [joint for joint in joints[max(number - 1, 0) : number + 1] if joint.type == "COLON"]
            if beside:
                raise Mistake("nothing lies between neighbours, and NOT says what does not", at(beside[0]), "write ';'")


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
            absent=frozenset().union(*(part.absent for part in parts)),
        )
    )


def _conditions(parts: Sequence[Conditions | Token], *, every: bool) -> Conditions:
    """AND, whose copies multiply, or OR, whose copies add up."""
    conditions = tuple(part for part in parts if not isinstance(part, Token))
    copies = 1 if every else 0
    for part in conditions:
        copies = min(copies * part.copies if every else copies + part.copies, 10**9)
    span = conditions[0].span | conditions[-1].span
    height, parens = 1 + max(part.height for part in conditions), max(part.parens for part in conditions)
    return bounded(Joined(conditions, every, span, height, parens, copies))


CALLBACKS = CeqlTransformer()
