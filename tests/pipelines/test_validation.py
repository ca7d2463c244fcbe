# ruff: noqa: E501 (errors are as long as they are)
"""The exact texts of what is wrong with a pipeline file: the key, its line, and what was meant."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stretto.cli import main
from stretto.errors import OptionError
from stretto.pipelines import PipelineError, load
from stretto.pipelines.queries import known_columns
from tests.pipelines.conftest import GOOD

Write = Callable[..., Path]

#: What is put in place of what in a good file, and the error. ``HERE`` is the file's folder.
CASES: dict[str, tuple[list[tuple[str, str]], list[str]]] = {
    "no TOML": (
        [("[events]", "[events")],
        [
            "pipeline.toml, line 13, column 8: not TOML: Expected ']' at the end of a table declaration",
            "  [events",
            "         ^",
        ],
    ),
    "a value twice": (
        [('time = "ts"', 'time = "ts"\ntime = "ts"')],
        [
            "pipeline.toml, line 15, column 12: not TOML: Cannot overwrite a value",
            '  time = "ts"',
            "             ^",
        ],
    ),
    "unknown table": (
        [("[events]", "[event]")],
        [
            "pipeline.toml, line 13, column 2: a pipeline has no table 'event'",
            "  [event]",
            "   ^^^^^",
            "hint: did you mean 'events'?",
        ],
    ),
    "a table that is missing": (
        [("[source]", "[spark.x]")],
        [
            "pipeline.toml: there is no table [source]",
            "hint: it says where events come from",
        ],
    ),
    "unknown key": (
        [("disorder =", "disordr =")],
        [
            "pipeline.toml, line 15, column 1: [events] has no key 'disordr'",
            '  disordr = "10 seconds"',
            "  ^^^^^^^",
            "hint: did you mean 'disorder'?",
        ],
    ),
    "a key of another table": (
        [("rows = 5", 'rows = 5\nlate = "drop"')],
        [
            "pipeline.toml, line 47, column 1: [[sink]] has no key 'late'",
            '  late = "drop"',
            "  ^^^^",
            "hint: 'late' is a key of [events]",
        ],
    ),
    "unlike any key": (
        [("rows = 5", "rows = 5\nzzz = 1")],
        [
            "pipeline.toml, line 47, column 1: [[sink]] has no key 'zzz'",
            "  zzz = 1",
            "  ^^^",
            "hint: known keys: name, kind, rows",
        ],
    ),
    "missing key": (
        [('path = "trades.csv"\n', "")],
        [
            "pipeline.toml, line 7, column 2: [source] needs 'path'",
            "  [source]",
            "   ^^^^^^",
        ],
    ),
    "missing in a repeated table": (
        [('name = "dear"\n', "")],
        [
            "pipeline.toml, line 28, column 3: [[query]] needs 'name'",
            "  [[query]]",
            "    ^^^^^",
        ],
    ),
    "missing kind": (
        [('kind = "console"\n', "")],
        [
            "pipeline.toml, line 43, column 3: [[sink]] needs 'kind'",
            "  [[sink]]",
            "    ^^^^",
            "hint: one of parquet, csv, json, kafka, delta, console",
        ],
    ),
    "unknown kind": (
        [('"console"', '"konsole"')],
        [
            'pipeline.toml, line 45, column 8: [[sink]] kind = "konsole": expected one of parquet, csv, json, kafka, delta, console',
            '  kind = "konsole"',
            "         ^^^^^^^^^",
            "hint: did you mean 'console'?",
        ],
    ),
    "kind of another type": (
        [('"console"', "7")],
        [
            "pipeline.toml, line 45, column 8: [[sink]] kind = 7: expected one of parquet, csv, json, kafka, delta, console",
            "  kind = 7",
            "         ^",
        ],
    ),
    "one of a few": (
        [('"streaming"', '"stream"')],
        [
            "pipeline.toml, line 3, column 8: [pipeline] mode = \"stream\": expected 'batch' or 'streaming'",
            '  mode = "stream"',
            "         ^^^^^^^^",
            "hint: did you mean 'streaming'?",
        ],
    ),
    "unlike any choice": (
        [('late = "side"', 'late = "away"')],
        [
            "pipeline.toml, line 16, column 8: [events] late = \"away\": expected 'drop', 'error' or 'side'",
            '  late = "away"',
            "         ^^^^^^",
        ],
    ),
    "not a text": (
        [('time = "ts"', "time = 5")],
        [
            "pipeline.toml, line 14, column 8: [events] time = 5: expected a text",
            "  time = 5",
            "         ^",
        ],
    ),
    "an empty text": (
        [('time = "ts"', 'time = ""')],
        [
            'pipeline.toml, line 14, column 8: [events] time = "": the text is empty',
            '  time = ""',
            "         ^^",
        ],
    ),
    "not a number": (
        [("rows = 5", 'rows = "5"')],
        [
            'pipeline.toml, line 46, column 8: [[sink]] rows = "5": expected a whole number',
            '  rows = "5"',
            "         ^^^",
        ],
    ),
    "true is no number": (
        [("rows = 5", "rows = true")],
        [
            "pipeline.toml, line 46, column 8: [[sink]] rows = true: expected a whole number",
            "  rows = true",
            "         ^^^^",
        ],
    ),
    "too small": (
        [("rows = 5", "rows = -1")],
        [
            "pipeline.toml, line 46, column 8: [[sink]] rows = -1: expected 0 or more",
            "  rows = -1",
            "         ^^",
        ],
    ),
    "not a list": (
        [('sinks = "shown"', "sinks = 3")],
        [
            "pipeline.toml, line 31, column 9: [[query]] sinks = 3: expected a list",
            "  sinks = 3",
            "          ^",
        ],
    ),
    "an item of a list": (
        [('["matches", "shown"]', '["matches", 3]')],
        [
            "pipeline.toml, line 26, column 21: [[query]] sinks[1] = 3: expected a text",
            '  sinks = ["matches", 3]',
            "                      ^",
        ],
    ),
    "an empty list": (
        [('sinks = "shown"', "sinks = []")],
        [
            "pipeline.toml, line 31, column 9: [[query]] sinks: the list is empty",
            "  sinks = []",
            "          ^^",
        ],
    ),
    "not a table": (
        [('{ sep = "," }', '"sep"')],
        [
            'pipeline.toml, line 11, column 11: [source] options = "sep": expected a table',
            '  options = "sep"',
            "            ^^^^^",
        ],
    ),
    "option of a wrong type": (
        [('{ sep = "," }', '{ sep = ["a"] }')],
        [
            'pipeline.toml, line 11, column 19: [source] options.sep = […]: expected a text, a number, true, false or { env = "NAME" }',
            '  options = { sep = ["a"] }',
            "                    ^^^^^",
        ],
    ),
    "table for a value": (
        [("[spark]", "[spark]\nx = []")],
        [
            "pipeline.toml, line 49, column 5: [spark] x = []: expected a text, a number, true or false",
            "  x = []",
            "      ^^",
        ],
    ),
    "spark is no table": (
        [("[spark]\nsql.shuffle.partitions = 2\n", ""), ("[pipeline]", "spark = 3\n[pipeline]")],
        [
            "pipeline.toml, line 1, column 9: [spark] = 3: expected a table",
            "  spark = 3",
            "          ^",
        ],
    ),
    "a name with blanks": (
        [('"pairs"', '"pairs of trades"')],
        [
            "pipeline.toml, line 20, column 8: [[query]] name = \"pairs of trades\": a name has letters, digits, '_', '.' and '-' only",
            '  name = "pairs of trades"',
            "         ^^^^^^^^^^^^^^^^^",
        ],
    ),
    "query text as a table": (
        [('[[query]]\nname = "dear"', "[[query]]\nname = {}")],
        [
            "pipeline.toml, line 29, column 8: [[query]] name = {…}: expected a text",
            "  name = {}",
            "         ^^",
        ],
    ),
    "type of a column": (
        [('price = "double"', 'price = "dubble"')],
        [
            "pipeline.toml, line 10, column 73: [source] columns: 'dubble' is no type of a column; did you mean 'double'?",
            '  columns = { type = "string", ts = "timestamp", name = "string", price = "dubble" }',
            "                                                                          ^^^^^^^^",
        ],
    ),
    "no columns": (
        [('columns = { type = "string", ts = "timestamp", name = "string", price = "double" }', "columns = {}")],
        [
            "pipeline.toml, line 10, column 11: [source] columns: the table is empty",
            "  columns = {}",
            "            ^^",
        ],
    ),
    "two names": (
        [('name = "dear"', 'name = "Pairs"')],
        [
            'pipeline.toml, line 29, column 8: [[query]] name = "Pairs": line 20 has this name already',
            '  name = "Pairs"',
            "         ^^^^^^^",
        ],
    ),
    "a trigger": (
        [('"5 seconds"', '"5 secs"')],
        [
            'pipeline.toml, line 5, column 11: [pipeline] trigger = "5 secs": expected \'available-now\', or a number and a unit, such as "10 seconds"',
            '  trigger = "5 secs"',
            "            ^^^^^^^^",
        ],
    ),
    "a watermark": (
        [('"10 seconds"', '"soon"')],
        [
            'pipeline.toml, line 15, column 12: [events] disorder = "soon": expected a number and a unit, such as "10 seconds"',
            '  disorder = "soon"',
            "             ^^^^^^",
        ],
    ),
    "no checkpoint": (
        [('checkpoint = "state"\n', "")],
        [
            "pipeline.toml, line 3, column 8: [pipeline] needs 'checkpoint' when it streams",
            '  mode = "streaming"',
            "         ^^^^^^^^^^^",
            'hint: checkpoint = "…": a folder where a restart finds how far the pipeline came',
        ],
    ),
    "no watermark": (
        [('disorder = "10 seconds"\n', "")],
        [
            "pipeline.toml, line 13, column 2: [events] needs 'disorder' when the pipeline streams",
            "  [events]",
            "   ^^^^^^",
            'hint: disorder = "10 seconds" says how much later than the latest event one may still arrive',
        ],
    ),
    "batch with streaming keys": (
        [('mode = "streaming"\n', "")],
        [
            'pipeline.toml, line 3, column 1: [pipeline] checkpoint is for mode = "streaming"',
            '  checkpoint = "state"',
            "  ^^^^^^^^^^",
            "",
            'pipeline.toml, line 4, column 1: [pipeline] trigger is for mode = "streaming"',
            '  trigger = "5 seconds"',
            "  ^^^^^^^",
        ],
    ),
    "source is missing": (
        [('"trades.csv"', '"trade.csv"')],
        [
            "pipeline.toml, line 9, column 8: [source] path: there is nothing at HERE/trade.csv",
            '  path = "trade.csv"',
            "         ^^^^^^^^^^^",
        ],
    ),
    "late without a sink": (
        [('late_sink = "late"\n', "")],
        [
            "pipeline.toml, line 16, column 8: [events] late = \"side\" needs 'late_sink'",
            '  late = "side"',
            "         ^^^^^^",
            'hint: late_sink = "…" names a sink',
        ],
    ),
    "a sink without late": (
        [('late = "side"\n', "")],
        [
            'pipeline.toml, line 16, column 1: [events] late_sink is for late = "side"',
            '  late_sink = "late"',
            "  ^^^^^^^^^",
        ],
    ),
    "late sink unknown": (
        [('late_sink = "late"', 'late_sink = "latte"')],
        [
            'pipeline.toml, line 17, column 13: [events] late_sink = "latte": there is no [[sink]] of this name',
            '  late_sink = "latte"',
            "              ^^^^^^^",
            "hint: did you mean 'late'?",
        ],
    ),
    "sink unknown": (
        [('["matches", "shown"]', '["matchs", "shown"]')],
        [
            'pipeline.toml, line 26, column 10: [[query]] sinks[0] = "matchs": there is no [[sink]] of this name',
            '  sinks = ["matchs", "shown"]',
            "           ^^^^^^^^",
            "hint: did you mean 'matches'?",
        ],
    ),
    "sink unknown, without brackets": (
        [('sinks = "shown"', 'sinks = "show"')],
        [
            'pipeline.toml, line 31, column 9: [[query]] sinks = "show": there is no [[sink]] of this name',
            '  sinks = "show"',
            "          ^^^^^^",
            "hint: did you mean 'shown'?",
        ],
    ),
    "a sink twice": (
        [('["matches", "shown"]', '["matches", "matches"]')],
        [
            "pipeline.toml, line 26, column 9: [[query]] 'pairs' names a sink twice",
            '  sinks = ["matches", "matches"]',
            "          ^^^^^^^^^^^^^^^^^^^^^^",
        ],
    ),
    "nothing for a sink": (
        [('["matches", "shown"]', '"shown"')],
        [
            'pipeline.toml, line 34, column 8: [[sink]] name = "matches": nothing is written to it',
            '  name = "matches"',
            "         ^^^^^^^^^",
            "hint: name it in the sinks of a query, or leave it out",
        ],
    ),
    "two queries in one file": (
        [('sinks = "shown"', 'sinks = "matches"'), ('["matches", "shown"]', '["matches", "shown"]')],
        [
            "pipeline.toml, line 34, column 8: [[sink]] name = \"matches\": query 'pairs' and query 'dear' have columns of their own",
            '  name = "matches"',
            "         ^^^^^^^^^",
            "hint: give each its own sink, and say in every query which: sinks = […]",
        ],
    ),
    "all sinks by default": (
        [('sinks = "shown"\n', "")],
        [
            "pipeline.toml, line 33, column 8: [[sink]] name = \"matches\": query 'pairs' and query 'dear' have columns of their own",
            '  name = "matches"',
            "         ^^^^^^^^^",
            "hint: give each its own sink, and say in every query which: sinks = […]",
        ],
    ),
    "two sinks in one place": (
        [('"out/late"', '"./out/../out/matches"')],
        [
            "pipeline.toml, line 41, column 8: [[sink]] path = \"./out/../out/matches\" is the path of [[sink]] 'matches' too",
            '  path = "./out/../out/matches"',
            "         ^^^^^^^^^^^^^^^^^^^^^^",
        ],
    ),
    "a sink in the source": (
        [('"out/matches"', '"trades.csv"')],
        [
            'pipeline.toml, line 36, column 8: [[sink]] path = "trades.csv" is the path of [source] too',
            '  path = "trades.csv"',
            "         ^^^^^^^^^^^^",
        ],
    ),
    "neither text nor file": (
        [('file = "dear.ceql"\n', "")],
        [
            "pipeline.toml, line 28, column 3: [[query]] 'dear' needs 'text' or 'file'",
            "  [[query]]",
            "    ^^^^^",
        ],
    ),
    "text and file": (
        [('file = "dear.ceql"\n', 'file = "dear.ceql"\ntext = "x"\n')],
        [
            "pipeline.toml, line 30, column 1: [[query]] 'dear' has both 'text' and 'file': leave one out",
            '  file = "dear.ceql"',
            "  ^^^^",
        ],
    ),
    "query file is missing": (
        [('"dear.ceql"', '"deer.ceql"')],
        [
            "pipeline.toml, line 30, column 8: query 'dear': HERE/deer.ceql cannot be read (No such file or directory)",
            '  file = "deer.ceql"',
            "         ^^^^^^^^^^^",
        ],
    ),
    "partitions while streaming": (
        [('sinks = "shown"', 'sinks = "shown"\npartitions = 3')],
        [
            "pipeline.toml, line 32, column 1: [[query]] 'dear': partitions is for mode = \"batch\"",
            "  partitions = 3",
            "  ^^^^^^^^^^",
        ],
    ),
    "environment": (
        [('{ sep = "," }', '{ sep = { env = "STRETTO_NOT_SET" } }')],
        [
            "pipeline.toml, line 11, column 19: [source] options.sep: the environment variable STRETTO_NOT_SET is not set",
            '  options = { sep = { env = "STRETTO_NOT_SET" } }',
            "                    ^^^^^^^^^^^^^^^^^^^^^^^^^^^",
        ],
    ),
    "environment is empty": (
        [('{ sep = "," }', '{ sep = { env = "" } }')],
        [
            'pipeline.toml, line 11, column 19: [source] options.sep = {…}: expected a text, a number, true, false or { env = "NAME" }',
            '  options = { sep = { env = "" } }',
            "                    ^^^^^^^^^^^^",
        ],
    ),
    "query syntax": (
        [("BUY AS bought", "BUY AZ bought")],
        [
            "pipeline.toml, line 23, column 29: query 'pairs': unexpected 'bought'; expected ';', '+', AS, OR, FILTER or the end",
            "  WHERE SELL AS sold ; BUY AZ bought",
            "                              ^^^^^^",
        ],
    ),
    "query attribute": (
        [("bought[price]", "bought[prize]")],
        [
            "pipeline.toml, line 22, column 28: query 'pairs': unknown attribute 'prize' in SELECT bought[…]",
            "  SELECT sold[price], bought[prize] FROM trades",
            "                             ^^^^^",
            "hint: did you mean 'price'?",
        ],
    ),
    "query in a literal string": (
        [('text = """\nSELECT sold[price]', "text = '''\nSELECT sold[prize]"), ('seconds\n"""', "seconds\n'''")],
        [
            "pipeline.toml, line 22, column 13: query 'pairs': unknown attribute 'prize' in SELECT sold[…]",
            "  SELECT sold[prize], bought[price] FROM trades",
            "              ^^^^^",
            "hint: did you mean 'price'?",
        ],
    ),
    "query on one line": (
        [('file = "dear.ceql"', 'text = "SELECT * FROM trades\\n WHERE BUY AS b FILTER b[\\u0070rize > 90]"')],
        [
            "pipeline.toml, line 30, column 56: query 'dear': unknown attribute 'prize'",
            '  text = "SELECT * FROM trades\\n WHERE BUY AS b FILTER b[\\u0070rize > 90]"',
            "                                                         ^^^^^^^^^^",
            "hint: did you mean 'price'?",
        ],
    ),
    "empty query": (
        [('file = "dear.ceql"', 'text = " "')],
        [
            "pipeline.toml, line 30, column 9: query 'dear': the query is empty",
            '  text = " "',
            "          ^",
            "hint: SELECT * FROM stream WHERE formula",
        ],
    ),
    "type of a window": (
        [("WITHIN 5 seconds", "WITHIN 5 [name]")],
        [
            "pipeline.toml, line 24, column 31: query 'pairs': cannot measure a window by 'name' (string)",
            "  PARTITION BY [name] WITHIN 5 [name]",
            "                                ^^^^",
            "hint: a window needs an integer, decimal or timestamp attribute; make times of its texts first: df['name'] = "
            "pd.to_datetime(df['name']), cast('timestamp') on Spark, or in Arrow a cast to timestamp('us')",
        ],
    ),
    "time is no column": (
        [('time = "ts"', 'time = "tss"')],
        [
            'pipeline.toml, line 14, column 8: [events] time = "tss": the events have no such column',
            '  time = "tss"',
            "         ^^^^^",
            "hint: did you mean 'ts'?",
        ],
    ),
    "type is no column": (
        [("columns = { type =", "columns = { kind =")],
        [
            'pipeline.toml, line 13, column 2: [events] type = "type": the events have no such column (that is the default; type = "" says that there is none)',
            "  [events]",
            "   ^^^^^^",
            "hint: known columns: kind, ts, name, price",
        ],
    ),
    "named type is no column": (
        [('time = "ts"', 'time = "ts"\ntype = "typ"')],
        [
            'pipeline.toml, line 15, column 8: [events] type = "typ": the events have no such column',
            '  type = "typ"',
            "         ^^^^^",
            "hint: did you mean 'type'?",
        ],
    ),
    "integer time": (
        [('ts = "timestamp"', 'ts = "bigint"')],
        [
            "pipeline.toml, line 14, column 8: [events] time = \"ts\" is int64: the watermark needs 'time_unit'",
            '  time = "ts"',
            "         ^^^^",
            'hint: time_unit = "s", "ms", "us" or "ns"',
        ],
    ),
    "text time": (
        [('ts = "timestamp"', 'ts = "string"')],
        [
            'pipeline.toml, line 14, column 8: [events] time = "ts" is string, not a number, timestamp or date',
            '  time = "ts"',
            "         ^^^^",
        ],
    ),
    "streams": (
        [("FROM trades", "FROM trades, quotes")],
        [
            "pipeline.toml, line 22, column 40: query 'pairs': reads 2 streams, and there is one source",
            "  SELECT sold[price], bought[price] FROM trades, quotes",
            "                                         ^^^^^^",
            "hint: give each stream a [[source]] with its name, or name the column that tells them apart: [events] stream",
        ],
    ),
    "pattern": (
        [('kind = "csv"\npath = "trades.csv"', 'kind = "kafka"\nservers = "a:1"\ntopic = "t"\npattern = "(.)"')],
        [
            'pipeline.toml, line 11, column 1: [source] pattern is for value = "text"',
            '  pattern = "(.)"',
            "  ^^^^^^^",
        ],
    ),
    "a feed without a sign": (
        [('kind = "csv"\npath = "trades.csv"', 'kind = "kafka"\nservers = "a:1"\ntopic = "t"\nvalue = "debezium"')],
        [
            "pipeline.toml, line 11, column 9: [source] value = \"debezium\": the feed's column 'sign' says what comes and what is "
            "taken back",
            '  value = "debezium"',
            "          ^^^^^^^^^^",
            'hint: [events] sign = "sign"',
        ],
    ),
    "a feed of a table with a sign": (
        [
            (
                'kind = "csv"\npath = "trades.csv"\ncolumns = { type',
                'kind = "kafka"\nservers = "a:1"\ntopic = "t"\nvalue = "debezium"\ncolumns = { sign = "int", type',
            ),
            ('time = "ts"', 'time = "ts"\nsign = "sign"'),
        ],
        [
            "pipeline.toml, line 12, column 13: [source] columns: the feed adds a column 'sign' of its own",
            '  columns = { sign = "int", type = "string", ts = "timestamp", name = "string", price = "double" }',
            "              ^^^^",
            "hint: rename it before",
        ],
    ),
    "delta overwrites": (
        [('path = "out/late"', 'path = "out/late"\nmode = "overwrite"')],
        [
            "pipeline.toml, line 42, column 8: [[sink]] mode = \"overwrite\": expected 'error' or 'append'",
            '  mode = "overwrite"',
            "         ^^^^^^^^^^^",
        ],
    ),
    "type is no text": (
        [('columns = { type = "string"', 'columns = { type = "int"')],
        [
            'pipeline.toml, line 13, column 2: [events] type = "type" is int32, not text',
            "  [events]",
            "   ^^^^^^",
        ],
    ),
    "keys that Pydantic would take": (
        [("rows = 5", "rows = 5.0")],
        [
            "pipeline.toml, line 46, column 8: [[sink]] rows = 5.0: expected a whole number",
            "  rows = 5.0",
            "         ^^^",
        ],
    ),
    "several mistakes, in order": (
        [('mode = "streaming"', 'mode = "steaming"'), ('time = "ts"', 'tme = "ts"'), ("rows = 5", 'rows = "5"')],
        [
            "pipeline.toml, line 3, column 8: [pipeline] mode = \"steaming\": expected 'batch' or 'streaming'",
            '  mode = "steaming"',
            "         ^^^^^^^^^^",
            "hint: did you mean 'streaming'?",
            "",
            "pipeline.toml, line 14, column 1: [events] has no key 'tme'",
            '  tme = "ts"',
            "  ^^^",
            "hint: did you mean 'time'?",
            "",
            'pipeline.toml, line 46, column 8: [[sink]] rows = "5": expected a whole number',
            '  rows = "5"',
            "         ^^^",
        ],
    ),
}

