"""Files that are written whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any

from .errors import FieldError


def file_name(path: str | os.PathLike[str]) -> str:
    """The path as a string, if it can be one of a file."""
    name = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None
    if not isinstance(name, str) or "\0" in name:
        raise FieldError("not a path", where="path", value=path, accepted="str, os.PathLike")
    return name


def check_target(path: str | os.PathLike[str]) -> str:
    """Where a file may be written: what `path` leads to. Cheap, so that nothing is worked out in vain.

    Raises
    ------
    FieldError
        If it is no path, or a device or the like is there.
    OSError
        If a folder is there, or it would be in one that isn't.
    """
    name = file_name(path)
    target = os.path.realpath(name)
    if not os.path.isdir(os.path.dirname(target)):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    if os.path.isdir(target):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    if os.path.exists(target) and not os.path.isfile(target):
        raise FieldError("not a regular file", where="path", value=name, accepted="a file's path")
    return target


def read_whole(path: str | os.PathLike[str]) -> bytes:
    """What is in a file."""
    with open(file_name(path), "rb") as file:
        return file.read()


@contextmanager
def replacing(path: str | os.PathLike[str], binary: bool = False) -> Iterator[IO[Any]]:
    """A file to write, in UTF-8 or binary: it replaces what is at `path` when all is written, or leaves it as it was.

    Raises
    ------
    FieldError, OSError
        Naming `path`, if it can't be written.
    """
    target = check_target(path)
    # No longer than the name may be.
    part = os.path.join(os.path.dirname(target), f".{os.urandom(8).hex()}.part")
    try:
        with open(part, "wb") if binary else open(part, "w", encoding="utf-8", newline="\n") as file:
            if os.path.exists(target):  # who may read it stays as it was
                os.chmod(part, stat.S_IMODE(os.stat(target).st_mode))
            yield file
        os.replace(part, target)
    except OSError as error:
        if error.errno is not None:
            error.filename, error.filename2 = file_name(path), None
        raise
    finally:
        with suppress(FileNotFoundError):
            os.unlink(part)


def write_whole(path: str | os.PathLike[str], data: bytes) -> None:
    """Replace a file as a whole, or leave what was there as it was; errors as `replacing`."""
    with replacing(path, binary=True) as file:
        file.write(data)
