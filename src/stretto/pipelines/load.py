"""``stretto.pipelines.load``: a file, checked.

What one key alone does not tell: names that must be known, keys that go together, files that must be there.
"""

from __future__ import annotations

import glob
import importlib.util
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from stretto.connectors.changes import ADDED, SIGN
from stretto.errors import OptionError, suggestion
from stretto.pipelines import model
from stretto.pipelines.columns import column_type
from stretto.pipelines.documents import PipelineError, Problem, in_order
from stretto.pipelines.places import Path as KeyPath
from stretto.pipelines.plan import Plan, parse
from stretto.pipelines.queries import check_queries, check_rules
from stretto.spark.options import microseconds_of

Check = Callable[[Plan], Iterator[Problem]]


def check_plan(plan: Plan) -> list[Problem]:
    """All that is wrong with a pipeline apart from its queries."""
    problems = [problem for check in _CHECKS for problem in check(plan)]
    told = [problem for check in (_sides, _query_keys) for problem in check(plan)]
    # Which rows go where is not known while names are wrong.
    return problems + (told or list(_sink_uses(plan)))


def _names(plan: Plan) -> Iterator[Problem]:
    """Sources, what is asked, and sinks each have names of their own."""
    tables: list[dict[str, Sequence[model.Asked | model.Sink | model.Source]]]
    tables = [{"source": plan.sources}, {"query": plan.queries, "rules": plan.rules}, {"sink": plan.sinks}]
    for kinds in tables:
        seen: dict[str, KeyPath] = {}
        placed = (((kind, number, "name"), item) for kind, items in kinds.items() for number, item in enumerate(items))
        for path, item in placed:
            if item.name is None:
                continue
            # Names become folders, and some file systems do not tell capitals.
            if (first := seen.setdefault(item.name.casefold(), path)) != path:
                told = f'{plan.file.label(path)} = "{item.name}": {plan.file.where(first)} has this name already'
                yield plan.file.problem(path, told)


def _pipeline(plan: Plan) -> Iterator[Problem]:
    """What streaming needs."""
    trigger = plan.pipeline.trigger
    if trigger is not None and trigger != "available-now":
        yield from _duration(plan, ("pipeline", "trigger"), trigger, "'available-now', or ")
    disorder = plan.events.disorder
    if disorder is not None:
        yield from _duration(plan, ("events", "disorder"), disorder, "")
    if not plan.streaming:
        for key in ("checkpoint", "trigger"):
            if getattr(plan.pipeline, key) is not None:
                told = f'[pipeline] {key} is for mode = "streaming"'
                yield plan.file.problem(("pipeline", key), told, at_key=True)
        return
    if plan.pipeline.checkpoint is None:
        hint = 'checkpoint = "…": a folder where a restart finds how far the pipeline came'
        yield plan.file.problem(("pipeline", "mode"), "[pipeline] needs 'checkpoint' when it streams", hint)
    if disorder is None:
        hint = 'disorder = "10 seconds" says how much later than the latest event one may still arrive'
        yield plan.file.problem(("events",), "[events] needs 'disorder' when the pipeline streams", hint, at_key=True)


def _duration(plan: Plan, path: KeyPath, value: str, other: str) -> Iterator[Problem]:
    try:
        microseconds_of(value)
    except OptionError:
        told = f'{plan.file.label(path)} = "{value}": expected {other}a number and a unit, such as "10 seconds"'
        yield plan.file.problem(path, told)


def _sources(plan: Plan) -> Iterator[Problem]:
    """Several sources are streams with names; one source may hold several streams."""
    several = len(plan.sources) > 1
    for number, source in enumerate(plan.sources):
        path: KeyPath = ("source", number)
        if several and source.name is None:
            hint = "several sources are the streams that queries name behind FROM"
            yield plan.file.problem(path, f"{plan.file.label(path)} needs 'name'", hint, at_key=True)
        if isinstance(source, model.ParquetSource) and source.columns is None and plan.streaming:
            hint = "its files may not be there yet when the pipeline starts"
            told = f"{plan.file.label(path)} needs 'columns' when the pipeline streams"
            yield plan.file.problem(path, told, hint, at_key=True)
        yield from _columns(plan, source, path)
        if isinstance(source, model.KafkaSource):
            yield from _kafka(plan, source, path)
        elif not _is_there(plan.locate(source.path)):
            told = f"{plan.file.label((*path, 'path'))}: there is nothing at {plan.locate(source.path)}"
            yield plan.file.problem((*path, "path"), told)
    if several and plan.events.stream is not None:
        told = "[events] stream is for one source that holds several streams; here each source is one"
        yield plan.file.problem(("events", "stream"), told, at_key=True)


def _columns(plan: Plan, source: model.Source, path: KeyPath) -> Iterator[Problem]:
    if isinstance(source, model.DeltaSource):
        return
    for name, kind in (source.columns or {}).items():
        try:
            column_type(kind)
        except OptionError as error:
            yield plan.file.problem((*path, "columns", name), f"{plan.file.label(path)} columns: {error}")


