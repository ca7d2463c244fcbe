"""The listener behind :func:`stretto.spark.watch`; apart, because its base class needs PySpark."""

from __future__ import annotations

from typing import Any

from pyspark.sql.streaming import StreamingQueryListener

from stretto.spark.streaming.progress import report

__all__ = ["Listener"]


class Listener(StreamingQueryListener):  # type: ignore[misc]
    """Logs the counts of stretto's queries as Spark reports them."""

    def onQueryStarted(self, event: Any) -> None:
        """Nothing to say yet."""

    def onQueryProgress(self, event: Any) -> None:
        """After each micro-batch."""
        report(event.progress)

    def onQueryIdle(self, event: Any) -> None:
        """Nothing has arrived."""

    def onQueryTerminated(self, event: Any) -> None:
        """The query ended; Spark logs the reason."""
