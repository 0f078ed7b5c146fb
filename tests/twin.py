"""A second implementation of the layout rules, element by element, for tests to compare the engine with.

It shares no code and no idea with the engine: regions are sets of elements, and runs are found by looking up "all
offsets plus one element" in a dictionary. It is slow and meant to be; what matters is that each step can be checked by
reading it.

Everything here takes the JSON form: dictionaries for types, owner maps and coordinate mappings. Whatever the layout
rules forbid raises `Invalid`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

AXIS_DEFAULTS = {
    "padding_groups": 1,
    "block_size": 1,
    "shard_padding_multiple": 1,
    "padding": "Reject",
    "tile_stride": None,
}  # and padding_multiple is block_size
LARGEST = 2**63 - 1
MOST_TILES = 2**31 - 1
LONGEST_RUN = 16592  # bytes in one transfer
STAGINGS = ("none", "source", "destination", "both")
ROLES = ("Left", "TransposedLeft", "TransposedRight", "Output", "TransposedOutput")
MEMORY_CLASSES = ("Ipu21Standard", "Ipu21Interleaved")
GARBAGE = 0xAA  # what fresh memory holds in `execute`, so that a byte nobody writes shows

Coordinate = tuple[int, ...]


class Invalid(Exception):
    """The layout rules forbid this input."""


def require(condition: bool, message: str) -> None:
    if not condition:
        raise Invalid(message)


def integer(value: Any, name: str, least: int | None = None) -> int:
    require(isinstance(value, int) and not isinstance(value, bool), f"{name} must be an integer, not {value!r}")
    require(least is None or value >= least, f"{name} must be at least {least}, not {value}")
    require(abs(value) <= LARGEST, f"{name} is too large: {value}")
    return value


def fields(value: Any, name: str, needed: Sequence[str], optional: Sequence[str] = ()) -> dict:
    require(isinstance(value, dict), f"{name} must be an object, not {value!r}")
    unknown, missing = set(value) - set(needed) - set(optional), set(needed) - set(value)
    require(not unknown, f"{name} has unknown fields {sorted(unknown)}")
    require(not missing, f"{name} lacks {sorted(missing)}")
    return value


def roundup(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def points(starts: Sequence[int], ends: Sequence[int]) -> Iterable[Coordinate]:
    """Every coordinate of a box, row-major."""
    return product(*(range(a, b) for a, b in zip(starts, ends, strict=True)))


# Types


@dataclass(frozen=True)
class Type:
    """A type after all of its fields were checked, with the defaults filled in."""

    shape: Coordinate
    precision: Any
    itemsize: int
    order: Any
    tile_count: int
    replicas: int
    axes: tuple[dict, ...]  # "axis" is a number from the start, or "Linear"

    @property
    def linear(self) -> bool:
        return any(a["axis"] == "Linear" for a in self.axes)


def itemsize_of(precision: Any) -> int:
    if precision in ("F16", "F32"):
        return {"F16": 2, "F32": 4}[precision]
    fields(precision, "precision", ["F8F143"])
    fields(precision["F8F143"], "F8F143", ["scale_exponent"])
    integer(precision["F8F143"]["scale_exponent"], "scale_exponent")
    return 1


def check_order(order: Any, rank: int) -> None:
    if order == "RowMajor":
        return
    require(isinstance(order, dict) and len(order) == 1, f"unknown order {order!r}")
    if "Amp" in order:
        require(order["Amp"] in ROLES, f"unknown role {order['Amp']!r}")
    else:
        fields(order, "order", ["BlockMajor"])
        block = order["BlockMajor"]
        require(isinstance(block, dict) and len(block) == 1, f"unknown order {order!r}")
        require(set(block) <= {"Matrix", "TransposedMatrix"}, f"unknown order {order!r}")
        for sizes in block.values():
            fields(sizes, "block", ["row_block", "column_block"])
            for name, size in sizes.items():
                integer(size, name, 1)
    require(rank >= 2, f"a packed order needs rank 2 or more, not {rank}")


def read_axis(entry: Any, rank: int) -> dict:
    fields(entry, "axis tiling", ["axis", "partitions"], ["padding_multiple", *AXIS_DEFAULTS])
    full = AXIS_DEFAULTS | entry
    full.setdefault("padding_multiple", full["block_size"])
    for name in ("partitions", "padding_groups", "block_size", "padding_multiple", "shard_padding_multiple"):
        integer(full[name], name, 1)
    if full["tile_stride"] is not None:
        integer(full["tile_stride"], "tile_stride", 1)
    require(full["padding"] in ("Reject", "Zero"), f"unknown padding {full['padding']!r}")
    if full["axis"] != "Linear":
        axis = full["axis"]
        require(isinstance(axis, dict) and list(axis) in (["FromStart"], ["FromEnd"]), f"unknown axis {axis!r}")
        number = integer(*axis.values(), "axis")
        full["axis"] = number if "FromStart" in axis else rank - number
        require(0 <= full["axis"] < rank, f"axis {axis} is outside rank {rank}")
    return full


def read_type(obj: Any) -> Type:
    fields(obj, "type", ["shape", "format"])
    require(isinstance(obj["shape"], (list, tuple)), "shape must be a list")
    shape = tuple(integer(e, "extent", 0) for e in obj["shape"])
    form = fields(obj["format"], "format", ["precision", "layout"])
    layout = fields(form["layout"], "layout", ["order", "tiling", "memory_class"])
    tiling = fields(layout["tiling"], "tiling", ["tile_count", "replicas", "axes"])
    require(layout["memory_class"] in MEMORY_CLASSES, f"unknown memory class {layout['memory_class']!r}")
    itemsize = itemsize_of(form["precision"])
    check_order(layout["order"], len(shape))
    require(math.prod(shape) * itemsize <= LARGEST, "the tensor is too large")
    tile_count, replicas = integer(tiling["tile_count"], "tile_count", 1), integer(tiling["replicas"], "replicas", 1)
    require(tile_count <= MOST_TILES, f"too many tiles: {tile_count}")
    axes = tuple(read_axis(a, len(shape)) for a in tiling["axes"])
    numbers = [a["axis"] for a in axes]
    require(len(set(numbers)) == len(numbers), "an axis is tiled twice")
    require("Linear" not in numbers or len(numbers) == 1, "Linear stands alone")
    implied = replicas * math.prod(a["partitions"] for a in axes)
    require(tile_count == implied, f"tile_count is {tile_count}, but replicas times partitions is {implied}")
    return Type(shape, form["precision"], itemsize, layout["order"], tile_count, replicas, axes)


# Ownership


class Shard(NamedTuple):
    """One row of the shard table. Extents are half-open tensor coordinates; `offset` counts in the tile's buffer."""

    index: int
    ordinal: int
    tile: int
    start: Coordinate
    logical_end: Coordinate
    physical_end: Coordinate
    bytes: int
    offset: int

    @property
    def widths(self) -> Coordinate:
        return tuple(b - a for a, b in zip(self.start, self.physical_end, strict=True))

    @property
    def logical_widths(self) -> Coordinate:
        return tuple(b - a for a, b in zip(self.start, self.logical_end, strict=True))

    def logical(self) -> Iterable[Coordinate]:
        return points(self.start, self.logical_end)

    def inside(self, x: Coordinate) -> Coordinate:
        return tuple(a - b for a, b in zip(x, self.start, strict=True))