def _kafka(plan: Plan, source: model.KafkaSource, path: KeyPath) -> Iterator[Problem]:
    """What a message is goes with the other keys."""
    label = plan.file.label(path)
    if source.pattern is not None and source.value != "text":
        yield plan.file.problem((*path, "pattern"), f'{label} pattern is for value = "text"', at_key=True)
    if source.value != "debezium":
        return
    if plan.events.sign != SIGN:
        at: KeyPath = (*path, "value") if plan.events.sign is None else ("events", "sign")
        told = f"{label} value = \"debezium\": the feed's column '{SIGN}' says what comes and what is taken back"
        yield plan.file.problem(at, told, f'[events] sign = "{SIGN}"')
    for name in source.columns:
        if name in ADDED:
            told = f"{label} columns: the feed adds a column '{name}' of its own"
            yield plan.file.problem((*path, "columns", name), told, "rename it before", at_key=True)


def _is_there(path: str) -> bool:
    """Whether a local path or pattern names a file; what is elsewhere is Spark's to find."""
    return ":/" in path or Path(path).exists() or (glob.has_magic(path) and bool(glob.glob(path)))


def _sides(plan: Plan) -> Iterator[Problem]:
    """``late = "side"`` and ``bad_records = "side"`` say where to, and nothing else does."""
    for key in ("late", "bad_records"):
        aside, name = getattr(plan.events, key) == "side", getattr(plan.events, f"{key}_sink")
        if aside and name is None:
            hint = f'{key}_sink = "…" names a sink'
            yield plan.file.problem(("events", key), f"[events] {key} = \"side\" needs '{key}_sink'", hint)
        if not aside and name is not None:
            told = f'[events] {key}_sink is for {key} = "side"'
            yield plan.file.problem(("events", f"{key}_sink"), told, at_key=True)
        if name is not None:
            yield from _known_sink(plan, name, ("events", f"{key}_sink"))


def _known_sink(plan: Plan, name: str, path: KeyPath) -> Iterator[Problem]:
    names = [sink.name for sink in plan.sinks]
    if name not in names:
        told = f'{plan.file.label(path)} = "{name}": there is no [[sink]] of this name'
        yield plan.file.problem(path, told, suggestion(name, names, kind="sink"))


def _query_keys(plan: Plan) -> Iterator[Problem]:
    for number, query in enumerate(plan.queries):
        path: KeyPath = ("query", number)
        label = f"{plan.file.label(path)} '{query.name}'"
        if query.text is None and query.file is None:
            yield plan.file.problem(path, f"{label} needs 'text' or 'file'", at_key=True)
        if query.text is not None and query.file is not None:
            told = f"{label} has both 'text' and 'file': leave one out"
            yield plan.file.problem((*path, "file"), told, at_key=True)
        if query.language == "sql":
            yield from _statement_keys(plan, query, path, label)
        yield from _asked_keys(plan, query, path, label)
    for number, rules in enumerate(plan.rules):
        path = ("rules", number)
        label = f"{plan.file.label(path)} '{rules.name}'"
        if len(plan.sources) > 1:
            told = f"{label}: rules read one source, and there are {len(plan.sources)}"
            yield plan.file.problem(path, told, at_key=True)
        yield from _asked_keys(plan, rules, path, label)


def _asked_keys(plan: Plan, asked: model.Asked, path: KeyPath, label: str) -> Iterator[Problem]:
    """What queries and rules have in common: keys of one mode, and the sinks."""
    for key, mode in (
        ("partitions", "batch"),
        ("at_end", "batch"),
        ("buckets", "streaming"),
        ("speculation", "streaming"),
    ):
        if getattr(asked, key, None) is not None and mode != plan.pipeline.mode:
            yield plan.file.problem((*path, key), f'{label}: {key} is for mode = "{mode}"', at_key=True)
    for i, name in enumerate(asked.sinks or ()):
        # One sink may be written without brackets.
        at: KeyPath = (*path, "sinks", i)
        yield from _known_sink(plan, name, at if plan.file.place(at) else (*path, "sinks"))
    if len(set(asked.sinks or ())) < len(asked.sinks or ()):
        yield plan.file.problem((*path, "sinks"), f"{label} names a sink twice")


def _statement_keys(plan: Plan, query: model.Query, path: KeyPath, label: str) -> Iterator[Problem]:
    """A statement of SQL says by itself what its rows are, and runs over what is there."""
    taken = (("late", plan.events.late == "side"), ("event_id", plan.events.event_id is not None))
    for key, is_there in taken:
        if plan.streaming and is_there:
            told = f'{label} has language = "sql", which does not take [events] {key} = "{getattr(plan.events, key)}"'
            yield plan.file.problem((*path, "language"), told, "leave it out, or give a query in CEQL or SASE+")
    for key in ("speculation", "output", "valuations", "timeouts", "partitions", "buckets", "budget"):
        if key in query.model_fields_set:
            told = f"{label} has language = \"sql\", for which '{key}' says nothing"
            yield plan.file.problem((*path, key), told, "leave it out", at_key=True)


