"""What a pipeline that runs tells: how its parts stand, and why one failed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from stretto.errors import DataError, EngineError, OptionError, SnapshotError

#: Seconds between two looks at what Spark does.
LOOK = 0.5


@dataclass(frozen=True)
class Update:
    """How one part of a pipeline stands.

    Parameters
    ----------
    name
        A query, or what else runs.
    state
        ``"waiting"``, ``"running"``, ``"done"``, ``"stopped"`` or ``"failed"``.
    line
        What there is to say.
    step
        Whether something has come to an end, and not only a number has changed.
    """

    name: str
    state: str
    line: str = ""
    step: bool = True


Report = Callable[[Update], None]


@contextmanager
def failures_named(name: str, where: str = "") -> Iterator[None]:
    """Spark's errors, and those of checkpoints, as ours, with the part that failed and the line that says why.

    ``where`` the part stands in the pipeline's file, with a colon behind; our own errors of data and options show it as well.
    """
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise EngineError(f"{where}{name}: {reason(error)}") from error
    except SnapshotError as error:  # of a checkpoint that is another query's
        raise EngineError(f"{where}{name}: {error}") from error
    except (DataError, OptionError) as error:
        if not where or type(error) not in (DataError, OptionError):  # others have a place
            raise
        raise type(error)(f"{where}{name}: {error}") from error


def off_told(name: str, number: int) -> str:
    """What a warning says of rules that were switched off in the tasks of a batch, or in buckets of a stream."""
    times = "time" if number == 1 else "times"
    return (
        f"rules '{name}': {number:,} {times} a rule was switched off because it went over its limit; rows with the column "
        "'disabled' say which, and why"
    )


def reason(error: BaseException) -> str:
    """Why Spark failed, without its stack: what a Python function raised last, or else the first line."""
    text = re.sub(r"\AAn error occurred while calling .*\n: ", "", str(error))
    trace = text.rfind("Traceback (most recent call last)")
    lines = text[max(trace, 0) :].splitlines()
    if trace >= 0:
        # The frames are indented; what was raised is not, and may have several lines.
        lines = lines[1:]
        while lines and (not lines[0].strip() or lines[0].startswith(" ")):
            lines.pop(0)
    told: list[str] = []
    for line in lines:
        if told and (not line.strip() or line.lstrip().startswith(("SQLSTATE", "at "))):
            break
        if line.strip():
            told.append(line)
        if trace < 0 and told:
            break
    return re.sub(r"^stretto\.errors\.\w+: ", "", "\n".join(told)) or error.__class__.__name__
