"""Where a matcher stands: between batches, inside one, or behind the last; and whose turn it is to call it.

Going back to before a row that makes a computation overflow: a state of a while ago, and what was read since.

Whether a sum over the events of a match leaves 64 bits shows when the match is listed, and then the row that completes it has been
read. It is left out by going back. A copy of the state for each row would cost more than the row where many partial matches live, so
one is taken only when reading has taken some times as long as copying; going back repeats what was read since, without its output.
"""

from __future__ import annotations

import threading
import time as clock
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, Generic, TypeVar, cast

from stretto.errors import EngineError, OptionError, SnapshotError

S = TypeVar("S")

#: A state is copied again when reading has taken so many times as long as copying it did.
SHARE = 4


class Retries(Generic[S]):
    """The last copy of a state, and the operations since.

    Parameters
    ----------
    copied
        Gives a copy of the state.
    put_back
        Takes such a copy over, which belongs to it then.
    """

    def __init__(self, copied: Callable[[], S], put_back: Callable[[S], None]) -> None:
        self._copied, self._put_back = copied, put_back
        self._state: S | None = None
        self._since: list[Callable[[], None]] = []
        self._copying = self._reading = self._began = 0.0

    def before(self) -> None:
        """The next operation begins."""
        if self._state is None or self._reading >= SHARE * self._copying:
            self._copy()
        self._began = clock.perf_counter()

    def after(self, again: Callable[[], None]) -> None:
        """It is done; ``again`` repeats it without giving anything."""
        self._since.append(again)
        now = clock.perf_counter()
        self._reading, self._began = self._reading + now - self._began, now

    def back(self) -> None:
        """It has failed: go back to before it."""
        assert self._state is not None
        self._put_back(self._state)
        for again in self._since:
            again()
        self._copy()

    def _copy(self) -> None:
        began = clock.perf_counter()
        self._state, self._since = self._copied(), []
        self._copying, self._reading = clock.perf_counter() - began, 0.0


C = TypeVar("C", bound=type)
F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")


class Life:
    """What a matcher may be asked for now.

    Parameters
    ----------
    what
        What it is called in errors.
    """

    def __init__(self, what: str = "matcher") -> None:
        self._what = what
        self.inside = False  #: whether a batch is being read, or was left half read
        self.finished = False

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Around the reading of a batch: who leaves it by an error, or does not read it to its end, has stopped inside."""
        self.inside = True
        yield
        self.inside = False

    def refuse_inside(self) -> None:
        """Raise an :class:`EngineError` inside a batch."""
        if self.inside:
            raise EngineError(
                f"this {self._what} was stopped in the middle of a batch; restore a snapshot or start a new one"
            )

    def refuse_finished(self) -> None:
        """Raise an :class:`OptionError` behind the last batch."""
        if self.finished:
            raise OptionError(f"the {self._what} is finished; start a new one, or restore a snapshot")

    def refuse_snapshot(self) -> None:
        """Raise a :class:`SnapshotError` inside a batch."""
        if self.inside:
            raise SnapshotError(f"the {self._what} was stopped in the middle of a batch: its state is not at an event")


class Turn:
    """Whose turn it is to call an object that takes one thread at a time; a thread may call it from inside its own call.

    Parameters
    ----------
    what
        What the object is called in errors.
    """

    __slots__ = ("_depth", "_lock", "_owner", "_what")

    def __init__(self, what: str) -> None:
        self._what = what
        self._lock = threading.Lock()
        self._owner: int | None = None
        self._depth = 0

    def __enter__(self) -> None:
        own = threading.get_ident()
        if self._owner != own:  # only this thread ever writes its own number
            if not self._lock.acquire(blocking=False):
                raise EngineError(
                    f"another thread is inside a call of this {self._what}, which takes one at a time; nothing was done\n"
                    f"hint: hold a threading.Lock around its calls, or give each thread a {self._what} of its own"
                )
            self._owner = own
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if not self._depth:
            self._owner = None
            self._lock.release()


class InTurn(Generic[R]):
    """An iterator that one thread at a time may ask for the next piece, while it has the turn of what gives it."""

    def __init__(self, pieces: Iterator[R], turn: Turn) -> None:
        self._pieces, self._turn = pieces, turn

    def __iter__(self) -> Iterator[R]:
        return self

    def __next__(self) -> R:
        with self._turn:
            return next(self._pieces)

    def close(self) -> None:
        """Read no more."""
        with self._turn:
            close = getattr(self._pieces, "close", None)
            if close is not None:
                close()


def one_thread(what: str, *names: str) -> Callable[[C], C]:
    """Let a class take the calls of one thread at a time, those of its methods with these names; an :class:`EngineError` for another.

    What the methods give piece by piece is read in turn, too.
    """

    def guarded(given: C) -> C:
        begin: Any = vars(given)["__init__"]

        @wraps(begin)
        def init(self: Any, *args: Any, **options: Any) -> None:
            self._turn = Turn(what)
            begin(self, *args, **options)

        def refuse(self: Any) -> Any:
            raise OptionError(
                f"a {what} does not travel to another process, nor is it copied: send its snapshot(), and restore() it in a new one"
            )

        setattr(given, "__reduce__", refuse)  # noqa: B010
        setattr(given, "__init__", init)  # noqa: B010 - mypy knows of no such assignment
        for name in names:
            setattr(given, name, _in_turn(vars(given)[name]))
        return given

    return guarded


def _in_turn(method: Any) -> Any:
    @wraps(method)
    def call(self: Any, *args: Any, **options: Any) -> Any:
        with self._turn:
            found = method(self, *args, **options)
        return InTurn(found, self._turn) if isinstance(found, Iterator) else found

    return call


def gives_in_turn(function: F) -> F:
    """Let one thread at a time read what a function gives piece by piece."""

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        return InTurn(function(*args, **options), Turn("iterator"))

    return cast(F, call)
