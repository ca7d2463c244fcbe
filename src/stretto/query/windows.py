"""Windows and gaps as they are written: how far apart two events may be."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from stretto.errors import Span
from stretto.query import predicate as p


@dataclass(frozen=True)
class Window:
    """``WITHIN …``, inclusive: ``end − start ≤ size``.

    Exactly one of:

    - ``events``: ``WITHIN n EVENTS``; positions.
    - ``seconds`` with ``attribute=None``: ``WITHIN 1 minute``; the stream's time.
    - ``seconds`` with ``attribute``: ``WITHIN 1 minute [ts]``.
    - ``number`` with ``attribute``: ``WITHIN 10000 [stock_time]``; the attribute's own unit (seconds for timestamps, as
      in the CORE paper's appendix F).
    - ``number`` with ``attribute=None``: ``WITHIN 10000`` in SASE+; the stream's time, in that one's own unit as above.
    """

    events: int | None = None
    seconds: Decimal | None = None
    number: int | Decimal | None = None
    attribute: str | None = None
    span: Span | None = field(default=None, compare=False, repr=False)
    attribute_span: Span | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        if self.events is not None:
            return f"{self.events} EVENTS"
        size = f"{self.number}" if self.seconds is None else f"{self.seconds:f} seconds"
        return size if self.attribute is None else f"{size} [{p.Attribute(self.attribute)}]"


@dataclass(frozen=True)
class BoundWindow:
    """``end − start ≤ size``: over positions when ``attribute`` is ``None``, else over the attribute's measure."""

    size: int | float
    attribute: str | None
    whole: bool = field(default=True, compare=False)  #: the size was written in whole units, and not cut to them
