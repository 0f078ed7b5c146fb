"""Files that are written whole or not at all."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from .errors import FieldError


def check_target(path: str | os.PathLike[str]) -> Path:
    """Where a file may be written: what `path` leads to. Cheap, so that nothing is worked out in vain.

    Raises
    ------
    FieldError
        If a device or the like is there.
    OSError
        If a folder is there, or it would be in one that isn't.
    """
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(path))
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if target.exists() and not target.is_file():
        raise FieldError("not a regular file", where="path", value=os.fspath(path), accepted="a file's path")
    return target


def write_whole(path: str | os.PathLike[str], data: bytes) -> None:
    """Replace a file as a whole, or leave what was there as it was.

    Raises
    ------
    FieldError, OSError
        Naming `path`, if it can't be written.
    """
    target = check_target(path)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        part.write_bytes(data)
        part.replace(target)
    except OSError as error:
        error.filename, error.filename2 = os.fspath(path), None
        raise
    finally:
        part.unlink(missing_ok=True)
