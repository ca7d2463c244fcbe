"""A platform's wheel, built and installed in an empty environment: the first answer of each language, and nothing is compiled."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from stretto._jit import bundle

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.wheel

#: A first call of each kind, over ``events``, which gives ``found``.
FIRST = {
    "CEQL": "found = match('SELECT * FROM S WHERE A AS a ; B AS b FILTER a[v > 0] PARTITION BY [k] WITHIN 10 [ts]')",
    "SASE+": "found = match('PATTERN SEQ(A a, B+ b[]) WHERE skip_till_any_match { [k] and b[i].v > a.v } WITHIN 10')",
    "EQL": "found = match('sequence by k with maxspan=10s [A where true] [B where true]', time_unit='s', language='eql')",
    "gaps": "found = match('SELECT * FROM S WHERE A ; B+ GAP 5 [ts] ; NOT C WITHIN 10 [ts]')",
    "timeouts": "found = match('SELECT * FROM S WHERE A ; C WITHIN 1 [ts]', timeouts=True)",
    "totals": "found = match('SELECT COUNT(*), SUM(B[v]) FROM S WHERE A ; B+ GROUP BY A[k]')",
    "best": "found = match('SELECT * FROM S WHERE A AS a ; B AS b ORDER BY SUM(b[v]) LIMIT 1')",
    "a set": """
patterns = stretto.PatternSet(events.schema, time="ts")
patterns.change([stretto.Change("p", "SELECT * FROM S WHERE A ; B")])
found = patterns.push(events)
""",
    "row patterns": """
matcher = stretto.Matcher("MATCH_RECOGNIZE (ORDER BY ts MEASURES sum(v) AS s PATTERN (X Y+) DEFINE Y AS v > PREV(v))")
matcher.push(events)
found = matcher.finish()
""",
    "an automaton": """
afa = stretto.AFA(events={"type": str, "v": int}, start="p").arc("p", "q", when="e.type = 'A'").ignore("q")
found = match(afa.arc("q", "r", when="e.type = 'B'").final("r"))
""",
    "a dataflow": """
from stretto.dataflow import Dataflow, stream
links = stream("links", {"src": int, "dst": int})
flow = Dataflow(out=links.join(links, on={"dst": "src"}, suffix="_right"))
flow.push("links", [{"src": 1, "dst": 2, "vs": 1}, {"src": 2, "dst": 3, "vs": 2}])
flow.run_until_idle()
found = list(flow.output("out"))
""",
}

CALL = """
import functools, json, time
import pyarrow as pa
import stretto
from stretto._jit import internals
events = pa.table({{"type": ["A", "B", "A", "B"], "v": [1, 2, 3, 4], "k": ["x", "x", "y", "y"], "ts": [1, 2, 3, 4]}})
match = functools.partial(stretto.match, events=events, time="ts")
compiled, before = [], internals._Compiler._compile_core
def counted(self, *given):
    if not self._is_part:  # parts are of a query's conditions
        compiled.append(self.py_func.__name__)
    return before(self, *given)
internals._Compiler._compile_core = counted
{}
rows = found.num_rows if isinstance(found, pa.Table) else len(found)
print(json.dumps([rows, compiled, time.process_time()]))
"""


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of all compiled code."""
    if not bundle.target()[0]:
        pytest.skip("no target is known for this kind of machine")
    folder = tmp_path_factory.mktemp("built") / "kernels"
    subprocess.run([sys.executable, "packaging/kernels.py", str(folder)], cwd=ROOT, check=True)
    return folder


@pytest.fixture(scope="module")
def python(kernels: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an empty environment in which the wheel is installed."""
    dist, home = tmp_path_factory.mktemp("dist"), tmp_path_factory.mktemp("environment")
    pip = ["-m", "pip", "--quiet", "--disable-pip-version-check"]
    build = [sys.executable, *pip, "wheel", "--no-deps", "--wheel-dir", str(dist), "."]
    subprocess.run(build, cwd=ROOT, env=os.environ | {"STRETTO_KERNELS": str(kernels)}, check=True)
    (wheel,) = dist.iterdir()
    assert "-none-any" not in wheel.name
    venv.create(home, with_pip=True)
    python = home / "bin" / "python"
    subprocess.run([python, *pip, "install", str(wheel)], check=True)
    return python


@pytest.mark.parametrize("what", FIRST)
def test_first_answers_compile_nothing(what: str, python: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir(mode=0o700)
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("NUMBA", "PYTHON", "STRETTO"))
    }
    done = subprocess.run(
        [python, "-W", "ignore", "-c", CALL.format(FIRST[what])],
        env=environment | {"STRETTO_CACHE_DIR": str(tmp_path / "cache")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows, compiled, seconds = json.loads(done.stdout)
    print(f"{what}: {rows} rows, {seconds:.2f} s of processor with Python and imports")
    assert rows
    assert compiled == []
    assert "compiles" not in done.stderr


def test_a_build_is_reproducible(tmp_path: Path) -> None:
    """Of a group: all take minutes. Names in code go by what a process has compiled before, so both builds begin with nothing."""
    made = []
    for name in ("first", "second"):
        subprocess.run([sys.executable, "packaging/kernels.py", str(tmp_path / name), "latest"], cwd=ROOT, check=True)
        made.append({path.relative_to(tmp_path / name): path.read_bytes() for path in (tmp_path / name).rglob("*.nbc")})
    first, second = made
    assert first
    assert first.keys() == second.keys()
    assert [str(path) for path, code in first.items() if second[path] != code] == []


def test_kernels_are_as_many_and_as_large_as_the_page_says(kernels: Path) -> None:
    command = [sys.executable, "packaging/kernels.py", "--table", str(kernels)]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    told = _sizes((ROOT / "docs" / "kernels.md").read_text(encoding="utf-8"))
    found = _sizes(printed)
    assert found
    assert found.keys() == told.keys()
    assert [key for key, (types, _) in found.items() if types > told[key][0]] == []
    assert [(key, size) for key, (_, size) in found.items() if size > 1.25 * told[key][1]] == []


def _sizes(page: str) -> dict[tuple[str, str], tuple[int, int]]:
    """By module and name of each kernel: combinations of types, and bytes, as a table says them."""
    found = {}
    for line in page.splitlines():
        if line.startswith("| `"):
            module, name, types, size = (cell.strip().strip("`") for cell in line.strip("|").split("|"))
            found[module, name] = int(types), int(size.replace(",", ""))
    return found
