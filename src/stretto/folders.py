"""Files that are there as a whole, and folders that nobody else can write, for what is run as it is found: code, a script.

Whoever can write a folder above one can put another in its place, so that the whole way to it is looked at. Root can do that
anywhere and is trusted.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

try:
    import grp
    import pwd
except ImportError:  # Windows, where profiles and their folders for temporary files belong to their users alone
    grp = pwd = None  # type: ignore[assignment]


@contextlib.contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """Inside, a draft is written, which takes the place of a file at the end; where that fails, the file stays as it was.

    Several processes may write the same file: each has a draft of its own.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield draft
        draft.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        raise


def made(folder: Path) -> bool:
    """Whether a folder can be written; it and those above it are made for this user alone."""
    try:
        for above in (*reversed(folder.parents), folder):
            if not above.exists():
                above.mkdir(mode=0o700, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK) and not danger_of(folder)


def danger_of(folder: Path) -> str:
    """Why others could change what lies in a folder, or put another in its place; empty if only this user and root can.

    What is not there yet is no danger: whoever can write above it is found there. Below a folder that everybody can write, such as
    that for temporary files, a link is a danger: one cannot tell who made it.
    """
    if pwd is None:
        return ""
    parts = [*reversed(folder.parents), folder]
    shared = False
    for part in parts:
        try:
            found = part.lstat()
        except OSError:
            return ""
        if found.st_uid not in (0, os.geteuid()):
            return f"{part} belongs to another user ({_user(found.st_uid)})"
        if stat.S_ISLNK(found.st_mode):
            if shared:
                return f"{part} is a link in a folder that everybody can write"
            return danger_of(part.parent / os.readlink(part) / folder.relative_to(part)) if part.exists() else ""
        shared = _others_write(part, found)
        if shared and (not found.st_mode & stat.S_ISVTX or part == folder):
            return f"others than you can write {part} (chmod go-w)"
    return _danger_inside(folder) if found.st_mode & (stat.S_IXGRP | stat.S_IXOTH) else ""


def _danger_inside(folder: Path) -> str:
    """The same of what lies in a folder that others can enter."""
    for path in folder.rglob("*"):
        found = path.lstat()
        if found.st_uid not in (0, os.geteuid()):
            return f"{path} belongs to another user ({_user(found.st_uid)})"
        if stat.S_ISLNK(found.st_mode) or _others_write(path, found):
            return f"others than you can write {path} (chmod -R go-w)"
    return ""


def _others_write(path: Path, found: os.stat_result) -> bool:
    """Whether somebody beside the owner can write a folder or file. A group of the user alone is nobody else."""
    if found.st_mode & stat.S_IWOTH:
        return True
    return bool(found.st_mode & stat.S_IWGRP) and (_has_acl(path) or not _own_group(found.st_gid))


def _has_acl(path: Path) -> bool:
    """Whether there are rights that the mode does not tell."""
    try:
        return "system.posix_acl_access" in os.listxattr(path)
    except (OSError, AttributeError):  # a file system, or a system, without them
        return False


def _own_group(group: int) -> bool:
    """Whether a group is the user's own, by the user's name and without other members. Root's group has other systems' users."""
    if not group or group != os.getegid():
        return False
    with contextlib.suppress(KeyError):
        name = pwd.getpwuid(os.geteuid()).pw_name
        members = grp.getgrgid(group)
        return members.gr_name == name and set(members.gr_mem) <= {name}
    return False


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)
