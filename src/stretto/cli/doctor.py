"""``stretto doctor``: what is installed, whether it fits, and what to do where something is missing."""

from __future__ import annotations

import importlib.metadata
import json as json_text
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

State = Literal["ok", "missing", "wrong"]
_MARKS: dict[State, tuple[str, str]] = {"ok": ("✓", "green"), "missing": ("–", "yellow"), "wrong": ("✗", "bold red")}


class Finding(NamedTuple):
    """What was looked at, what is there, and the way out where it is not as it should be."""

    name: str
    state: State  #: missing: something works without it; wrong: nothing does
    found: str
    hint: str = ""


class Requirement(NamedTuple):
    """What a package must be: ``extra`` names what needs it, and is empty where all does."""

    package: str
    versions: str
    extra: str


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("doctor")(doctor)


def doctor(
    spark: Annotated[bool, typer.Option("--spark", help="Also start Spark, which is needed then.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Look at what stretto needs on this machine.

    It looks at versions, Java, compiled kernels and memory, and says what may be installed.
    Exit code 1: something that is needed is missing or does not fit.
    """
    findings = list(look(spark=spark))
    if json:
        typer.echo(json_text.dumps([finding._asdict() for finding in findings], ensure_ascii=False, indent=2))
    else:
        Console().print(_table(findings))
    if any(finding.state == "wrong" for finding in findings):
        raise typer.Exit(1)


def look(*, spark: bool = False) -> Iterator[Finding]:
    """Look at the machine; with ``spark`` a session is started."""
    yield _python()
    yield from _packages()
    yield from _kernels()
    yield _memory()
    yield _page()
    yield _graphviz()
    yield _java(needed=spark)
    if spark:
        yield _spark()


def _table(findings: list[Finding]) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    for name in ("", "name", "found"):
        table.add_column(name, overflow="fold")
    for finding in findings:
        mark, style = _MARKS[finding.state]
        told = Text(finding.found)
        if finding.hint:
            told.append(f"\n{finding.hint}", style="dim")
        table.add_row(Text(mark, style=style), Text(finding.name), told)
    return table


# -- packages ---------------------------------------------------------------------------------------------------------


def _python() -> Finding:
    needed = _metadata("Requires-Python") or ""
    version = platform.python_version()
    where = f"{version} ({sys.executable})"
    if fits(version, needed):
        return Finding("Python", "ok", where)
    return Finding("Python", "wrong", where, f"stretto needs Python {needed}")


def _packages() -> Iterator[Finding]:
    """The package itself, what it always needs, and a line for each extra."""
    version = _metadata("Version")
    if version is None:
        hint = "what it needs is not known: install it with pip install ."
        yield Finding("stretto", "missing", "runs from a folder that is not installed", hint)
        return
    yield Finding("stretto", "ok", version)
    extras: dict[str, list[Requirement]] = {}
    for requirement in requirements():
        if requirement.extra:
            extras.setdefault(requirement.extra, []).append(requirement)
        else:
            there = _installed(requirement.package)
            state: State = "ok" if there is not None and fits(there, requirement.versions) else "wrong"
            hint = "" if state == "ok" else f"needed: pip install '{requirement.package}{requirement.versions}'"
            yield Finding(requirement.package, state, there or "not installed", hint)
    found = {extra: _extra(extra, needed) for extra, needed in extras.items()}
    fitting = {one.package for extra, needed in extras.items() if found[extra].state == "ok" for one in needed}
    for extra, needed in extras.items():
        # Of Spark 3.5 and Spark 4 one alone is there.
        if found[extra].state == "ok" or not all(one.package in fitting for one in needed):
            yield found[extra]


def _extra(extra: str, needed: list[Requirement]) -> Finding:
    """What an extra needs; it is no fault where one is not installed."""
    there = {one.package: _installed(one.package) for one in needed}
    lacking = []
    for one in needed:
        version = there[one.package]
        if version is None:
            lacking.append(f"{one.package} is not installed")
        elif not fits(version, one.versions):
            lacking.append(f"{one.package} {version} is not {one.versions}")
    if lacking:
        return Finding(f"[{extra}]", "missing", ", ".join(lacking), f"pip install 'stretto[{extra}]'")
    return Finding(f"[{extra}]", "ok", ", ".join(f"{name} {version}" for name, version in there.items()))


def requirements() -> list[Requirement]:
    """What the installed package says that it needs."""
    found = []
    for text in importlib.metadata.requires("stretto") or ():
        parts = re.match(r"([\w.-]+)(?:\[[^\]]*\])?\s*([^;]*?)\s*(?:;.*extra == ['\"]([^'\"]+)['\"].*)?$", text)
        if parts is not None:
            found.append(Requirement(parts[1], parts[2].strip("() "), parts[3] or ""))
    return found


def fits(version: str, needed: str) -> bool:
    """Tell whether a version fits bounds such as ``<27,>=18``; what else bounds may say is not looked at.

    >>> fits("26.0.1", "<27,>=18"), fits("4.10", ">=4.9"), fits("3.0.0rc1", "<3")
    (True, True, False)
    """
    there = _numbers(version)
    for bound in filter(None, needed.replace(" ", "").split(",")):
        parts = re.match(r"(<=|>=|<|>|==)(.+)", bound)
        if parts is None:
            continue
        other = _numbers(parts[2])
        size = max(len(there), len(other))
        one, two = (numbers + (0,) * (size - len(numbers)) for numbers in (there, other))
        holds = {"<": one < two, "<=": one <= two, ">": one > two, ">=": one >= two, "==": one == two}
        if not holds[parts[1]]:
            return False
    return True


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(one) for one in re.findall(r"\d+", re.split(r"[a-z+]", version, maxsplit=1)[0]))


def _metadata(name: str) -> str | None:
    try:
        found = importlib.metadata.metadata("stretto")
    except importlib.metadata.PackageNotFoundError:
        return None
    return str(found[name]) if name in set(found) else None


def _installed(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


# -- the machine ------------------------------------------------------------------------------------------------------


def _kernels() -> Iterator[Finding]:
    """Where compiled code is kept, how much it is, and of which engines."""
    from stretto import _jit
    from stretto._jit import bundle
    from stretto._jit.background import kept

    if _jit.interprets():
        hint = "NUMBA_DISABLE_JIT is set: queries run some hundred times slower"
        yield Finding("compiled kernels", "missing", "Numba is switched off", hint)
        return
    if bundle.there():
        yield Finding(
            "compiled kernels", "ok", f"all, with the package, for processors of the kind {bundle.target()[0]}"
        )
        return
    if not _jit.CACHE_DIRECTORY:
        hint = "set STRETTO_CACHE_DIR to a folder that you alone can write: each process compiles anew until then"
        yield Finding("compiled kernels", "missing", "no folder that you alone can write", hint)
        return
    folder = Path(_jit.CACHE_DIRECTORY)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    groups = kept(_jit.CACHE_DIRECTORY)
    there = [name for name, is_there in groups.items() if is_there]
    lacking = [name for name, is_there in groups.items() if not is_there]
    found = f"{', '.join(there) or 'none'}; {size / (1 << 20):,.0f} MiB in {folder}"
    hint = f"not yet: {', '.join(lacking)}; stretto compile {' '.join(lacking)}" if lacking else ""
    yield Finding("compiled kernels", "missing" if lacking else "ok", found, hint)


def _memory() -> Finding:
    from stretto.budget import default_bytes
    from stretto.cli.compile import processors
    from stretto.memory import available

    there = available()
    cores = processors()
    if there is None:
        return Finding("memory", "missing", f"not known; {cores} cores", "give budget= in calls that may list much")
    listed = f"{default_bytes() / (1 << 30):,.1f} GiB may be listed without budget="
    return Finding("memory", "ok", f"{there / (1 << 30):,.1f} GiB are free, {listed}; {cores} cores")


def _page() -> Finding:
    """The studio's page, which comes with every installation."""
    from stretto.studio.page import STATIC, missing

    if names := missing():
        return Finding("studio's page", "wrong", f"{STATIC} lacks {', '.join(names)}", "install stretto anew")
    return Finding("studio's page", "ok", str(STATIC))


def _graphviz() -> Finding:
    dot = shutil.which("dot")
    if dot is None:
        hint = "automata are drawn as text: install Graphviz, for example with apt install graphviz or brew install graphviz"
        return Finding("Graphviz", "missing", "no program 'dot'", hint)
    try:
        done = subprocess.run([dot, "-V"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding("Graphviz", "missing", f"{dot} does not run: {error}", "install Graphviz anew")
    version = re.search(r"\d+(\.\d+)+", done.stderr + done.stdout)
    return Finding("Graphviz", "ok", f"{version[0] if version else 'of an unknown version'} ({dot})")


def _java(*, needed: bool) -> Finding:
    from stretto.spark.sessions import MINIMUM, find_java

    java = find_java()
    if java is not None:
        return Finding("Java", "ok", f"{java.version}, by {java.origin} ({java.path})")
    hint = f"Spark needs Java {MINIMUM} or newer: pip install 'stretto[jdk]' brings one"
    return Finding("Java", "wrong" if needed else "missing", f"none of version {MINIMUM} or newer", hint)


def _spark() -> Finding:
    """A session that counts a few rows."""
    from stretto.errors import OptionError
    from stretto.spark import session

    began = time.monotonic()
    try:
        started = session("stretto doctor")
        counted = started.range(3).count()
    except OptionError as error:
        return Finding("Spark", "wrong", str(error), "pip install 'stretto[spark]'")
    except Exception as error:  # whatever Java and Spark throw is the answer
        return Finding(
            "Spark", "wrong", f"does not start: {str(error).strip().splitlines()[0][:200]}", "see the log above"
        )
    seconds = time.monotonic() - began
    if counted != 3:
        return Finding("Spark", "wrong", f"counts {counted} rows of 3")
    return Finding("Spark", "ok", f"{started.version} starts and counts in {seconds:.0f} s")
