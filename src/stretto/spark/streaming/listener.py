"""The listener behind :func:`stretto.spark.watch`; apart, because its base class needs PySpark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql.streaming import StreamingQueryListener


class Listener(StreamingQueryListener):  # type: ignore[misc]
    """Hands on what Spark reports of its queries."""

    def __init__(self, report: Callable[[Any], None]) -> None:
        self.report = report

    def onQueryStarted(self, event: Any) -> None:
        """Nothing to say yet."""

    def onQueryProgress(self, event: Any) -> None:
        """After each micro-batch."""
        self.report(event.progress)

    def onQueryIdle(self, event: Any) -> None:
        """Nothing has arrived."""

    def onQueryTerminated(self, event: Any) -> None:
        """The query ended; Spark logs the reason."""
