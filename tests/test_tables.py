"""Tables as numpy arrays, Arrow tables, CSV, JSON and Parquet files, and types in files of other formats."""

import csv
import io
import json
import os
import random
import re
import stat
import sys
from dataclasses import fields, replace
from itertools import pairwise
from pathlib import Path

import engine
import numpy as np
import pytest
import strategies
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import tiling
from tiling import (
    F16,
    Amp,
    AxisTiling,
    BufferShapeError,
    CopyCounts,
    FieldError,
    LayoutError,
    LocalRuns,
    OwnerMap,
    ShardTable,
    SizeError,
    Spans,
    StridedTransfers,
    TableError,
    TensorType,
    TileLoads,
    Transfers,
    tables,
)
from tiling.cli import main

EACH = ("destination_tile", "destination_offset")
KINDS = [Transfers, LocalRuns, Spans, StridedTransfers, ShardTable, CopyCounts, TileLoads]
FORMATS = Path(__file__).parents[1] / "docs" / "formats.md"

# A copy with multicasts, local runs and spans to zero.
SOURCE = TensorType.tiled([30, 20], F16, [AxisTiling(0, 4, padding="Zero", block_size=4)])
DESTINATION = TensorType.tiled(
    [30, 20], F16, [AxisTiling(1, 2, padding="Zero", block_size=16, shard_padding_multiple=16)], replicas=2
)


def made():
    """A table of every kind, as the engine makes them."""
    plan, count = tiling.plan_copy(SOURCE, DESTINATION), tiling.count_copy(SOURCE, DESTINATION)
    return {
        Transfers: plan.transfers,
        LocalRuns: plan.local,
        Spans: plan.zero_fill,
        StridedTransfers: plan.transfers.compact(),
        ShardTable: tiling.enumerate_shards(DESTINATION, OwnerMap(3), 9),
        CopyCounts: tiling.count_copies([(SOURCE, DESTINATION), (DESTINATION, SOURCE)]),
        TileLoads: count.tile_loads,
    }


def columns(table):
    return {field.name: getattr(table, field.name) for field in fields(table)}


def assert_same(got, want):
    assert type(got) is type(want)
    for name, column in columns(want).items():
        mine = getattr(got, name)
        assert (mine.dtype, mine.shape) == (column.dtype, column.shape), name
        assert mine.flags.c_contiguous
        assert mine.flags.writeable
        assert np.array_equal(mine, column), name


# Any tables, whose columns go together but mean nothing.

SIZES = st.integers(0, 2**63 - 1)
TILES = st.integers(0, 2**31 - 2)


def column(dtype, count, values):
    return arrays.arrays(dtype, count, elements=values)


@st.composite
def any_starts(draw, rows):
    lengths = draw(st.lists(st.integers(0, 3), min_size=rows, max_size=rows))
    return np.append(0, np.cumsum(lengths, dtype=np.int64)).astype(np.int64)


@st.composite
def any_shards(draw):
    rows, rank = draw(st.integers(0, 6)), draw(st.integers(0, 3))
    tile = draw(column(np.int32, rows, st.integers(0, 5)))
    size = draw(column(np.int64, rows, st.integers(0, 2**60)))
    bounds = np.sort(draw(column(np.int64, (rows, rank, 3), SIZES)), axis=2)
    tile_bytes, offset = np.zeros(draw(st.integers(6, 9)), np.int64), np.empty(rows, np.int64)
    for i in range(rows):
        offset[i] = tile_bytes[tile[i]]
        tile_bytes[tile[i]] += size[i]
    return ShardTable(tile, *(np.ascontiguousarray(bounds[:, :, k]) for k in range(3)), size, offset, tile_bytes)


@st.composite
def any_tables(draw):
    kind = draw(st.sampled_from(KINDS))
    if kind is ShardTable:
        return draw(any_shards())
    rows = draw(st.integers(0, 6))
    if kind is TileLoads:
        return TileLoads.of(draw(column(np.int64, rows, SIZES)), draw(column(np.int64, rows, SIZES)))
    starts, found = draw(any_starts(rows)), {}
    for field in fields(kind):
        count = int(starts[-1]) if field.name in EACH and "destination_start" in kind.__slots__ else rows
        if field.name == "destination_start":
            found[field.name] = starts
        elif field.name.endswith("tile"):
            found[field.name] = draw(column(np.int32, count, TILES))
        elif field.name.endswith("step"):
            found[field.name] = draw(column(np.int64, count, st.integers(-(2**63), 2**63 - 1)))
        else:
            found[field.name] = draw(column(np.int64, count, st.integers(field.name == "count", 2**63 - 1)))
    return kind(**found)


def lines(table):
    """A table's lines, by hand: names, and tuples of ints and tuples."""
    found = columns(table)
    found.pop("tile_bytes", None)
    start = found.pop("destination_start", None)
    if start is None:
        return list(found), [
            tuple(c[i].item() if c.ndim == 1 else tuple(c[i].tolist()) for c in found.values())
            for i in range(len(table))
        ]
    ends = {name: found.pop(name) for name in EACH}
    index = "row" if isinstance(table, StridedTransfers) else "transfer"
    return [index, *found, *ends], [
        (i, *(c[i].item() for c in found.values()), *(c[e].item() for c in ends.values()))
        for i in range(len(table))
        for e in range(start[i], start[i + 1])
    ]