class Table(NamedTuple):
    shards: list[Shard]
    tile_bytes: list[int]


def cut_axis(axis: dict, extent: int) -> list[tuple[int, int, int]]:
    """(start, logical_end, physical_end) of each partition of one axis."""
    groups, partitions, block = axis["padding_groups"], axis["partitions"], axis["block_size"]
    require(partitions % groups == 0, f"{groups} groups don't divide {partitions} partitions")
    require(extent % groups == 0, f"{groups} groups don't divide the extent {extent}")
    require(axis["padding_multiple"] % block == 0, f"padding_multiple is not a multiple of block_size {block}")
    per_group, logical = partitions // groups, extent // groups
    padded = roundup(logical, axis["padding_multiple"])
    short, long = divmod(padded // block, per_group)
    needs_padding = padded != logical
    pieces = []
    for c in range(partitions):
        group, k = divmod(c, per_group)
        first = (k * short + min(k, long)) * block
        width = (short + (1 if k < long else 0)) * block
        allocated = roundup(width, axis["shard_padding_multiple"])
        needs_padding |= allocated != width
        start = group * logical + first
        end = group * logical + max(min(first + width, logical), first)
        require(start + allocated <= LARGEST, "a shard ends too far out")
        pieces.append((start, end, start + allocated))
    require(axis["padding"] == "Zero" or not needs_padding, f"extent {extent} needs padding, which is rejected")
    return pieces


def tile_coordinates(t: Type) -> list[tuple[int, ...]]:
    """The partition coordinates of every ordinal, in the order in which the axes are listed."""
    strides, packed = [], t.replicas
    for a in t.axes:
        strides.append(packed if a["tile_stride"] is None else a["tile_stride"])
        packed *= a["partitions"]
    found = [
        tuple(tile // s % a["partitions"] for s, a in zip(strides, t.axes, strict=True)) for tile in range(t.tile_count)
    ]
    counts = Counter(found)
    for wanted in product(*(range(a["partitions"]) for a in t.axes)):
        require(counts[wanted] == t.replicas, f"{wanted} occurs {counts[wanted]} times, not {t.replicas}")
    return found


def box_regions(t: Type) -> list[tuple[int, Any]]:
    """(ordinal, [(start, logical_end, physical_end) per tensor axis]) of every shard."""
    cuts = [cut_axis(a, t.shape[a["axis"]]) for a in t.axes]
    result = []
    for ordinal, coordinates in enumerate(tile_coordinates(t)):
        extents = [(0, e, e) for e in t.shape]
        for a, cut, c in zip(t.axes, cuts, coordinates, strict=True):
            extents[a["axis"]] = cut[c]
        result.append((ordinal, extents))
    return result


def linear_regions(t: Type) -> list[tuple[int, Any]]:
    (axis,) = t.axes
    require(len(t.shape) >= 1 and math.prod(t.shape) >= 1, "Linear needs rank 1 or more and an element")
    require(t.replicas == 1, "Linear has no replicas")
    require(axis["padding_groups"] == 1, "Linear has no groups")
    require(axis["shard_padding_multiple"] == 1, "Linear has no shard padding")
    require(axis["tile_stride"] is None, "Linear has no stride")
    elements, grain = list(points([0] * len(t.shape), t.shape)), axis["block_size"]
    require(len(elements) % grain == 0, f"{len(elements)} elements are not a multiple of the grain {grain}")
    require(len(elements) // grain >= t.tile_count, f"fewer grains than {t.tile_count} tiles")
    each, more = divmod(len(elements) // grain, t.tile_count)
    result, at = [], 0
    for ordinal in range(t.tile_count):
        count = (each + (1 if ordinal < more else 0)) * grain
        row = []
        for x in elements[at : at + count]:
            if row and x[:-1] != row[-1][:-1]:
                result.append((ordinal, row_extents(row)))
                row = []
            row.append(x)
        result.append((ordinal, row_extents(row)))
        at += count
    return result


def row_extents(row: list[Coordinate]) -> list[tuple[int, int, int]]:
    return [(a, b + 1, b + 1) for a, b in zip(row[0], row[-1], strict=True)]


def read_owners(owners: Any) -> tuple[int, list[int] | None]:
    if owners is None:
        return 0, None
    fields(owners, "owner map", ["rotation", "embedding"])
    embedding = owners["embedding"]
    if embedding is not None:
        require(isinstance(embedding, (list, tuple)), "embedding must be a list")
        embedding = [integer(tile, "embedded tile", 0) for tile in embedding]
        require(len(set(embedding)) == len(embedding), "an embedding names a tile twice")
    return integer(owners["rotation"], "rotation", 0), embedding


def count_tiles(sides: Sequence[tuple[int, Any]], device_tiles: int | None) -> int:
    """Size of the device, from (tile_count, owner map) of each tensor on it."""
    named = [tile + 1 for _, owners in sides for tile in read_owners(owners)[1] or []]
    counts = [count for count, _ in sides]
    if device_tiles is None:
        device_tiles = max(counts + named)
    integer(device_tiles, "device_tiles", 1)
    require(device_tiles <= MOST_TILES, f"too many tiles: {device_tiles}")
    require(device_tiles >= max(counts), f"a device of {device_tiles} tiles is too small")
    require(device_tiles >= max(named, default=0), "an embedding names a tile outside the device")
    return device_tiles


def device_tile(ordinal: int, tile_count: int, owners: Any, device_tiles: int) -> int:
    rotation, embedding = read_owners(owners)
    n = device_tiles if embedding is None else len(embedding)
    require(n >= tile_count, f"an embedding of {n} tiles is too short for {tile_count}")
    require(rotation < n, f"rotation {rotation} is not below {n}")
    return (ordinal + rotation) % n if embedding is None else embedding[(ordinal + rotation) % n]


def shards(type: Any, owners: Any = None, device_tiles: int | None = None) -> Table:
    """The shard table, and how many bytes each tile of the device holds."""
    t = read_type(type)
    device_tiles = count_tiles([(t.tile_count, owners)], device_tiles)
    table, tile_bytes = [], [0] * device_tiles
    for ordinal, extents in linear_regions(t) if t.linear else box_regions(t):
        tile = device_tile(ordinal, t.tile_count, owners, device_tiles)
        start, logical_end, physical_end = (tuple(e[i] for e in extents) for i in range(3))
        widths = [b - a for a, b in zip(start, physical_end, strict=True)]
        size = math.prod(widths) * t.itemsize
        if size:
            check_needs(t.order, t.itemsize, widths)
        table.append(Shard(len(table), ordinal, tile, start, logical_end, physical_end, size, tile_bytes[tile]))
        tile_bytes[tile] += size
        require(tile_bytes[tile] <= LARGEST, f"tile {tile} would hold too many bytes")
    return Table(table, tile_bytes)


# Storage

Digits = list[tuple[int, int, int]]  # (axis, divisor, count), slowest first


def block_of(order: Any) -> tuple[str, int, int]:
    ((kind, sizes),) = order["BlockMajor"].items()
    return kind, sizes["row_block"], sizes["column_block"]


def needs(order: Any, itemsize: int) -> tuple[int, int]:
    """What an order wants the last two widths of a shard to be multiples of: rows, columns."""
    L = 32 // itemsize
    if order == "RowMajor":
        return 1, 1
    if "Amp" in order:
        return {
            "Left": (1, L),
            "Output": (1, 16),
            "TransposedLeft": (L, 1),
            "TransposedOutput": (16, 1),
            "TransposedRight": (16, L),
        }[order["Amp"]]
    kind, rb, cb = block_of(order)
    require(rb % L == 0, f"the lane {L} does not divide the row block {rb}")
    return (rb, cb) if kind == "Matrix" else (cb, rb)


def check_needs(order: Any, itemsize: int, widths: Sequence[int]) -> None:
    """For the physical widths of a shard that stores anything."""
    if order != "RowMajor":
        row, column = needs(order, itemsize)
        require(
            widths[-2] % row == 0 and widths[-1] % column == 0,
            f"{order} needs rows in {row}s and columns in {column}s, not widths {list(widths)}",
        )


def digits(order: Any, itemsize: int, widths: Sequence[int]) -> Digits:
    if order == "RowMajor":
        return [(a, 1, w) for a, w in enumerate(widths)]
    L, r, c = 32 // itemsize, len(widths) - 2, len(widths) - 1
    R, C = widths[r], widths[c]
    outer = [(a, 1, w) for a, w in enumerate(widths[:r])]
    if "BlockMajor" in order:
        kind, rb, cb = block_of(order)
        if kind == "TransposedMatrix":
            r, c, R, C = c, r, C, R
        return [*outer, (r, rb, R // rb), (c, cb, C // cb), (r, L, rb // L), (c, 1, cb), (r, 1, L)]
    return {
        "Left": [(c, L, C // L), *outer, (r, 1, R), (c, 1, L)],
        "Output": [(c, 16, C // 16), *outer, (r, 1, R), (c, 2, 4), (c, 8, 2), (c, 1, 2)],
        "TransposedLeft": [*outer, (r, L, R // L), (c, 1, C), (r, 1, L)],
        "TransposedOutput": [*outer, (r, 16, R // 16), (c, 1, C), (r, 2, 4), (r, 8, 2), (r, 1, 2)],
        "TransposedRight": [*outer, (r, 16, R // 16), (c, L, C // L), (r, 1, 16), (c, 1, L)],
    }[order["Amp"]]


def place(places: Digits, x: Sequence[int]) -> int:
    """Offset in elements of a coordinate inside a shard."""
    number = 0
    for axis, divisor, count in places:
        number = number * count + x[axis] // divisor % count
    return number


def offset(order: Any, precision: Any, widths: Sequence[int], coordinate: Sequence[int]) -> int:
    """Byte offset of the element at `coordinate` inside one shard with these physical widths."""
    itemsize = itemsize_of(precision)
    check_order(order, len(widths))
    require(len(coordinate) == len(widths), f"{coordinate} has not the rank of {widths}")
    require(all(0 <= x < w for x, w in zip(coordinate, widths, strict=True)), f"{coordinate} is outside {widths}")
    check_needs(order, itemsize, widths)
    return place(digits(order, itemsize, widths), coordinate) * itemsize


class Memory:
    """Where the elements of a tensor's shards are in the buffers of their tiles, as stored or in row-major staging."""

    def __init__(self, t: Type, table: Table, staged: bool):
        self.itemsize, self.bases, self.places = t.itemsize, [], []
        self.tile_bytes = [0] * len(table.tile_bytes)
        for s in table.shards:
            widths, order = (s.logical_widths, "RowMajor") if staged else (s.widths, t.order)
            size = math.prod(widths) * t.itemsize
            self.bases.append(self.tile_bytes[s.tile])
            self.places.append(digits(order, t.itemsize, widths) if size else [])
            self.tile_bytes[s.tile] += size

    def at(self, shard: Shard, x: Coordinate) -> int:
        """Byte offset in the tile's buffer of the element at the tensor coordinate `x`."""
        return self.bases[shard.index] + place(self.places[shard.index], shard.inside(x)) * self.itemsize


# Copies


def read_mapping(mapping: Any, shape: Coordinate) -> tuple[Coordinate, Any]:
    """Offsets, and the view or None, both checked against the source's shape."""
    if mapping is None:
        mapping = {"offsets": [], "view": None}
    fields(mapping, "mapping", ["offsets", "view"])
    require(isinstance(mapping["offsets"], (list, tuple)), "offsets must be a list")
    offsets, view = tuple(integer(o, "offset") for o in mapping["offsets"]), mapping["view"]
    require(len(offsets) in (0, len(shape)), f"{len(offsets)} offsets for rank {len(shape)}")
    if view is not None:
        fields(view, "view", ["split_axis", "merge_axis", "factor", "reversed"])
        for name in ("split_axis", "merge_axis"):
            require(integer(view[name], name, 0) < len(shape), f"{name} {view[name]} is outside rank {len(shape)}")
        require(view["split_axis"] != view["merge_axis"], "split and merge are the same axis")
        require(isinstance(view["reversed"], bool), "reversed must be true or false")
        cut = view["merge_axis"] if view["reversed"] else view["split_axis"]
        factor = integer(view["factor"], "factor", 1)
        require(shape[cut] % factor == 0, f"the factor {factor} does not divide {shape[cut]}")
    return offsets or (0,) * len(shape), view


def view_shape(shape: Coordinate, view: Any) -> Coordinate:
    """Shape of what a view makes of a tensor."""
    result = list(shape)
    if view is not None:
        split, merge, factor = view["split_axis"], view["merge_axis"], view["factor"]
        shrinks, grows = (merge, split) if view["reversed"] else (split, merge)
        result[shrinks] //= factor
        result[grows] *= factor
    return tuple(result)


def through_view(v: Coordinate, view: Any, shape: Coordinate) -> Coordinate:
    """The coordinate of a tensor of this shape whose value a view shows at `v`."""
    if view is None:
        return v
    split, merge, factor = view["split_axis"], view["merge_axis"], view["factor"]
    x = list(v)
    if view["reversed"]:
        w = shape[split]
        x[split] = v[split] % w
        x[merge] = v[merge] * factor + v[split] // w
    else:
        w = shape[split] // factor
        x[split] = v[merge] % factor * w + v[split]
        x[merge] = v[merge] // factor
    return tuple(x)


def sources(
    source_shape: Sequence[int], destination_shape: Sequence[int], mapping: Any = None, outside: str = "error"
) -> dict[Coordinate, Coordinate]:
    """Destination coordinate -> source coordinate, for every destination element that has a source."""
    source_shape, destination_shape = tuple(source_shape), tuple(destination_shape)
    require(outside in ("error", "zero"), f"unknown outside {outside!r}")
    require(len(source_shape) == len(destination_shape), "source and destination differ in rank")
    offsets, view = read_mapping(mapping, source_shape)
    require(outside == "zero" or min(offsets, default=0) >= 0, f"negative offsets {offsets}")
    limits, found = view_shape(source_shape, view), {}
    for d in points([0] * len(destination_shape), destination_shape):
        v = tuple(a + b for a, b in zip(d, offsets, strict=True))
        if all(0 <= a < b for a, b in zip(v, limits, strict=True)):
            found[d] = through_view(v, view, source_shape)
        else:
            require(outside == "zero", f"the destination reads {v}, outside {limits}")
    return found


def move(
    array: Sequence[int],
    source_shape: Sequence[int],
    destination_shape: Sequence[int],
    mapping: Any = None,
    outside: str = "error",
) -> list[int]:
    """What a copy does to the tensor itself: flat row-major values to flat row-major values."""
    values = dict(zip(points([0] * len(source_shape), source_shape), array, strict=True))
    found = sources(source_shape, destination_shape, mapping, outside)
    return [values[found[d]] if d in found else 0 for d in points([0] * len(destination_shape), destination_shape)]


def lane_order(order: Any) -> str | None:
    if order == "RowMajor":
        return None
    name = order["Amp"] if "Amp" in order else block_of(order)[0]
    if name in ("Left", "TransposedRight", "TransposedMatrix"):
        return "rows"
    return "columns" if name in ("TransposedLeft", "Matrix") else None


def resolve(staging: str, a: Type, b: Type) -> str:
    require(staging in (*STAGINGS, "auto"), f"unknown staging {staging!r}")
    if staging != "auto":
        return staging
    if a.order == b.order:
        return "none"
    if lane_order(a.order) is not None and lane_order(a.order) == lane_order(b.order) and a.itemsize <= 2:
        return "none"
    if b.order == "RowMajor":
        return "source"
    return "destination" if a.order == "RowMajor" else "both"


Pair = tuple[Coordinate, Coordinate]  # source coordinate, destination coordinate


@dataclass
class Plan:
    """A copy's lists in canonical order, with what `execute` needs to carry them out."""

    source: Type
    destination: Type
    source_table: Table
    destination_table: Table
    device_tiles: int
    staging: str
    transfers: list[tuple[int, int, int, list[tuple[int, int]]]]  # source tile, source offset, bytes, [(tile, offset)]
    local: list[tuple[int, int, int, int]]  # tile, source offset, bytes, destination offset
    zero_fill: list[tuple[int, int, int]]  # tile, offset, bytes
    misaligned: int
    bytes: int
    sent_words: list[int]
    received_words: list[int]
    endpoint_lower_bound: int


def share_padding(pairs: list[Pair], s: Shard, d: Shard) -> list[Pair]:
    """The box of these pairs, longer on each axis where it ends at the logical end of both shards."""
    shift = [b - a for a, b in zip(*pairs[0], strict=True)]
    low = [min(axis) for axis in zip(*(x for x, _ in pairs), strict=True)]
    high = [max(axis) + 1 for axis in zip(*(x for x, _ in pairs), strict=True)]
    for a in range(len(high)):
        if high[a] == s.logical_end[a] and high[a] + shift[a] == d.logical_end[a]:
            high[a] += min(s.physical_end[a] - s.logical_end[a], d.physical_end[a] - d.logical_end[a])
    return [(x, tuple(a + b for a, b in zip(x, shift, strict=True))) for x in points(low, high)]


def runs(ends: dict[int, tuple[int, ...]], step: int) -> list[tuple[int, int, tuple[int, ...]]]:
    """(source offset, bytes, destination offsets) of the maximal chains in which all offsets advance by `step`."""
    result = []
    for first, at in ends.items():
        if ends.get(first - step) == tuple(e - step for e in at):
            continue  # not the first of its chain
        size = step
        while ends.get(first + size) == tuple(e + size for e in at):
            size += step
        result.append((first, size, at))
    return result


def gaps(sizes: list[int], written: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Maximal spans of the tiles' buffers that none of the (tile, offset, bytes) in `written` covers."""
    covered = [[False] * size for size in sizes]
    for tile, start, size in written:
        for i in range(start, start + size):
            covered[tile][i] = True
    result = []
    for tile, flags in enumerate(covered):
        for i, flag in enumerate(flags):
            if flag:
                continue
            if i == 0 or flags[i - 1]:
                result.append((tile, i, 0))
            result[-1] = (tile, result[-1][1], result[-1][2] + 1)
    return result


def regions(
    found: dict[Coordinate, Coordinate], source: Table, destination: Table
) -> dict[tuple[int, int], list[Pair]]:
    """(source shard, destination shard) -> the elements that the one gives to the other."""
    holders: dict[Coordinate, list[Shard]] = {}
    for s in source.shards:
        for x in s.logical():
            holders.setdefault(x, []).append(s)
    taken: dict[tuple[int, int], list[Pair]] = {}
    for d in destination.shards:
        for y in d.logical():
            if y in found:
                replicas = holders[found[y]]
                chosen = next((s for s in replicas if s.tile == d.tile), replicas[0])
                taken.setdefault((chosen.index, d.index), []).append((found[y], y))
    return taken


def words(size: int) -> int:
    return -(-size // 4)


def plan(
    source: Any,
    destination: Any,
    mapping: Any = None,
    staging: str = "auto",
    outside: str = "error",
    source_owners: Any = None,
    destination_owners: Any = None,
    device_tiles: int | None = None,
) -> Plan:
    a, b = read_type(source), read_type(destination)
    require(a.precision == b.precision, "a copy does not change precision")
    device_tiles = count_tiles([(a.tile_count, source_owners), (b.tile_count, destination_owners)], device_tiles)
    staging = resolve(staging, a, b)
    from_table, to_table = (
        shards(source, source_owners, device_tiles),
        shards(destination, destination_owners, device_tiles),
    )
    taken = regions(sources(a.shape, b.shape, mapping, outside), from_table, to_table)
    if staging == "none" and (mapping is None or mapping["view"] is None):
        taken = {
            (i, j): share_padding(pairs, from_table.shards[i], to_table.shards[j]) for (i, j), pairs in taken.items()
        }
    sending = Memory(a, from_table, staging in ("source", "both"))
    receiving = Memory(b, to_table, staging in ("destination", "both"))

    local, groups = [], {}
    for (i, j), pairs in taken.items():
        s, d = from_table.shards[i], to_table.shards[j]
        if s.tile == d.tile:
            moves = {sending.at(s, x): (receiving.at(d, y),) for x, y in pairs}
            local += [(s.tile, start, size, at) for start, size, (at,) in runs(moves, a.itemsize)]
        else:
            groups.setdefault((i, tuple(sorted(x for x, _ in pairs))), []).append((d, dict(pairs)))

    transfers = []
    for (i, elements), members in groups.items():
        s = from_table.shards[i]
        moves = {sending.at(s, x): tuple(receiving.at(d, to[x]) for d, to in members) for x in elements}
        for start, size, at in runs(moves, a.itemsize):
            for cut in range(0, size, LONGEST_RUN):
                ends = sorted((d.tile, e + cut) for (d, _), e in zip(members, at, strict=True))
                transfers.append((s.tile, start + cut, min(LONGEST_RUN, size - cut), ends))
    transfers.sort()
    local.sort()

    written = [(tile, e, size) for _, _, size, ends in transfers for tile, e in ends]
    written += [(tile, e, size) for tile, _, size, e in local]
    sent, received = [0] * device_tiles, [0] * device_tiles
    for tile, _, size, ends in transfers:
        sent[tile] += words(size)
        for end, _ in ends:
            received[end] += words(size)
    return Plan(
        a,
        b,
        from_table,
        to_table,
        device_tiles,
        staging,
        transfers,
        local,
        zero_fill=gaps(to_table.tile_bytes, written) if staging in ("none", "source") else [],
        misaligned=sum(any(n % 4 for n in (start, size, *(e for _, e in ends))) for _, start, size, ends in transfers),
        bytes=sum(size for _, _, size, _ in transfers),
        sent_words=sent,
        received_words=received,
        endpoint_lower_bound=max(sent + received),
    )


# Bytes


def flat(array: Any) -> list[int]:
    """Values of a nested list, or of anything with `tolist`, row-major."""
    if hasattr(array, "tolist"):
        array = array.tolist()
    return [v for part in array for v in flat(part)] if isinstance(array, (list, tuple)) else [array]


def pack(array: Any, type: Any, owners: Any = None, device_tiles: int | None = None) -> list[bytes]:
    """Every tile's buffer, padding zero. An element is an integer from 0 that fits the itemsize, little-endian."""
    t, table = read_type(type), shards(type, owners, device_tiles)
    flattened = flat(array)
    require(len(flattened) == math.prod(t.shape), f"{len(flattened)} values for the shape {t.shape}")
    values = dict(zip(points([0] * len(t.shape), t.shape), flattened, strict=True))
    memory, buffers = Memory(t, table, staged=False), [bytearray(n) for n in table.tile_bytes]
    for s in table.shards:
        for x in s.logical():
            at = memory.at(s, x)
            buffers[s.tile][at : at + t.itemsize] = values[x].to_bytes(t.itemsize, "little")
    return [bytes(b) for b in buffers]


def unpack(buffers: Sequence[bytes], type: Any, owners: Any = None, device_tiles: int | None = None) -> list[int]:
    """The flat row-major values, each read from the first shard that holds it."""
    t, table = read_type(type), shards(type, owners, device_tiles)
    require([len(b) for b in buffers] == table.tile_bytes, "wrong buffer sizes")
    memory, values = Memory(t, table, staged=False), {}
    for s in table.shards:
        for x in s.logical():
            at = memory.at(s, x)
            values.setdefault(x, int.from_bytes(buffers[s.tile][at : at + t.itemsize], "little"))
    return [values[x] for x in points([0] * len(t.shape), t.shape)]


def restage(table: Table, old: Memory, new: Memory, buffers: Sequence[bytes]) -> list[bytearray]:
    """Every shard's logical elements moved from one form of its tile's memory to the other, the rest zero."""
    result = [bytearray(n) for n in new.tile_bytes]
    for s in table.shards:
        for x in s.logical():
            i, j = old.at(s, x), new.at(s, x)
            result[s.tile][j : j + new.itemsize] = buffers[s.tile][i : i + old.itemsize]
    return result


def check_span(buffer: Sequence[int], start: int, size: int) -> None:
    assert 0 <= start <= start + size <= len(buffer), f"{start}, {size} is outside a buffer of {len(buffer)} bytes"


def execute(p: Plan, buffers: Sequence[bytes]) -> list[bytes]:
    """Carries a plan's lists out on the source's buffers; what nothing writes is left as garbage, not as zero."""
    require([len(b) for b in buffers] == p.source_table.tile_bytes, "wrong buffer sizes")
    stored, sent = Memory(p.source, p.source_table, False), buffers
    if p.staging in ("source", "both"):
        sent = restage(p.source_table, stored, Memory(p.source, p.source_table, True), buffers)
    staged = p.staging in ("destination", "both")
    received_in = Memory(p.destination, p.destination_table, staged)
    got = [bytearray([0 if staged else GARBAGE] * n) for n in received_in.tile_bytes]

    def carry(from_tile: int, start: int, size: int, to_tile: int, end: int) -> None:
        check_span(sent[from_tile], start, size)
        check_span(got[to_tile], end, size)
        got[to_tile][end : end + size] = sent[from_tile][start : start + size]

    for tile, start, size, end in p.local:
        carry(tile, start, size, tile, end)
    for tile, start, size, ends in p.transfers:
        for to_tile, end in ends:
            carry(tile, start, size, to_tile, end)
    for tile, start, size in p.zero_fill:
        check_span(got[tile], start, size)
        assert start + size <= len(got[tile])
        got[tile][start : start + size] = bytes(size)
    if staged:
        got = restage(p.destination_table, received_in, Memory(p.destination, p.destination_table, False), got)
    return [bytes(b) for b in got]
