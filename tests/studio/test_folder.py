"""Nothing outside of the studio's folder is read or written."""

from __future__ import annotations

from pathlib import Path

import pytest

import stretto
from stretto.studio.folder import Folder


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    inner = tmp_path / "inner"
    (inner / "deep").mkdir(parents=True)
    (inner / ".hidden").mkdir()
    for name in ("a.csv", "deep/b.parquet", ".hidden/c.csv", "notes.md", "query.toml"):
        (inner / name).write_text("x\n1\n")
    (tmp_path / "secret.csv").write_text("x\n1\n")
    (inner / "link.csv").symlink_to(tmp_path / "secret.csv")
    (inner / "up").symlink_to(tmp_path)
    (inner / "own.csv").symlink_to(inner / "a.csv")
    (inner / "dangling.toml").symlink_to(tmp_path / "made.toml")
    return Folder(inner)


def test_the_files_of_events(folder: Folder) -> None:
    assert folder.data_files() == ["a.csv", "own.csv", "deep/b.parquet", "deep/*.parquet"]
    assert folder.data("own.csv") == folder.path / "a.csv"
    assert folder.data("deep/*.parquet") == folder.path / "deep/*.parquet"


@pytest.mark.parametrize(
    "name",
    [
        "../secret.csv",
        "link.csv",
        "up/secret.csv",
        "/etc/passwd",
        "deep/../../secret.csv",
        "a\x00.csv",
        "up",
        "up/*.parquet",
    ],
)
def test_what_lies_outside(folder: Folder, name: str) -> None:
    told = "is no path of a file" if "\x00" in name else "lies outside"
    for call in (folder.inside, folder.data, lambda one: folder.write(one, "", ending=".csv", replace=True)):
        with pytest.raises(stretto.OptionError, match=told):
            call(name)
    assert (folder.path.parent / "secret.csv").read_text() == "x\n1\n"


@pytest.mark.parametrize("name", ["notes.md", "deep", "", "none.csv", "*.parquet", "none/*.parquet", "deep/*.csv"])
def test_what_is_no_file_of_events(folder: Folder, name: str) -> None:
    with pytest.raises(stretto.OptionError, match="no file of events"):
        folder.data(name)


def test_writing(folder: Folder) -> None:
    assert folder.write("deep/new.toml", "é", ending=".toml") == "deep/new.toml"
    assert (folder.path / "deep/new.toml").read_text(encoding="utf-8") == "é"
    with pytest.raises(stretto.OptionError, match="is there already"):
        folder.write("query.toml", "", ending=".toml")
    folder.write("query.toml", "new", ending=".toml", replace=True)
    assert (folder.path / "query.toml").read_text() == "new"
    for name, told in [
        ("a.py", "ends in .toml"),
        (".x.toml", "ends in .toml"),
        ("no/x.toml", "no such folder"),
        ("dangling.toml", "lies outside"),
        ("n" * 300 + ".toml", "is no path of a file"),
    ]:
        with pytest.raises(stretto.OptionError, match=told):
            folder.write(name, "", ending=".toml", replace=True)
    assert not (folder.path.parent / "made.toml").exists()