# --- numpy, CSV, JSON ------------------------------------------------------------------------------------------------


@given(any_tables())
def test_structured_arrays_have_every_line(table):
    names, want = lines(table)
    array = table.to_numpy()
    assert list(array.dtype.names) == names
    assert [tuple(tuple(v) if isinstance(v, (list, np.ndarray)) else v for v in row) for row in array.tolist()] == want
    for name, own in columns(table).items():
        if name in names:
            assert array.dtype[name].base == own.dtype
            assert array.dtype[name].shape == own.shape[1:]
            assert not np.shares_memory(array, own)


@given(any_tables())
def test_csv_is_read_back(table):
    out = io.StringIO()
    table.to_csv(out)
    head, *rows = csv.reader(io.StringIO(out.getvalue()))
    names, want = lines(table)
    boxes = {name: getattr(table, name).shape[1] for name in names if getattr(getattr(table, name, 0), "ndim", 1) == 2}
    assert head == [
        n for name in names for n in ([f"{name}_{a}" for a in range(boxes[name])] if name in boxes else [name])
    ]
    flat = [[str(n) for value in row for n in (value if isinstance(value, tuple) else (value,))] for row in want]
    assert rows == flat


@given(any_tables())
def test_json_is_read_back(table):
    out = io.StringIO()
    table.to_json(out)
    names, want = lines(table)
    want = [{n: list(v) if isinstance(v, tuple) else v for n, v in zip(names, row, strict=True)} for row in want]
    assert json.loads(out.getvalue()) == {"kind": table.KIND, "rows": want}
    assert out.getvalue().count("\n") == max(len(want), 1) + 2


def test_long_tables_are_text_in_chunks(monkeypatch, tmp_path):
    table = made()[Transfers]
    table.to_csv(tmp_path / "whole.csv")
    table.to_json(tmp_path / "whole.json")
    monkeypatch.setattr(tables, "CHUNK", 7)
    table.to_csv(tmp_path / "chunks.csv")
    table.to_json(tmp_path / "chunks.json")
    for form in ("csv", "json"):
        assert (tmp_path / f"chunks.{form}").read_bytes() == (tmp_path / f"whole.{form}").read_bytes()


# --- Arrow -----------------------------------------------------------------------------------------------------------


@given(any_tables())
def test_arrow_has_the_columns_memory(table):
    pa = pytest.importorskip("pyarrow")
    arrow = table.to_arrow()
    assert arrow.num_rows == len(table)
    arrow.validate(full=True)
    for name, own in columns(table).items():
        if name not in arrow.column_names:
            continue
        field = arrow.schema.field(name)
        assert not field.nullable
        (chunk,) = arrow.column(name).chunks or [None]
        if name in EACH and hasattr(table, "destination_start"):
            assert pa.types.is_large_list(field.type)
            assert chunk.buffers()[1].address == table.destination_start.ctypes.data
            starts = table.destination_start.tolist()
            assert chunk.to_pylist() == [own[a:b].tolist() for a, b in pairwise(starts)]
            chunk = chunk.values
        elif own.ndim == 2:
            assert field.type.list_size == own.shape[1]
            assert chunk.to_pylist() == own.tolist()
            chunk = chunk.values
        else:
            assert chunk.to_pylist() == own.tolist()
        assert chunk.type == pa.from_numpy_dtype(own.dtype)
        if own.size:
            assert chunk.buffers()[1].address == own.ctypes.data
    left_out = set(columns(table)) - set(arrow.column_names)
    boxes = (
        {"start", "logical_end", "physical_end"}
        if isinstance(table, ShardTable) and not table.start.shape[1]
        else set()
    )
    assert left_out == boxes | ({"tile_bytes", "destination_start"} & set(columns(table)))


@given(any_tables())
def test_arrow_comes_back(table):
    pytest.importorskip("pyarrow")
    back = type(table).from_arrow(table.to_arrow())
    assert_same(back, table)
    for name, own in columns(table).items():
        assert not np.shares_memory(getattr(back, name), own)


def test_arrow_in_several_chunks_comes_back():
    pa = pytest.importorskip("pyarrow")
    for table in made().values():
        arrow = table.to_arrow()
        half = len(table) // 2
        assert_same(type(table).from_arrow(pa.concat_tables([arrow.slice(0, half), arrow.slice(half)])), table)


def test_what_takes_arrow_takes_tables():
    pa, polars, pandas = (pytest.importorskip(name) for name in ("pyarrow", "polars", "pandas"))
    for table in [*made().values(), tiling.enumerate_shards(TensorType.replicated([], F16, 3))]:
        arrow = table.to_arrow()
        assert pa.table(table).equals(arrow)
        frame = polars.DataFrame(table)
        assert frame.to_arrow().to_pylist() == arrow.to_pylist()
        assert frame.columns == arrow.column_names
        name = arrow.column_names[-1]
        one_frame = pandas.DataFrame.from_arrow(table) if hasattr(pandas.DataFrame, "from_arrow") else arrow.to_pandas()
        assert list(one_frame.columns) == arrow.column_names
        assert [np.array(value).tolist() for value in one_frame[name]] == arrow.column(name).to_pylist()


def test_polars_shares_the_memory():
    polars = pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    x = made()[Transfers]
    frame = polars.DataFrame(x)
    assert np.shares_memory(frame["source_tile"].to_numpy(allow_copy=False), x.source_tile)
    assert np.shares_memory(frame["bytes"].to_numpy(allow_copy=False), x.bytes)