def _sink_uses(plan: Plan) -> Iterator[Problem]:
    """Rows of one shape to a sink that has columns, and no sink without rows."""
    users: dict[str, list[str]] = {sink.name: [] for sink in plan.sinks}
    for asked in plan.asked:
        for sink in plan.sinks_of(asked):
            users[sink.name].append(f"{'query' if isinstance(asked, model.Query) else 'rules'} '{asked.name}'")
    for name, what in ((plan.events.late_sink, "late events"), (plan.events.bad_records_sink, "bad records")):
        if name in users:
            users[name].append(what)
    for number, sink in enumerate(plan.sinks):
        path: KeyPath = ("sink", number, "name")
        using = users[sink.name]
        if not using:
            told = f'{plan.file.label(path)} = "{sink.name}": nothing is written to it'
            yield plan.file.problem(path, told, "name it in the sinks of a query, or leave it out")
        if len(using) > 1 and not isinstance(sink, model.KafkaSink | model.ConsoleSink):
            told = f'{plan.file.label(path)} = "{sink.name}": {" and ".join(using)} have columns of their own'
            yield plan.file.problem(path, told, "give each its own sink, and say in every query which: sinks = […]")


def _paths(plan: Plan) -> Iterator[Problem]:
    """No two sinks in one place, and none in a source."""
    taken = {
        _normal(plan.locate(source.path)): plan.file.label(("source", number))
        for number, source in enumerate(plan.sources)
        if not isinstance(source, model.KafkaSource)
    }
    for number, sink in enumerate(plan.sinks):
        if not isinstance(sink, model.FileSink | model.DeltaSink):
            continue
        path = _normal(plan.locate(sink.path))
        if path in taken:
            told = f'{plan.file.label(("sink", number, "path"))} = "{sink.path}" is the path of {taken[path]} too'
            yield plan.file.problem(("sink", number, "path"), told)
        taken[path] = f"[[sink]] '{sink.name}'"


def _normal(path: str) -> str:
    return path if ":/" in path else os.path.normpath(os.path.abspath(path))


def _environment(plan: Plan) -> Iterator[Problem]:
    """Variables that options refer to are set."""
    for kind, items in (("source", plan.sources), ("sink", plan.sinks)):
        for number, item in enumerate(items):
            for table in ("options", "value_options"):
                for key, value in getattr(item, table, {}).items():
                    if isinstance(value, model.EnvironmentVariable) and value.env not in os.environ:
                        path: KeyPath = (kind, number, table, key)
                        told = f"{plan.file.label(path)}: the environment variable {value.env} is not set"
                        yield plan.file.problem(path, told)


def _packages(plan: Plan) -> Iterator[Problem]:
    for kind, items in (("source", plan.sources), ("sink", plan.sinks)):
        for number, item in enumerate(items):
            if item.kind == "delta" and importlib.util.find_spec("deltalake") is None:
                path: KeyPath = (kind, number, "kind")
                told = f'{plan.file.label(path)} = "delta" needs the Python package deltalake'
                yield plan.file.problem(path, told, "pip install 'stretto[delta]'")


_CHECKS: tuple[Check, ...] = (_names, _pipeline, _sources, _paths, _environment, _packages)


def load(path: str | Path) -> Plan:
    """Read a pipeline file and check all that can be checked without starting Spark.

    Queries are checked against their columns where the file declares them, or a Parquet file on this machine does.

    Parameters
    ----------
    path
        The TOML file. Paths in it are relative to its folder.

    Raises
    ------
    PipelineError
        Something is wrong; the error has every mistake with its line.
    OptionError
        There is no such file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from stretto import pipelines
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "events.csv").write_text("type,t\\nA,1\\nB,2\\n")
    >>> _ = (folder / "pipeline.toml").write_text('''
    ... source = {kind = "csv", path = "events.csv", columns = {type = "string", t = "int"}}
    ... events = {time = "t"}
    ... query = {name = "pairs", text = "SELECT * FROM S WHERE A ; B"}
    ... sink = {name = "found", kind = "parquet", path = "found"}
    ... [pipeline]
    ... name = "example"
    ... mode = "batch"
    ... ''')
    >>> plan = pipelines.load(folder / "pipeline.toml")
    >>> plan.pipeline.mode, [query.name for query in plan.queries]
    ('batch', ['pairs'])
    """
    plan = parse(path)
    problems = [*check_plan(plan), *check_queries(plan), *check_rules(plan)]
    if problems:
        raise PipelineError(in_order(problems, plan.file))
    return plan