#: Those of them in which the text of a query is wrong.
IN_QUERIES = {
    "query syntax",
    "query attribute",
    "query in a literal string",
    "query on one line",
    "empty query",
    "type of a window",
    "streams",
}


@pytest.mark.parametrize("name", CASES)
def test_a_mistake(write: Write, folder: Path, name: str) -> None:
    pieces, expected = CASES[name]
    with pytest.raises(PipelineError) as caught:
        load(write(*pieces))
    assert str(caught.value).replace(str(folder), "HERE").split("\n") == expected
    assert caught.value.in_queries == (name in IN_QUERIES)
    for problem in caught.value.problems:
        assert problem.line is not None or ": there is no table" in str(problem)


def told(path: Path) -> str:
    """What is wrong with a file."""
    with pytest.raises(PipelineError) as caught:
        load(path)
    return str(caught.value)


def test_the_good_file_is_good(write: Write, folder: Path) -> None:
    plan = load(write())
    assert (plan.name, plan.streaming, [query.name for query in plan.queries]) == ("trades", True, ["pairs", "dear"])
    assert [sink.name for sink in plan.sinks_of(plan.queries[0])] == ["matches", "shown"]
    assert plan.locate("out/x") == str(folder.resolve() / "out" / "x")
    assert plan.locate("s3a://bucket/x") == "s3a://bucket/x"
    assert plan.spark == {"spark.sql.shuffle.partitions": "2"}


