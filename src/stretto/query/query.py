"""A query as a value: what the parser hands over, before a schema is known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

from stretto.errors import OptionError, Span
from stretto.query import predicate as p
from stretto.query.algebra import Atom, Filter, Not, Pattern, ends, is_timed, reported, skipping_loops, spans_of, walk
from stretto.query.totals import Asked, Totals, attributes
from stretto.query.windows import Window

if TYPE_CHECKING:
    from stretto.query.moving import MovingAggregate


class Strategy(StrEnum):
    """Selection strategies (SEMANTICS: CEQL, selection strategies)."""

    ALL = "ALL"
    NEXT = "NEXT"
    LAST = "LAST"
    MAX = "MAX"
    STRICT = "STRICT"


class Consume(StrEnum):
    """What an output forgets (CONSUME BY)."""

    ANY = "ANY"
    PARTITION = "PARTITION"
    NONE = "NONE"


@dataclass(frozen=True)
class SelectItem:
    """``x`` or ``x[name, price]``: a variable to report, and of its events which attributes (``None``: all)."""

    variable: str
    attributes: tuple[str, ...] | None = None
    span: Span | None = field(default=None, compare=False, repr=False)
    attribute_spans: tuple[Span, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True)
class JoinedKey:
    """``orders[id] = payments[order_id]``: a key that streams call differently, read as one column of all of them.

    A key that conditions of SASE+ say is told by the types of events, in place of their streams.
    """

    parts: tuple[tuple[str, str], ...]  #: streams or types, each with its attribute
    spans: tuple[Span, ...] = field(default=(), compare=False, repr=False)

    @property
    def name(self) -> str:
        """The attribute of bound queries that holds it."""
        return " = ".join(f"{stream}[{attribute}]" for stream, attribute in self.parts)

    @property
    def shown(self) -> str:
        """The column of results that holds it."""
        return self.parts[0][1]

    @property
    def span(self) -> Span:
        return self.spans[0] | self.spans[-1]


class Skip(StrEnum):
    """Where the next match may begin (AFTER MATCH SKIP)."""

    NEXT = "TO NEXT EVENT"
    PAST = "PAST LAST EVENT"
    FIRST = "TO FIRST"
    LAST = "TO LAST"


@dataclass(frozen=True)
class Keep:
    """``KEEP LONGEST AFTER MATCH SKIP PAST LAST EVENT``: one match for each start, and which of these one after the other."""

    longest: bool = False
    skip: Skip = Skip.NEXT
    variable: str | None = None  #: of ``TO FIRST`` and ``TO LAST``
    span: Span | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        which = "LONGEST" if self.longest else "SHORTEST"
        return f"KEEP {which} AFTER MATCH SKIP {self.skip}" + (f" {self.variable}" if self.variable else "")


@dataclass(frozen=True)
class AnyQuery:
    """A query of any language after parsing: what all of them say, beside the pattern.

    ``partition_by`` are the attributes that are equal in all events of a match, ``joined`` those of them that streams call
    differently, ``implied`` those that conditions of SASE+ say.
    """

    text: str
    _: KW_ONLY
    partition_by: tuple[str, ...] = ()
    joined: tuple[JoinedKey, ...] = ()
    implied: tuple[str, ...] = ()
    window: Window | None = None
    consume: Consume = Consume.NONE
    non_overlap: bool = False
    compressed: bool = False
    limit: int | None = None
    keep: Keep | None = None
    asked: Asked | None = None  #: what is asked of all matches together
    language: str = ""
    moving: tuple[MovingAggregate, ...] = ()  #: the moving aggregates of its conditions
    partition_spans: tuple[Span, ...] = field(default=(), compare=False, repr=False)
    stream_spans: tuple[Span, ...] = field(default=(), compare=False, repr=False)
    any_stream: ClassVar[bool] = True  #: it reads whatever there is
    within: ClassVar[str] = "WITHIN"  #: the word that begins a window
    fewer: ClassVar[str] = ""  #: what has fewer matches than iterations that skip, and what counts them
    words: ClassVar[Mapping[str, str]] = {}  #: what fields are called that have another name than in CEQL
    no_sets: ClassVar[str] = ""  #: why its matches are not handed over as sets
    no_partial_matches: ClassVar[str] = ""  #: why a matcher does not list its partial matches
    not_followed: ClassVar[str] = "if it is made with timeouts=True"  #: of which matchers ``why_not`` tells

    if TYPE_CHECKING:  # what each language has as a field or as a property

        @property
        def strategy(self) -> StrEnum: ...
        @property
        def streams(self) -> tuple[str, ...]: ...
        @property
        def variables(self) -> tuple[str, ...]: ...
        @property
        def last_negation(self) -> object: ...
        @property
        def conditions(self) -> tuple[p.Expression, ...]: ...
        @property
        def attributes(self) -> tuple[str, ...]: ...
        @property
        def wanted(self) -> tuple[str, ...]: ...

    @property
    def shows_everything(self) -> bool:
        """Whether results show events with all their attributes."""
        return not isinstance(self.asked, Totals)

    @property
    def pipes(self) -> tuple[Any, ...]:
        """What becomes of the matches, one thing after the other."""
        return ()

    @property
    def needs_times(self) -> bool:
        """Whether the pattern says how far apart events are, or what must not come before its first or after its last one."""
        return False

    @property
    def equality(self) -> str:
        """What says that attributes are equal in all events of a match."""
        return "PARTITION BY"

    @property
    def skipping_loops(self) -> list[str]:
        """The iterations of whose events every choice is a match of its own."""
        return []

    @property
    def followed(self) -> bool:
        """Whether its engine knows which partial matches may go on, without timeouts, too."""
        return False

    @property
    def told_keys(self) -> tuple[str, ...]:
        """The attributes beside ``partition_by`` that tell the key at the last event of a match."""
        return ()

    @property
    def spans(self) -> Iterator[Window]:
        """The windows and gaps inside the pattern."""
        return iter(())

    @property
    def measured(self) -> tuple[str, ...]:
        """The attributes that its windows and gaps measure."""
        return tuple(
            one.attribute for one in (self.window, *self.spans) if one is not None and one.attribute is not None
        )

    def by_groups(self, keys: Iterable[str]) -> Self:
        """The query over groups of events that come one by one: partitioned by their keys as well.

        Raises
        ------
        OptionError
            It asks something of the events of all groups together.
        """
        # Compiled queries are known by their text.
        text = f"{self.text}\n-- by {', '.join(keys)}"
        return replace(self, text=text, partition_by=(*self.partition_by, *keys), partition_spans=())

    @cached_property
    def read(self) -> tuple[str, ...]:
        """All attributes that it names."""
        measured = () if self.window is None or self.window.attribute is None else (self.window.attribute,)
        made = {one.name for one in self.moving}
        named = (name for name in self.attributes if name not in made)
        counted = (name for one in self.moving if one.argument is not None for name in p.attributes(one.argument))
        return tuple(dict.fromkeys((*self.partition_by, *named, *counted, *measured)))

    @property
    def choosers(self) -> tuple[str, ...]:
        """What chooses among its matches, as a query says it.

        >>> import stretto
        >>> stretto.compile("SELECT MAX * FROM S WHERE A; B LIMIT 2").parsed.choosers
        ('SELECT MAX', 'LIMIT 2')
        """
        told = [f"SELECT {self.strategy}"] * (self.strategy in (Strategy.NEXT, Strategy.LAST, Strategy.MAX))
        told += [f"CONSUME BY {self.consume}"] * (self.consume is not Consume.NONE)
        told += ["OUTPUT non_overlap"] * self.non_overlap
        told += [] if self.keep is None else [str(self.keep)]
        return (*told, *([] if self.limit is None else [f"LIMIT {self.limit}"]))


@dataclass(frozen=True)
class ParsedQuery(AnyQuery):
    """A CEQL query after parsing and scoping.

    ``items`` is ``None`` for ``SELECT *`` and ``()`` for ``SELECT NONE``. The FILTER clause is already part of ``pattern``
    (CORE, footnote 1).
    """

    strategy: Strategy
    items: tuple[SelectItem, ...] | None
    streams: tuple[str, ...]
    pattern: Pattern
    language: str = field(default="ceql", kw_only=True)
    any_stream: ClassVar[bool] = False
    fewer: ClassVar[str] = "LIMIT n, or SELECT NEXT, LAST or MAX, has fewer; output='summary' counts them"
    no_sets: ClassVar[str] = (
        "sets of matches are for SASE+ queries; for CEQL list matches, or count them with output='summary'"
    )

    def by_groups(self, keys: Iterable[str]) -> Self:
        if self.consume is not Consume.ANY:
            return super().by_groups(keys)
        if self.partition_by:
            raise OptionError("CONSUME BY ANY goes over partitions, which by groups it must not: CONSUME BY PARTITION")
        return replace(super().by_groups(keys), consume=Consume.PARTITION)

    @property
    def skipping_loops(self) -> list[str]:
        if self.strategy is not Strategy.ALL or self.keep is not None:
            return []
        return skipping_loops(self.pattern, None if self.items is None else {item.variable for item in self.items})

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables that a result reports, in order."""
        if isinstance(self.asked, Totals):
            return ()
        if self.items is None:
            return tuple(reported(self.pattern))
        return tuple(item.variable for item in self.items)

    @property
    def last_negation(self) -> Not | None:
        """What must not come after the last step, which time completes."""
        last = ends(self.pattern)[1]
        return last[-1] if last else None

    @property
    def needs_times(self) -> bool:
        return is_timed(self.pattern) or any(ends(self.pattern))

    @property
    def conditions(self) -> tuple[p.Expression, ...]:
        """What it asks of events, and computes of them."""
        return tuple(node.predicate for node in walk(self.pattern) if isinstance(node, Filter))

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that its conditions and results name."""
        asked = [name for one in self.conditions for name in p.attributes(one)]
        shown = (name for item in self.items or () for name in item.attributes or ())
        return (*asked, *shown, *attributes(self.asked))

    @property
    def spans(self) -> Iterator[Window]:
        """The windows and gaps inside the pattern."""
        return spans_of(self.pattern)

    @property
    def wanted(self) -> tuple[str, ...]:
        """The types of events that it names, but those that must not come."""
        return tuple(sorted({node.type for node in walk(self.pattern, absent=False) if isinstance(node, Atom)}))

    @property
    def shows_everything(self) -> bool:
        """Whether results show events with all their attributes."""
        if isinstance(self.asked, Totals):
            return False
        return self.items is None or any(item.attributes is None for item in self.items)


def refuse_joined(keys: Iterable[JoinedKey], where: str) -> None:
    """Raise an :class:`OptionError` if there is a key that streams call differently."""
    for key in keys:
        raise OptionError(
            f"PARTITION BY {key.name} does not run {where}\nhint: rename columns so that all streams have '{key.shown}', and write "
            f"PARTITION BY [{key.shown}]"
        )
