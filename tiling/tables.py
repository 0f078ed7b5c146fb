"""Tables: what results that are columns have in common, and how they leave: numpy, Arrow, CSV, JSON and Parquet.

A result is a frozen dataclass of columns. Its fields say what the formats need to know: the annotation (`Int32` or
`Int64`) is the column's dtype, and the metadata its part in the table, where that is not one value a row.
`docs/formats.md` describes the columns of every kind. pyarrow (the extra ``arrow``) is imported when it is needed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields
from functools import wraps
from io import BufferedIOBase, RawIOBase
from itertools import chain, zip_longest
from typing import IO, TYPE_CHECKING, Any, ClassVar, Final, Literal, ParamSpec, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from ._compact import find_descent
from .errors import BufferShapeError, FieldError, LayoutError, SizeError, TableError, extra
from .files import read_whole, replacing

if TYPE_CHECKING:
    import pyarrow as pa

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]

P = ParamSpec("P")
R = TypeVar("R")

MEMORY: Final = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 2**63 - 1
CHUNK: Final = 1 << 16  # rows that are made text at a time

VERSION: Final = 1  # of the Arrow and Parquet form
PREFIX: Final = "tiling."  # of its metadata's keys

# What a field's metadata may say of its column.
SIGNED: Final = {"least": None}  # values of any sign; without it they are 0 or more
POSITIVE: Final = {"least": 1}
BOX: Final = {"part": "box"}  # (n, rank): a value an axis
STARTS: Final = {"part": "starts"}  # (n + 1,): where in the `EACH` columns each row's values start
EACH: Final = {"part": "each"}  # (m,): a value for each of a row's destinations
APART: Final = {"part": "apart"}  # no column of the rows


# --- what machines hold ----------------------------------------------------------------------------------------------


def check_rows(rows: int, what: str, size: int = 1) -> None:
    """Refuse tables that no machine holds, or that this one does not, before anything is allocated.

    `size` is the bytes of a row.
    """
    if rows >= 2**31 - 1:
        raise SizeError(f"too many {what} for a list", value=rows, accepted="fewer than 2^31-1")
    if rows * size > MEMORY:
        raise SizeError(f"too many {what} for this machine's memory", value=rows, accepted=f"at most {MEMORY // size}")


def within_memory(function: Callable[P, R]) -> Callable[P, R]:
    """What is legal but larger than this machine is an error like any other, not a MemoryError."""

    @wraps(function)
    def checked(*args: P.args, **more: P.kwargs) -> R:
        try:
            return function(*args, **more)
        except MemoryError:
            raise SizeError("more memory is needed than there is", accepted="fewer tiles, rows or transfers") from None

    return checked


# --- columns ---------------------------------------------------------------------------------------------------------


def check_column(
    name: str, column: Any, dtype: type[np.generic], length: int | None = None, dimensions: int = 1
) -> None:
    kind = np.dtype(dtype)
    if not isinstance(column, np.ndarray) or column.dtype != kind or column.ndim != dimensions:
        given = f"{column.dtype} {column.shape}" if isinstance(column, np.ndarray) else type(column).__name__
        raise BufferShapeError("not a column", where=name, value=given, accepted=f"a {dimensions}-D array of {kind}")
    if not column.flags.c_contiguous:
        raise BufferShapeError(
            "not contiguous: strides", where=name, value=column.strides, accepted=f"({kind.itemsize},)"
        )
    if length is not None and len(column) != length:
        raise BufferShapeError("wrong length", where=name, value=len(column), accepted=str(length))


def check_starts(start: Int64, ends: int) -> None:
    """Refuse a `destination_start` column that does not go from 0 to `ends` without falling."""
    for i, want in ((0, 0), (-1, ends)):
        if start[i] != want:
            where = f"destination_start[{i % len(start)}]"
            raise BufferShapeError("not a bound", where=where, value=int(start[i]), accepted=str(want))
    fall = find_descent(start)
    if fall >= 0:
        raise BufferShapeError(
            "falls",
            where=f"destination_start[{fall}]",
            value=int(start[fall]),
            accepted=f"from {start[fall - 1]}, which stands before it",
        )


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    dtype: type[np.generic]
    part: Literal["row", "box", "starts", "each", "apart"]
    least: int | None


class Table:
    """Base of the results that are columns of n rows.

    Columns are plain numpy arrays, and whoever has a table may change them. An export checks that they still go
    together (`BufferShapeError` if not). An Arrow table shares their memory; every other form is a copy.
    """

    __slots__ = ()

    KIND: ClassVar[str]
    """The table's name in files."""
    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # columns may be changed

    LINE: ClassVar[str] = "transfer"
    """What the number of a row is called where a row with several destinations takes several lines."""

    def __eq__(self, other: object) -> bool:
        """Whether all columns are equal."""
        if type(other) is not type(self):
            return NotImplemented
        return all(np.array_equal(getattr(self, c.name), getattr(other, c.name)) for c in self._columns())

    # Out.

    def to_numpy(self) -> NDArray[np.void]:
        """The table as one structured array, (n,) and packed, with a field for each column.

        A row with several destinations is several elements, one for each; the first field then is the number of the
        row. A box's field is a (rank,) subarray.
        """
        lines = self._lines()
        made = np.empty(
            len(next(iter(lines.values()))), [(name, column.dtype, column.shape[1:]) for name, column in lines.items()]
        )
        for name, column in lines.items():
            made[name] = column
        return made

    def to_arrow(self) -> pa.Table:
        """The table as a `pyarrow.Table` in the same memory: what is written to a column shows in both.

        Columns have their dtypes and no nulls. Those of destinations are large lists, and those of boxes are
        fixed-size lists, which the table of a tensor of rank 0 doesn't have. The schema's metadata says which kind of
        table it is and in which version of this form.

        Raises
        ------
        MissingExtraError
            Without pyarrow.
        """
        pa = extra("pyarrow", "arrow")
        self._check()
        facts = {"kind": self.KIND, "version": VERSION, **self._facts()}
        schema = self._schema(self._rank).with_metadata({PREFIX + name: str(fact) for name, fact in facts.items()})
        starts, arrays = None, []
        for column in self._columns():
            array = pa.array(getattr(self, column.name).reshape(-1))
            if column.part == "starts":
                starts = array
            elif column.name in schema.names:
                kind = schema.field(column.name).type
                if column.part == "each":
                    array = pa.LargeListArray.from_arrays(starts, array, type=kind)
                elif column.part == "box":
                    array = pa.FixedSizeListArray.from_arrays(array, type=kind)
                arrays.append(array)
        return pa.Table.from_arrays(arrays, schema=schema)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The Arrow PyCapsule interface, by which data frames and databases take the table as it is."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_csv(self, file: str | os.PathLike[str] | IO[str]) -> None:
        """Write the elements of `to_numpy` as CSV: a header, then integers. A box is a column an axis: `start_0` ...

        Parameters
        ----------
        file : path or text file
            What is at a path is replaced once all is written.
        """
        lines = self._lines()
        head = [
            name if column.ndim == 1 else f"{name}_{axis}"
            for name, column in lines.items()
            for axis in range(column.shape[1] if column.ndim == 2 else 1)
        ]
        with _text_file(file) as out:
            out.write(",".join(head) + "\n")
            out.writelines(_formatted(lines, ",".join(["%d"] * len(head)) + "\n"))

    def to_json(self, file: str | os.PathLike[str] | IO[str]) -> None:
        """Write the elements of `to_numpy` as JSON: ``{"kind": .., "rows": [{..}, ..]}``, with a line for each.

        The file is what `to_csv` takes.
        """
        lines = self._lines()
        items = [
            f'"{name}": {"%d" if column.ndim == 1 else "[" + ", ".join(["%d"] * column.shape[1]) + "]"}'
            for name, column in lines.items()
        ]
        rows = _formatted(lines, "{" + ", ".join(items) + "}")
        with _text_file(file) as out:
            out.write(f'{{"kind": "{self.KIND}", "rows": [\n')
            out.writelines(chain((next(rows, ""),), map(",\n".__add__, rows)))
            out.write("\n]}\n")

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write the table of `to_arrow` as a Parquet file, with checksums; `from_parquet` reads it.

        What is at the path is replaced once all is written.

        Raises
        ------
        MissingExtraError
            Without pyarrow.
        """
        parquet = extra("pyarrow.parquet", "arrow")
        table = self.to_arrow()
        with replacing(path, binary=True) as file:
            # Neighbours are alike: their differences take less room than dictionaries, and are read ten times faster.
            parquet.write_table(
                table, file, use_dictionary=False, column_encoding="DELTA_BINARY_PACKED", write_page_checksum=True
            )

    # And back.

    @classmethod
    @within_memory
    def from_arrow(cls, table: pa.Table) -> Self:
        """The table that `to_arrow` gave, in new columns.

        Raises
        ------
        TableError
            If it is of another kind or version, or has columns or values that no such table has.
        MissingExtraError
            Without pyarrow.
        """
        pa = extra("pyarrow", "arrow")
        if not isinstance(table, pa.Table):
            raise FieldError("wrong type", where="table", value=table, accepted="pyarrow.Table")
        facts = cls._facts_in(table.schema)
        try:
            table.validate(full=True)
        except pa.ArrowException as error:
            raise TableError(f"not sound ({error})", where="table") from None
        return cls._restored(cls._columns_in(table), facts)

    @classmethod
    @within_memory
    def from_parquet(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `to_parquet` wrote, into new columns. Files may be anybody's: all that is in them is checked.

        Raises
        ------
        TableError
            If it is no Parquet file, is damaged, of another kind or version, or has columns or values that no such
            table has.
        SizeError
            If the memory does not hold it.
        OSError
            If the file can't be read.
        MissingExtraError
            Without pyarrow.
        """
        pa, parquet = extra("pyarrow", "arrow"), extra("pyarrow.parquet", "arrow")
        data = read_whole(path)
        try:
            file = parquet.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)
            meta = file.metadata
            groups = [meta.row_group(i) for i in range(meta.num_row_groups)]
            values = (sum(group.column(i).num_values for group in groups) for i in range(meta.num_columns))
            check_rows(max(values, default=0), "values", 8 * meta.num_columns)
            cls._facts_in(file.schema_arrow)  # first, as a value of another type may take any memory
            return cls.from_arrow(file.read())
        except LayoutError as error:
            raise error.within(str(path)) from None
        except (pa.ArrowException, OSError, UnicodeError) as error:  # the file is read: all of these are about its text
            raise TableError(f"not a sound Parquet file ({error})", where=str(path)) from None

    # What kinds of tables say for themselves.

    def _facts(self) -> dict[str, int]:
        """What the metadata has to say besides."""
        return {}

    @classmethod
    def _restored(cls, columns: dict[str, Any], facts: Mapping[str, str]) -> Self:
        """The table of columns that are each in range; what they must be together is checked here."""
        return cls(**columns)

    # How all of them do it.

    @classmethod
    def _columns(cls) -> list[Column]:
        kinds: dict[Any, type[np.generic]] = {"Int32": np.int32, "Int64": np.int64}
        return [
            Column(field.name, kinds[field.type], field.metadata.get("part", "row"), field.metadata.get("least", 0))
            for field in fields(cast(Any, cls))
        ]

    @property
    def _rank(self) -> int:
        return next((getattr(self, c.name).shape[1] for c in self._columns() if c.part == "box"), 0)

    def _check(self) -> None:
        lengths: dict[str, int] = {}
        for column in self._columns():
            values = getattr(self, column.name)
            dimensions = 2 if column.part == "box" else 1
            check_column(column.name, values, column.dtype, lengths.get(column.part), dimensions)
            lengths[column.part] = len(values)
            if column.part == "row":
                lengths["box"], lengths["starts"] = len(values), len(values) + 1
            elif column.part == "box" and values.shape[1] != self._rank:
                raise BufferShapeError("wrong rank", where=column.name, value=values.shape[1], accepted=f"{self._rank}")
        if "each" in lengths:
            check_starts(cast(Any, self).destination_start, lengths["each"])

    def _lines(self) -> dict[str, NDArray[Any]]:
        """The columns of the forms that have no lists: rows, or the destinations of rows."""
        self._check()
        columns = [c for c in self._columns() if c.part in ("row", "box", "each")]
        found = {c.name: getattr(self, c.name) for c in columns}
        if not any(c.part == "each" for c in columns):
            return found
        start = cast(Any, self).destination_start
        row = np.repeat(np.arange(len(start) - 1), np.diff(start))
        return {self.LINE: row, **{c.name: found[c.name] if c.part == "each" else found[c.name][row] for c in columns}}

    @classmethod
    def _schema(cls, rank: int) -> pa.Schema:
        pa = extra("pyarrow", "arrow")
        made = []
        for column in cls._columns():
            kind = pa.from_numpy_dtype(np.dtype(column.dtype))
            item = pa.field("element", kind, nullable=False)
            if column.part == "row":
                made.append(pa.field(column.name, kind, nullable=False))
            elif column.part == "each":
                made.append(pa.field(column.name, pa.large_list(item), nullable=False))
            elif column.part == "box" and rank:
                made.append(pa.field(column.name, pa.list_(item, rank), nullable=False))
        return pa.schema(made)

    @classmethod
    def _boxes(cls, schema: pa.Schema) -> tuple[list[str], int]:
        """The names of the boxes' columns, and the rank that an Arrow schema has of them."""
        boxes = [c.name for c in cls._columns() if c.part == "box"]
        return boxes, max((getattr(field.type, "list_size", 0) for field in schema if field.name in boxes), default=0)

    @classmethod
    def _facts_in(cls, schema: pa.Schema) -> dict[str, str]:
        """What an Arrow schema's metadata says, if it is one of such a table."""
        metadata = (schema.metadata or {}).items()
        facts = {key.decode(errors="replace"): fact.decode(errors="replace") for key, fact in metadata}
        facts = {key.removeprefix(PREFIX): fact for key, fact in facts.items() if key.startswith(PREFIX)}
        for key, expected in (("kind", cls.KIND), ("version", str(VERSION))):
            if facts.get(key) != expected:
                what = f"another {key} of table" if key in facts else "the metadata of such a table is missing"
                raise TableError(what, where=PREFIX + key, value=facts.get(key), accepted=expected)
        for got, want in zip_longest(schema, cls._schema(cls._boxes(schema)[1])):
            if got is None or want is None or not got.equals(want):
                raise TableError("not the columns of such a table", where="schema", value=f"{got}", accepted=f"{want}")
        return facts

    @classmethod
    def _columns_in(cls, table: pa.Table) -> dict[str, NDArray[Any]]:
        """The columns of an Arrow table of the right schema as arrays of their own, each in range."""
        boxes, rank = cls._boxes(table.schema)
        found: dict[str, NDArray[Any]] = {name: np.empty((len(table), 0), np.int64) for name in boxes}
        for column in cls._columns():
            if column.name not in table.column_names:
                continue
            array = table.column(column.name).combine_chunks()
            nulls = array.null_count
            if column.part == "each" and not nulls:
                start = np.append(0, np.cumsum(array.value_lengths()))
                if not np.array_equal(found.setdefault("destination_start", start), start):
                    raise TableError("not as long as the lists before it", where=column.name)
            if column.part != "row":
                array = array.flatten()
            if nulls + array.null_count:
                raise TableError("has nulls", where=column.name, accepted="numbers")
            values = np.array(array)
            if column.least is not None and values.min(initial=column.least) < column.least:
                where = f"{column.name}[{int(values.argmin())}]"
                raise TableError("too low", where=where, value=int(values.min()), accepted=f"from {column.least}")
            found[column.name] = values.reshape(-1, rank) if column.part == "box" else values
        return found


def _text_file(file: str | os.PathLike[str] | IO[str]) -> AbstractContextManager[IO[str]]:
    if isinstance(file, (str, os.PathLike)):
        return replacing(file)
    if not hasattr(file, "write") or isinstance(file, (RawIOBase, BufferedIOBase)):
        raise FieldError(
            "not a path or a text file", where="file", value=file, accepted="str, os.PathLike, a text file"
        )
    return nullcontext(file)


def _formatted(lines: dict[str, NDArray[Any]], template: str) -> Iterator[str]:
    """Each element's numbers in the template: %-formatting is the fastest that the language has."""
    columns = [part for column in lines.values() for part in (column.T if column.ndim == 2 else [column])]
    for start in range(0, len(columns[0]), CHUNK):
        yield from map(template.__mod__, zip(*(c[start : start + CHUNK].tolist() for c in columns), strict=True))