def test_duckdb_queries_tables():
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("pyarrow")
    x, shards = made()[Transfers], made()[ShardTable]  # named in the queries
    assert duckdb.sql("select sum(bytes) from x").fetchall() == [(x.bytes.sum(),)]
    per_tile = duckdb.sql(
        "select t, sum(bytes) from (select bytes, unnest(destination_tile) t from x) group by t order by t"
    ).fetchall()
    want = np.zeros(4, np.int64)
    np.add.at(want, x.destination_tile, np.repeat(x.bytes, np.diff(x.destination_start)))
    assert dict(per_tile) == {t: n for t, n in enumerate(want.tolist()) if n}
    ends = duckdb.sql("select logical_end[2] - start[2] from shards").fetchall()
    assert [n for (n,) in ends] == (shards.logical_end - shards.start)[:, 1].tolist()


# --- Parquet ---------------------------------------------------------------------------------------------------------


@given(any_tables())
def test_parquet_comes_back(tmp_path_factory, table):
    pytest.importorskip("pyarrow")
    path = tmp_path_factory.getbasetemp() / "table.parquet"
    table.to_parquet(path)
    assert_same(type(table).from_parquet(path), table)
    assert list(path.parent.glob(".*.part")) == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [0, 1])
def test_short_tables_come_back(kind, rows, tmp_path):
    pytest.importorskip("pyarrow")
    found = columns(made()[kind])
    ends = int(found["destination_start"][rows]) if "destination_start" in found else rows
    lengths = {"destination_start": rows + 1, "tile_bytes": 9, **dict.fromkeys(EACH, ends)}
    if kind is ShardTable:
        found["tile_bytes"] = np.bincount(found["tile"][:rows], found["bytes"][:rows], 9).astype(np.int64)
    table = kind(**{name: own[: lengths.get(name, rows)] for name, own in found.items()})
    assert len(table) == rows
    table.to_parquet(tmp_path / "short.parquet")
    back = kind.from_parquet(tmp_path / "short.parquet")
    assert_same(back, kind(**{name: own.copy() for name, own in columns(table).items()}))
    assert len(table.to_numpy()) == ends
    for form in ("csv", "json"):
        getattr(table, f"to_{form}")(tmp_path / "short")
        assert len((tmp_path / "short").read_text().splitlines()) == (ends + 1 if form == "csv" else max(ends, 1) + 2)


@given(strategies.copies())
def test_copies_come_back(tmp_path_factory, case):
    pytest.importorskip("pyarrow")
    path = str(tmp_path_factory.getbasetemp() / "copy.parquet")
    arguments = engine.arguments(case)
    plan = tiling.plan_copy(**arguments)
    shards = tiling.enumerate_shards(arguments["destination"])
    for table in (plan.transfers, plan.transfers.compact(), plan.local, plan.zero_fill, shards):
        table.to_parquet(path)
        assert_same(type(table).from_parquet(path), table)


def test_other_readers_read_the_files(tmp_path):
    pytest.importorskip("pyarrow")
    polars, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    for kind, table in made().items():
        path = str(tmp_path / f"{kind.KIND}.parquet")
        table.to_parquet(path)
        want = table.to_arrow().to_pylist()
        assert polars.read_parquet(path).to_arrow().to_pylist() == want
        with duckdb.connect() as connection:
            rows = connection.execute(f"select * from read_parquet('{path}')").fetchall()
        plain = [tuple(list(v) if isinstance(v, (list, tuple)) else v for v in row) for row in rows]
        assert plain == [tuple(row.values()) for row in want]


def test_files_say_what_they_are(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    for kind, table in made().items():
        table.to_parquet(tmp_path / "one.parquet")
        metadata = parquet.read_schema(tmp_path / "one.parquet").metadata
        assert metadata[b"tiling.kind"] == kind.KIND.encode()
        assert metadata[b"tiling.version"] == b"1"
    assert len({kind.KIND for kind in KINDS}) == len(KINDS)


# --- files -----------------------------------------------------------------------------------------------------------

WRITERS = ["to_csv", "to_json", "to_parquet"]


@pytest.mark.parametrize("write", WRITERS)
def test_a_failure_leaves_what_was_there(write, tmp_path, monkeypatch):
    if write == "to_parquet":
        pytest.importorskip("pyarrow")
    path = tmp_path / "table"
    table = made()[Transfers]

    def breaks(*_):
        raise OSError(28, "No space left on device")

    for before in (None, b"before"):
        if before is not None:
            path.write_bytes(before)
        with monkeypatch.context() as patch:
            patch.setattr("tiling.files.os.replace", breaks)
            with pytest.raises(OSError, match="No space") as raised:
                getattr(table, write)(path)
            assert raised.value.filename == str(path)
        if write != "to_parquet":
            with monkeypatch.context() as patch:
                patch.setattr(tables, "_formatted", lambda *_: iter(["1\n", 2]))  # breaks after the first line
                with pytest.raises(TypeError):
                    getattr(table, write)(path)
        assert [p.name for p in tmp_path.iterdir()] == ([] if before is None else ["table"])
        assert before is None or path.read_bytes() == before
    getattr(table, write)(path)
    assert path.read_bytes() != b"before"


@pytest.mark.parametrize("write", WRITERS)
def test_places_where_no_file_can_be(write, tmp_path):
    if write == "to_parquet":
        pytest.importorskip("pyarrow")
    table = made()[Spans]
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "missing" / "table", tmp_path / "folder"):
        with pytest.raises(OSError, match=path.name) as raised:
            getattr(table, write)(path)
        assert raised.value.filename == str(path)
    for path in (3, None, b"bytes", "zero\0", io.BytesIO(), io.BufferedWriter(io.BytesIO())):
        with pytest.raises(FieldError, match="path"):
            getattr(table, write)(path)
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]


