"""Payloads: what is read, and what goes to the side and why."""

from __future__ import annotations

import json
import math
import random
from typing import Any

import pytest

from stretto.errors import DataError, OptionError

pytestmark = [pytest.mark.spark]

SCHEMA = "type string, ts bigint, price double, at timestamp, inner struct<x: int>, list array<int>"

GOOD_JSON = {
    '{"type":"A","ts":1,"price":1.5}': ("A", 1, 1.5),
    '  {"ts":2,"type":"B"}\n': ("B", 2, None),
    '{"type":"A","ts":3,"price":null,"other":[1,{}]}': ("A", 3, None),
    '{"type":"A","ts":-9223372036854775808,"at":"2024-01-01T00:00:00Z","inner":{"x":1},"list":[1]}': (
        "A",
        -(2**63),
        None,
    ),
    '{"type":"}],\\"","ts":5}': ('}],"', 5, None),
}

BAD_JSON = {
    "": "empty",
    " \t": "empty",
    "null": "not one JSON object",
    "5": "not one JSON object",
    '"x"': "not one JSON object",
    "[]": "not one JSON object",
    '[{"type":"A","ts":1}]': "not one JSON object",
    '{"type":"A","ts":1': "not one JSON object",
    '{"type":"A","ts":1}}': "not one JSON object",
    '{"type":"A","ts":1}]': "not one JSON object",
    '{"type":"A","ts":1}{"type":"B","ts":2}': "not one JSON object",
    '{"type":"A","ts":1},{"type":"B","ts":2}': "not one JSON object",
    '{"type":"A","ts":1} and more': "not one JSON object",
    '{"type":"A","ts":"1"}': "not one JSON object",
    '{"type":"A","ts":1.5}': "not one JSON object",
    '{"type":"A","ts":true}': "not one JSON object",
    '{"type":"A","ts":9223372036854775808}': "not one JSON object",
    '{"type":"A","ts":1,"price":"dear"}': "not one JSON object",
    '{"type":"A","ts":1,"at":"yesterday"}': "not one JSON object",
    '{"type":"A","ts":1,"inner":{"x":"a"}}': "not one JSON object",
    '{"type":"A","ts":1,"list":[1,"a"]}': "not one JSON object",
    '{"type":"A","ts":1,"list":{"a":1}}': "not one JSON object",
    "{}": "attribute 'ts' is missing or NULL",
    '{"type":"A"}': "attribute 'ts' is missing or NULL",
    '{"type":"A","ts":null}': "attribute 'ts' is missing or NULL",
    '{"ts":1}': "attribute 'type' is missing or NULL",
}


def parsed(spark: Any, values: list[Any], schema: str, how: str = "json", kind: str = "string", **more: Any) -> Any:
    """Payloads as events; the payload's number is in ``n``."""
    from stretto.connectors.records import ARRIVED, PLACE, SOURCE, as_struct, parse, required_of, split

    rows = spark.createDataFrame(list(enumerate(values)), f"n int, payload {kind}")
    rows = rows.selectExpr(
        "*", f"'test' AS {SOURCE}", f"cast(n AS string) AS {PLACE}", f"timestamp_seconds(n) AS {ARRIVED}"
    )
    struct = as_struct(schema)
    arguments = {"time": "ts", "type": "type", "required": required_of(struct), **more.pop("roles", {})}
    return split(
        parse(rows, "payload", struct, how, **more),
        attributes=["n", *struct.names],
        columns=None,
        sequence=None,
        bad_records="side",
        name="test",
        counted=False,
        **arguments,
    )


def apart(events: Any) -> tuple[dict[int, Any], dict[int, Any]]:
    good = {row.n: row for row in events.good.collect()}
    bad = {int(row.place): row for row in events.bad.collect()}
    assert not good.keys() & bad.keys()
    return good, bad


def test_json(spark: Any) -> None:
    values: list[Any] = [*GOOD_JSON, *BAD_JSON, None]
    good, bad = apart(parsed(spark, values, SCHEMA))
    assert {values[n]: (row.type, row.ts, row.price) for n, row in good.items()} == GOOD_JSON
    assert {values[n] for n in bad} == {*BAD_JSON, None}
    for n, row in bad.items():
        assert (BAD_JSON[values[n]] if values[n] is not None else "the value is NULL") in row.reason, values[n]
        assert (row.raw, row.source) == (values[n], "test")
    # Reading fewer columns changes nothing about which records are bad.
    events = parsed(spark, values, SCHEMA)
    assert {row.n for row in events.good.select("n").collect()} == good.keys()
    assert events.bad.count() == len(bad)


