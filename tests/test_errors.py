"""Bad input: each kind raises its error, which says where, what was given, and what would be accepted."""

import numpy as np
import pytest

import tiling
from tiling import F16, F32, LINEAR, Amp, AxisTiling, AxisView, BlockMajor, CoordinateMapping, OwnerMap, TensorType

whole = TensorType.replicated


def tiled(shape, *cuts, tile_count=None, order=tiling.ROW_MAJOR, replicas=1, precision=F16):
    return TensorType.tiled(shape, precision, cuts, order=order, replicas=replicas, tile_count=tile_count)


def raises(kind, *words):
    """The error is a LayoutError of this kind, and its message has all the words."""
    assert issubclass(kind, tiling.LayoutError)
    return pytest.raises(kind, match="".join(f"(?=.*{word})" for word in words) or None)


# Fields


@pytest.mark.parametrize(
    "field", ["partitions", "padding_groups", "block_size", "padding_multiple", "shard_padding_multiple"]
)
@pytest.mark.parametrize("value", [0, -3, 1.5, True, "two", 2**70])
def test_counts_are_positive_integers(field, value):
    with raises(tiling.FieldError, field, "accepted: integers from 1"):
        AxisTiling(**{"axis": 0, "partitions": 2, field: value})


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: AxisTiling("rows", 2), ["axis", "rows"]),
        (lambda: AxisTiling(0, 2, padding="Maybe"), ["padding", "Maybe", "Reject, Zero"]),
        (lambda: AxisTiling(0, 2, tile_stride=0), ["tile_stride", "0"]),
        (lambda: tiling.TensorTiling(0), ["tile_count", "0"]),
        (lambda: tiling.TensorTiling(4, 2, (3,)), [r"axes\[0\]", "AxisTiling"]),
        (lambda: tiling.TensorTiling(2**31), ["tile_count", r"2\^31-1"]),
        (lambda: tiling.Precision("F64"), ["precision", "F64", "F16, F32"]),
        (lambda: tiling.Precision("F16", 3), ["scale_exponent", "3"]),
        (lambda: tiling.F8F143("x"), ["scale_exponent"]),
        (lambda: Amp("Right"), ["Amp", "Right", "TransposedRight"]),
        (lambda: BlockMajor("Matrix", 0, 16), ["row_block", "0"]),
        (lambda: tiling.ElementOrder("RowMajor", 4), ["order"]),
        (lambda: whole([4, -1], F16, 1), [r"shape\[1\]", "-1"]),
        (lambda: TensorType("shape", None), ["shape"]),
        (lambda: whole([4], "F16", 1), ["precision", "Precision"]),
        (lambda: tiling.Layout(tiling.ROW_MAJOR, tiling.TensorTiling(1), "Ram"), ["memory_class", "Ram"]),
        (lambda: OwnerMap(-1), ["rotation", "-1"]),
        (lambda: OwnerMap(0, [0, -2]), [r"embedding\[1\]", "-2"]),
        (lambda: AxisView(0, 0, 2), ["merge_axis", "split_axis"]),
        (lambda: AxisView(0, 1, 0), ["factor", "0"]),
        (lambda: AxisView(0, 1, 2, "yes"), ["reversed", "yes"]),
        (lambda: CoordinateMapping([0.5]), [r"offsets\[0\]", "0.5"]),
        (lambda: tiling.TensorAxis("FromEnd", 0), ["FromEnd", "0"]),
        (lambda: tiling.TensorAxis("Linear", 1), ["Linear"]),
    ],
)
def test_fields_say_what_they_take(make, words):
    with raises(tiling.FieldError, *words):
        make()


def test_values_are_frozen():
    type = whole([4], F16, 1)
    with pytest.raises(AttributeError):
        type.shape = (5,)
    with pytest.raises(AttributeError):
        type.precision.name = "F32"


# JSON


def changed(path, value):
    obj = tiled([6, 4], AxisTiling(0, 3, padding="Zero"), order=tiling.ROW_MAJOR).to_json()
    at = obj
    for key in path[:-1]:
        at = at[key]
    if value is None:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return obj


