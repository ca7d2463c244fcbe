"""``stretto.pipelines.load``: a file, checked."""

from __future__ import annotations

from pathlib import Path

from stretto.pipelines.checks import check_plan
from stretto.pipelines.documents import in_order
from stretto.pipelines.plan import Plan, parse
from stretto.pipelines.problems import PipelineError
from stretto.pipelines.queries import check_queries, check_rules


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
