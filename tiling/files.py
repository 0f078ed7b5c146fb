"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: str | os.PathLike[str], data: bytes) -> None:
    """Replace a file as a whole, or leave what was there as it was.

    Raises
    ------
    OSError
        Naming `path`, if it can't be written.
    """
    target = Path(os.path.realpath(path))
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        part.write_bytes(data)
        part.replace(target)
    except OSError as error:
        error.filename, error.filename2 = os.fspath(path), None
        raise
    finally:
        part.unlink(missing_ok=True)
