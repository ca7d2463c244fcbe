"""What is run as it lies in a folder comes from folders that nobody else can write: compiled code, the script that starts Java."""

from __future__ import annotations

import os
import pickle
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from stretto._jit import directory
from stretto.folders import danger_of, made, replaced
from stretto.spark import sessions
from tests.conftest import COMPILED, compiling

#: Another user of the machine, who needs no entry in its list of users.
OTHER = 61001

two_users = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can make what belongs to another user"
)


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    """A folder that everybody can write, as that of the system for temporary files."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    folder.chmod(0o1777)
    for above in folder.parents:
        if above != Path("/") and not above.stat().st_mode & stat.S_IXOTH:
            above.chmod(above.stat().st_mode | stat.S_IXOTH)
    return folder


def test_folders_are_made_for_their_user_alone(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    assert danger_of(folder) == ""
    before = os.umask(0)
    try:
        assert made(folder)
    finally:
        os.umask(before)
    assert [stat.S_IMODE(one.stat().st_mode) for one in (folder.parent, folder)] == [0o700, 0o700]
    file = tmp_path / "file"
    file.touch()
    assert not made(file / "below")


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o770])
def test_a_folder_that_others_can_write(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "kernels"
    folder.mkdir()
    folder.chmod(mode)
    if mode == 0o770 and os.geteuid() != 0:
        pytest.skip("the group may be the user's own")
    assert danger_of(folder) == f"others than you can write {folder} (chmod go-w)"
    assert not made(folder)
    (folder / "inner").mkdir(mode=0o700)
    if mode == 0o1777:  # nobody can put another one in its place
        assert danger_of(folder / "inner") == ""
    else:
        assert danger_of(folder / "inner") == f"others than you can write {folder} (chmod go-w)"


def test_what_others_can_write_inside(tmp_path: Path) -> None:
    folder = tmp_path / "kernels"
    folder.mkdir()
    folder.chmod(0o755)
    file = folder / "index.nbi"
    file.touch()
    file.chmod(0o644)
    assert danger_of(folder) == ""
    file.chmod(0o666)
    assert danger_of(folder) == f"others than you can write {file} (chmod -R go-w)"
    folder.chmod(0o700)  # others cannot come to it
    assert danger_of(folder) == ""


def test_links(temporary: Path, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir(mode=0o700)
    mine = tmp_path / "link"
    mine.symlink_to(there)
    assert danger_of(mine / "kernels") == ""
    there.chmod(0o777)
    assert danger_of(mine / "kernels") == f"others than you can write {mine.parent / there} (chmod go-w)"
    there.chmod(0o700)
    planted = temporary / "stretto-1"
    planted.symlink_to(there)
    assert danger_of(planted / "kernels") == f"{planted} is a link in a folder that everybody can write"
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert not made(loop / "kernels")


@two_users
def test_a_folder_of_another_user(temporary: Path) -> None:
    planted = temporary / "stretto-0"
    planted.mkdir(mode=0o755)
    os.chown(planted, OTHER, OTHER)
    assert danger_of(planted / "kernels") == f"{planted} belongs to another user ({OTHER})"


def _run(code: str, temporary: Path) -> subprocess.CompletedProcess[str]:
    """Run Python where no home can be written."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=_environment(temporary), capture_output=True, text=True, check=True)


def _environment(temporary: Path) -> dict[str, str]:
    given = compiling(HOME=os.devnull, STRETTO_COMPILE="now", TMPDIR=str(temporary))
    return {name: value for name, value in given.items() if name not in ("STRETTO_CACHE_DIR", "XDG_CACHE_HOME")}


#: Runs one small kernel, and tells from which folder.
KERNEL = """
import numpy as np
from stretto import _jit
from stretto.engines.tecs.collect import states_in
states_in(np.zeros(0, np.int64), np.zeros(1, np.bool_))
print(_jit.CACHE_DIRECTORY)
"""


class _Planted:
    """An object that makes a folder when it is unpickled."""

    def __init__(self, made: Path) -> None:
        self.made = made

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return os.mkdir, (str(self.made),)


@two_users
@pytest.mark.skipif(not COMPILED, reason="nothing is compiled")
def test_code_that_another_user_has_planted_does_not_run(temporary: Path, tmp_path: Path) -> None:
    first = _run(KERNEL, temporary)
    own = temporary / f"stretto-{os.geteuid()}"
    assert Path(first.stdout.strip()).is_relative_to(own)
    marker = temporary / "it ran"
    indices = list(own.rglob("*.nbi"))
    assert indices
    for index in indices:
        index.write_bytes(pickle.dumps(_Planted(marker)))
    subprocess.run([sys.executable, "-c", KERNEL], env=_environment(temporary), capture_output=True, check=False)
    assert marker.exists(), "what lies in the user's own folder is unpickled"
    marker.rmdir()

    for path in (own, *own.rglob("*")):
        os.chown(path, OTHER, OTHER)
        path.chmod(0o777)
    done = _run(KERNEL, temporary)
    assert not marker.exists()
    used = Path(done.stdout.strip())
    assert used.is_relative_to(temporary)
    assert not used.is_relative_to(own)
    assert not used.exists(), "it ends with the process"
    assert f"{own} belongs to another user ({OTHER})" in done.stderr


@two_users
def test_the_script_that_starts_java(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "user_cache_path", lambda name: temporary / name)
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    home = sessions._wrap(Path("/jdk/bin/java"))
    assert home.is_relative_to(temporary / "stretto")
    os.chown(temporary / "stretto", OTHER, OTHER)
    assert not sessions._wrap(Path("/jdk/bin/java")).is_relative_to(temporary / "stretto")


def test_children_share_a_private_folder(
    temporary: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    everybody = temporary / "cache"
    everybody.mkdir()
    everybody.chmod(0o777)
    (temporary / f"stretto-{os.geteuid()}").symlink_to(everybody)
    monkeypatch.setenv(directory.VARIABLE, str(everybody))
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    private = directory.cache_directory()
    assert caplog.text.count("compiled code is neither read from nor kept in") == 2
    root = Path(os.environ[directory.VARIABLE])
    assert Path(private).is_relative_to(root)
    assert stat.S_IMODE(root.stat().st_mode) == 0o700
    assert directory.cache_directory() == private
    directory._remove(root, os.getpid() + 1)
    assert root.exists(), "a child that ends leaves it"
    directory._remove(root, os.getpid())
    assert not root.exists()


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    path.write_text("before")

    def stopped() -> None:
        with replaced(path) as draft:
            draft.write_text("aft")
            raise ValueError("in the middle")

    with pytest.raises(ValueError, match="in the middle"):
        stopped()
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("kept", "before")]
    with replaced(path) as draft:
        draft.write_text("after")
        assert path.read_text() == "before"
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("kept", "after")]
    with pytest.raises(OSError, match="No such file"), replaced(tmp_path / "no" / "folder") as draft:
        draft.write_text("")