def test_what_is_left_out(write: Write) -> None:
    plan = load(
        write(
            ('name = "trades"\n', ""),
            ('mode = "streaming"\ncheckpoint = "state"\ntrigger = "5 seconds"\n', ""),
            ('late = "side"\nlate_sink = "late"\n', ""),
            ('sinks = ["matches", "shown"]\n', 'sinks = ["matches", "late", "shown"]\n'),
            ("sql.shuffle.partitions = 2", '"spark.ui.enabled" = true\nmaster = "local[1]"'),
        )
    )
    assert (plan.name, plan.streaming, plan.events.type, plan.events.bad_records) == (
        "pipeline",
        False,
        "type",
        "error",
    )
    assert plan.spark == {"spark.ui.enabled": "true", "spark.master": "local[1]"}
    assert plan.file.name == "pipeline.toml"


def test_one_query_writes_to_all_sinks(write: Write) -> None:
    start, end = GOOD.index('[[query]]\nname = "dear"'), GOOD.index('[[sink]]\nname = "matches"')
    plan = load(write(('sinks = ["matches", "shown"]\n', ""), text=GOOD[:start] + GOOD[end:]))
    assert [sink.name for sink in plan.sinks_of(plan.queries[0])] == ["matches", "shown"]


def test_a_feed_of_changes(write: Write) -> None:
    """Its column ``sign`` is known, and no sequence by offset."""
    feed = 'kind = "kafka"\nservers = "a:1"\ntopic = "t"\nvalue = "debezium"'
    pieces = ('kind = "csv"\npath = "trades.csv"', feed), ('time = "ts"', 'time = "ts"\nsign = "sign"')
    plan = load(write(*pieces))
    assert {"sign", "price"} <= (known_columns(plan, plan.sources[0]) or {}).keys()
    with pytest.raises(PipelineError, match="the events have no such column"):
        load(write(*pieces, ('time = "ts"', 'time = "ts"\nsequence = "sequence"')))