def test_links_and_permissions_are_kept(tmp_path):
    table = made()[Spans]
    real, link = tmp_path / "real.csv", tmp_path / "link.csv"
    real.write_text("before")
    link.symlink_to(real)
    table.to_csv(link)
    assert link.is_symlink()
    assert real.read_text().startswith("tile,offset,bytes\n")
    plain, new = tmp_path / "plain", tmp_path / "new.csv"
    plain.write_text("")
    table.to_csv(new)
    usual = stat.S_IMODE(plain.stat().st_mode)
    assert [stat.S_IMODE(path.stat().st_mode) for path in (real, new)] == [usual] * 2
    real.chmod(0o600)
    table.to_csv(link)
    assert stat.S_IMODE(real.stat().st_mode) == 0o600


@pytest.mark.skipif(not hasattr(os, "pathconf"), reason="does not say how long they may be")
def test_names_as_long_as_they_may_be(tmp_path):
    longest = tmp_path / ("x" * (os.pathconf(tmp_path, "PC_NAME_MAX") - 4) + ".csv")
    made()[Spans].to_csv(longest)
    assert [path.name for path in tmp_path.iterdir()] == [longest.name]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_what_is_no_file_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FieldError, match="not a regular file"):
        made()[Spans].to_csv(tmp_path / "pipe")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


# --- bad tables ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("spoil", [list, lambda c: c.astype(np.int16), lambda c: c[:, None], lambda c: c[:-1]])
def test_columns_that_do_not_go_together(kind, spoil):
    good = made()[kind]
    for name, own in columns(good).items():
        if name == "tile_bytes" and spoil(own) is not list and getattr(spoil(own), "shape", None) == (8,):
            continue  # a smaller device
        bad = replace(good, **{name: spoil(own)})
        for export in (
            bad.to_numpy,
            lambda bad=bad: bad.to_csv(io.StringIO()),
            lambda bad=bad: bad.to_json(io.StringIO()),
        ):
            with pytest.raises(BufferShapeError):
                export()
        if "pyarrow" in sys.modules:
            with pytest.raises(BufferShapeError):
                bad.to_arrow()


def changed(arrow, name, array):
    at = arrow.column_names.index(name)
    return arrow.set_column(at, arrow.schema.field(name), array)


def test_what_is_no_such_table_is_refused():
    pa = pytest.importorskip("pyarrow")
    tables_ = made()
    arrows = {kind: table.to_arrow() for kind, table in tables_.items()}
    for kind in KINDS:
        for other in KINDS:
            if other is not kind:
                with pytest.raises(TableError, match="another kind") as raised:
                    kind.from_arrow(arrows[other])
                assert (raised.value.where, raised.value.value, raised.value.accepted) == (
                    *("tiling.kind", other.KIND),
                    kind.KIND,
                )
        arrow = arrows[kind]
        with pytest.raises(TableError, match="missing"):
            kind.from_arrow(arrow.replace_schema_metadata(None))
        later = {**arrow.schema.metadata, b"tiling.version": b"2"}
        with pytest.raises(TableError, match="version"):
            kind.from_arrow(arrow.replace_schema_metadata(later))
        for name in arrow.column_names:
            for wrong in (
                arrow.drop_columns([name]),
                arrow.rename_columns([f"{n}s" if n == name else n for n in arrow.column_names]),
                arrow.append_column("more", arrow.column(name)),
                arrow.cast(pa.schema([f.with_nullable(f.name == name) for f in arrow.schema], arrow.schema.metadata)),
            ):
                with pytest.raises(TableError, match="columns"):
                    kind.from_arrow(wrong.replace_schema_metadata(arrow.schema.metadata))
        with pytest.raises(FieldError):
            kind.from_arrow(arrow.to_pydict())


def test_values_that_no_table_has_are_refused():
    pytest.importorskip("pyarrow")
    for kind, table in made().items():
        for name, own in columns(table).items():
            if name in ("destination_start", "tile_bytes", "source_step", "destination_step"):
                continue
            wrong = own.copy()
            wrong.flat[-1] = -1
            with pytest.raises(TableError) as raised:
                kind.from_arrow(replace(table, **{name: wrong}).to_arrow())
            assert raised.value.where.startswith(f"{name}[")
    strided, loads, shards = (made()[kind] for kind in (StridedTransfers, TileLoads, ShardTable))
    for wrong, words in [
        (replace(strided, count=strided.count * 0), r"count\[0\].*from 1"),
        (replace(loads, tile=loads.tile[::-1].copy()), r"tile\[0\]"),
        (replace(shards, start=shards.start + 100), r"logical_end\[0\].*start"),
        (replace(shards, physical_end=shards.start * 0), r"physical_end\[\d\].*logical_end"),
        (replace(shards, offset=shards.offset + 4), r"offset\[0\]"),
        (replace(shards, tile_bytes=shards.tile_bytes[:2]), "tiling.device_tiles"),
    ]:
        with pytest.raises(TableError, match=words):
            type(wrong).from_arrow(wrong.to_arrow())