def test_bytes_that_are_not_utf8(spark: Any) -> None:
    values = [b'{"type":"A","ts":1}', b'{"type":"\xff","ts":1}', '{"type":"ä","ts":2}'.encode()]
    good, bad = apart(parsed(spark, values, "type string, ts int", kind="binary"))
    assert [good[0].type, good[2].type] == ["A", "ä"]
    assert bad[1].reason == "the value is not UTF-8"
    assert bad[1].raw == "base64:eyJ0eXBlIjoi/yIsInRzIjoxfQ=="


def test_a_time_that_is_not_a_number(spark: Any) -> None:
    good, bad = apart(parsed(spark, ['{"type":"A","ts":"NaN"}', '{"type":"A","ts":1}'], "type string, ts double"))
    assert list(good) == [1]
    assert bad[0].reason == "attribute 'ts' (time) is not a number"


def test_what_the_schema_says_is_never_null(spark: Any) -> None:
    values = ['{"ts":1,"user":"u"}', '{"ts":2}']
    good, bad = apart(parsed(spark, values, "ts int, user string NOT NULL", roles={"type": None}))
    assert list(good) == [0]
    assert bad[1].reason == "attribute 'user' is missing or NULL"


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise KeyError
    return dict(pairs)


def _fits(value: Any) -> bool:
    """Whether a JSON value is an event of ``type string, ts bigint, price double``."""
    if not isinstance(value, dict) or value.get("type") is None:
        return False
    ts, price = value.get("ts"), value.get("price")
    whole = isinstance(ts, int) and not isinstance(ts, bool) and -(2**63) <= ts < 2**63
    return whole and (price is None or (isinstance(price, int | float) and not isinstance(price, bool)))


def _mutated(draw: random.Random) -> str:
    """A JSON object of an event, or nearly one."""
    value = {
        "type": draw.choice(["A", "B}", 'C"', "é"]),
        "ts": draw.randint(-5, 10**12),
        "price": draw.choice([1, 2.5, None]),
    }
    text = json.dumps(value, ensure_ascii=draw.random() < 0.5)
    for _ in range(draw.randrange(3)):
        at = draw.randrange(len(text) + 1)
        match draw.randrange(3):
            case 0:
                text = text[:at] + draw.choice('{}[]",:0x \\') + text[at:]
            case 1:
                text = text[:at] + text[at + 1 :]
            case _:
                text = text[:at] + text[draw.randrange(len(text)) :]
    return text


@pytest.mark.parametrize("seed", [1, 2])
def test_random_json(spark: Any, seed: int) -> None:
    print(f"seed {seed}")
    draw = random.Random(seed)
    values = [_mutated(draw) for _ in range(1500)]
    good, bad = apart(parsed(spark, values, "type string, ts bigint, price double"))
    assert len(good) + len(bad) == len(values)
    assert len(good) > 200
    assert len(bad) > 200
    for n, text in enumerate(values):
        try:
            value = json.loads(text, object_pairs_hook=_once)
        except json.JSONDecodeError:
            assert n in bad, text
            continue
        except KeyError:  # Spark takes the last one, if all fit
            continue
        assert (n in good) == _fits(value), text
        if n in good and isinstance(value["type"], str):
            shown = (good[n].type, good[n].ts, good[n].price)
            assert shown == (value["type"], value["ts"], value.get("price")), text


CSV = {
    "A,1,2.5": ("A", 1, 2.5),
    "A,1,2\n": ("A", 1, 2.0),
    "A,1,2\r\n": ("A", 1, 2.0),
    "A,1,2\n\n": ("A", 1, 2.0),
    "A,1,": ("A", 1, None),
    '"A,\nB",1,2': ("A,\nB", 1, 2.0),
    '"A""B",1,2': ('A"B', 1, 2.0),
    'A,1,"2"': ("A", 1, 2.0),
    "A,1": "not one CSV record",
    "A,1,2,3": "not one CSV record",
    "A,1,2,": "not one CSV record",
    "A,x,2": "not one CSV record",
    "A, 1,2": "not one CSV record",
    "A,1,2\nB,2,3": "not one CSV record",
    '"A,1,2': "not one CSV record",
    "A,99999999999999999999,1": "not one CSV record",
    "": "empty",
    ",,": "attribute 'ts' is missing or NULL",
    ",1,": "attribute 'type' is missing or NULL",
}