def test_no_file(folder: Path) -> None:
    with pytest.raises(OptionError, match=r"^no such file: pipeline.toml$"):
        load("pipeline.toml")
    with pytest.raises(OptionError, match=r"is a folder: name the TOML file of a pipeline$"):
        load(folder)


def test_not_text(folder: Path) -> None:
    Path("pipeline.toml").write_bytes(b'[pipeline]\nname = "\xff"\n')
    assert told(Path("pipeline.toml")) == "pipeline.toml: line 2 is not UTF-8 text (invalid start byte)"


def test_too_deep(folder: Path) -> None:
    Path("pipeline.toml").write_text(f"x = {'[' * 20_000}", encoding="utf-8")
    assert told(Path("pipeline.toml")) == "pipeline.toml: is nested too deeply"


def test_windows_line_ends_and_a_byte_order_mark(write: Write) -> None:
    path = write(("bought[price]", "bought[prize]"), ("rows = 5", 'rows = "5"'))
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert told(path).startswith('pipeline.toml, line 46, column 8: [[sink]] rows = "5"')
    path.write_bytes(path.read_bytes().replace(b'"5"', b"5"))
    assert told(path).startswith("pipeline.toml, line 22, column 28: query 'pairs': unknown attribute 'prize'")


def test_a_query_in_a_file_of_its_own(write: Write, folder: Path) -> None:
    path = write()
    Path("dear.ceql").write_text("SELECT * FROM trades\nWHERE BUY AS b\nFILTER b[prize > 90]\n", encoding="utf-8")
    assert told(path).split("\n") == [
        f"{folder / 'dear.ceql'}, line 3, column 10: query 'dear': unknown attribute 'prize'",
        "  FILTER b[prize > 90]",
        "           ^^^^^",
        "hint: did you mean 'price'?",
    ]
    automaton = """final = ["q1"]\narcs = [{ source = "q0", target = "q1", when = "e.prize > 90" }]\n"""
    Path("dear.toml").write_text(automaton, encoding="utf-8")
    path = write(('file = "dear.ceql"', 'file = "dear.toml"\nlanguage = "afa"'))
    assert (
        told(path)
        .split("\n")[0]
        .endswith("dear.toml, line 2, column 49: query 'dear': the event has no attribute 'prize'")
    )
    Path("dear.toml").write_text("final = [", encoding="utf-8")
    assert "query 'dear': the automaton's text is no TOML" in told(path)
    statement = "SELECT 1\nFROM trades MATCH_RECOGNIZE (PATTERN (A) DEFINE B AS true)"
    Path("dear.sql").write_text(statement, encoding="utf-8")
    path = write(('file = "dear.ceql"', 'file = "dear.sql"\nlanguage = "sql"\ntimeouts = true'))
    assert "language = \"sql\", for which 'timeouts' says nothing" in told(path)
    assert 'language = "sql", which does not take [events] late = "side"' in told(path)
    path = write(('file = "dear.ceql"', 'file = "dear.sql"\nlanguage = "sql"'))
    assert "dear.sql, line 2, column 49: query 'dear': " in told(path)
    path = write()
    Path("dear.ceql").write_bytes(b"SELECT \xff")
    assert "line 30, column 8: query 'dear': " in told(path)
    assert "dear.ceql is not UTF-8 text" in told(path)