def test_shards_that_do_not_follow_each_other_are_refused():
    pytest.importorskip("pyarrow")
    table = tiling.enumerate_shards(TensorType.linear([7, 6], F16, 4))
    assert_same(ShardTable.from_arrow(table.to_arrow()), table)
    for at in range(len(table)):
        for change in (-2, 2, 2**62):
            offset = table.offset.copy()
            offset[at] += change
            with pytest.raises(TableError, match="offset"):
                ShardTable.from_arrow(replace(table, offset=offset).to_arrow())
    box, size = np.zeros((2, 1), np.int64), np.array([2**62, 2**62])
    huge = ShardTable(np.zeros(2, np.int32), box, box, box, size, np.array([0, 2**62]), np.zeros(1, np.int64))
    with pytest.raises(TableError, match=r"offset\[1\]"):
        ShardTable.from_arrow(huge.to_arrow())


@pytest.mark.parametrize("said", [b"", b"x", b"-9", b"9.5", b"2", b"9" * 5000, b"\xff", None])
def test_device_tiles_that_are_none(said):
    pytest.importorskip("pyarrow")
    arrow = made()[ShardTable].to_arrow()
    metadata = {**arrow.schema.metadata, b"tiling.device_tiles": said}
    if said is None:
        del metadata[b"tiling.device_tiles"]
    with pytest.raises(TableError, match="device_tiles"):
        ShardTable.from_arrow(arrow.replace_schema_metadata(metadata))
    metadata[b"tiling.device_tiles"] = b"4000000000"
    with pytest.raises(SizeError, match="tiles"):
        ShardTable.from_arrow(arrow.replace_schema_metadata(metadata))


@pytest.mark.parametrize("starts", [[0, 2, 1], [1, 1, 2], [0, 1, 1]])
@pytest.mark.parametrize("names", [EACH[:1], EACH[1:], EACH])
def test_lists_that_start_where_they_should_not(starts, names):
    pa = pytest.importorskip("pyarrow")
    zeros, tiles = np.zeros(2, np.int64), np.zeros(2, np.int32)
    arrow = Transfers(tiles, zeros, zeros, np.array([0, 1, 2]), tiles, zeros).to_arrow()
    for name in names:
        kind, values = arrow.schema.field(name).type, arrow.column(name).chunk(0).values
        lists = pa.Array.from_buffers(kind, 2, [None, pa.py_buffer(np.array(starts))], children=[values])
        arrow = changed(arrow, name, lists)
    if names == EACH and starts != [0, 2, 1]:  # a list may be shorter than the memory that it is in
        assert np.diff(starts).tolist() == np.diff(Transfers.from_arrow(arrow).destination_start).tolist()
    else:
        with pytest.raises(TableError):
            Transfers.from_arrow(arrow)


def test_nulls_are_refused():
    pa = pytest.importorskip("pyarrow")
    for kind, table in made().items():
        arrow = table.to_arrow()
        for name in arrow.column_names:
            field = arrow.schema.field(name)
            first = arrow.column(name).to_pylist()
            first[-1] = None
            with pytest.raises(TableError):
                kind.from_arrow(changed(arrow, name, pa.array(first, type=field.type)))


# --- hostile files ---------------------------------------------------------------------------------------------------


def survives(kind, path):
    """The table, or None after a `LayoutError` that names the file."""
    try:
        return kind.from_parquet(path)
    except LayoutError as error:
        caught = error
    assert str(path) in str(caught)
    return None


def sound(table):
    """Whether a table is one that could be written and read again."""
    assert_same(type(table).from_arrow(table.to_arrow()), table)


