"""A process that has a workbench: it can be ended while a query runs, which a thread cannot.

It reads a line of JSON for each call, and answers with one. ``python -m stretto.studio.worker`` is the process, :class:`Worker` its
handle in the server.

The events of a file that grows, or of a topic, as a stream in the order of time.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stretto.column_types import type_named
from stretto.columns.measured import values_of
from stretto.errors import DataError, LimitError, OptionError, StrettoError
from stretto.matching.pattern_set.changes import Instant
from stretto.matching.reorder import Cleanse
from stretto.studio.folder import FOLLOWED, parquet_files
from stretto.studio.following import Source, follow
from stretto.studio.replay import PIECE, Replay
from stretto.studio.saving import written
from stretto.studio.topic import Topic
from stretto.studio.workbench import ROWS, Roles, Workbench, as_error

#: The last events, which are kept to be shown, are so many at least; and the pieces after which they are joined.
_KEPT = ROWS
_PIECES = 64
#: Events that wait for earlier ones.
MOST_HELD = 1_000_000


class Live:
    """What a source gives, as far as somebody asks for it. Nothing of it is read before.

    Without ``disorder`` events pass as they come, and one that is earlier than one before it is late. With ``disorder`` an event
    waits until none that is earlier may come. Events that are late, or have no time, are counted, and passed over.

    Parameters
    ----------
    bench
        It has the columns, and the roles that they play.
    source
        Where the events come from.
    disorder
        How late events may be, as ``disorder=`` says it elsewhere, as text; an empty one: they come in order.

    Raises
    ------
    OptionError
        There is no column of time, its times are decimals, or the disorder is no span of it.
    """

    def __init__(self, bench: Workbench, source: Source, disorder: str = "") -> None:
        self._bench, self._source = bench, source
        roles = bench.roles
        if roles.time is None:
            raise OptionError("a live stream needs a column of time: choose it")
        self._time = roles.time
        if pa.types.is_decimal(bench.events.schema.field(roles.time).type):
            raise OptionError(
                f"'{roles.time}' has decimals, which a live stream does not put in order: choose another time"
            )
        self._cleanse = Cleanse(
            bench.events.schema,
            time=roles.time,
            disorder=_span(disorder) if disorder.strip() else 0,
            speculation=0 if disorder.strip() else math.inf,
            late="drop",
            time_unit=roles.time_unit,
        )
        self._ready = bench.events.schema.empty_table()
        self._places = np.empty(0)
        self._recent = self._ready
        self._first: float | None = None
        self._at: float | None = None
        self._last: int | float | None = None  # the time of the last event, as the engine has it
        self._untimed = 0
        self._broken: str | None = None
        self._closed = False
        self.read = 0

    @property
    def ended(self) -> bool:
        """Whether it was closed, and what had come was read."""
        return self._closed and not self._ready.num_rows

    def close(self) -> None:
        """End it: what waits comes, and nothing else."""
        if not self._closed:
            self._closed = True
            self._source.close()
            self._take(self._cleanse.finish())

    def next(self, up_to: float, more: int) -> pa.Table | None:
        """The next piece."""
        if more <= 0 and self._at is not None and up_to < self._at:
            return None
        if not self._ready.num_rows:
            return self._more()
        size = min(PIECE, max(more, int(np.searchsorted(self._places, up_to, side="right"))))
        if size <= 0:
            return None
        piece, self._ready = self._ready.slice(0, size), self._ready.slice(size)
        places, self._places = self._places[:size], self._places[size:]
        if self._first is None:
            self._first = float(places[0])
        self._at = float(places[-1])
        self._last = values_of(piece.column(self._time).slice(piece.num_rows - 1), self._time, 0)[0].item()
        numbers = pa.array(range(self.read, self.read + piece.num_rows), pa.int64())
        self.read += piece.num_rows
        self._recent = pa.concat_tables([self._recent.slice(max(0, self._recent.num_rows - _KEPT)), piece])
        if self._recent.column(0).num_chunks > _PIECES:
            self._recent = self._recent.combine_chunks()
        return piece.append_column(self._bench.number, numbers)

    def _more(self) -> pa.Table | None:
        """Ask the source; an empty piece, if something has come."""
        if self._closed or self._broken is not None:
            return None
        try:
            found = self._source.more()
            if found is None:
                return None
            placed = timed(found, self._time)
            self._untimed += found.num_rows - placed.num_rows
            self._take(self._cleanse.push(placed))
            if self._cleanse.buffered > MOST_HELD:
                raise DataError(f"more than {MOST_HELD:,} events wait for earlier ones: say a smaller disorder")
        except DataError as error:
            self._broken = str(error)
            self._source.close()
            return None
        return self._bench.numbered.slice(0, 0)

    def _take(self, passed: pa.Table) -> None:
        if passed.num_rows:
            self._ready = pa.concat_tables([self._ready, passed])
            self._places = np.append(self._places, np.array(self._bench.places(passed), np.float64))

    def next_time(self) -> Any:
        """The next time behind that of the last event."""
        if self.ended:
            raise OptionError("the stream has ended: begin it again")
        assert self._last is not None
        kind = self._bench.events.schema.field(self._time).type
        last = self._last
        if pa.types.is_floating(kind):
            following: int | float = np.nextafter(kind.to_pandas_dtype()(last), kind.to_pandas_dtype()(math.inf)).item()
        else:
            day = {pa.date32(): 86_400, pa.date64(): 86_400_000}
            following = int(last) + day.get(kind, 1)
        return Instant.numbered(following, kind).shown

    def events_of(self, found: list[dict[str, Any]]) -> dict[str, Any]:
        """The events of matches, as far as they are kept."""
        return self._bench.events_of(found, self._recent, self.read - self._recent.num_rows)

    def state(self) -> dict[str, Any]:
        """Where it is, and what became of the events that were not read."""
        source = self._source
        return {
            "at": self._at,
            "span": None if self._first is None else [self._first, self._at],
            "live": {
                "held": self._cleanse.buffered,
                "late": self._cleanse.late,
                "untimed": self._untimed,
                "bad": source.bad,
                "why": source.why,
                "waiting": source.waiting,
                "broken": self._broken,
            },
        }


def timed(events: pa.Table, time: str) -> pa.Table:
    """The events that have a place in time."""
    column = events.column(time)
    return events.filter(pc.is_finite(column) if pa.types.is_floating(column.type) else pc.is_valid(column))


def _span(text: str) -> Any:
    """A disorder that is typed: a number of ticks, or a span of time."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


