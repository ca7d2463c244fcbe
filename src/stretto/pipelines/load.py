"""``stretto.pipelines.load``: a file, checked."""

from __future__ import annotations

from pathlib import Path

from stretto.pipelines.checks import check_plan
from stretto.pipelines.documents import in_order
from stretto.pipelines.plan import Plan, parse
from stretto.pipelines.problems import PipelineError
from stretto.pipelines.queries import check_queries


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
    """
    plan = parse(path)
    problems = [*check_plan(plan), *check_queries(plan)]
    if problems:
        raise PipelineError(in_order(problems, plan.file))
    return plan