@pytest.mark.parametrize("kind", KINDS)
def test_files_that_are_cut_anywhere(kind, tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "table.parquet"
    made()[kind].to_parquet(path)
    data = path.read_bytes()
    step = 1 if os.environ.get("TILING_LONG") == "1" else 13
    for end in range(0, len(data), step):
        path.write_bytes(data[:end])
        with pytest.raises(LayoutError, match=re.escape(str(path))):
            kind.from_parquet(path)


@pytest.mark.parametrize("kind", KINDS)
def test_files_with_bytes_changed(kind, tmp_path):
    pytest.importorskip("pyarrow")
    path, want = tmp_path / "table.parquet", made()[kind]
    want.to_parquet(path)
    data, rng = path.read_bytes(), random.Random(kind.KIND)
    for _ in range(20000 if os.environ.get("TILING_LONG") == "1" else 200):
        wrong = bytearray(data)
        for _ in range(rng.choice([1, 1, 1, 2, 8])):
            at = rng.randrange(len(wrong))
            wrong[at : at + rng.choice([0, 1, 1, 1, 4])] = rng.choice(
                [bytes([rng.randrange(256)]), b"", b"\xff" * 4, bytes([wrong[at] ^ 1 << rng.randrange(8)])]
            )
        path.write_bytes(wrong)
        table = survives(kind, path)
        if table is not None:
            sound(table)


def test_pages_with_a_changed_value_are_noticed(tmp_path):
    """Every byte of the pages is under a checksum: what is read is right or an error."""
    pytest.importorskip("pyarrow")
    path, want = tmp_path / "table.parquet", made()[Spans]
    want.to_parquet(path)
    data = path.read_bytes()
    footer = int.from_bytes(data[-8:-4], "little") + 8
    for at in range(4, len(data) - footer):
        wrong = bytearray(data)
        wrong[at] ^= 0x40
        path.write_bytes(wrong)
        table = survives(Spans, path)
        assert table is None or all((getattr(table, n) == own).all() for n, own in columns(want).items())


@pytest.mark.parametrize(
    "data", [b"", b"PAR1", b"PAR1PAR1", b"PAR1" + b"\0" * 100 + b"PAR1", b"tile,offset,bytes\n1,2,3\n"]
)
def test_files_that_are_no_parquet(data, tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "table.parquet"
    path.write_bytes(data)
    for kind in KINDS:
        with pytest.raises(TableError, match=r"table\.parquet.*Parquet"):
            kind.from_parquet(path)


def test_files_that_are_not_there(tmp_path):
    pytest.importorskip("pyarrow")
    for path in (tmp_path, tmp_path / "missing.parquet"):
        with pytest.raises(OSError, match=path.name):
            Spans.from_parquet(path)
    for path in (3, None, "zero\0"):
        with pytest.raises(FieldError, match="path"):
            Spans.from_parquet(path)


def test_small_files_of_many_rows_are_refused_before_they_are_read(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    rows = 1_000_000
    table = Spans(np.zeros(rows, np.int32), np.zeros(rows, np.int64), np.zeros(rows, np.int64))
    path = tmp_path / "table.parquet"
    table.to_parquet(path)
    assert path.stat().st_size < rows
    monkeypatch.setattr(tables, "MEMORY", rows * 20)
    with pytest.raises(SizeError, match=r"table\.parquet.*memory"):
        Spans.from_parquet(path)


def test_small_files_of_other_columns_are_refused_before_they_are_read(tmp_path, monkeypatch):
    """A file of a few bytes can say the same long text as often as it likes."""
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path, arrow = tmp_path / "table.parquet", made()[Spans].to_arrow()
    monkeypatch.setattr(parquet.ParquetFile, "read", lambda file: pytest.fail("it is read"))
    text = pa.array(["x" * 2**20] * len(arrow)).dictionary_encode()
    for other in (arrow.set_column(0, "tile", text), arrow.replace_schema_metadata(None), arrow.drop_columns("bytes")):
        parquet.write_table(other, path)
        with pytest.raises(TableError, match=r"table\.parquet: (schema|tiling\.kind)"):
            Spans.from_parquet(path)


# --- what tables are --------------------------------------------------------------------------------------------------


def test_loads_are_the_counts_own():
    count = tiling.count_copy(SOURCE, DESTINATION, device_tiles=9)
    phase = tiling.ExchangePhase([count, tiling.plan_copy(DESTINATION, SOURCE)])
    for part in (count, phase):
        loads = part.tile_loads
        assert loads.tile.tolist() == list(range(9))
        assert loads.tile.dtype == np.int32
        assert np.shares_memory(loads.sent_words, part.sent_words)
        assert np.shares_memory(loads.received_words, part.received_words)
        assert max(loads.sent_words.max(), loads.received_words.max()) == part.endpoint_lower_bound


def test_tables_are_small_and_frozen():
    for kind, table in made().items():
        assert isinstance(table, tiling.Table)
        assert not hasattr(table, "__dict__")
        assert set(kind.__slots__) == set(columns(table))
        with pytest.raises((AttributeError, TypeError)):
            table.more = 1
        assert str(len(table)) in repr(table) or len(table) == 2


WITHOUT = """
import sys
for name in ("pyarrow", "yaml", "polars", "pandas", "duckdb"):
    sys.modules[name] = None  # importing it fails
import io, numpy, tiling
spans = tiling.Spans(numpy.int32([1]), numpy.int64([2]), numpy.int64([3]))
spans.to_csv(sys.stdout)
assert len(spans.to_numpy()) == 1
for call in (spans.to_arrow, lambda: spans.to_parquet("x.parquet"), lambda: tiling.Spans.from_parquet("x.parquet"),
             spans.__arrow_c_stream__, lambda: tiling.read_type(sys.argv[1])):
    try:
        call()
    except tiling.MissingExtraError as error:
        print(error.accepted)
"""


def test_without_extras(tmp_path):
    path = tmp_path / "type.yaml"
    path.write_text("shape: [4]")
    assert engine.python(WITHOUT, path, cwd=tmp_path).splitlines() == [
        "tile,offset,bytes",
        "1,2,3",
        *["pip install 'tensor-tiling[arrow]'"] * 4,
        "pip install 'tensor-tiling[yaml]'",
    ]
    assert [p.name for p in tmp_path.iterdir()] == ["type.yaml"]


# --- types in files --------------------------------------------------------------------------------------------------

PANELS = TensorType.tiled([48, 32], F16, [AxisTiling(0, 3, block_size=16, padding="Zero")], order=Amp("TransposedLeft"))
"""The documents in `TOML` and `YAML` are this type."""
TOML = """
shape = [48, 32]
[format]
precision = "F16"
[format.layout]
order = {Amp = "TransposedLeft"}
[format.layout.tiling]
tile_count = 3
[[format.layout.tiling.axes]]
axis = {FromStart = 0}
partitions = 3
block_size = 16
padding = "Zero"
"""
YAML = """
shape: [48, 32]
format:
  precision: F16
  layout:
    order: {Amp: TransposedLeft}
    tiling:
      tile_count: 3
      axes:
        - {axis: {FromStart: 0}, partitions: 3, block_size: 16, padding: Zero}
"""
FILES = {
    "json": json.dumps(PANELS.to_json()),
    "toml": TOML,
    "yaml": YAML,
    "yml": YAML,
    "": json.dumps(PANELS.to_json()),
}


def type_file(tmp_path, form, text):
    if form in ("yaml", "yml"):
        pytest.importorskip("yaml")
    path = tmp_path / f"type.{form}".rstrip(".")
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    return path


@pytest.mark.parametrize("form", FILES)
def test_types_are_read_from_files(form, tmp_path):
    path = type_file(tmp_path, form, FILES[form])
    assert tiling.read_type(path) == tiling.read_type(str(path)) == PANELS


@given(strategies.types())
def test_yaml_types_are_the_json_types(tmp_path_factory, obj):
    yaml = pytest.importorskip("yaml")
    path = tmp_path_factory.getbasetemp() / "type.yaml"
    path.write_text(yaml.safe_dump(obj), "utf-8")
    assert tiling.read_type(path) == TensorType.from_json(obj)


@pytest.mark.parametrize("form", ["json", "toml", "yaml"])
@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("48", '"x"', r"shape\[0\]"),
        ("Amp", "Apm", "format.layout.order"),
        ("TransposedLeft", "Middle", "format.layout.order"),
        ("tile_count", "tiles", "format.layout.tiling"),
        ("FromStart", "FromMiddle", r"format.layout.tiling.axes\[0\].axis"),
        ("32", "-1", r"shape\[1\]"),
    ],
)
def test_wrong_fields_have_the_same_path_in_every_form(form, old, new, where, tmp_path):
    text = FILES[form].replace(old, new)
    assert text != FILES[form]
    path = type_file(tmp_path, form, text)
    with pytest.raises(FieldError, match=where) as raised:
        tiling.read_type(path)
    assert raised.value.where.startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("form", "text", "words"),
    [
        ("toml", "shape = [", "not TOML"),
        ("toml", "a = 1\na = 2", "not TOML"),
        ("toml", "\udcff", "not TOML"),
        ("toml", "a=" + "[" * 100_000, "not TOML"),
        ("toml", "", "shape"),
        ("yaml", "shape: [", "not YAML"),
        ("yaml", "\udcff", "not YAML"),
        ("yaml", "[" * 100_000, "not YAML"),
        ("yaml", "- " * 5_000, "not YAML"),
        ("yaml", "a: &a [1]\nb: *a", "aliases"),
        ("yaml", "x: !!timestamp x", "not YAML"),
        ("yaml", "x: !!bool x", "not YAML"),
        ("yaml", "!!python/object/apply:os.system [exit]", "not YAML"),
        ("yaml", "a: 1\n---\nb: 2", "not YAML"),
        ("yaml", "", "mapping"),
        ("yaml", json.dumps(json.dumps(PANELS.to_json())), "mapping"),
        ("yaml", "1: 2", "str"),
        ("yaml", "shape: 2001-01-01", "shape"),
        ("json", "shape: [1]", "not JSON"),
    ],
)
def test_files_that_have_no_type(form, text, words, tmp_path):
    with pytest.raises(FieldError, match=words) as raised:
        tiling.read_type(type_file(tmp_path, form, text))
    assert str(tmp_path) in raised.value.where