AXIS = ("format", "layout", "tiling", "axes", 0)


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ((*AXIS, "partitions"), 0, [r"format.layout.tiling.axes\[0\].partitions", "0"]),
        ((*AXIS, "partitions"), "3", [r"axes\[0\].partitions", "int", "str"]),
        ((*AXIS, "partitions"), None, [r"axes\[0\]", "missing", "partitions"]),
        ((*AXIS, "colour"), 1, [r"axes\[0\]", "unknown field", "colour"]),
        ((*AXIS, "axis"), {"FromMiddle": 1}, [r"axes\[0\].axis", "FromMiddle", "FromStart, FromEnd"]),
        ((*AXIS, "axis"), {"FromStart": 0, "FromEnd": 1}, [r"axes\[0\].axis", 'FromEnd": 1}, "Linear"']),
        ((*AXIS, "padding"), "Wrap", [r"axes\[0\].padding", "Wrap"]),
        (("format", "precision"), {"F8F143": {}}, ["format.precision", "scale_exponent"]),
        (("format", "precision"), "F8F143", ["format.precision", "F8F143"]),
        (("format", "layout", "order"), {"Amp": "Middle"}, ["format.layout.order", "Middle"]),
        (
            ("format", "layout", "order"),
            {"BlockMajor": {"Matrix": {"row_block": 16}}},
            ["layout.order", "column_block"],
        ),
        (("format", "layout", "memory_class"), "Ram", ["memory_class", "Ram"]),
        (("shape",), [4, "x"], [r"shape\[1\]", "int"]),
        (("shape",), [4, -1], [r"shape\[1\]", "-1"]),
        (("shape",), {"0": 4}, ["shape", "array"]),
    ],
)
def test_json_names_the_path(path, value, words):
    with raises(tiling.FieldError, *words):
        TensorType.from_json(changed(path, value))


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "NaN", '{"shape": [1e400]}', "[" * 100_000, b"\xff\xfe", '"\ud800"']
)
def test_text_that_is_no_type(text):
    with raises(tiling.FieldError):
        TensorType.from_json(text)


# Tilings


@pytest.mark.parametrize(
    ("type", "words"),
    [
        (tiled([6, 4], AxisTiling(2, 2)), [r"axes\[0\].axis", "rank 2", "FromStart 0 to 1"]),
        (tiled([6, 4], AxisTiling(-3, 2)), [r"axes\[0\].axis", "-3"]),
        (tiled([], AxisTiling(0, 1)), [r"axes\[0\].axis", "rank 0"]),
        (tiled([6, 4], AxisTiling(0, 2), AxisTiling(-2, 2)), [r"axes\[1\].axis", "tiled twice"]),
        (tiled([6, 4], AxisTiling(0, 2), AxisTiling(LINEAR, 2)), ["Linear", "alone"]),
        (tiled([6, 4], AxisTiling(0, 3), tile_count=4), ["tile_count", "got 4", "accepted: 3"]),
        (tiled([6, 4], AxisTiling(0, 2, tile_stride=4), AxisTiling(1, 2, tile_stride=4)), ["stride", "replicas"]),
        (tiled([6, 4], AxisTiling(0, 3, tile_stride=3)), ["stride", r"\[3\]"]),
        (tiled([10], AxisTiling(0, 2, block_size=4)), ["padding from 10 to 12", "Reject"]),
        (tiled([12], AxisTiling(0, 2, shard_padding_multiple=4)), ["partition 0", "Reject", "shard_padding_multiple"]),
        (tiled([10], AxisTiling(0, 4, padding_groups=3)), ["padding_groups", "divisors of 4"]),
        (tiled([10], AxisTiling(0, 3, padding_groups=3)), ["padding_groups", "divisors of 10"]),
        (tiled([12], AxisTiling(0, 2, block_size=4, padding_multiple=6)), ["padding_multiple", "block_size 4"]),
        (tiled([12], AxisTiling(LINEAR, 5, block_size=5)), ["block_size", "12 elements", "divisors of 12"]),
        (tiled([12], AxisTiling(LINEAR, 5, block_size=4)), ["grains", "at most 3"]),
        (tiled([12], AxisTiling(LINEAR, 2, padding_groups=2)), ["padding_groups", "accepted: 1"]),
        (tiled([12], AxisTiling(LINEAR, 2, shard_padding_multiple=2)), ["shard_padding_multiple"]),
        (tiled([12], AxisTiling(LINEAR, 2, tile_stride=1)), ["tile_stride"]),
        (tiled([12], AxisTiling(LINEAR, 2), replicas=2), ["replicas"]),
        (tiled([12], AxisTiling(LINEAR, 2), tile_count=3), ["tile_count", "accepted: 2"]),
        (tiled([0], AxisTiling(LINEAR, 1)), ["Linear", "at least one element"]),
        (tiled([], AxisTiling(LINEAR, 1)), ["Linear", "rank 1"]),
    ],
)
def test_tilings_that_do_not_fit(type, words):
    with raises(tiling.TilingError, *words):
        tiling.enumerate_shards(type)


