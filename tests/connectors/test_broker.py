"""Artifacts from Maven: what is kept, and what is said when they cannot be had."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from examples.kafka import broker
from stretto.connectors import kafka
from stretto.errors import OptionError

COORDINATES = "org.example:none:1.0"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STRETTO_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("DEFAULT_ARTIFACT_REPOSITORY", "https://repository.example/maven2")
    return tmp_path / "maven" / "org.example_none_1.0"


def ivy_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str) -> Path:
    """A program in the place of Java; returns a file with a line for each of its runs."""
    runs = tmp_path / "runs"
    program = tmp_path / "java"
    program.write_text(f"#!/bin/sh\necho run >> {runs}\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setattr(broker, "_java", lambda: str(program))
    monkeypatch.setattr(broker, "_ivy", lambda: tmp_path / "ivy.jar")
    return runs


def test_jars_are_kept(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The last argument is the pattern of the files to write.
    runs = ivy_says(monkeypatch, tmp_path, 'for last in "$@"; do :; done\ntouch "$(dirname "$last")/none-1.0.jar"')
    for _ in range(2):
        assert broker.jars(COORDINATES) == [cache / "all" / "none-1.0.jar"]
    assert runs.read_text().count("run") == 1
    assert [path.name for path in cache.iterdir()] == ["all"]


def test_a_failure_is_told_and_remembered_for_an_hour(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = ivy_says(monkeypatch, tmp_path, 'echo ":: org.example#none;1.0: not found"; exit 1')
    for _ in range(2):
        with pytest.raises(OptionError) as raised:
            broker.jars(COORDINATES)
        assert str(raised.value) == (
            "cannot get org.example:none:1.0 from https://repository.example/maven2/ (org.example#none;1.0: not found)"
        )
    assert runs.read_text().count("run") == 1
    os.utime(cache / "absent", (0, 0))
    with pytest.raises(OptionError):
        broker.jars(COORDINATES)
    assert runs.read_text().count("run") == 2
    assert not list(cache.glob("draft-*"))


SETTINGS = """<settings{space}><mirrors>
  <mirror><id>own</id><mirrorOf>central</mirrorOf><url> https://mirror.example/m2/ </url></mirror>
</mirrors></settings>"""


@pytest.mark.parametrize("space", ["", ' xmlns="http://maven.apache.org/SETTINGS/1.0.0"'])
def test_the_repository_is_that_of_the_users_settings(
    space: str, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert broker.repository() == "https://repository.example/maven2/"
    monkeypatch.delenv("DEFAULT_ARTIFACT_REPOSITORY")
    with pytest.raises(OptionError, match=r"no Maven repository is known: name one in .*DEFAULT_ARTIFACT_REPOSITORY"):
        broker.jars(COORDINATES)
    assert not (cache / "absent").exists()
    (tmp_path / ".m2").mkdir()
    (tmp_path / ".m2" / "settings.xml").write_text(SETTINGS.format(space=space))
    assert broker.repository() == "https://mirror.example/m2/"


def test_a_broker_that_does_not_start(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker, "jars", lambda *_: [])
    ivy_says(monkeypatch, tmp_path, 'case "$*" in *StorageTool*) exit 0;; esac; echo "no room"; exit 3')
    with pytest.raises(OptionError, match="Kafka does not start: no room"):
        broker.Broker().__enter__()
    ivy_says(monkeypatch, tmp_path, 'echo "no disk" >&2; exit 3')
    with pytest.raises(OptionError, match="Kafka cannot format its storage: no disk"):
        broker.Broker().__enter__()


def test_the_connector_is_that_of_the_installed_spark() -> None:
    pyspark = pytest.importorskip("pyspark")
    assert kafka.package() == f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
