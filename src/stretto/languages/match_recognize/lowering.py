"""From sections as written to a :class:`~stretto.query.row_pattern.RowQuery`: variables are looked up, conditions ask what is true.

SQL's three values end here: a condition becomes one with two values that holds where SQL's is true (:func:`is_true`), and a truth
value as a measure a ``CASE`` with ``NULL``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from stretto.errors import Span, suggestion
from stretto.languages.expressions.tokens import Mistake, Name, at
from stretto.languages.expressions.transformer import DEEPEST, ExpressionPart, predicate_of
from stretto.languages.match_recognize.draft import (
    Classified,
    Draft,
    Item,
    Months,
    Numbered,
    Path,
    Step,
    Subset,
    Total,
)
from stretto.languages.match_recognize.transformer import label
from stretto.query import predicate as p
from stretto.query.row_pattern import (
    Aggregated,
    Alternation,
    Anchor,
    Classifier,
    Concatenation,
    Excluded,
    MatchNumber,
    Measure,
    Navigation,
    Permutation,
    Quantified,
    RowPattern,
    RowQuery,
    RowReference,
    RowsPerMatch,
    Side,
    Variable,
    identifier,
    parts_of,
)
from stretto.query.sase import Referred

#: How many arguments an aggregate takes; one, where it is not here.
_ARGUMENTS = {"min_by": 2, "max_by": 2}

#: Aggregates whose argument is a condition.
_OF_CONDITIONS = frozenset({"bool_and", "bool_or", "every", "count_if"})

#: Other names of aggregates.
_SAME = {"every": "bool_and", "arbitrary": "any_value", "stddev": "stddev_samp", "variance": "var_samp"}

#: Rows further away than that are in no partition.
_FURTHEST = (1 << 31) - 1


def lower(text: str, draft: Draft, *, window: bool = False) -> RowQuery:
    """Make the query of a draft.

    Raises
    ------
    Mistake
        A section is missing, a name is not known or there twice, or a function is nested as the standard forbids it.
    """
    if draft.pattern is None:
        raise Mistake(
            "MATCH_RECOGNIZE needs a PATTERN clause", draft.span, "PATTERN (A B+) DEFINE B AS price > PREV(price)"
        )
    _check_depth(draft.pattern)
    _check_window(draft, draft.pattern, window)
    variables = dict.fromkeys(one.name for one in parts_of(draft.pattern) if isinstance(one, Variable))
    subsets = _subsets(draft.subsets, tuple(variables))
    _check(draft, draft.pattern, (*variables, *subsets))
    once = draft.rows is RowsPerMatch.ONE
    frame = draft.frame and replace(draft.frame, seeks=draft.search is not None and draft.search.upper() == "SEEK")
    read = _Reader((*variables, *subsets))
    measures = [
        Measure(_measured(read.measure(item.value, final=once)), item.name.text, item.name.span)
        for item in draft.measures
    ]
    define: dict[str, p.Predicate] = {}
    for item in draft.define:
        _check_definition(item, tuple(variables), tuple(subsets), define)
        define[label(item.name)] = is_true(read.condition(item.value))
    references = dict(read.references)
    if frame is not None:
        _refuse_numbers(read)
    if once:  # The row is the last one of its match: running and final are the same there.
        measures, references = _all_final(measures, define, references)
    return RowQuery(
        text=text,
        pattern=draft.pattern,
        define=define,
        measures=tuple(measures),
        partition_by=tuple(name.text for name in draft.partition_by),
        order_by=draft.order_by,
        rows=draft.rows if frame is None else RowsPerMatch.WINDOW,
        frame=frame,
        after=draft.after.where,
        after_variable=None if draft.after.variable is None else label(draft.after.variable),
        subsets=subsets,
        within=draft.within,
        references=references,
        spans={f"PARTITION BY {name.text}": name.span for name in draft.partition_by},
    )


# ---- Names


def _subsets(given: Sequence[Subset], variables: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    names = {label(one.name) for one in given}
    for one in given:
        name = label(one.name)
        if name in found:
            raise Mistake(f"a second subset '{name}'", one.name.span)
        if name in variables:
            raise Mistake(
                f"'{name}' is a variable of the pattern, and no name for a subset",
                one.name.span,
                "give it another name",
            )
        for member in one.members:
            if label(member) in names:
                raise Mistake(
                    f"'{label(member)}' is a subset, and subsets hold variables of the pattern",
                    member.span,
                    "list its variables",
                )
            _known(member, variables, "SUBSET")
        found[name] = tuple(dict.fromkeys(map(label, one.members)))
    return found


def _known(name: Name, known: Sequence[str], where: str) -> str:
    """The variable of a name, which has to be one of those known."""
    found = label(name)
    if found not in known:
        hint = suggestion(found, known, kind="variable") or "name it in PATTERN"
        raise Mistake(f"{where} names '{found}', which is no variable of the pattern", name.span, hint)
    return found


def _check_depth(pattern: RowPattern) -> None:
    """Refuse a pattern that is nested so deep that later passes cannot recurse into it."""
    stack = [(pattern, 0)]
    while stack:
        node, depth = stack.pop()
        if depth > DEEPEST:
            raise Mistake(f"nested more than {DEEPEST} levels deep", node.span)
        match node:
            case Concatenation(parts) | Alternation(parts) | Permutation(parts):
                stack += [(part, depth + 1) for part in parts]
            case Quantified(part=part) | Excluded(part=part):
                stack.append((part, depth + 1))
            case _:
                pass


def _check(draft: Draft, pattern: RowPattern, labels: Sequence[str]) -> None:
    """Check what sections say about each other."""
    for what, names in (("PARTITION BY", draft.partition_by), ("MEASURES", [item.name for item in draft.measures])):
        seen: set[str] = set()
        for name in names:
            if name.text in seen:
                raise Mistake(f"{what} has the name '{name.text}' twice", name.span)
            seen.add(name.text)
    if draft.after.variable is not None:
        _known(draft.after.variable, labels, "AFTER MATCH")
    excluded = next((one for one in parts_of(pattern) if isinstance(one, Excluded)), None)
    if excluded is not None and draft.rows is RowsPerMatch.WITH_UNMATCHED:
        raise Mistake(
            "{- -} leaves rows out, and ALL ROWS PER MATCH WITH UNMATCHED ROWS shows all",
            excluded.span,
            "write ALL ROWS PER MATCH, or leave out the exclusion",
        )
    if draft.within is not None and (not draft.order_by or draft.order_by[0].descending):
        raise Mistake(
            "WITHIN needs an order by an ascending time", draft.within.span, "ORDER BY the column of times first"
        )


def _check_window(draft: Draft, pattern: RowPattern, window: bool) -> None:
    """Check that a frame, and what goes with it, stands in a WINDOW clause, and what goes without one does not."""
    if draft.frame is None or not window:
        for title in ("ROWS BETWEEN", "INITIAL or SEEK"):
            if title in draft.seen:
                word = title if draft.search is None or title == "ROWS BETWEEN" else draft.search.upper()
                raise Mistake(
                    f"{word} belongs to a pattern in a WINDOW clause, not to MATCH_RECOGNIZE",
                    draft.seen[title],
                    f"leave out {word}",
                )
        return
    for title in ("ROWS PER MATCH", "WITHIN"):
        if title in draft.seen:
            raise Mistake(f"{title} belongs to MATCH_RECOGNIZE, not to a window", draft.seen[title], "leave it out")
    anchor = next((one for one in parts_of(pattern) if isinstance(one, Anchor)), None)
    if anchor is not None:
        raise Mistake(f"a window's pattern has no {anchor}", anchor.span, "its frame begins at the current row")


def _refuse_numbers(read: _Reader) -> None:
    if (span := read.numbered) is not None:
        raise Mistake("the matches of a window have no numbers", span, "leave out MATCH_NUMBER()")


def _check_definition(item: Item, variables: Sequence[str], subsets: Sequence[str], define: Mapping[str, Any]) -> None:
    name = label(item.name)
    if name in subsets:
        raise Mistake(f"'{name}' is a subset, and conditions are of variables of the pattern", item.name.span)
    _known(item.name, variables, "DEFINE")
    if name in define:
        raise Mistake(f"a second condition of '{name}'", item.name.span, "join the conditions with AND")


# ---- References


@dataclass
class _Reader:
    """Reads expressions: what the operands of a draft refer to, by the names of the references."""

    labels: tuple[str, ...]
    references: dict[str, RowReference] = field(default_factory=dict)
    final: bool = False  #: what holds where neither RUNNING nor FINAL is said
    defining: bool = False
    numbered: Span | None = None  #: where MATCH_NUMBER() stands

    def measure(self, part: ExpressionPart, *, final: bool) -> p.Expression:
        self.final, self.defining = final, False
        if part.is_null:
            raise Mistake("NULL by itself has no type", part.span)
        assert part.expression is not None
        found: p.Expression = self._looked_up(part.expression)
        return found

    def condition(self, part: ExpressionPart) -> p.Predicate:
        self.final, self.defining = False, True
        found: p.Predicate = self._looked_up(predicate_of(part))
        return found

    def _looked_up(self, node: p.Expression) -> Any:
        match node:
            case Path():
                return self._navigated(node, Side.LAST, 0, self.final, 0)
            case Classified():
                return self._navigated(node, Side.LAST, 0, self.final, 0)
            case Numbered():
                self.numbered = node.span
                return self._referred(MatchNumber(), node.span)
            case Step():
                return self._step(node)
            case Total():
                return self._total(node)
            case Months():
                hint = "day + INTERVAL '1' MONTH"
                raise Mistake("an interval of months is added to a time, or taken from it", node.span, hint)
        return p.rebuilt(node, self._looked_up)

    def _referred(self, reference: RowReference, span: Span | None) -> Referred:
        self.references[str(reference)] = reference
        return Referred(str(reference), span)

    def _column(self, path: Path) -> tuple[str, str]:
        """The variable of a path, and its column."""
        first, *rest = path.words
        if rest and label(first) in self.labels:
            return label(first), ".".join(name.text for name in rest)
        return "", path.name

    def _classified(self, node: Classified) -> str:
        return "" if node.variable is None else _known(node.variable, self.labels, "CLASSIFIER")

    def _is_final(self, node: Step | Total) -> bool:
        word = node.semantics
        if word is None:
            return self.final
        if word.upper() == "FINAL" and self.defining:
            raise Mistake("FINAL looks at rows that a condition does not know yet", at(word), "leave out FINAL")
        return word.upper() == "FINAL"

    # -- navigation ---------------------------------------------------------------------------------------------------

    def _step(self, node: Step) -> p.Operand:
        assert node.argument is not None
        if node.word in ("FIRST", "LAST"):
            inside = _value(node.argument)
            return self._spread(node, inside, Side(node.word), self._offset(node, 0), self._is_final(node), 0)
        if node.semantics is not None:
            raise Mistake(
                f"{node.semantics.upper()} stands before FIRST and LAST, not before {node.word}",
                at(node.semantics),
                f"write {node.word}({node.semantics.upper()} LAST(…))",
            )
        shift = self._offset(node, 1) * (1 if node.word == "NEXT" else -1)
        inner = _value(node.argument)
        if isinstance(inner, Step) and inner.word in ("FIRST", "LAST"):
            assert inner.argument is not None
            value = _value(inner.argument)
            return self._spread(inner, value, Side(inner.word), self._offset(inner, 0), self._is_final(inner), shift)
        return self._spread(node, inner, Side.LAST, 0, self.final, shift)

    def _offset(self, node: Step, default: int) -> int:
        if node.offset is None:
            return default
        value = getattr(node.offset.expression, "value", None)
        constant = isinstance(node.offset.expression, p.Constant) and not isinstance(node.offset.expression, p.Duration)
        if not constant or isinstance(value, bool) or not isinstance(value, int) or value < 0:
            other = {"PREV": "NEXT", "NEXT": "PREV"}.get(node.word)
            backwards = constant and isinstance(value, int) and other is not None
            hint = f"{other} goes the other way" if backwards else f"{node.word}(price, 2)"
            raise Mistake(f"{node.word} counts rows by a constant, 0 or more", node.offset.span, hint)
        if value > _FURTHEST:
            raise Mistake(f"{node.word} counts {_FURTHEST:,} rows at most", node.offset.span)
        return value

    def _spread(self, node: Step, inside: p.Operand, side: Side, skip: int, final: bool, shift: int) -> p.Operand:
        """The same expression over the columns of the row that the navigation leads to."""
        for one in _all(inside):
            self._refuse_in_navigation(node, inside, one)
        variables = self._variables(inside, node.word)
        if not variables:
            raise Mistake(f"{node.word} needs a column, or CLASSIFIER()", node.span, f"{node.word}(price)")
        found: p.Operand = self._spread_over(inside, side, skip, final, shift)
        return found

    def _spread_over(self, node: p.Expression, side: Side, skip: int, final: bool, shift: int) -> Any:
        if isinstance(node, Path | Classified):
            return self._navigated(node, side, skip, final, shift)
        return p.rebuilt(node, lambda part: self._spread_over(part, side, skip, final, shift))

    def _navigated(self, node: Path | Classified, side: Side, skip: int, final: bool, shift: int) -> Referred:
        variable, column = (self._classified(node), None) if isinstance(node, Classified) else self._column(node)
        return self._referred(Navigation(variable, side, skip, final, shift, column), node.span)

    def _refuse_in_navigation(self, outer: Step, inside: p.Operand, node: p.Expression) -> None:
        match node:
            case Step(word="PREV" | "NEXT") if outer.word in ("FIRST", "LAST"):
                what = f"{node.word} inside of {outer.word}"
                raise Mistake(f"{what}: PREV and NEXT stand outside", node.span, f"write {node.word}({outer.word}(…))")
            case Step() if node is not inside and outer.word in ("PREV", "NEXT") and node.word in ("FIRST", "LAST"):
                hint = f"write {outer.word}({node.word}(A.price + 1))"
                raise Mistake(f"{node.word} stands by itself inside of {outer.word}", node.span, hint)
            case Step():
                physical = outer.word in ("PREV", "NEXT")
                hint = "add up the numbers of rows: PREV(price, 2)" if physical else f"write {outer.word}(price, 2)"
                raise Mistake(f"{node.word} inside of {outer.word}", node.span, hint)
            case Total():
                raise Mistake(f"{node.function} inside of {outer.word}: an aggregate is about several rows", node.span)
            case Numbered():
                raise Mistake(
                    f"MATCH_NUMBER() inside of {outer.word}: it is the same in all rows",
                    node.span,
                    "write it by itself",
                )
            case p.Case() | p.Function(name="coalesce"):
                hint = f"write it around: COALESCE({outer.word}(price), 0)"
                raise Mistake(f"{node.name.upper()} inside of {outer.word}", node.span, hint)

    def _variables(self, inside: p.Expression, where: str) -> list[str]:
        """The variable of which an expression inside of a function reads rows: at most one."""
        found: dict[str, Span | None] = {}
        for one in _all(inside):
            if isinstance(one, Path):
                found.setdefault(self._column(one)[0], one.span)
            elif isinstance(one, Classified):
                found.setdefault(self._classified(one), one.span)
        if len(found) > 1:
            first, second = (f"'{identifier(name)}'" if name else "all rows" for name in list(found)[:2])
            raise Mistake(
                f"{where} reads rows of {first} and of {second}",
                list(found.values())[1],
                "one variable for all columns inside",
            )
        return list(found)

    # -- aggregates ---------------------------------------------------------------------------------------------------

    def _total(self, node: Total) -> Referred:
        function = _SAME.get(node.function, node.function)
        final = self._is_final(node)
        if not node.arguments:
            variable = "" if node.rows is None else _known(node.rows, self.labels, "count")
            return self._referred(Aggregated("count", variable, (), False, final), node.span)
        needed = _ARGUMENTS.get(function, 1)
        if len(node.arguments) != needed:
            takes = "one value" if needed == 1 else "two values"
            raise Mistake(f"{node.function} takes {takes}", node.span)
        if node.distinct is not None and (needed == 2 or function in _OF_CONDITIONS):
            raise Mistake(f"{node.function} takes no DISTINCT", at(node.distinct))
        values = [self._argument(node, part) for part in node.arguments]
        variables: dict[str, Span | None] = {}
        for value in values:
            for name in self._variables(value, node.function):
                variables.setdefault(name, value.span)
        if len(variables) > 1:
            raise Mistake(
                f"{node.function} reads rows of several variables", node.span, "one variable for all columns inside"
            )
        arguments = tuple(_measured(self._of_row(value)) for value in values)
        return self._referred(
            Aggregated(function, next(iter(variables), ""), arguments, node.distinct is not None, final), node.span
        )

    def _argument(self, node: Total, part: ExpressionPart) -> p.Expression:
        if node.function in _OF_CONDITIONS:
            value: p.Expression = predicate_of(part)
        else:
            value = _value(part)
        for one in _all(value):
            if isinstance(one, Step):
                raise Mistake(
                    f"{one.word} inside of {node.function}", one.span, "an aggregate reads columns of its rows"
                )
            if isinstance(one, Total):
                raise Mistake(f"{one.function} inside of {node.function}: aggregates do not nest", one.span)
        return value

    def _of_row(self, node: p.Expression) -> Any:
        """An expression over the columns of the row that an aggregate looks at."""
        if isinstance(node, Path):
            return p.Attribute(self._column(node)[1], node.span)
        if isinstance(node, Classified):
            return Referred(str(Classifier()), node.span)
        if isinstance(node, Numbered):
            self.numbered = node.span
            return Referred(str(MatchNumber()), node.span)
        return p.rebuilt(node, self._of_row)


def _value(part: ExpressionPart) -> p.Operand:
    if part.is_null or not isinstance(part.expression, p.Operand):
        what = "NULL" if part.is_null else "a condition"
        raise Mistake(f"a value is needed here, not {what}", part.span)
    return part.expression


def _all(node: p.Expression) -> Iterator[p.Expression]:
    """All nodes of an expression, and of what its functions are given."""
    stack: list[p.Expression] = [node]
    while stack:
        one = stack.pop()
        yield one
        stack.extend(reversed(p.children(one)))
        inside: Sequence[ExpressionPart | None] = ()
        if isinstance(one, Step):
            inside = (one.argument,)
        elif isinstance(one, Total):
            inside = one.arguments
        stack.extend(part.expression for part in inside if part is not None and part.expression is not None)


def _all_final(
    measures: Sequence[Measure], define: Mapping[str, p.Predicate], references: Mapping[str, RowReference]
) -> tuple[list[Measure], dict[str, RowReference]]:
    """The same measures, where RUNNING is FINAL."""
    renamed: dict[str, p.Operand] = {}
    found = {name: references[name] for one in define.values() for name in p.attributes(one)}
    for measure in measures:
        for name, span in p.attributes(measure.value).items():
            reference = references[name]
            if isinstance(reference, Navigation | Aggregated):
                reference = replace(reference, final=True)
            found[str(reference)] = reference
            renamed[name] = Referred(str(reference), span)
    return [replace(one, value=p.substituted(one.value, renamed)) for one in measures], found


# ---- Three values


def is_true(node: p.Predicate, holds: bool = True) -> p.Predicate:
    """Write when SQL's condition is true, or is false, with two values.

    >>> x, y = p.Attribute("x"), p.Attribute("y")
    >>> print(is_true(p.Not(p.Comparison("<", x, y))))
    NOT (x < y) AND NOT (x IS NULL) AND NOT (y IS NULL)
    """
    match node:
        case p.Not(part):
            return is_true(part, not holds)
        case p.And(parts) | p.Or(parts):
            inside = tuple(is_true(part, holds) for part in parts)
            kind: type[p.And] | type[p.Or] = p.And if isinstance(node, p.And) is holds else p.Or
            return _joined(kind, inside, node.span)
        case p.Between() if not holds:
            return is_true(node.meaning, holds)
        case p.Comparison(_, p.Constant(bool() as one), p.Constant(bool() as other)):
            return p.And(()) if (one == other) is holds else p.Or(())
    atom = p.rebuilt(node, _inside)
    if holds:
        return atom
    unknown = () if isinstance(atom, p.IsNull) else tuple(_nulls(atom))
    if not unknown:
        return p.Not(atom, node.span)
    return p.And((p.Not(atom, node.span), *(p.Not(p.IsNull(one, one.span), one.span) for one in unknown)), node.span)


def _joined(kind: type[p.And] | type[p.Or], parts: Sequence[p.Predicate], span: Span | None) -> p.Predicate:
    """AND or OR of conditions, flat."""
    flat: list[p.Predicate] = []
    for part in parts:
        flat += part.parts if isinstance(part, kind) else (part,)
    return flat[0] if len(flat) == 1 else kind(tuple(flat), span)


def _nulls(atom: p.Expression) -> Iterator[p.Operand]:
    """The operands without which a condition is neither true nor false."""
    for part in p.children(atom):
        assert isinstance(part, p.Operand)
        if not isinstance(part, p.Constant):
            yield part


def _inside(node: p.Expression) -> Any:
    """A value whose conditions, those of its CASE, ask what is true."""
    if isinstance(node, p.Predicate):
        return is_true(node)
    return p.rebuilt(node, _inside)


def _measured(node: p.Expression) -> p.Operand:
    """A value; a condition is TRUE, FALSE or NULL."""
    if isinstance(node, p.Operand):
        found: p.Operand = _inside(node)
        return found
    return p.Case((is_true(node), is_true(node, False)), (p.Constant(True), p.Constant(False), p.NULL), node.span)
