"""Compiled kernels that travel to workers of other machines; here a worker and the driver have folders of their own."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest

import stretto
from stretto import _jit
from stretto.spark import compat, kernels
from tests.conftest import COMPILED


class Session:
    """As much of a session as shipping asks for."""

    def __init__(self, master: str, unpacked: Path) -> None:
        self.conf = {"spark.master": master}
        self.unpacked = unpacked
        self.sent = 0

    def addArtifact(self, path: str, *, archive: bool) -> None:
        assert archive
        file, name = path.split("#")
        self.sent += 1
        zipfile.ZipFile(file).extractall(self.unpacked / name)


def compiled(folder: Path) -> None:
    module = folder / "stretto.engines.tecs.kernels"
    module.mkdir(parents=True)
    (module / "advance.1.nbc").write_bytes(b"code")
    (folder / "tecs.lock").touch()
    (folder / "tecs.compiled").touch()


def test_a_worker_takes_over_what_the_driver_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver, worker = tmp_path / "driver" / "abc", tmp_path / "worker" / "abc"
    driver.mkdir(parents=True)
    monkeypatch.setattr(_jit, "CACHE_DIRECTORY", str(driver))
    session = Session("spark://there:7077", tmp_path / "unpacked")
    kernels.ship(session)
    assert session.sent == 0  # there is nothing yet
    compiled(driver)
    kernels.ship(session)
    kernels.ship(session)
    assert session.sent == 1
    monkeypatch.setattr(_jit, "CACHE_DIRECTORY", str(worker))
    monkeypatch.setattr(kernels, "worker_files", lambda: None)
    kernels.receive()
    assert not worker.exists()
    monkeypatch.setattr(kernels, "worker_files", lambda: tmp_path / "unpacked")
    kernels.receive()
    kernels.receive()
    there = sorted(str(path.relative_to(worker)) for path in worker.rglob("*") if path.is_file())
    assert there == ["stretto.engines.tecs.kernels/advance.1.nbc", "tecs.compiled"]
    monkeypatch.setattr(_jit, "CACHE_DIRECTORY", str(tmp_path / "worker" / "other version"))
    kernels.receive()
    assert not (tmp_path / "worker" / "other version").exists()


@pytest.mark.skipif(not COMPILED, reason="kernels run as Python")
def test_conditions_of_a_call_go_with_it(tmp_path: Path) -> None:
    session = Session("spark://there:7077", tmp_path)
    for strategy in ("skip_till_any_match", "skip_till_next_match", "skip_till_any_match"):
        query = stretto.compile(
            f"PATTERN SEQ(A a, B b) WHERE {strategy} {{ b.v > 3 * a.v + 1 }} WITHIN 5",
            {"type": "string", "t": "int64", "v": "int64"},
            time="t",
        )
        kernels.ship(session, query.program().start)
    sent = {path.name for path in tmp_path.rglob("*") if _jit.CONDITIONS in path.parts and path.is_file()}
    assert sorted(name.rsplit(".")[-1] for name in sent) == ["nbc", "nbi", "py"]  # both strategies ask the same
    assert session.sent == 1 + any(Path(_jit.CACHE_DIRECTORY).glob("*.compiled"))


def test_workers_of_this_machine_read_the_same_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled(tmp_path)
    monkeypatch.setattr(_jit, "CACHE_DIRECTORY", str(tmp_path))
    session = Session("local[2]", tmp_path)
    kernels.ship(session)
    assert session.sent == 0


def test_a_driver_is_no_worker(spark: Any) -> None:
    assert compat.worker_files() is None