def with_parquet(write: Write, column: str) -> Path:
    table = pa.table({"type": ["BUY"], "ts": pa.array([0], pa.timestamp("ns")), "name": ["a"], column: [1.0]})
    Path("trades").mkdir(exist_ok=True)
    pq.write_table(table, "trades/1.parquet")
    start, end = GOOD.index('kind = "csv"'), GOOD.index("[events]")
    text = f'{GOOD[:start]}kind = "parquet"\npath = "trades"\n\n{GOOD[end:]}'
    batch = ('mode = "streaming"\ncheckpoint = "state"\ntrigger = "5 seconds"\n', "")
    return write(batch, text=text)


def test_columns_of_a_parquet_file(write: Write) -> None:
    assert "unknown attribute 'price'" in told(with_parquet(write, "cost"))
    assert load(with_parquet(write, "price")).sources[0].kind == "parquet"
    path = write(
        ('mode = "batch"', 'mode = "streaming"'),
        text=Path("pipeline.toml")
        .read_text()
        .replace("[pipeline]", '[pipeline]\nmode = "batch"\ncheckpoint = "state"'),
    )
    assert told(path).startswith("pipeline.toml, line 6, column 2: [source] needs 'columns' when the pipeline streams")


def test_columns_that_only_spark_knows(write: Write) -> None:
    """Derived columns have no type yet: queries that name them are checked when Spark has started."""
    load(write(("bought[price]", "bought[cents]"), ("options =", 'derived = { cents = "price * 100" }\noptions =')))


