"""``stretto doctor``, on this machine and on others that are made up."""

from __future__ import annotations

import importlib.metadata
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from stretto import _jit
from stretto._jit.background import GROUPS
from stretto.cli import doctor, main
from stretto.spark import sessions

Run = Callable[..., tuple[int, str]]

REQUIRES = [
    "numba<0.69,>=0.61",
    "pyarrow<27,>=18",
    "matplotlib<4,>=3.8; extra == 'draw'",
    "pyspark[connect]<4.4,>=4.0; extra == 'spark'",
    "pandas<3,>=2.2; extra == 'spark'",
    "pyspark<3.6,>=3.5.6; extra == 'spark35'",
    "pandas<3,>=2.2; extra == 'spark35'",
]
WELL = {"numba": "0.68.1", "pyarrow": "26.0.1", "matplotlib": "3.9.0", "pyspark": "4.3.0", "pandas": "2.3.3"}


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as ended:
            main(["doctor", *arguments])
        code = ended.value.code
        return (code if isinstance(code, int) else 0), capsys.readouterr().out

    return call


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[dict[str, str]], None]:
    """A machine with these packages, a Java and an empty cache."""

    def make(packages: dict[str, str]) -> None:
        def version(name: str) -> str:
            if name not in packages:
                raise importlib.metadata.PackageNotFoundError(name)
            return packages[name]

        monkeypatch.setattr(importlib.metadata, "version", version)
        monkeypatch.setattr(importlib.metadata, "requires", lambda name: REQUIRES)
        monkeypatch.setattr(
            importlib.metadata, "metadata", lambda name: {"Version": "0.1.0", "Requires-Python": ">=3.11"}
        )
        monkeypatch.setattr(sessions, "find_java", lambda: sessions.Java(Path("/jdk/bin/java"), 21, "PATH"))
        monkeypatch.setattr(_jit, "interprets", lambda: False)
        monkeypatch.setattr(_jit, "CACHE_DIRECTORY", str(tmp_path))

    return make


def states(**options: bool) -> dict[str, str]:
    return {one.name: one.state for one in doctor.look(**options)}


def test_this_machine_is_well(run: Run) -> None:
    code, out = run()
    assert code == 0
    assert "numba" in out
    code, out = run("--json")
    assert {one["name"] for one in json.loads(out)} >= {
        "Python",
        "pyarrow",
        "compiled kernels",
        "memory",
        "Graphviz",
        "Java",
    }


def test_all_is_there(machine: Callable[[dict[str, str]], None], tmp_path: Path) -> None:
    machine(WELL)
    for group in ("tecs", "nfab"):
        (tmp_path / f"{group}.compiled").touch()
    found = {one.name: one for one in doctor.look()}
    assert [one.name for one in found.values() if one.state == "wrong"] == []
    assert found["[spark]"].found == "pyspark 4.3.0, pandas 2.3.3"
    assert "[spark35]" not in found, "the machine has the other Spark"
    assert found["Java"].found == f"21, by PATH ({Path('/jdk/bin/java')})"
    kernels = found["compiled kernels"]
    assert (kernels.state, kernels.found) == ("missing", f"nfab, tecs; 0 MiB in {tmp_path}")
    lacking = [name for name in GROUPS if name not in ("tecs", "nfab")]
    assert kernels.hint.endswith(f"stretto compile {' '.join(lacking)}")


def test_what_is_needed_is_wrong(machine: Callable[[dict[str, str]], None], run: Run) -> None:
    machine({"numba": "0.70.0", "matplotlib": "3.7.1", "pyspark": "3.5.7", "pandas": "2.3.3"})
    found = {one.name: one for one in doctor.look()}
    assert found["numba"][1:] == ("wrong", "0.70.0", "needed: pip install 'numba<0.69,>=0.61'")
    assert found["pyarrow"][1:] == ("wrong", "not installed", "needed: pip install 'pyarrow<27,>=18'")
    assert found["[draw]"][1:] == ("missing", "matplotlib 3.7.1 is not <4,>=3.8", "pip install 'stretto[draw]'")
    assert found["[spark35]"].state == "ok"
    code, out = run()
    assert code == 1
    assert "[draw]" in out, "brackets are no markup"


def test_java_is_needed_for_spark_alone(
    machine: Callable[[dict[str, str]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(WELL)
    monkeypatch.setattr(sessions, "find_java", lambda: None)
    assert states()["Java"] == "missing"

    def no_session(name: str) -> None:
        raise RuntimeError("no gateway\nat line 5")

    monkeypatch.setattr("stretto.spark.session", no_session)
    found = {one.name: one for one in doctor.look(spark=True)}
    assert found["Java"].state == "wrong"
    assert (found["Spark"].state, found["Spark"].found) == ("wrong", "does not start: no gateway")


def test_the_page_is_looked_at(machine: Callable[[dict[str, str]], None], monkeypatch: pytest.MonkeyPatch) -> None:
    machine(WELL)
    assert states()["studio's page"] == "ok"
    monkeypatch.setattr("stretto.studio.page.STATIC", Path("nothing"))
    found = {one.name: one for one in doctor.look()}["studio's page"]
    assert (found.state, found.hint) == ("wrong", "install stretto anew")
    assert found.found == "nothing lacks index.html, studio.js, studio.css, views.js, views.css"


def test_machines_without_this_or_that(
    machine: Callable[[dict[str, str]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(WELL)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(_jit, "CACHE_DIRECTORY", "")
    monkeypatch.setattr("stretto.memory.available", lambda: None)
    found = states()
    assert (found["Graphviz"], found["compiled kernels"], found["memory"]) == ("missing", "missing", "missing")
    monkeypatch.setattr(_jit, "interprets", lambda: True)
    assert states()["compiled kernels"] == "missing"

    def nothing(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "metadata", nothing)
    assert states()["stretto"] == "missing"


@pytest.mark.parametrize(
    ("version", "needed", "fit"),
    [
        ("3.11.7", ">=3.11", True),
        ("3.9", ">=3.11", False),
        ("4.4", "<4.4,>=4.0", False),
        ("4.4.dev1", "<4.4,>=4.0", False),
        ("2", "<=2.0,>1.9", True),
        ("1.0+cuda12", "==1.0", True),
        ("1", "", True),
    ],
)
def test_versions(version: str, needed: str, fit: bool) -> None:
    assert doctor.fits(version, needed) == fit


def test_what_this_package_needs_is_read() -> None:
    found = doctor.requirements()
    assert ("pyarrow", "") in {(one.package, one.extra) for one in found}
    assert ("pyspark", "spark") in {(one.package, one.extra) for one in found}
    assert all(one.versions for one in found)
