"""Whole pipelines from a TOML file: sources, queries and sinks, batch or streaming (``stretto run``).

::

    from stretto import pipelines

    plan = pipelines.load("pipeline.toml")    # PipelineError: all mistakes, each with its line
    pipelines.run(plan)
"""

from stretto.pipelines.documents import PipelineError, Problem
from stretto.pipelines.load import load
from stretto.pipelines.plan import Plan
from stretto.pipelines.running import run
from stretto.pipelines.updates import Report, Update

__all__ = ["PipelineError", "Plan", "Problem", "Report", "Update", "load", "run"]
