"""Sources and sinks for the Spark pipeline: schema mapping, bad records to the side, writing that can be repeated.

A source gives :class:`Events`: the events that can be read, the records that cannot, and the columns' roles::

    from stretto import connectors, spark

    events = connectors.files.read(session, "trades/", format="json", schema="type string, ts timestamp, price double", time="ts")
    matches = spark.match(events.good, "SELECT * FROM S WHERE SELL ; BUY", **events.roles)
    events.bad  # raw, reason, source, place, arrived

A sink is a function for ``foreachBatch``, which may be called again for a batch without writing it twice::

    write = connectors.together(
        connectors.delta.writer("matches", "trades"),
        connectors.kafka.writer("localhost:9092", "matches", "trades"),
    )
    matches.writeStream.foreachBatch(write).option("checkpointLocation", "…").start()
"""

from stretto.connectors import changes, current, delta, files, kafka
from stretto.connectors.records import Events, checked
from stretto.connectors.sinks import Writer, together, with_match_id

__all__ = ["Events", "Writer", "changes", "checked", "current", "delta", "files", "kafka", "together", "with_match_id"]