def test_a_few_lines_do_not_stand_for_a_billion_values(tmp_path):
    lines_ = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines_ += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
    merges = ["b0: &b0 {x: 1}"] + [f"b{i}: &b{i} {{<<: [{', '.join([f'*b{i - 1}'] * 9)}]}}" for i in range(1, 12)]
    for text in (lines_, merges):
        with pytest.raises(FieldError, match="aliases"):
            tiling.read_type(type_file(tmp_path, "yaml", "\n".join(text)))


def test_type_files_that_are_not_there(tmp_path):
    for path in (tmp_path, tmp_path / "missing.toml"):
        with pytest.raises(OSError, match=path.name):
            tiling.read_type(path)
    for path in (3, None, "zero\0"):
        with pytest.raises(FieldError, match="path"):
            tiling.read_type(path)


# --- the command -----------------------------------------------------------------------------------------------------


def run(*arguments):
    return CliRunner().invoke(main, [str(a) for a in arguments])


@pytest.fixture
def types(tmp_path):
    """The files of two types."""
    made_ = []
    for name, type in (("a.json", SOURCE), ("b.json", DESTINATION)):
        (tmp_path / name).write_text(json.dumps(type.to_json()), "utf-8")
        made_.append(tmp_path / name)
    return made_


def text(table, form):
    out = io.StringIO()
    getattr(table, f"to_{form}")(out)
    return out.getvalue()