@pytest.mark.parametrize(
    ("type", "words"),
    [
        (tiled([16], order=Amp("Left")), ["rank 2"]),
        (tiled([3, 40], order=Amp("Left")), ["columns", "multiples of 16", r"widths \[3, 40\]"]),
        (tiled([3, 40], order=Amp("Left"), precision=F32), []),
        (tiled([40, 3], order=Amp("TransposedLeft")), ["rows", "multiples of 16"]),
        (tiled([40, 32], order=Amp("TransposedRight")), ["rows", "multiples of 16", r"\[40, 32\]"]),
        (tiled([32, 24], order=Amp("Output")), ["columns", "multiples of 16"]),
        (tiled([32, 32], order=BlockMajor("Matrix", 16, 24)), ["columns", "multiples of 24"]),
        (tiled([32, 32], order=BlockMajor("TransposedMatrix", 24, 16)), ["columns", "multiples of 24"]),
        (tiled([24, 32], order=BlockMajor("Matrix", 8, 16)), ["row_block", "lane", "multiples of 16"]),
        (tiled([5, 32], AxisTiling(LINEAR, 5, block_size=8), order=Amp("Left")), []),
        (tiled([5, 24], AxisTiling(LINEAR, 5, block_size=8), order=Amp("Left")), ["multiples of 16", r"\[1, 24\]"]),
    ],
)
def test_orders_name_the_shard(type, words):
    if not words:
        assert len(tiling.enumerate_shards(type))
        return
    with raises(tiling.OrderError, *words):
        tiling.enumerate_shards(type)


@pytest.mark.parametrize(
    ("type", "words"),
    [
        (tiled([2**40, 2**40]), ["shape", r"2\^63-1 bytes"]),
        (tiled([2**62], precision=F32), ["shape"]),
        (tiled([1] * 33), ["rank", "32"]),
        (tiled([2**40], AxisTiling(0, 2, padding_multiple=2**62, padding="Zero")), [r"axes\[0\]", "too long"]),
        (
            tiled(
                [1, 1],
                AxisTiling(0, 1, shard_padding_multiple=2**60, padding="Zero"),
                AxisTiling(1, 1, shard_padding_multiple=2**60, padding="Zero"),
            ),
            ["shard is too large"],
        ),
        (tiled([2**40, 1], AxisTiling(LINEAR, 2)), ["list", r"2\^31-1"]),
    ],
)
def test_sizes_that_do_not_fit(type, words):
    with raises(tiling.SizeError, *words):
        tiling.enumerate_shards(type)


# Owner maps and devices


@pytest.mark.parametrize(
    ("owners", "device_tiles", "words"),
    [
        (OwnerMap(8), 8, ["rotation", "8", "0 to 7"]),
        (OwnerMap(3, (0, 1, 2)), 8, ["fewer entries", "at least 4"]),
        (OwnerMap(4, (0, 1, 2, 3)), 8, ["rotation", "0 to 3"]),
        (OwnerMap(0, (0, 1, 2, 2)), 8, ["twice"]),
        (OwnerMap(0, (0, 1, 2, 9)), 8, ["embedding", "9", "0 to 7"]),
        (None, 3, ["device_tiles", "3", "4 to"]),
    ],
)
def test_owner_maps_that_do_not_fit(owners, device_tiles, words):
    four = tiled([8], AxisTiling(0, 4))
    with raises(tiling.OwnerError, *words):
        tiling.enumerate_shards(four, owners, device_tiles)
    where = "destination_owners" if owners is not None else "device_tiles"
    with raises(tiling.OwnerError, where):
        tiling.plan_copy(four, four, destination_owners=owners, device_tiles=device_tiles)


# Copies


@pytest.mark.parametrize(
    ("source", "destination", "more", "words"),
    [
        (whole([4], F16, 1), whole([4], F32, 1), {}, ["precision", "F32", "F16"]),
        (whole([4], tiling.F8F143(1), 1), whole([4], tiling.F8F143(2), 1), {}, ["precision"]),
        (whole([4], F16, 1), whole([2, 2], F16, 1), {}, ["ranks", "rank 1"]),
        (whole([4], F16, 1), whole([5], F16, 1), {}, ["axis 0", "0 to 5", "outside"]),
        (whole([4], F16, 1), whole([2], F16, 1), {"mapping": CoordinateMapping([3])}, [r"offsets\[0\]", "3", "0 to 2"]),
        (whole([4], F16, 1), whole([2], F16, 1), {"mapping": CoordinateMapping([-1])}, [r"offsets\[0\]", "-1"]),
        (whole([4], F16, 1), whole([2], F16, 1), {"mapping": CoordinateMapping([0, 0])}, ["offsets", "1"]),
        (
            whole([4, 6], F16, 1),
            whole([4, 6], F16, 1),
            {"mapping": CoordinateMapping((), AxisView(2, 0, 2))},
            ["split_axis", "2"],
        ),
        (
            whole([4, 6], F16, 1),
            whole([4, 6], F16, 1),
            {"mapping": CoordinateMapping((), AxisView(1, 0, 4))},
            ["factor", "of 6"],
        ),
    ],
)
def test_copies_that_do_not_go_together(source, destination, more, words):
    with raises(tiling.CopyError, *words):
        tiling.plan_copy(source, destination, **more)
    with raises(tiling.CopyError, *words):
        tiling.count_copy(source, destination, **more)