def test_csv(spark: Any) -> None:
    values = list(CSV)
    good, bad = apart(parsed(spark, values, "type string, ts bigint, price double", "csv"))
    for n, text in enumerate(values):
        expected = CSV[text]
        if isinstance(expected, tuple):
            assert n in good, (text, bad.get(n))
            assert tuple(good[n])[1:] == expected, text
        else:
            assert n in bad, (text, good.get(n))
            assert expected in bad[n].reason, text


def test_csv_with_options(spark: Any) -> None:
    events = parsed(
        spark,
        ["A;01.02.2024", "B;2024"],
        "type string, ts date",
        "csv",
        options={"sep": ";", "dateFormat": "dd.MM.yyyy"},
    )
    good, bad = apart(events)
    assert str(good[0].ts) == "2024-02-01"
    assert list(bad) == [1]


def test_text(spark: Any) -> None:
    values = ["GET 12 0.5", "PUT 13 -", "PUT x 1", "nothing", "PUT 14 "]
    good, bad = apart(parsed(spark, values, "type string, ts int, took float", "text", pattern=r"^(\w+) (\w+) (\S*)$"))
    assert {n: tuple(row)[1:] for n, row in good.items()} == {0: ("GET", 12, 0.5), 4: ("PUT", 14, None)}
    assert {n: row.reason for n, row in bad.items()} == {
        1: "attribute 'took' is not of type float",
        2: "attribute 'ts' is not of type int",
        3: "the text does not match the pattern",
    }


def test_arguments(spark: Any) -> None:
    with pytest.raises(OptionError, match="value='xml': expected one of 'json', 'csv', 'text'"):
        parsed(spark, [], SCHEMA, "xml")
    with pytest.raises(OptionError, match="2 groups for the 3 attributes"):
        parsed(spark, [], "type string, ts int, x int", "text", pattern="(a)(b)")
    with pytest.raises(OptionError, match="the option 'mode' is set by the source"):
        parsed(spark, [], SCHEMA, options={"mode": "DROPMALFORMED"})
    with pytest.raises(OptionError, match="the name 'n' is taken"):
        parsed(spark, [], "n int, ts int")
    with pytest.raises(OptionError, match="cannot be read"):
        parsed(spark, [], "type strink")
    with pytest.raises(DataError, match=r"no column 'ts' \(time\); did you mean 'tss'"):
        parsed(spark, [], "type string, tss int")


def test_any_dataframe(spark: Any) -> None:
    from stretto import connectors
    from stretto import spark as on_spark

    df = spark.createDataFrame(
        [("A", 1.0, "k"), (None, 2.0, "k"), ("B", math.nan, "k"), ("B", 3.0, "k"), ("B", None, "k")],
        "kind string, at double, k string",
    )
    events = connectors.checked(df, type="kind", time="at", columns={"half": "at / 2"}, name="frame")
    assert sorted(row.reason for row in events.bad.collect()) == [
        "attribute 'at' (time) is not a number",
        "attribute 'at' is missing or NULL",
        "attribute 'kind' is missing or NULL",
    ]
    assert {row.source for row in events.bad.collect()} == {"frame"}
    found = on_spark.match(events.good, "SELECT b FROM S WHERE A ; B AS b", **events.roles).collect()
    assert [(row.start_time, row.end_time, row.b[0].half) for row in found] == [(1.0, 3.0, 1.5)]


def test_error_in_place_of_the_side(spark: Any) -> None:
    from stretto import connectors

    df = spark.createDataFrame([("A", 1), ("B", None)], "type string, ts int")
    with pytest.raises(OptionError, match="expected 'side' or 'error'"):
        connectors.checked(df, time="ts", bad_records="drop")
    events = connectors.checked(df, time="ts", bad_records="error", name="frame")
    with pytest.raises(
        Exception, match=r"frame: a record is no event: attribute 'ts' is missing or NULL: \{\"type\":\"B\"\}"
    ):
        events.good.collect()
