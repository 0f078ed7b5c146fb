"""Pictures: what is drawn is what the engine says, by brute force; files come whole; nothing global is touched."""

import io
import json
import math
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import engine
import numpy as np
import pytest
import strategies
import twin
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from test_report import one_line_on_stderr, run, type_file

import tiling
from tiling import F16, F32, Amp, AxisTiling, BlockMajor, ExchangePhase, OwnerMap, StorageMap, TensorType, files, report

pytest.importorskip("matplotlib")

PNG = b"\x89PNG\r\n\x1a\n"
SOME = settings(max_examples=max(settings.default.max_examples // 6, 5))  # a figure takes tens of milliseconds


def named(figure, gid):
    """What has a name, in the order in which it was drawn."""
    return [artist for axes in figure.axes for artist in axes.get_children() if artist.get_gid() == gid]


def texts(figure):
    return [text.get_text() for text in figure.findobj(lambda artist: hasattr(artist, "get_text"))]


def drawn(figure):
    """Of each panel: title, owners and padding (rows, columns), and how many elements there are down and across."""
    for image in named(figure, "owners"):
        owners = np.asarray(image.get_array())
        veil = [other for other in image.axes.images if other.get_gid() == "padding"]
        padding = veil[0].get_array().filled(False) if veil else np.zeros(owners.shape, bool)
        left, right, bottom, top = image.get_extent()
        assert (left, top) == (0, 0)
        yield image.axes.get_title(), owners, padding, (bottom, right)


def lowest_owners(table, shape):
    """The lowest tile that owns each element."""
    owners = np.full(shape, 2**31 - 1)
    for tile, start, end in zip(table.tile, table.start, table.logical_end, strict=True):
        part = (..., *(slice(a, b) for a, b in zip(start, end, strict=True)))
        owners[part] = np.minimum(owners[part], tile)
    return owners


def place(title, rank):
    """The slice that a panel's title names, its first element of each axis; None if it is empty."""
    words = title.strip("[]").split(", ") if title else [":"] * rank
    starts = []
    for word in words:
        start, _, end = word.partition(":")
        if end and start == end:
            return None
        starts.append(int(start or 0))
    return starts


# --- tilings ---------------------------------------------------------------------------------------------------------


@SOME
@given(strategies.owned(), st.data())
def test_every_element_is_drawn_with_its_lowest_owner(case, data):
    type, owners = TensorType.from_json(case["type"]), case["owners"] and OwnerMap.from_json(case["owners"])
    rank, linear = type.rank, type.tiling.is_linear
    axes = None
    if rank >= 2 and not linear:
        axes = data.draw(st.none() | st.permutations(range(rank)).map(lambda p: tuple(p[:2])))
    figure = tiling.plot_tiling(type, owners, device_tiles=case["device_tiles"], axes=axes)
    table = tiling.enumerate_shards(type, owners, case["device_tiles"])
    want = lowest_owners(table, type.shape)
    panels = list(drawn(figure))
    if not want.size:
        return
    assert panels
    if linear:
        want = want.reshape(-1, type.shape[-1])
        rank, plane = 2, (0, 1)
    elif axes is not None:
        plane = axes
    else:
        cut = dict.fromkeys(range(rank), 1) | {a.axis.resolve(rank): a.partitions for a in type.tiling.axes}
        plane = sorted(sorted(range(rank), key=lambda a: (cut[a], a))[-2:])
    seen = 0
    for title, owners_drawn, padding, size in panels:
        assume(owners_drawn.shape == size)  # else there are fewer pixels than elements
        at = place(title, rank)
        if at is None:
            assert padding.all()
            continue
        seen += 1
        one = tuple(slice(None) if a in plane else at[a] for a in range(rank))
        wanted = want[one].reshape(1, -1) if rank < 2 else want[one] if plane[0] < plane[1] else want[one].T
        rows, columns = ~padding.all(axis=1), ~padding.all(axis=0)
        assert np.array_equal(owners_drawn[rows][:, columns], wanted)
        assert not padding[rows][:, columns].any()
    assert seen
    if rank <= 2:  # all that is stored is there, padding too
        volume = sum(math.prod(row) for row in (table.physical_end - table.start).tolist())
        assert type.tiling.replicas * panels[0][1].size == volume


def test_padding_has_the_tile_that_stores_it():
    type = TensorType.tiled([5, 6], F16, [AxisTiling(0, 2, shard_padding_multiple=4, padding="Zero"), AxisTiling(1, 3)])
    figure = tiling.plot_tiling(type)
    ((_, owners, padding, _),) = drawn(figure)
    by_row = [0] * 4 + [1] * 4
    assert owners.tolist() == [[a + 2 * b for b in (0, 0, 1, 1, 2, 2)] for a in by_row]
    assert padding.any(axis=1).tolist() == [False, False, False, True, False, False, True, True]
    assert "padding" in texts(figure)


def test_numbers_name_the_tiles_and_their_replicas():
    owned = tiling.plot_tiling(TensorType.tiled([4, 4], F16, {0: 2, 1: 2}), OwnerMap(0, (9, 7, 5, 3)))
    assert sorted(t.get_text() for t in named(owned, "number")) == ["3", "5", "7", "9"]
    few = tiling.plot_tiling(TensorType.tiled([4, 4], F16, {0: 2}, replicas=3))
    assert [t.get_text() for t in named(few, "number")] == ["0, 1, 2", "3, 4, 5"]
    many = tiling.plot_tiling(TensorType.tiled([4, 4], F16, {0: 2}, replicas=12))
    assert [t.get_text() for t in named(many, "number")] == ["0 +11", "12 +11"]
    assert any("each part is on 12 tiles" in text for text in texts(many))


def test_numbers_stand_on_their_tile():
    type = TensorType.linear([5, 7], F16, 6)
    figure = tiling.plot_tiling(type)
    owners = lowest_owners(tiling.enumerate_shards(type), type.shape)
    numbers = named(figure, "number")
    assert len(numbers) == 6
    for number in numbers:
        x, y = number.get_position()
        assert owners[int(y), int(x)] == int(number.get_text())


def test_numbers_are_left_out_where_there_is_no_room():
    assert not named(tiling.plot_tiling(TensorType.tiled([4608, 4608], F16, {0: 46, 1: 32})), "number")


def test_tiles_that_own_nothing_are_counted():
    figure = tiling.plot_tiling(TensorType.tiled([3, 8], F16, {0: 5, 1: 2}, replicas=2))
    assert any("8 of 20 tiles own no element" in text for text in texts(figure))


def test_large_tensors_are_sampled():
    type = TensorType.tiled([4608, 2000], F16, [AxisTiling(0, 46, block_size=16, padding="Zero"), AxisTiling(1, 32)])
    ((_, owners, padding, size),) = drawn(tiling.plot_tiling(type))
    assert size == type.shape
    assert max(owners.shape) < 1100
    at = [[(2 * k + 1) * n // (2 * count) for k in range(count)] for n, count in zip(size, owners.shape, strict=True)]
    assert np.array_equal(owners, lowest_owners(tiling.enumerate_shards(type), type.shape)[np.ix_(*at)])
    assert not padding.any()


def test_many_slices_are_evenly_chosen():
    type = TensorType.tiled([100, 4, 4], F16, {0: 100, 1: 1, 2: 1})
    figure = tiling.plot_tiling(type, axes=(1, 2))
    titles = [title for title, *_ in drawn(figure)]
    assert len(titles) == 36
    assert titles[:3] == ["[0, :, :]", "[2, :, :]", "[5, :, :]"]
    assert "36 of 100 slices are drawn" in texts(figure)
    assert len(list(drawn(tiling.plot_tiling(type)))) == 1  # across the cut axis one panel shows all


def test_ticks_are_tensor_coordinates():
    cut = AxisTiling(0, 3, shard_padding_multiple=5, padding="Zero")
    type = TensorType.tiled([10, 9], F16, [cut, AxisTiling(1, 3)])
    (image,) = named(tiling.plot_tiling(type), "owners")
    shown = [t.get_text() for t in image.axes.get_yticklabels()]
    assert shown == ["0", "4", "7", "10"]
    assert image.axes.get_yticks().tolist() == [0, 5, 10, 13]
    assert image.axes.get_xticks().tolist() == [0, 3, 6, 9]


@pytest.mark.parametrize("shape", [[], [1], [1, 1], [0], [0, 4], [4, 0, 3], [1] * 8, [2, 1, 3, 1, 2, 1, 2, 2]])
@pytest.mark.parametrize("tiles", [1, 3])
def test_any_rank_and_no_elements(shape, tiles, tmp_path):
    figure = tiling.plot_layout(TensorType.replicated(shape, F32, tiles))
    tiling.save_picture(figure, tmp_path / "a.png")
    assert bool(named(figure, "owners")) is (math.prod(shape) > 0)
    assert ("no elements" in texts(figure)) is (math.prod(shape) == 0)
    assert ("nothing stored" in texts(figure)) is (math.prod(shape) == 0)


def test_bad_arguments_of_tilings():
    box, row = TensorType.tiled([4, 4, 4], F16, {0: 2}), TensorType.replicated([4], F16, 1)
    for axes in [(0,), (0, 0), (0, 3), (-4, 0), 5]:
        with pytest.raises(tiling.FieldError, match="two different axes of 3"):
            tiling.plot_tiling(box, axes=axes)
    with pytest.raises(tiling.FieldError, match="None for rank 1"):
        tiling.plot_tiling(row, axes=(0, 1))
    with pytest.raises(tiling.FieldError, match="rows"):
        tiling.plot_tiling(TensorType.linear([4, 4], F16, 2), axes=(0, 1))
    with pytest.raises(tiling.FieldError, match="type"):
        tiling.plot_tiling("x")
    with pytest.raises(tiling.OwnerError, match="rotation"):
        tiling.plot_tiling(box, OwnerMap(2))
    with pytest.raises(tiling.SizeError, match="too many tiles"):
        tiling.plot_tiling(row, device_tiles=2**20 + 1)
    with pytest.raises(tiling.SizeError, match="too long"):
        tiling.plot_tiling(TensorType.replicated([2**51, 2], F16, 1))
    with pytest.raises(tiling.FieldError, match="shard"):
        tiling.plot_order(box, shard=2)
    with pytest.raises(tiling.FieldError, match="shard"):
        tiling.plot_order(StorageMap(tiling.ROW_MAJOR, F16, [4]), shard=1)
    assert tiling.plot_tiling(TensorType.replicated([2**50, 2**10], F16, 1))


# --- orders ----------------------------------------------------------------------------------------------------------


def path(figure):
    """The steps drawn: those that follow each other in memory, and those that jump; as pairs of (row, column)."""
    (steps,), (jumps,) = named(figure, "path"), named(figure, "jumps")
    assert np.all(np.diff(steps.get_array()) > 0)
    return tuple(
        [tuple(tuple(point[::-1]) for point in line[[0, -1]].tolist()) for line in lines.get_segments()]
        for lines in (steps, jumps)
    )


@SOME
@given(strategies.types(), st.data())
def test_the_path_visits_the_elements_in_the_order_of_memory(made, data):
    type = TensorType.from_json(made)
    table = tiling.enumerate_shards(type)
    shard = data.draw(st.integers(0, len(table) - 1))
    widths = (table.physical_end - table.start)[shard].tolist()
    logical = (table.logical_end - table.start)[shard].tolist()
    figure = tiling.plot_order(type, shard=shard)
    if not math.prod(widths):
        assert "nothing stored" in texts(figure)
        return
    axes = named(figure, "first")[0].axes
    high, wide = int(axes.get_ylim()[0]), int(axes.get_xlim()[1])
    full, used = [1, 1, *widths][-2:], [1, 1, *logical][-2:]
    if math.prod(full) <= 1024 and max(full) <= 64:
        assert [high, wide] == full
    else:
        assert high <= min(full[0], 64)
        assert wide <= min(full[1], 64)
        assert any(text.startswith(f"the first {high} x {wide} of") for text in texts(figure))
    layout = made["format"]["layout"]
    rank = len(widths)
    at = {}
    for row in range(high):
        for column in range(wide):
            point = [0] * max(rank - 2, 0) + [row, column][max(2 - rank, 0) :]
            at[twin.offset(layout["order"], made["format"]["precision"], widths, point)] = (row + 0.5, column + 0.5)
    places = sorted(at)
    steps = list(pairwise(places))
    size = type.precision.itemsize
    want = [[(at[a], at[b]) for a, b in steps if (b - a == size) is near] for near in (True, False)]
    assert path(figure) == tuple(want)
    assert any(f"shard {shard} on tile {table.tile[shard]}, " in text for text in texts(figure))
    assert named(figure, "first")[0].get_xydata().tolist() == [list(at[places[0]][::-1])]
    is_padded = used[0] < high or used[1] < wide or 0 in logical
    assert ("padding" in texts(figure)) is is_padded


def test_a_storage_map_is_drawn_like_its_shard():
    order = BlockMajor("Matrix", 16, 8)
    type = TensorType.replicated([32, 16], F16, 1, order=order)
    assert path(tiling.plot_order(type)) == path(tiling.plot_order(StorageMap(order, F16, [32, 16])))


def test_corners_show_two_of_the_largest_steps():
    for order, precision, corner in [
        (Amp("Left"), F16, (16, 32)),
        (Amp("TransposedLeft"), F32, (16, 16)),
        (Amp("TransposedRight"), tiling.F8F143(0), (32, 64)),
        (BlockMajor("Matrix", 192, 16), F16, (64, 32)),
        (tiling.ROW_MAJOR, F16, (16, 16)),
    ]:
        axes = named(tiling.plot_order(StorageMap(order, precision, [384, 384])), "first")[0].axes
        assert (axes.get_ylim()[0], axes.get_xlim()[1]) == corner


# --- traffic ---------------------------------------------------------------------------------------------------------


def check_loads(figure, phase):
    for name, words in (("sent", phase.sent_words), ("received", phase.received_words)):
        (curve,) = named(figure, name)
        heights, edges, _ = curve.get_data()
        assert heights.tolist() == words.tolist()
        assert edges.tolist() == [t - 0.5 for t in range(len(words) + 1)]
    lines = named(figure, "bound")
    assert len(lines) == 2
    for line in lines:
        assert phase.endpoint_lower_bound in {*line.get_xdata()} | {*line.get_ydata()}
    assert f"bound: {phase.endpoint_lower_bound:,} words" in texts(figure)


@SOME
@given(strategies.copies(long=0))
def test_traffic_is_the_plans(case):
    plan = tiling.plan_copy(**engine.arguments(case))
    phase = ExchangePhase([plan])
    figure = tiling.plot_traffic(plan)
    check_loads(figure, phase)
    want = np.zeros((plan.device_tiles, plan.device_tiles), int)
    for tile, _, size, ends in engine.transfers(plan):
        for end, _ in ends:
            want[tile, end] += twin.words(size)
    images = named(figure, "traffic")
    if not want.any():
        assert not images
        assert "no transfers" in texts(figure)
        return
    assert np.array_equal(images[0].get_array().filled(0), want)
    assert images[0].get_extent() == [-0.5, plan.device_tiles - 0.5, plan.device_tiles - 0.5, -0.5]


def test_a_count_gives_loads():
    rows, columns = TensorType.sharded([64, 64], F16, 0, 8), TensorType.sharded([64, 64], F16, 1, 8)
    count, plan = tiling.count_copy(rows, columns), tiling.plan_copy(rows, columns)
    for figure in (tiling.plot_traffic(count), tiling.plot_loads(count), tiling.plot_loads(plan)):
        check_loads(figure, ExchangePhase([count]))
        assert not named(figure, "traffic")
        assert "sent: most on tile 0, 224 words" in texts(figure)


def test_the_example_is_binned_and_complete():
    phases = [ExchangePhase(copy.plan() for copy in phase.copies) for phase in report.example_cases().graphs[0][1]]
    figure = tiling.plot_traffic(phases, [f"phase {k}" for k in range(6)])
    images = named(figure, "traffic")
    assert len(images) == 6
    for phase, image in zip(phases, images, strict=True):
        source, destination, words = phase.traffic
        matrix = image.get_array().filled(0)
        want = np.zeros(matrix.shape, int)
        np.add.at(want, (source // 3, destination // 3), words)
        assert np.array_equal(matrix, want)
        assert want.sum() == words.sum() == phase.received_words.sum()
    for name in ("sent", "received"):
        for phase, curve in zip(phases, named(figure, name), strict=True):
            words = getattr(phase, f"{name}_words")
            assert curve.get_data()[0].tolist() == [words[k : k + 3].max() for k in range(0, 1472, 3)]
    assert {"phase 0", "phase 5", "164,610 transfers, 49,317,120 bytes, bound 9,600 words"} <= set(texts(figure))


def test_bad_arguments_of_traffic():
    one = TensorType.replicated([4], F16, 1)
    plan = tiling.plan_copy(one, one)
    with pytest.raises(tiling.FieldError, match=r"parts\[1\]"):
        tiling.plot_traffic([plan, one])
    for parts in ([], [plan] * 13):
        with pytest.raises(tiling.FieldError, match="1 to 12"):
            tiling.plot_loads(parts)
    with pytest.raises(tiling.FieldError, match="titles"):
        tiling.plot_traffic([plan], ["a", "b"])
    with pytest.raises(tiling.SizeError, match="too many tiles"):
        tiling.plot_traffic(tiling.plan_copy(one, one, device_tiles=2**20 + 1))
    assert tiling.plot_traffic(ExchangePhase([]))


# --- files and the command -------------------------------------------------------------------------------------------


def is_png(file):
    data = file.read_bytes()
    return data.startswith(PNG) and data[-8:-4] == b"IEND" and len(data) > 5000


def test_show(tmp_path):
    file = type_file(tmp_path / "t.json", TensorType.tiled([64, 48], F16, {0: 4, 1: 2}, order=Amp("TransposedLeft")))
    owners = tmp_path / "o.json"
    owners.write_text(json.dumps(OwnerMap(3).to_json()), "utf-8")
    out = tmp_path / "a.png"
    sizes = set()
    for more in (
        [],
        ["--tiling", "--axes", "1,0"],
        ["--order", "--shard", "7"],
        ["--owners", owners, "--device-tiles", "20"],
    ):
        result = run("show", file, "-o", out, *more)
        assert (result.exit_code, result.output) == (0, f"{out}: {out.stat().st_size:,} bytes\n")
        assert is_png(out)
        sizes.add(out.stat().st_size)
        out.unlink()
    assert len(sizes) == 4
    svg = tmp_path / "a.SVG"
    assert run("show", file, "--output", svg).exit_code == 0
    root = ElementTree.fromstring(svg.read_text("utf-8"))
    assert root.tag.endswith("svg")
    assert {"owners", "path", "number"} <= {element.get("id") for element in root.iter()}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.SVG", "o.json", "t.json"]


def test_traffic(tmp_path, monkeypatch):
    asked = []
    real = report.CopyCase.plan
    monkeypatch.setattr(report.CopyCase, "plan", lambda case: asked.append(case.name) or real(case))
    out = tmp_path / "a.png"
    assert run("traffic", "-o", out).output.endswith(" bytes, phase 0\n")  # the highest bound
    assert is_png(out)
    assert asked == [copy.name for copy in report.example_cases().graphs[0][1][0].copies]
    facts = json.loads(run("traffic", "-o", tmp_path / "b.svg", "--phase", "4", "--phase", "1", "--json").output)
    size = (tmp_path / "b.svg").stat().st_size
    assert facts == {"output": f"{tmp_path / 'b.svg'}", "bytes": size, "phases": ["phase 4", "phase 1"]}
    assert run("traffic", "-o", tmp_path / "c.pdf", "--all").output.count("phase") == 6
    assert (tmp_path / "c.pdf").read_bytes().startswith(b"%PDF")


def test_traffic_of_a_log(tmp_path):
    log = Path(__file__).parent / "data" / "logs" / "lines.log"
    out = tmp_path / "a.png"
    result = run("traffic", log, "-o", out)
    assert result.exit_code == 0
    assert "bytes, phase 0: graph " in result.output
    assert is_png(out)


def test_errors_are_one_line_and_leave_no_file(tmp_path):
    file = type_file(tmp_path / "t.json", TensorType.tiled([8, 4], F16, {0: 4}))
    (tmp_path / "d.png").mkdir()
    empty = tmp_path / "empty.log"
    empty.write_text("2026-03-01T08:00:00Z INFO nothing\n")
    before = sorted(tmp_path.rglob("*"))
    out = tmp_path / "a.png"
    one_line_on_stderr(run("show", file, "-o", tmp_path / "a.pict"), "a.pict", ".png", ".svg")
    one_line_on_stderr(run("traffic", "-o", tmp_path / "a"), "a'", ".png", ".svg")
    one_line_on_stderr(run("show", tmp_path / "none.json", "-o", out), "none.json", "No such file")
    one_line_on_stderr(run("show", file, "-o", out, "--shard", "4"), "shard", "0 to 3")
    one_line_on_stderr(run("show", file, "-o", out, "--axes", "0,2"), "axes")
    one_line_on_stderr(run("show", file, "-o", out, "--axes", "x"), "--axes")
    one_line_on_stderr(run("show", file, "-o", out, "--owners", file), "t.json")
    one_line_on_stderr(
        run("show", file, "-o", tmp_path / "none" / "a.png"), f"{tmp_path / 'none' / 'a.png'}: No such file"
    )
    one_line_on_stderr(run("show", file, "-o", tmp_path / "d.png"), f"{tmp_path / 'd.png'}: Is a directory")
    one_line_on_stderr(run("traffic", "-o", out, "--phase", "6"), "--phase", "0 to 5")
    one_line_on_stderr(run("traffic", "-o", out, *["--phase", "1"] * 13), "1 to 12")
    one_line_on_stderr(run("traffic", empty, "-o", out), "empty.log")
    assert run("show", file).exit_code == 2
    assert sorted(tmp_path.rglob("*")) == before


def test_what_was_there_stays_when_writing_fails(tmp_path, monkeypatch):
    out = tmp_path / "a.png"
    out.write_bytes(b"old")
    file = type_file(tmp_path / "t.json", TensorType.tiled([8, 4], F16, {0: 4}))

    def full(part, target):
        raise OSError(28, "No space left on device", str(part))

    monkeypatch.setattr("tiling.files.os.replace", full)
    one_line_on_stderr(run("show", file, "-o", out), f"{out}: No space left")
    monkeypatch.undo()
    assert out.read_bytes() == b"old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.png", "t.json"]


def test_links_are_written_through(tmp_path):
    (tmp_path / "far").mkdir()
    link = tmp_path / "link.png"
    link.symlink_to(tmp_path / "far" / "a.png")
    files.write_whole(link, b"new")
    assert link.is_symlink()
    assert (tmp_path / "far" / "a.png").read_bytes() == b"new"


def test_without_matplotlib(tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    one = TensorType.replicated([4], F16, 1)
    for draw in (tiling.plot_tiling, tiling.plot_order, tiling.plot_layout):
        with pytest.raises(tiling.MissingExtraError, match=r"pip install 'tensor-tiling\[plot\]'"):
            draw(one)
    with pytest.raises(tiling.MissingExtraError):
        tiling.plot_traffic(tiling.plan_copy(one, one))
    one_line_on_stderr(run("traffic", "-o", tmp_path / "a.png"), "matplotlib", "tensor-tiling[plot]")


def test_nothing_global_is_touched(tmp_path):
    code = """
import sys, tiling, tiling.cli
assert "matplotlib" not in sys.modules
one = tiling.TensorType.tiled([8, 4], tiling.F16, {0: 4})
import matplotlib
settings = lambda: {name: matplotlib.rcParams[name] for name in matplotlib.rcParams if name != "backend"}
before = settings()
tiling.save_picture(tiling.plot_layout(one), sys.argv[1])
assert "matplotlib.pyplot" not in sys.modules
assert settings() == before
"""
    engine.python(code, tmp_path / "a.png")


def test_pictures_can_be_made_on_threads():
    types = [TensorType.tiled([48, 32], F16, {0: 1 + k}) for k in range(4)]

    def picture(type):
        out = io.BytesIO()
        tiling.plot_tiling(type).savefig(out, format="png")
        return out.getvalue()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(picture, types)) == [picture(type) for type in types]
