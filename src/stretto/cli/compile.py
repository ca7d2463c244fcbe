"""``stretto compile``: kernels for this machine, before the first query needs them."""

from __future__ import annotations

import os
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Annotated

import typer

from stretto.errors import OptionError, suggestion


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("compile")(compile_kernels)


def compile_kernels(
    engines: Annotated[
        list[str] | None,
        typer.Argument(
            help="tecs (CEQL), nfab (SASE+), latest (EQL), rows (MATCH_RECOGNIZE), timed (gaps), greedy (KEEP), moving (OVER), "
            "timeouts, totals (counts and sums), afa, dataflow; tecs-choosing and nfab-choosing (ORDER BY, SAMPLE), nfab-totals "
            "(RETURN TOTAL); all if none is named.",
            metavar="ENGINE",
        ),
    ] = None,
) -> None:
    """Compile the engines' kernels into the cache of this machine.

    This is for an image, or a machine, whose first query is to be fast.
    Without it, the first query of an engine runs as Python while its kernels are compiled in the background.
    """
    from stretto import _jit
    from stretto._jit import bundle
    from stretto._jit.background import compiling
    from stretto.cli.compiling import WORK

    if _jit.interprets() or not _jit.CACHE_DIRECTORY:
        why = "Numba is switched off" if _jit.interprets() else "no directory for compiled code can be written"
        typer.echo(f"nothing to compile: {why}")
        return
    if bundle.there():
        typer.echo(
            f"nothing to compile: compiled code came with this installation, for processors of the kind {bundle.target()[0]}"
        )
        return
    for engine in engines or ():
        if engine not in WORK:
            hint = suggestion(engine, WORK, kind="engine")
            raise OptionError(f"there is no engine '{engine}'" + (f"; {hint}" if hint else f": {', '.join(WORK)}"))
    if engines is None or len(engines) > 1 or _jit.TIERED:
        _in_processes(list(engines or WORK))
        return
    (engine,) = engines
    began = time.monotonic()
    with compiling(_jit.CACHE_DIRECTORY, engine) as left:
        if left:
            WORK[engine].run()
    typer.echo(f"{engine}: {f'compiled in {time.monotonic() - began:.0f} s' if left else 'was there'}")


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _in_processes(engines: list[str]) -> None:
    """Compile each engine in a process of its own, as many at a time as there are processors, those that take long first."""
    from stretto._jit.background import command
    from stretto.cli.compiling import WORK

    engines.sort(key=lambda engine: -WORK[engine].seconds)
    done, failed = 0, False
    with ThreadPoolExecutor(processors()) as pool:

        def compiled(engine: str) -> tuple[str, subprocess.CompletedProcess[str]]:
            return engine, subprocess.run(**command(engine), stdout=subprocess.PIPE, text=True, check=False)

        for work in as_completed([pool.submit(compiled, engine) for engine in engines]):
            engine, process = work.result()
            failed = failed or process.returncode != 0
            done += WORK[engine].seconds
            told = process.stdout.strip() or f"{engine}: failed"
            share = done / sum(WORK[one].seconds for one in engines)
            typer.echo(told if "was there" in told else f"{told}; {share:.0%} of all is done")
    if failed:
        raise typer.Exit(1)