@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_lists_in_every_format(form, types, tmp_path):
    a, b = types
    owners = tmp_path / "owners.json"
    owners.write_text('{"rotation": 3}', "utf-8")
    plan, count = tiling.plan_copy(SOURCE, DESTINATION), tiling.count_copy(SOURCE, DESTINATION)
    for arguments, want in [
        (("copy", a, b, "--list"), plan.transfers),
        (("copy", a, b, "--loads"), count.tile_loads),
        (("shards", b), tiling.enumerate_shards(DESTINATION)),
        (("shards", b, "--device-tiles", 9, "--owners", owners), tiling.enumerate_shards(DESTINATION, OwnerMap(3), 9)),
    ]:
        path = tmp_path / f"OUT.{form.upper()}"
        if form == "parquet":
            pytest.importorskip("pyarrow")
        result = run(*arguments, "-o", path)
        assert (result.exit_code, result.output) == (0, "")
        if form == "parquet":
            assert_same(type(want).from_parquet(path), want)
        else:
            assert path.read_text("utf-8") == run(*arguments, f"--{form}").stdout == text(want, form)
    assert run("copy", a, b, "--list").stdout == text(plan.transfers, "csv")


def test_reports_in_files(types, tmp_path):
    for arguments in (("copy", *types), ("report",)):
        for form in ("csv", "json"):
            path = tmp_path / f"out.{form}"
            result = run(*arguments, "--output", path)
            assert (result.exit_code, result.output) == (0, "")
            assert path.read_text("utf-8") == run(*arguments, f"--{form}").stdout
    odd = tmp_path / "odd.name"
    assert run("copy", *types, "--json", "-o", odd).exit_code == 0
    assert odd.read_text("utf-8") == run("copy", *types, "--json").stdout


def test_names_that_say_no_format(types, tmp_path):
    for arguments, name, words in [
        (("shards", types[0]), "out.txt", ".csv, .json, .parquet"),
        (("shards", types[0]), "out", ".csv, .json, .parquet"),
        (("copy", *types), "out.parquet", ".csv, .json"),
        (("report",), "out.parquet", ".csv, .json"),
    ]:
        result = run(*arguments, "-o", tmp_path / name)
        assert result.exit_code == 2
        assert result.stdout == ""
        assert result.stderr.endswith(f"accepted: {words}\n")
        assert not (tmp_path / name).exists()
    result = run("shards", types[0], "-o", tmp_path / "missing" / "out.csv")
    assert result.exit_code == 2
    assert result.stderr == f"tiling: error: {tmp_path / 'missing' / 'out.csv'}: No such file or directory\n"


def test_shards_for_people(tmp_path):
    path = tmp_path / "type.json"
    shape = TensorType.tiled([20, 8], F16, [AxisTiling(0, 3, block_size=4, shard_padding_multiple=8, padding="Zero")])
    path.write_text(json.dumps(shape.to_json()), "utf-8")
    head, totals, *rows = run("shards", path, "--device-tiles", 5).output.splitlines()
    assert head == str(shape)
    assert totals == "3 shards on 5 tiles, 384 bytes, 64 of padding; most on tile 0, 128 bytes"
    assert [row.split() for row in rows] == [
        ["shard", "tile", "axis", "0", "axis", "1", "bytes", "offset"],
        ["0", "0", "0:8", "0:8", "128", "0"],
        ["1", "1", "8:16", "0:8", "128", "0"],
        ["2", "2", "16:20+4", "0:8", "128", "0"],
    ]
    assert len({len(row) for row in rows}) == 1


@given(strategies.types())
def test_shards_of_any_type_are_shown(tmp_path_factory, obj):
    path = tmp_path_factory.getbasetemp() / "shown.json"
    path.write_text(json.dumps(obj), "utf-8")
    result = run("shards", path)
    assert result.exit_code == 0
    table = tiling.enumerate_shards(TensorType.from_json(obj))
    assert len(result.output.splitlines()) == len(table) + 3


def test_other_forms_of_types_for_the_command(types, tmp_path):
    toml = type_file(tmp_path, "toml", TOML)
    rows = json.loads(run("copy", toml, toml, "--json").output)["rows"]
    assert rows[0]["local_runs"] == 3
    bad = tmp_path / "bad.toml"
    bad.write_text(TOML.replace("48", "-1"))
    result = run("shards", bad)
    assert result.exit_code == 2
    assert "bad.toml: shape[0]" in result.stderr


# --- the document ----------------------------------------------------------------------------------------------------


def test_the_document_has_every_column():
    page = FORMATS.read_text("utf-8")
    for kind in KINDS:
        section = page.split(f"### {kind.__name__}: `{kind.KIND}`\n")[1].split("\n##")[0]
        told = dict(re.findall(r"^\| `(\w+)` \| ([\w ,()<>]+?) \|", section, re.M))
        own = {field.name: field.type.lower() for field in fields(kind)}
        left_out = {"destination_start", "tile_bytes"}
        assert list(told) == [name for name in own if name not in left_out]
        for name, dtype in told.items():
            assert own[name] in dtype


@given(strategies.copies())
def test_tables_are_equal_when_their_columns_are(case):
    one, other = (tiling.plan_copy(**engine.arguments(case)) for _ in range(2))
    assert one.transfers == other.transfers
    assert one.local == other.local
    assert one.transfers != one.local
    assert tiling.enumerate_shards(one.source) == tiling.enumerate_shards(one.source)
    if len(one.transfers):
        other.transfers.bytes[-1] += 4
        assert one.transfers != other.transfers
    with pytest.raises(TypeError, match="unhashable"):
        hash(one.transfers)
