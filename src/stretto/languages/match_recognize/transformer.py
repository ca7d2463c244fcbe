"""The parser's callbacks: each makes the value of one rule of ``grammar.lark`` as soon as the rule is read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from lark import Token, v_args

from stretto.errors import Span, nearest, suggestion
from stretto.languages.expressions.clauses import ClauseTransformer, Counts, Measure, window_of
from stretto.languages.expressions.tokens import LONGEST_NUMBER, Mistake, Name, at, at_end, find, name_of, unquoted
from stretto.languages.expressions.transformer import (
    ExpressionPart,
    PredicateTransformer,
    predicate_of,
    shallow,
    value_of,
)
from stretto.languages.match_recognize.draft import (
    Classified,
    Draft,
    Item,
    Months,
    Numbered,
    Path,
    Section,
    SkipTo,
    Step,
    Subset,
    Total,
)
from stretto.languages.match_recognize.functions import (
    MONTHS,
    REWRITTEN,
    WRITTEN,
    Named,
    cast_to,
    outer,
    rewritten,
)
from stretto.query import predicate as p
from stretto.query.row_pattern import (
    AfterMatch,
    Alternation,
    Anchor,
    Concatenation,
    Empty,
    Excluded,
    Frame,
    OrderItem,
    Permutation,
    Quantified,
    RowPattern,
    RowsPerMatch,
    Variable,
)
from stretto.query.scalar_functions import COMMON, OTHER_NAMES, SQL
from stretto.query.windows import Window
from stretto.times import PER_SECOND, SECONDS

RESERVED = {"VARIABLE": p.WORDS}
"""The words that are no names without quotes, by the kind of place (a terminal of the grammar)."""

#: The order of the sections.
_ORDER = (
    "PARTITION BY",
    "ORDER BY",
    "MEASURES",
    "ROWS PER MATCH",
    "ROWS BETWEEN",
    "AFTER MATCH",
    "INITIAL or SEEK",
    "PATTERN",
    "WITHIN",
    "SUBSET",
    "DEFINE",
)

#: The sections of MATCH_RECOGNIZE; the others are those of a WINDOW clause.
_SHOWN = [title for title in _ORDER if title not in ("ROWS BETWEEN", "INITIAL or SEEK")]

_SKIPS = {
    "SKIP_PAST": AfterMatch.PAST,
    "SKIP_NEXT": AfterMatch.NEXT,
    "SKIP_FIRST": AfterMatch.FIRST,
    "SKIP_LAST": AfterMatch.LAST,
    "SKIP_TO": AfterMatch.LAST,
}
_ROWS = {
    "ONE_ROW": RowsPerMatch.ONE,
    "ALL_ROWS": RowsPerMatch.SHOW_EMPTY,
    "SHOW_EMPTY": RowsPerMatch.SHOW_EMPTY,
    "OMIT_EMPTY": RowsPerMatch.OMIT_EMPTY,
    "WITH_UNMATCHED": RowsPerMatch.WITH_UNMATCHED,
}
_SIGNS: dict[str, tuple[int, int | None]] = {"STAR": (0, None), "PLUS": (1, None), "QUESTION": (0, 1)}

#: A quantifier counts no further than a 32-bit integer.
_MOST = (1 << 31) - 1

_INTERVAL = re.compile(r"\s*(?P<number>[+-]?\d+(?:\.\d*)?)\s*")


@v_args(inline=True)
class RowsTransformer(PredicateTransformer, ClauseTransformer):
    """One method for each rule and alias of ``grammar.lark``; without state, so that threads may share it."""

    quoted_attribute = '"{}"'

    def clause(self, keyword: Token, *parts: Section | Token) -> Draft:
        draft = Draft(span=at(keyword))
        last = ""
        for section in parts:
            if not isinstance(section, Section):
                continue
            if section.title in draft.seen:
                raise Mistake(f"a second {section.title} clause", section.span)
            if last and _ORDER.index(section.title) < _ORDER.index(last):
                raise Mistake(
                    f"{section.title} stands before {last}", section.span, f"the order is {', '.join(_SHOWN)}"
                )
            draft.seen[section.title] = section.span
            setattr(draft, section.field, section.value)
            last = section.title
        return draft

    # ---- Sections

    def partition_clause(self, keyword: Token, *parts: Token | Name) -> Section:
        return Section("PARTITION BY", "partition_by", _names(parts), at(keyword))

    def order_clause(self, keyword: Token, *parts: Token | OrderItem) -> Section:
        items = tuple(part for part in parts if isinstance(part, OrderItem))
        return Section("ORDER BY", "order_by", items, at(keyword))

    def order(self, name: Name, *words: Token) -> OrderItem:
        direction, nulls = find(words, "DIRECTION"), find(words, "NULLS")
        return OrderItem(
            name.text,
            descending=direction is not None and direction.upper() == "DESC",
            nulls_first=nulls is not None and nulls.upper().endswith("FIRST"),
            span=name.span,
        )

    def measures_clause(self, keyword: Token, *parts: Token | Item) -> Section:
        return Section("MEASURES", "measures", tuple(part for part in parts if isinstance(part, Item)), at(keyword))

    def measured(self, value: ExpressionPart, _: Token, name: Name) -> Item:
        return Item(value, name)

    def rows_clause(self, *words: Token) -> Section:
        return Section("ROWS PER MATCH", "rows", _ROWS[words[-1].type], at(words[0]) | at(words[-1]))

    def skip_clause(self, keyword: Token, *parts: Token | Name) -> Section:
        where = parts[0]
        assert isinstance(where, Token)
        name = parts[1] if len(parts) > 1 else None
        assert not isinstance(name, Token)
        return Section("AFTER MATCH", "after", SkipTo(_SKIPS[where.type], name), at(keyword))

    def search_clause(self, word: Token) -> Section:
        return Section("INITIAL or SEEK", "search", word, at(word))

    def frame_clause(self, keyword: Token, *end: Token) -> Section:
        number = find(end, "NUMBER")
        span = at(keyword) | at_end(end)
        if number is not None and not number.isdigit():
            raise Mistake("a frame ends a whole number of rows further", at(number))
        following = None if end[0].type == "UNBOUNDED" else 0 if number is None else int(number[:19])
        return Section("ROWS BETWEEN", "frame", Frame(following, span=span), span)

    def pattern_clause(self, keyword: Token, opening: Token, *parts: RowPattern | Token) -> Section:
        return Section("PATTERN", "pattern", self.pattern_group(opening, *parts), at(keyword))

    def within_clause(self, keyword: Token, *parts: Any) -> Section:  # type: ignore[override]
        first = parts[0]
        if isinstance(first, Measure):
            window = window_of(parts, bare=True)
        else:
            assert isinstance(first, ExpressionPart)
            length = first.expression
            if isinstance(length, Months):
                raise Mistake("months are not equally long", first.span, "write WITHIN INTERVAL '30' DAY")
            assert isinstance(length, p.Duration)
            window = Window(seconds=Decimal(length.value) / length.per_second, span=first.span)
        if window.seconds is None or window.seconds <= 0:
            raise Mistake("WITHIN takes a duration", window.span, "write WITHIN INTERVAL '1' HOUR")
        return Section("WITHIN", "within", window, at(keyword))

    def subset_clause(self, keyword: Token, *parts: Token | Subset) -> Section:
        return Section("SUBSET", "subsets", tuple(part for part in parts if isinstance(part, Subset)), at(keyword))

    def subset(self, name: Name, sign: Token, *parts: Token | Name) -> Subset:
        if sign != "=":
            raise Mistake(f"a subset is written with =, not with {sign}", at(sign), "SUBSET S = (A, B)")
        return Subset(name, _names(parts))

    def define_clause(self, keyword: Token, *parts: Token | Item) -> Section:
        return Section("DEFINE", "define", tuple(part for part in parts if isinstance(part, Item)), at(keyword))

    def definition(self, name: Name, _: Token, value: ExpressionPart) -> Item:
        return Item(value, name)

    def path(self, *parts: Token | Name) -> Name:
        names = _names(parts)
        return replace(names[0], text=".".join(name.text for name in names), span=names[0].span | names[-1].span)

    def word(self, token: Token) -> Name:
        return name_of(token)

    # ---- PATTERN

    def alternatives(self, *parts: RowPattern | Token) -> RowPattern:
        inside = _patterns(parts)
        return Alternation(inside, _around(inside))

    def concatenation(self, *parts: RowPattern) -> RowPattern:
        return Concatenation(parts, _around(parts))

    def variable(self, name: Name) -> RowPattern:
        return Variable(label(name), name.span)

    def pattern_group(self, opening: Token, *parts: RowPattern | Token) -> RowPattern:
        inside = _patterns(parts)
        span = at(opening) | at_end(parts)
        return replace(inside[0], span=span) if inside else Empty(span)

    def permutation(self, keyword: Token, *parts: RowPattern | Token) -> RowPattern:
        return Permutation(_patterns(parts), at(keyword) | at_end(parts))

    def exclusion(self, opening: Token, part: RowPattern, closing: Token) -> RowPattern:
        return Excluded(part, at(opening) | at(closing))

    def anchor(self, sign: Token) -> RowPattern:
        return Anchor(sign.type == "CARET", at(sign))

    def quantified(self, part: RowPattern, *rest: Token | Counts) -> RowPattern:
        counts = next((one for one in rest if isinstance(one, Counts)), None)
        assert part.span is not None
        sign = rest[0]
        if counts is not None:
            least, most, end = counts.least, counts.most, counts.span
            if max(least, most or 0) > _MOST:
                raise Mistake(f"a quantifier of more than {_MOST:,}", counts.span)
        else:
            assert isinstance(sign, Token)
            (least, most), end = _SIGNS[sign.type], at(sign)
        reluctant = sum(1 for one in rest if isinstance(one, Token) and one.type == "QUESTION") > (
            counts is None and sign.type == "QUESTION"  # type: ignore[union-attr]
        )
        return Quantified(part, least, most, reluctant, part.span | end)

    # ---- Operands

    def quoted(self, word: Token) -> ExpressionPart:
        raise AssertionError("double quotes make names here")

    def reference(self, *parts: Token | Name) -> ExpressionPart:
        names = _names(parts)
        span = names[0].span | names[-1].span
        return ExpressionPart(Path(".".join(name.text for name in names), span, names), span)

    def navigation(self, *parts: Token | ExpressionPart) -> ExpressionPart:
        semantics, word = find(parts, "SEMANTICS"), find(parts, "NAVIGATE")
        assert word is not None
        inside = [part for part in parts if isinstance(part, ExpressionPart)]
        span = _from(parts) | at_end(parts)
        offset = inside[1] if len(inside) > 1 else None
        step = Step(f"{word}@{span.start}", span, word.upper(), inside[0], offset, semantics)
        return outer(step, inside)

    def aggregate(self, *parts: Token | ExpressionPart) -> ExpressionPart:
        semantics, word = find(parts, "SEMANTICS"), find(parts, "AGGREGATE")
        assert word is not None
        inside = tuple(part for part in parts if isinstance(part, ExpressionPart))
        span = _from(parts) | at_end(parts)
        name = f"{word}@{span.start}"
        return outer(
            Total(name, span, word.lower(), inside, None, find(parts, "DISTINCT"), semantics),
            inside,
        )

    def count_rows(self, *parts: Token | Name) -> ExpressionPart:
        semantics, word = find(parts, "SEMANTICS"), find(parts, "AGGREGATE")
        distinct = find(parts, "DISTINCT")
        assert word is not None
        span = _from(parts) | at_end(parts)
        if word.lower() != "count":
            raise Mistake(f"{word.lower()} takes a value, not *", span, "count(*) and count(A.*) count rows")
        if distinct is not None:
            raise Mistake("DISTINCT needs a value, not *", at(distinct), "write count(DISTINCT A.price)")
        rows = next((part for part in parts if isinstance(part, Name)), None)
        return ExpressionPart(Total(f"{word}@{span.start}", span, "count", (), rows, None, semantics), span)

    def classifier(self, word: Token, *parts: Token | Name) -> ExpressionPart:
        span = at(word) | at_end(parts)
        return ExpressionPart(Classified(f"{word}@{span.start}", span, next(iter(_names(parts)), None)), span)

    def match_number(self, word: Token, *parts: Token) -> ExpressionPart:
        span = at(word) | at_end(parts)
        return ExpressionPart(Numbered(f"{word}@{span.start}", span), span)

    def type(self, *parts: Token) -> Named:
        kind = " ".join(token.lower() for token in parts if token.type == "VARIABLE")
        return Named(kind, find(parts, "NUMBER"), at(parts[0]) | at(parts[-1]))

    def cast(self, word: Token, _: Token, part: ExpressionPart, *rest: Token | Named) -> ExpressionPart:
        kind = next(one for one in rest if isinstance(one, Named))
        return cast_to(part, kind, at(word) | at_end(rest), tries=word.lower() == "try_cast")

    def cast_behind(self, part: ExpressionPart, _: Token, *rest: Token) -> ExpressionPart:
        kind = self.type(*rest)
        return cast_to(part, kind, part.span | kind.span, tries=False)

    def extract(self, word: Token, _: Token, unit: Token, *rest: Token | ExpressionPart) -> ExpressionPart:
        name = OTHER_NAMES.get(unit.lower(), unit.lower())
        fields = [one for one, known in SQL.items() if known.gives == "int" and known.takes == (("time",),)]
        if name not in fields:
            raise Mistake(f"a time has no field '{unit}'", at(unit), suggestion(name, fields, kind="field"))
        part = next(one for one in rest if isinstance(one, ExpressionPart))
        return outer(p.Function(name, (value_of(part),), at(word) | at_end(rest)), (part,))

    def choice(self, word: Token, _: Token, condition: ExpressionPart, *rest: Token | ExpressionPart) -> ExpressionPart:
        """``IF(c, x, y)`` is ``CASE WHEN c THEN x ELSE y END``."""
        values = [one for one in rest if isinstance(one, ExpressionPart)]
        chosen = [p.NULL if one.is_null else value_of(one) for one in values] + [p.NULL] * (len(values) == 1)
        span = at(word) | at_end(rest)
        return outer(p.Case((predicate_of(condition),), tuple(chosen), span), [condition, *values])

    def distinct(self, left: ExpressionPart, *rest: Token | ExpressionPart) -> ExpressionPart:
        """Both are NULL, or neither is and they are equal; or not so. This is never unknown."""
        right = rest[-1]
        assert isinstance(right, ExpressionPart)
        span = left.span | right.span
        if left.is_null or right.is_null:
            given = right if left.is_null else left
            same: p.Predicate = p.IsNull(value_of(given), span)
        else:
            first, second = value_of(left), value_of(right)
            nulls = (p.IsNull(first, span), p.IsNull(second, span))
            neither = tuple(p.Not(one, span) for one in nulls)
            equal = p.Comparison("=", first, second, span)
            same = p.Or((p.And(nulls, span), p.And((*neither, equal), span)), span)
        found = same if find(rest, "NOT") is not None else p.Not(same, span)
        return ExpressionPart(found, span, 1 + max(left.height, right.height), max(left.parens, right.parens))

    def among(self, part: ExpressionPart, *rest: ExpressionPart | Token) -> ExpressionPart:
        """``x IN (a, b)`` with values that are no constants is ``x = a OR x = b``."""
        values = [one for one in rest if isinstance(one, ExpressionPart)]
        if all(isinstance(one.expression, p.Constant) for one in values):
            return super().among(part, *rest)
        own = value_of(part)
        equal = [p.Comparison("=", own, value_of(one), one.span) for one in values]
        span = part.span | at_end(rest)
        inside: p.Predicate = equal[0] if len(equal) == 1 else p.Or(tuple(equal), span)
        height, parens = (max(getattr(one, name) for one in (part, *values)) for name in ("height", "parens"))
        return shallow(
            ExpressionPart(inside if find(rest, "NOT") is None else p.Not(inside, span), span, 2 + height, parens)
        )

    def arithmetic(self, left: ExpressionPart, sign: Token, right: ExpressionPart) -> ExpressionPart:
        """A time and months are a time."""
        months = [one for one in (left, right) if isinstance(one.expression, Months)]
        if not months:
            return super().arithmetic(left, sign, right)
        other = left if isinstance(right.expression, Months) else right
        span = left.span | right.span
        if sign not in ("+", "-") or len(months) == 2 or (sign == "-" and other is right):
            raise Mistake("months are added to a time, or taken from it", span, "day + INTERVAL '1' MONTH")
        count = months[0].expression
        assert isinstance(count, Months)
        number = p.Constant(count.value if sign == "+" else -count.value, count.span)
        return outer(p.Function("add_months", (value_of(other), number), span), (left, right))

    def refuse_call(self, function: Token, span: Span, parts: Sequence[ExpressionPart]) -> None:
        known = (
            "coalesce",
            "nullif",
            "prev",
            "next",
            "first",
            "last",
            "classifier",
            "match_number",
            "sum",
            "avg",
            "count",
        )
        if function.lower() in ("lag", "lead"):
            other = "PREV" if function.lower() == "lag" else "NEXT"
            raise Mistake(
                f"'{function}' is a window function", at(function), f"rows of the partition are reached by {other}"
            )
        if function.lower() in WRITTEN:
            raise Mistake(f"'{function}' is not computed here", at(function), f"write {WRITTEN[function.lower()]}")
        close = nearest(str(function), known)
        if close is not None:
            raise Mistake(f"unknown function '{function}'", at(function), f"did you mean '{close}'?")

    def call(self, function: Token, opening: Token, *rest: ExpressionPart | Token) -> ExpressionPart:
        """Make a call; some functions are others, or expressions."""
        parts = [part for part in rest if isinstance(part, ExpressionPart)]
        name = OTHER_NAMES.get(function.lower(), function.lower())
        span = at(function) | at_end(rest)
        if name in REWRITTEN:
            if len(parts) != len(REWRITTEN[name]):
                raise Mistake(f"{name}({', '.join(REWRITTEN[name])}) does not take {len(parts)} values", span)
            return outer(rewritten(name, list(map(value_of, parts)), parts, span), parts)
        if name in SQL and not name.startswith(("cast_", "try_cast_")):
            return outer(p.Function(name, tuple(map(value_of, parts)), span), parts)
        return super().call(function.update(value=name) if name in COMMON else function, opening, *rest)

    def time(self, word: Token, text: Token) -> ExpressionPart:
        span = at(word) | at(text)
        return ExpressionPart(p.Constant(unquoted(text), span), span)

    def interval(self, word: Token, size: Token, unit: Token) -> ExpressionPart:
        span = at(word) | at(unit)
        written = unquoted(size) if size.type == "STRING" else str(size)
        number = _INTERVAL.fullmatch(written) if len(written) <= LONGEST_NUMBER else None
        seconds = SECONDS.get(unit.casefold())
        hint = "write INTERVAL '90' MINUTE"
        if number is not None and unit.lower().removesuffix("s") in MONTHS:
            months = Fraction(number["number"]) * MONTHS[unit.lower().removesuffix("s")]
            if months.denominator != 1:
                raise Mistake("an interval of months has no fraction", at(size))
            return ExpressionPart(Months(int(months), span), span)
        if number is None:
            raise Mistake(f"'{written}' is no length of an interval", at(size), hint)
        if seconds is None:
            close = nearest(str(unit), SECONDS)
            raise Mistake(
                f"an interval has no length in '{unit}'", at(unit), f"did you mean '{close}'?" if close else hint
            )
        length = Fraction(number["number"]) * Fraction(seconds)
        per_second = next((one for one in PER_SECOND.values() if (length * one).denominator == 1), None)
        if per_second is None:
            raise Mistake("a duration finer than a nanosecond", span)
        return ExpressionPart(p.Duration(int(length * per_second), span, per_second), span)


def label(name: Name) -> str:
    """The name of a variable: in capital letters unless it is quoted."""
    return name.text.upper() if name.bare else name.text


def _names(parts: Sequence[object]) -> tuple[Name, ...]:
    return tuple(part for part in parts if isinstance(part, Name))


def _patterns(parts: Sequence[RowPattern | Token]) -> tuple[RowPattern, ...]:
    return tuple(part for part in parts if not isinstance(part, Token))


def _around(parts: Sequence[RowPattern]) -> Span:
    first, last = parts[0].span, parts[-1].span
    assert first is not None
    assert last is not None
    return first | last


def _from(parts: Sequence[object]) -> Span:
    first = parts[0]
    assert isinstance(first, Token)
    return at(first)


CALLBACKS = RowsTransformer()