#: Characters of an answer.
_LONGEST = 64 << 20


class WorkerError(Exception):
    """What a call raised in the worker, as :func:`~stretto.studio.workbench.as_error` gives it."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["message"])
        self.error = error


class Worker:
    """The handle of a worker process, which is started when it is first asked. Calls wait for one another."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()
        self._opened: dict[str, Any] | None = None
        self._why: str | None = None  # the process was ended

    def ask(self, call: str, arguments: dict[str, Any], seconds: float) -> Any:
        """The answer of a call. A process that was ended is started anew, with the same events.

        Raises
        ------
        WorkerError
            The call failed, was cancelled, or took longer than ``seconds``.
        """
        with self._lock:
            if self._opened is not None and call != "open" and not self._alive():
                self._asked("open", self._opened, seconds)
            found = self._asked(call, arguments, seconds)
            if call == "open":
                self._opened = arguments
            return found

    def cancel(self) -> None:
        """End the call that runs, if there is one."""
        if self._lock.locked():
            self._end("it was cancelled")

    def close(self, why: str = "the studio has ended") -> None:
        """End the process; a call that runs says why."""
        self._end(why)

    def _alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def _end(self, why: str) -> None:
        process = self._process
        if process is None:
            return
        if process.poll() is None:
            self._why = why
            process.kill()
            process.wait()  # so that the next call starts another one
        if self._lock.acquire(blocking=False):  # else the call that runs reads from the pipes, and closes them
            _close_pipes(process)
            self._lock.release()

    def _asked(self, call: str, arguments: dict[str, Any], seconds: float) -> Any:
        if not self._alive():
            self._why = None
            if self._process is not None:
                _close_pipes(self._process)
            self._process = subprocess.Popen(
                [sys.executable, "-m", "stretto.studio.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                start_new_session=True,  # ^C ends the server, which ends this
            )
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        timer = threading.Timer(seconds, self._end, (f"it took longer than {seconds:g} seconds",))
        timer.start()
        try:
            process.stdin.write(json.dumps({"call": call, "arguments": arguments}) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            timer.cancel()
        if not line.endswith("\n"):  # it has ended, perhaps in the middle of an answer
            process.wait()
            _close_pipes(process)
            why = self._why or "its process has ended, perhaps for want of memory"
            raise WorkerError({"kind": "Stopped", "message": f"stopped: {why}"})
        answer = json.loads(line)
        if "error" in answer:
            raise WorkerError(answer["error"])
        return answer["value"]


def _close_pipes(process: subprocess.Popen[str]) -> None:
    """Close what leads to a process that has ended; what was not written is dropped."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


class Calls:
    """The calls of a worker; each takes and gives values of JSON."""

    def __init__(self) -> None:
        self._bench: Workbench | None = None
        self._path = Path()
        self._topic: Topic | None = None
        self._replay: Replay | None = None
        self._live: Live | None = None

    @property
    def bench(self) -> Workbench:
        """The workbench over the events that were opened."""
        if self._bench is None:
            raise OptionError("no events are open: choose a file")
        return self._bench

    @property
    def replay(self) -> Replay:
        """The replay that was begun."""
        if self._replay is None:
            raise OptionError("the replay has ended: begin it again")
        return self._replay

    def open(
        self,
        path: str,
        roles: dict[str, Any],
        rows: int = ROWS,
        types: dict[str, str] | None = None,
        topic: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Take the events of a file in the place of those before, which stay where it fails.

        ``types``: those of columns that are not to be guessed. ``topic``: the file is its :meth:`sample`.
        """
        own = Path(path)
        files = path if own.name != FOLLOWED else [str(parquet_file) for parquet_file in parquet_files(own.parent)]
        known = {name: type_named(kind) for name, kind in (types or {}).items()}
        self._bench = Workbench.of_files(files, Roles.of(roles), rows, known)
        self._path, self._topic = own, None if topic is None else Topic(**topic)
        self._replay = self._live = None
        return self._bench.columns()

    def sample(self, topic: dict[str, Any], rows: int, time: str, into: str) -> dict[str, Any]:
        """Write the sample of a topic into a file, so that all workers have the same one.

        Gives how many records are not in it, because they cannot be read or have no ``time``, and why the last one cannot be read.
        """
        found = Topic(**topic).sample(rows)
        events = timed(found.events, time) if time in found.events.schema.names else found.events
        with pa.ipc.new_file(into, events.schema) as file:
            file.write_table(events)
        untimed = found.events.num_rows - events.num_rows
        return {"more": found.more, "bad": found.bad, "why": found.why, "untimed": untimed}

    def begin_replay(self, patterns: dict[str, Any], live: bool = False, disorder: str = "") -> dict[str, Any]:
        """Begin a :class:`~stretto.studio.replay.Replay` with patterns, by name, in the place of the one before.

        ``live``: of the events of the file or topic as they come, which may be so late (``disorder``).
        """
        self._replay = self._live = None
        stream = Live(self.bench, self._source(), disorder) if live else None
        made = Replay(self.bench, stream)
        for name, text in patterns.items():
            if not isinstance(text, str):
                raise OptionError(f"pattern '{name}' is no text")
            made.put(name, text)
        self._replay, self._live = made, stream
        return made.state()

    def _source(self) -> Source:
        schema, time = self.bench.events.schema, self.bench.roles.time or ""
        return follow(self._path, schema) if self._topic is None else self._topic.follow(schema, time)

    def end_live(self) -> dict[str, Any]:
        """End a live stream, so that what waits comes."""
        replay = self.replay
        if self._live is None:
            raise OptionError("this replay is of a sample, which ends by itself")
        self._live.close()
        return replay.read(math.inf, 0)

    def written(self, kind: str, text: str, data: str) -> str:
        """The query as the text of a file (see :func:`~stretto.studio.saving.written`)."""
        bench = self.bench
        return written(kind, text, bench.roles, data, bench.events.schema, self._topic)


#: The calls by name, and whose methods they are.
_CALLS: dict[str, Callable[[Calls], Callable[..., Any]]] = {
    **{name: attrgetter(name) for name in ("open", "sample", "begin_replay", "end_live", "written")},
    **{
        name: attrgetter(f"bench.{name}")
        for name in ("check", "explain", "draw", "run", "why_not", "why_event", "page", "step")
    },
    "events": attrgetter("bench.page_of_events"),
    "read_on": attrgetter("replay.read"),
    "put_pattern": attrgetter("replay.put"),
}


def answer(calls: Calls, line: str) -> str:
    """The answer to a line: ``{"value": …}`` or ``{"error": …}``."""
    asked = json.loads(line)
    try:
        if asked["call"] not in _CALLS:
            raise OptionError(f"there is no call '{asked['call']}'")
        made = json.dumps({"value": _CALLS[asked["call"]](calls)(**asked["arguments"])}, ensure_ascii=True)
        if len(made) > _LONGEST:
            raise LimitError("the answer is too long for a page: ask for fewer rows")
        return made
    except (StrettoError, RecursionError, MemoryError, OSError) as error:
        return json.dumps({"error": as_error(error)})
    except Exception as error:  # a defect of ours: the events stay open, and the page goes on
        traceback.print_exc()
        told = f"this is a defect of stretto, not of the query: {type(error).__name__}: {error}"
        return json.dumps({"error": {"kind": "Defect", "message": told}})


def main(asked: TextIO, answers: TextIO) -> None:
    """Answer until no more is asked."""
    calls = Calls()
    for line in asked:
        answers.write(answer(calls, line) + "\n")
        answers.flush()


if __name__ == "__main__":
    # What anything else prints is no answer.
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as own:
        os.dup2(2, 1)
        main(sys.stdin, own)