STREAMS = """
[[source]]
name = "orders"
kind = "json"
path = "orders.json"
columns = { type = "string", ts = "bigint", number = "int" }

[[source]]
kind = "json"
name = "payments"
path = "orders.json"
columns = { type = "string", ts = "bigint", number = "int", paid = "double" }

[events]
time = "ts"
time_unit = "s"

[[query]]
name = "paid"
text = 'SELECT * FROM orders, payments WHERE orders>NEW ; payments>PAID AS p FILTER p[paid > 1] PARTITION BY [number]'

[[sink]]
name = "shown"
kind = "console"
"""


def test_several_streams(write: Write) -> None:
    Path("orders.json").touch()
    assert len(load(write(text=STREAMS)).sources) == 2
    path = write(
        ("FROM orders, payments WHERE orders>NEW ; payments>PAID", "FROM orders, pays WHERE orders>NEW ; pays>PAID"),
        text=STREAMS,
    )
    assert told(path).split("\n")[0].endswith("line 20, column 31: query 'paid': there is no [[source]] 'pays'")
    path = write(('name = "payments"\n', ""), text=STREAMS)
    assert told(path).startswith("pipeline.toml, line 8, column 3: [[source]] needs 'name'")
    path = write(('name = "payments"', 'name = "orders"'), text=STREAMS)
    assert told(path).startswith(
        'pipeline.toml, line 10, column 8: [[source]] name = "orders": line 3 has this name already'
    )
    path = write(('time = "ts"', 'time = "ts"\nstream = "type"'), text=STREAMS)
    assert "line 16, column 1: [events] stream is for one source" in told(path)
    path = write(("paid >", "paaid >"), text=STREAMS)
    assert "unknown attribute 'paaid'" in told(path)