@pytest.mark.parametrize(
    ("name", "value"), [("staging", "both sides"), ("outside", "wrap"), ("mapping", (1, 2)), ("source_owners", 3)]
)
def test_arguments_of_the_wrong_kind(name, value):
    four = whole([4], F16, 1)
    with raises(tiling.FieldError, name):
        tiling.plan_copy(four, four, **{name: value})
    with raises(tiling.FieldError, "source", "TensorType"):
        tiling.plan_copy("four", four)


def test_numbers_of_the_wrong_kind():
    four = whole([4], F16, 1)
    for value in ("8", 0, -1, 2.0, 2**31):
        with raises(tiling.FieldError, "device_tiles"):
            tiling.count_copy(four, four, device_tiles=value)
        with raises(tiling.FieldError, "device_tiles"):
            tiling.enumerate_shards(four, device_tiles=value)
    with raises(tiling.FieldError, "max_transfers", "-1"):
        tiling.plan_copy(four, four, max_transfers=-1)
    with raises(tiling.FieldError, r"pairs\[0\]", "not a pair"):
        tiling.count_copies([four])


def test_alignment_names_the_first():
    source, destination = tiled([6], AxisTiling(0, 2)), tiled([6], AxisTiling(0, 3))
    with raises(tiling.AlignmentError, "2 transfers", "from tile 0 offset 4 to tile 1 offset 0, 2 bytes"):
        tiling.plan_copy(source, destination, require_aligned=True)
    assert tiling.count_copy(source, destination).misaligned == 2


def test_max_transfers_gives_the_exact_count():
    source, destination = tiled([64, 64], AxisTiling(0, 64)), tiled([64, 64], AxisTiling(1, 64))
    with raises(tiling.TooManyTransfersError, "max_transfers", "4032", "at most 4031"):
        tiling.plan_copy(source, destination, max_transfers=4031)
    assert len(tiling.plan_copy(source, destination, max_transfers=4032).transfers) == 4032


# Storage maps


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda m: m.offset([[0, 32]]), ["coordinates", r"\[0, 32\]"]),
        (lambda m: m.offset([[0, 1], [-1, 0]]), [r"coordinates\[1\]"]),
        (lambda m: m.offset([[0, 1, 2]]), ["columns", r"\(n, 2\)"]),
        (lambda m: m.offset([0, 1]), ["2 dimensions"]),
        (lambda m: m.offset([[0.0, 1.0]]), ["float64", "int64"]),
        (lambda m: m.offset(np.zeros((1, 2), np.uint64)), ["uint64"]),
        (lambda m: m.coordinate([1]), ["offsets", "multiples of 2"]),
        (lambda m: m.coordinate([1024]), ["offsets", "below 1024"]),
        (lambda m: m.coordinate([-2]), ["offsets"]),
        (lambda m: m.spans([0], [1]), ["rank"]),
        (lambda m: m.spans([0, 4], [1, 2]), ["box"]),
        (lambda m: m.spans([0, 0], [1, 64]), ["box"]),
    ],
)
def test_storage_maps_check_what_they_get(call, words):
    with raises(tiling.BufferShapeError, *words):
        call(tiling.StorageMap(Amp("Left"), F16, [16, 32]))


def test_faces_check_the_kinds_they_get():
    for call in (
        lambda: tiling.enumerate_shards("type"),
        lambda: tiling.enumerate_shards(whole([4], F16, 1), owners=(0, 1)),
        lambda: tiling.StorageMap("RowMajor", F16, [4]),
        lambda: tiling.StorageMap(tiling.ROW_MAJOR, "F16", [4]),
    ):
        with raises(tiling.FieldError, "accepted"):
            call()


def test_storage_maps_check_their_widths():
    with raises(tiling.OrderError, "widths", "columns of 16"):
        tiling.StorageMap(Amp("Left"), F16, [16, 24])
    with raises(tiling.SizeError, "widths"):
        tiling.StorageMap(tiling.ROW_MAJOR, F16, [-1, 4])
    with raises(tiling.SizeError, "widths"):
        tiling.StorageMap(tiling.ROW_MAJOR, F16, [2**40, 2**40])


# Phases


def test_phases_take_copies():
    with raises(tiling.CopyError, r"parts\[0\]", "CopyPlan"):
        tiling.ExchangePhase(["copy"])
    count = tiling.count_copy(whole([4], F16, 1), whole([4], F16, 2))
    with raises(tiling.CopyError, r"parts\[0\]", "no list"):
        tiling.ExchangePhase([count]).traffic  # noqa: B018
