"""Errors: what is wrong, where, the value that was given, and what would be accepted."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class LayoutError(ValueError):
    """Anything a caller can get wrong.

    Attributes
    ----------
    what : str
        What is wrong, in words.
    where : str
        The field, axis, shard or position that is meant (a path such as ``format.layout.tiling.axes[0]``), or "".
    value : object
        The value that was given, when there is one.
    accepted : str
        What would have been accepted, when that can be said.
    """

    def __init__(self, what: str, *, where: str = "", value: Any = None, accepted: str = "") -> None:
        self.what, self.where, self.value, self.accepted = what, where, value, accepted
        super().__init__(what)

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        if self.value is not None:
            try:
                shown = repr(self.value)
            except ValueError:  # numbers of thousands of digits
                shown = f"{type(self.value).__name__} too long to print"
            text += f", got {shown if len(shown) <= 120 else shown[:117] + '...'}"
        return f"{text}; accepted: {self.accepted}" if self.accepted else text

    def __reduce__(self) -> Any:
        return _remade, (type(self), self.args, self.__dict__)

    def under(self, prefix: str) -> LayoutError:
        """Prefix the position, for errors of a part seen from its whole; returns itself."""
        joint = "" if not self.where or self.where.startswith("[") else "."
        self.where = f"{prefix}{joint}{self.where}"
        return self

    def within(self, file: str) -> LayoutError:
        """Prefix the file that the position is in; returns itself."""
        self.where = f"{file}: {self.where}" if self.where else file
        return self


def _remade(kind: type[LayoutError], args: tuple[Any, ...], state: dict[str, Any]) -> LayoutError:
    """An error as another process raised it; the kinds' own arguments are in the state."""
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class FieldError(LayoutError):
    """A field of a value type, or of its JSON form: wrong type, out of range, unknown, missing."""


class TilingError(LayoutError):
    """A tiling that does not fit its tensor: axes, tile counts, strides, groups, padding, Linear."""


class OrderError(LayoutError):
    """An element order whose needs a shard does not meet."""


class OwnerError(LayoutError):
    """An owner map that does not fit its tiling or the device."""


class CopyError(LayoutError):
    """Source, destination and mapping of a copy that do not go together."""


class AlignmentError(CopyError):
    """A transfer that is not whole 4-byte words, where `require_aligned` was asked for."""


class TooManyTransfersError(CopyError):
    """A copy whose exact transfer count is over `max_transfers`."""


class SizeError(LayoutError):
    """A size that does not fit: elements and bytes to 2^63-1, tile numbers to 2^31-1."""


class BufferShapeError(LayoutError):
    """An array with the wrong dtype, rank, size or memory layout."""


class DumpError(LayoutError):
    """A dump or log that does not parse. `line` and `column` count from 1."""

    def __init__(self, what: str, *, line: int, column: int, value: Any = None, accepted: str = "") -> None:
        self.line, self.column = line, column
        super().__init__(what, where=f"line {line}, column {column}", value=value, accepted=accepted)


class PolicyError(CopyError):
    """A copy policy that is read from dumps but not planned."""


class TableError(LayoutError):
    """A table that can't be read back: damaged, of another kind or version, or with values that no such table has."""


class MissingExtraError(LayoutError):
    """A library that an extra brings is not installed."""


def extra(module: str, name: str) -> Any:
    """Import and return a module that the extra `name` brings, or say what to install."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"{module.partition('.')[0]} is not installed",
            where=f"extra {name}",
            accepted=f"pip install 'tensor-tiling[{name}]'",
        ) from error