def test_secrets_come_from_the_environment(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    from stretto.pipelines.sources import options_of

    monkeypatch.setenv("STRETTO_TEST_SECRET", "hush")
    plan = load(write(('{ sep = "," }', '{ sep = ",", password = { env = "STRETTO_TEST_SECRET" } }')))
    assert "hush" not in repr(plan)
    assert options_of(plan.sources[0].options) == {"sep": ",", "password": "hush"}


def test_delta_without_its_package(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert 'line 40, column 8: [[sink]] kind = "delta" needs the Python package deltalake' in told(write())


def test_check_only(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    def checked(path: Path) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(["run", "--check", str(path)])
        shown = capsys.readouterr()
        return (ended.value.code if isinstance(ended.value.code, int) else 0), shown.out, shown.err

    said = "pipeline.toml is well formed: 1 source, 2 queries, 3 sinks, streaming\n"
    assert checked(write()) == (0, said, "")
    code, out, err = checked(write(("rows = 5", "path = 5"), ("[price]", "[prize]")))
    assert (code, out, err.split(", col")[0]) == (2, "", "error: pipeline.toml, line 46")
    code, out, err = checked(write(("[price]", "[prize]")))
    assert (code, out, err.split(", col")[0]) == (3, "", "query error: pipeline.toml, line 22")
    assert checked(Path("nothing.toml")) == (2, "", "error: no such file: nothing.toml\n")


def test_check_needs_no_spark(write: Write) -> None:
    """Neither a JVM nor PySpark."""
    code = "import sys; sys.modules['pyspark'] = None\nfrom stretto.pipelines import load; print(load('pipeline.toml').name)"
    write()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "trades\n", "")
