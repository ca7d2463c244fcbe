"""A continuous query between Kafka and Kafka, with a Delta table beside it: what one would deploy.

    python pipeline.py --servers localhost:9092 --out ./out            # until it is stopped
    python pipeline.py --servers localhost:9092 --out ./out --once     # what is there now

Start it again with the same ``--out``, after whatever end it had: it goes on where it was.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from broker import connector
from pyspark.sql import SparkSession

from stretto import connectors, spark

#: Two failed logins, one that works, and a large transfer: someone may have guessed the password.
QUERY = """
SELECT first[ts], paid[ts, amount] FROM logins
WHERE FAILED AS first ; FAILED ; LOGIN ; TRANSFER AS paid
FILTER paid[amount >= 1000]
PARTITION BY [account]
WITHIN 5 minutes
"""

SCHEMA = "type string, ts timestamp, account string NOT NULL, amount double"


def run(session: SparkSession, servers: str, out: Path, once: bool) -> None:
    events = connectors.kafka.read(
        session, servers, "logins", schema=SCHEMA, time="ts", options={"maxOffsetsPerTrigger": 300}
    )
    # A batch may read further in one partition of the topic than in another: the watermark allows for that.
    matches = spark.match(events.good, QUERY, **events.roles, disorder="2 minutes")
    trigger = {"availableNow": True} if once else {"processingTime": "1 second"}

    # Each batch of matches to both; a batch that comes again is in the table once, and can be told in the topic.
    alarms = connectors.together(
        connectors.kafka.writer(servers, "alarms", "alarms", key="account"),
        connectors.delta.writer(out / "alarms", "alarms"),
    )
    main = matches.writeStream.foreachBatch(alarms).option("checkpointLocation", str(out / "checkpoint-alarms"))
    # What could not be read is a query of its own, with a checkpoint of its own.
    unread = connectors.delta.writer(out / "unread", "unread")
    side = events.bad.writeStream.foreachBatch(unread).option("checkpointLocation", str(out / "checkpoint-unread"))
    started = [main.trigger(**trigger).start(), side.trigger(**trigger).start()]
    print("started", flush=True)
    for query in started:
        query.awaitTermination()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", required=True)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--once", action="store_true")
    options = parser.parse_args()
    # Where the Maven repository has all of it, connectors.kafka.package() as spark.jars.packages says the same.
    jars = ",".join(map(str, connector()))
    session = spark.session("alarms", cores=2, **{"spark.jars": jars, "spark.sql.shuffle.partitions": 2})
    run(session, options.servers, options.out.absolute(), options.once)


if __name__ == "__main__":
    main()
