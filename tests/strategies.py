"""Hypothesis strategies for types, owner maps and copies in JSON form, nearly all of them legal by construction.

Shapes come first and are shared between both sides of a copy; each side's axis tilings are then chosen so that its
order's needs are met. Sizes are such that the twin takes milliseconds, but for a few copies with runs longer than one
transfer.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import product

import twin
from hypothesis import reject
from hypothesis import strategies as st

PRECISIONS = ["F16", "F32", {"F8F143": {"scale_exponent": -4}}]
MEMORY_CLASSES = ["Ipu21Standard", "Ipu21Interleaved"]
KINDS = ["RowMajor", "Matrix", "TransposedMatrix", *twin.ROLES]
LANE_FAMILIES = [["Left", "TransposedRight", "TransposedMatrix"], ["TransposedLeft", "Matrix"]]
MOST_ELEMENTS = 1500  # of a tensor
MOST_STORED = 16000  # of all of its shards together, padding and replicas included
INNER_EXTENTS = (16, 1, 2, 3, 5, 7, 8, 12, 16, 17, 24, 30, 32, 32, 33, 40, 45, 48, 48, 64, 64, 96)
MOST_OUTER = 12  # matrices in one tensor, as a packed order may pad each of them a lot
OUTER_EXTENTS = (2, 1, 2, 3, 4, 5, 6)


def pick(draw, *options):
    return draw(st.sampled_from(options))


def chance(draw, percent: int) -> bool:
    return draw(st.integers(0, 99)) >= 100 - percent  # so that shrinking goes to False


precisions = st.sampled_from(PRECISIONS)


@st.composite
def shapes(draw, least_rank: int = 0, most_rank: int = 4, most: int = MOST_ELEMENTS) -> list[int]:
    rank = pick(draw, *(r for r in (2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 1, 1, 4, 4, 0) if least_rank <= r <= most_rank))
    shape, left = [], most
    for axis in range(rank):
        outer = axis < rank - 2
        room = min(left, MOST_OUTER // math.prod(shape)) if outer else left
        shape.append(pick(draw, *(s for s in (OUTER_EXTENTS if outer else INNER_EXTENTS) if s <= room)))
        left //= shape[-1]
    if rank and chance(draw, 3):
        shape[draw(st.integers(0, rank - 1))] = 0
    return shape


# Orders


def block_major(kind: str, row_block: int, column_block: int) -> dict:
    return {"BlockMajor": {kind: {"row_block": row_block, "column_block": column_block}}}


@st.composite
def orders(draw, precision, kinds=KINDS, column_blocks=(1, 2, 4, 8, 16)):
    """Any of the orders named in `kinds`; a row block is one lane or two, so that small tensors are enough."""
    kind = pick(draw, *kinds)
    if kind == "RowMajor":
        return kind
    if kind in twin.ROLES:
        return {"Amp": kind}
    lane = 32 // twin.itemsize_of(precision)
    return block_major(kind, lane * pick(draw, 1, 1, 2), pick(draw, *column_blocks))


# Tilings


@st.composite
def axis_tilings(draw, axis: int, rank: int, extent: int, need: int, most: int, exactly: int | None = None) -> dict:
    """A tiling of one axis in at most `most` partitions (or `exactly` so many); `need` divides the physical widths."""
    groups, partitions = 1, exactly
    if exactly is None:
        groups = pick(draw, 1, 1, 1, *(g for g in (2, 3, 4) if extent % g == 0 and g <= most))
        few = 2 if most // groups >= 2 and chance(draw, 75) else 1
        partitions = groups * draw(st.integers(few, most // groups))
    if need == 1:
        block = pick(draw, 1, 1, 1, 2, 3, 4, 5, 8)
        shard_multiple = pick(draw, 1, 1, 1, 2, 3, 4, 8)
    elif chance(draw, 70):  # blocks meet the need
        block = need * pick(draw, 1, 1, 2)
        shard_multiple = pick(draw, 1, 1, need, 2 * need)
    else:  # shard padding meets it
        block = pick(draw, 1, 1, 2, 3, 4, 7)
        shard_multiple = need * pick(draw, 1, 1, 2)
    entry = {
        "axis": {"FromStart": axis} if draw(st.booleans()) else {"FromEnd": rank - axis},
        "partitions": partitions,
        "padding_groups": groups,
        "block_size": block,
        "padding_multiple": block * pick(draw, 1, 1, 1, 2, 3),
        "shard_padding_multiple": shard_multiple,
        "padding": "Reject",
        "tile_stride": None,
    }
    if not pads_nothing(entry, extent) or draw(st.booleans()):
        entry["padding"] = "Zero"
    return entry


def pads_nothing(entry: dict, extent: int) -> bool:
    try:
        twin.cut_axis(entry, extent)
    except twin.Invalid:
        return False
    return True


@lru_cache(None)
def all_strides(replicas: int, partitions: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Every choice of small strides with which the tiles reach all coordinates equally, by trying them."""
    tiles = replicas * math.prod(partitions)
    found = []
    for strides in product(range(1, tiles + 2), repeat=len(partitions)):
        reached = [tuple(t // s % p for s, p in zip(strides, partitions, strict=True)) for t in range(tiles)]
        if len(set(reached)) == math.prod(partitions) and all(reached.count(c) == replicas for c in set(reached)):
            found.append(strides)
    return found


def digit_strides(digits: list[list[int]], partitions: list[int], replicas: int) -> list[int]:
    """Strides when `digits`, fastest first, number the tiles. A digit is a list of axes, or empty for the replicas;
    coprime axes can share one digit and its stride."""
    strides, packed = [1] * len(partitions), 1
    for digit in digits:
        for axis in digit:
            strides[axis] = packed
        packed *= math.prod(partitions[axis] for axis in digit) if digit else replicas
    return strides


@st.composite
def strides(draw, replicas: int, partitions: list[int], share: bool = False) -> list[int | None]:
    """Explicit or packed strides; `share` makes two coprime axes have the same one, if there are two."""
    if not partitions or (not share and chance(draw, 40)):
        return [None] * len(partitions)
    axes = list(range(len(partitions)))
    pairs = [[a, b] for a in axes for b in axes[:a] if partitions[a] > 1 and partitions[b] > 1]
    coprime = [[a, b] for a, b in pairs if math.gcd(partitions[a], partitions[b]) == 1]
    share = share or chance(draw, 50)
    if not (share and coprime) and len(axes) <= 2 and replicas * math.prod(partitions) <= 12 and chance(draw, 50):
        made = list(pick(draw, *all_strides(replicas, tuple(partitions))))
    else:
        together = pick(draw, *coprime) if coprime and share else []
        single = [[a] for a in axes if a not in together]
        digits = [[], *single, *([together] if together else [])]
        # The last axis is often left where packing puts it, so that explicit strides and a stride left out meet.
        slowest = [[axes[-1]]] if [axes[-1]] in digits and chance(draw, 40) else []
        digits = list(draw(st.permutations([d for d in digits if d not in slowest]))) + slowest
        made = digit_strides(digits, partitions, replicas)
    packed = replicas
    for a in axes:
        if made[a] == packed and chance(draw, 70):
            made[a] = None  # the same, left to packing
        packed *= partitions[a]
    return made


def make_type(shape, precision, order, tile_count, replicas, axes, memory_class) -> dict:
    tiling = {"tile_count": tile_count, "replicas": replicas, "axes": axes}
    return {
        "shape": list(shape),
        "format": {"precision": precision, "layout": {"order": order, "tiling": tiling, "memory_class": memory_class}},
    }


def legal(made: dict) -> dict:
    try:
        twin.shards(made)
    except twin.Invalid:
        reject()
    return made


@st.composite
def box_types(
    draw, shape, precision, order, replicas=None, most_tiles: int = 12, most_stored: int = MOST_STORED
) -> dict:
    """A type with an ordinary tiling. `replicas` is a list to choose from."""
    rank, (row, column) = len(shape), twin.needs(order, twin.itemsize_of(precision))
    wanted = [1] * (rank - 2) + [row, column] if rank >= 2 else [1] * rank
    copies = pick(draw, *(r for r in (replicas or [1, 1, 1, 2, 3, 4]) if r <= most_tiles))
    left, axes = most_tiles // copies, []
    paired = rank >= 2 and left >= 6 and chance(draw, 15)
    exact = list(pick(draw, (2, 3), (3, 2), *([(3, 4), (4, 3), (2, 5)] if left >= 12 else []))) if paired else []
    for axis in draw(st.permutations(range(rank))):
        must = shape[axis] % wanted[axis] != 0  # only padding can meet the need then
        if must or exact or (left > 1 and chance(draw, 75)):
            axes.append(
                draw(axis_tilings(axis, rank, shape[axis], wanted[axis], left, exactly=exact.pop() if exact else None))
            )
            left //= axes[-1]["partitions"]
    if copies * stored(axes, shape) > most_stored:
        copies = 1
    if stored(axes, shape) > most_stored:
        axes = [whole_axis(axis, wanted[axis]) for axis in range(rank) if shape[axis] % wanted[axis]]
    if stored(axes, shape) > most_stored:
        reject()
    partitions = [a["partitions"] for a in axes]
    for a, stride in zip(axes, draw(strides(copies, partitions, share=paired)), strict=True):
        a["tile_stride"] = stride
    return legal(
        make_type(shape, precision, order, copies * math.prod(partitions), copies, axes, pick(draw, *MEMORY_CLASSES))
    )


def whole_axis(axis: int, need: int) -> dict:
    """One partition, padded to what is needed and no more."""
    return twin.AXIS_DEFAULTS | {
        "axis": {"FromStart": axis},
        "partitions": 1,
        "block_size": need,
        "padding_multiple": need,
        "padding": "Zero",
    }


def stored(axes: list[dict], shape: list[int]) -> int:
    """Physical elements of all shards but for replicas."""
    widths = list(shape)
    for a in axes:
        ((kind, number),) = a["axis"].items()
        axis = number if kind == "FromStart" else len(shape) - number
        widths[axis] = sum(end - start for start, _, end in twin.cut_axis(a, shape[axis]))
    return math.prod(widths)


@st.composite
def linear_types(draw, shape, precision, order=None, most_tiles: int = 12) -> dict:
    """A Linear type; the shape has an element. An order that can't be had is replaced by one that can."""
    count, lane = math.prod(shape), 32 // twin.itemsize_of(precision)
    possible = [("RowMajor", 1)]
    if len(shape) >= 2:
        packed = [({"Amp": "Left"}, lane), ({"Amp": "Output"}, 16), (block_major("TransposedMatrix", lane, 1), lane)]
        possible += [(o, need) for o, need in packed if shape[-1] % need == 0]
    order, need = pick(draw, *([p for p in possible if p[0] == order] or possible))
    grain = pick(draw, *(g for g in (need, 1, 2, 3, 4, 5, 8, 16, 32, 48) if g % need == 0 and count % g == 0))
    tiles = draw(st.integers(1, min(most_tiles, count // grain)))
    entry = {
        "axis": "Linear",
        "partitions": tiles,
        "padding_groups": 1,
        "block_size": grain,
        "padding_multiple": grain * pick(draw, 1, 1, 2),
        "shard_padding_multiple": 1,
        "padding": pick(draw, "Reject", "Zero"),
        "tile_stride": None,
    }
    return legal(make_type(shape, precision, order, tiles, 1, [entry], pick(draw, *MEMORY_CLASSES)))


@st.composite
def types(draw, shape=None, precision=None, order=None, linear: int = 15, replicas=None, most_tiles: int = 12) -> dict:
    """Any type. `linear` is the percentage of Linear tilings, where the shape allows one."""
    shape = draw(shapes()) if shape is None else shape
    precision = draw(precisions) if precision is None else precision
    if len(shape) >= 1 and math.prod(shape) and chance(draw, linear):
        return draw(linear_types(shape, precision, order, most_tiles=most_tiles))
    if order is None:
        order = draw(orders(precision)) if len(shape) >= 2 else "RowMajor"
    return draw(box_types(shape, precision, order, replicas=replicas, most_tiles=most_tiles))


def left_out(made: dict) -> dict:
    """The same type without the axis tiling fields that have their default value."""
    tiling = made["format"]["layout"]["tiling"]
    axes = []
    for a in tiling["axes"]:
        defaults = twin.AXIS_DEFAULTS | {"padding_multiple": a["block_size"]}
        axes.append({name: value for name, value in a.items() if name not in defaults or value != defaults[name]})
    layout = made["format"]["layout"] | {"tiling": tiling | {"axes": axes}}
    return made | {"format": made["format"] | {"layout": layout}}


# Owner maps


@st.composite
def owner_maps(draw, tile_count: int, device_tiles: int, plain: int) -> dict | None:
    """None, a rotation of `plain` tiles (the device without embeddings) or an embedding into `device_tiles`."""
    kind = pick(draw, None, None, "rotation", "embedding")
    if kind is None:
        return None
    if kind == "rotation":
        return {"rotation": draw(st.integers(0, plain - 1)), "embedding": None}
    embedding = draw(st.permutations(range(device_tiles)))[: draw(st.integers(tile_count, device_tiles))]
    return {"rotation": pick(draw, 0, draw(st.integers(0, len(embedding) - 1))), "embedding": list(embedding)}


@st.composite
def owned(draw, made=None) -> dict:
    """Arguments of `shards`: a type, an owner map and the number of device tiles."""
    t = draw(types() if made is None else made)
    count = t["format"]["layout"]["tiling"]["tile_count"]
    device, told = count + pick(draw, 0, 0, 1, 3), draw(st.booleans())
    return {
        "type": t,
        "owners": draw(owner_maps(count, device, device if told else count)),
        "device_tiles": device if told else None,
    }


# Copies


@st.composite
def views(draw, shape: list[int]) -> tuple[list[int], list[int], dict]:
    """Shapes of a source and of what the view makes of it, and the view. The narrow axes of both are in `shape`."""
    split, merge = draw(st.permutations(range(len(shape))))[:2]
    factor, backwards = pick(draw, 2, 3, 4, 1), draw(st.booleans())
    narrow, wide = list(shape), list(shape)
    narrow[merge] *= factor  # the split axis is cut in pieces, which go to the merge axis
    wide[split] *= factor
    source, output = (narrow, wide) if backwards else (wide, narrow)
    return source, output, {"split_axis": split, "merge_axis": merge, "factor": factor, "reversed": backwards}


@st.composite
def crops(draw, shape: list[int], outside: str) -> tuple[list[int], list[int]]:
    """Offsets and a destination shape, inside `shape` or (with "zero") hanging over at both ends or past them."""
    offsets, wanted = [], []
    for extent in shape:
        if outside == "error":
            first = min(pick(draw, 0, 0, 0, 1, 2, 4, 16), max(extent - 1, 0))
            last = min(pick(draw, 0, 0, 0, 1, 3), max(extent - first - 1, 0))
        else:
            first = pick(draw, 0, 0, 0, 0, -1, -2, 1, min(3, extent // 2), -16, pick(draw, 0, extent))
            last = pick(draw, 0, 0, -1, -3, 1, 2)
        offsets.append(first)
        wanted.append(max(extent - first - last, 0 if extent == 0 or outside == "error" else 1))
    return offsets, wanted


@st.composite
def mappings(draw, kinds, least_rank: int = 0, shape=None):
    """(source shape, destination shape, mapping, outside); `kinds` names what to choose from."""
    kind = pick(draw, *(k for k in kinds if k != "view" or shape is None or len(shape) >= 2))
    needed = max(least_rank, 2 if kind == "view" else 0)
    shape = draw(shapes(needed, most=MOST_ELEMENTS // (4 if kind == "view" else 1))) if shape is None else shape
    source, output, view = draw(views(shape)) if kind == "view" else (shape, shape, None)
    outside = "zero" if kind == "outside" or (kind == "view" and chance(draw, 15)) else "error"
    if kind == "same" or (kind == "view" and chance(draw, 50)):
        offsets, wanted = pick(draw, [], [0] * len(shape)), list(output)
    else:
        offsets, wanted = draw(crops(output, outside))
    if view is None and not any(offsets) and draw(st.booleans()):
        return source, wanted, None, outside
    return source, wanted, {"offsets": offsets, "view": view}, outside


STAGINGS = ["auto", "auto", "auto", "none", "source", "destination", "both"]
THEMES = [
    *("any", "any", "retile", "retile", "padding", "lanes", "lanes", "forced", "transpose"),
    *("linear", "linear", "odd", "multicast", "view", "view", "outside"),
]
MAPPING_KINDS = {"view": ["view"], "outside": ["outside"], "any": ["same", "crop", "outside", "view"]}
PACKED = [k for k in KINDS if k != "RowMajor"]


@st.composite
def long_runs(draw):
    """Parts of a copy with runs longer than one transfer, on few tiles."""
    precision = pick(draw, "F32", "F32", "F32", "F16", "F16", PRECISIONS[2])
    count = draw(st.integers(16600, 24000) | st.integers(33200, 35000)) // twin.itemsize_of(precision)
    lane = 32 // twin.itemsize_of(precision)
    shape, order = pick(
        draw, ([count], "RowMajor"), ([2, count // 2], "RowMajor"), ([-(-count // lane), lane], {"Amp": "Left"})
    )
    most = pick(draw, (1, 2), (1, 3), (2, 1), (2, 2))
    sides = [draw(box_types(shape, precision, order, [1, n], n, most_stored=10**6)) for n in most]
    mapping = pick(draw, None, {"offsets": [0] * len(shape), "view": None})
    return sides, mapping, "error", pick(draw, *STAGINGS)


@st.composite
def ordinary(draw):
    """Parts of a copy between any two layouts, with a liking for what is easily got wrong."""
    theme = pick(draw, *THEMES)
    precision, staging, most_tiles = draw(precisions), pick(draw, *STAGINGS), pick(draw, 12, 12, 6, 20)
    linear, replicas = (10, 10), (None, None)
    kinds = MAPPING_KINDS.get(theme, ["same", "same", "same", "crop", "outside", "view"])
    packed = theme in ("padding", "lanes", "forced", "transpose")
    shape = None
    if theme == "odd":
        precision = pick(draw, "F16", PRECISIONS[2])
        shape = [pick(draw, 1, 2, 3)] * draw(st.integers(0, 2)) + [pick(draw, 3, 5, 7, 9, 17, 33, 45)]
        staging = "none"
    a, b, mapping, outside = draw(mappings(kinds, least_rank=2 if packed else 0, shape=shape))
    flat = len(a) < 2
    first = second = "RowMajor"
    if theme in ("retile", "padding") and not flat:
        first = second = draw(orders(precision, PACKED if theme == "padding" else KINDS))
        staging = pick(draw, "auto", "none", "none", *STAGINGS)
    elif theme == "lanes":
        precision, family = pick(draw, "F16", "F16", PRECISIONS[2], "F32", "F32"), pick(draw, *LANE_FAMILIES)
        first, second, staging = draw(orders(precision, family)), draw(orders(precision, family)), "auto"
    elif theme == "forced":
        first, second, staging = draw(orders(precision)), draw(orders(precision)), "none"
    elif theme == "transpose":
        # A block as wide as the tensor has no column digit above the lane, so chains join where few would expect it.
        wide = [n for n in (a[-1], b[-1]) if 0 < n <= 96] or [1]
        packed_kinds = ["Matrix", "Matrix", "TransposedMatrix", "TransposedLeft"]
        first, second = "RowMajor", draw(orders(precision, packed_kinds, column_blocks=wide))
        if draw(st.booleans()):
            first, second = second, first
        staging, linear = "none", (20, 20)
    elif theme != "odd" and not flat:
        first, second = draw(orders(precision)), draw(orders(precision))
    if theme == "linear":
        linear = pick(draw, (100, 100), (0, 100), (100, 0))
    if theme == "multicast":
        replicas = pick(draw, [1, 2, 3], [2, 3, 4]), [2, 3, 4, 6]
        linear = (10, 0)
    sides = [
        draw(types(shape, precision, order, linear=percent, replicas=copies, most_tiles=most_tiles))
        for shape, order, percent, copies in zip((a, b), (first, second), linear, replicas, strict=True)
    ]
    return sides, mapping, outside, staging


@st.composite
def copies(draw, long: int = 5) -> dict:
    """The arguments of `plan`, by name. `long` is the percentage of copies with runs longer than one transfer."""
    sides, mapping, outside, staging = draw(long_runs() if chance(draw, long) else ordinary())
    counts = [t["format"]["layout"]["tiling"]["tile_count"] for t in sides]
    device, told = max(counts) + pick(draw, 0, 0, 1, 3), draw(st.booleans())
    if max(counts) == 1 and chance(draw, 90):
        device, told = 3, True
    plain = device if told else max(counts)
    owners = [draw(owner_maps(count, device, plain)) for count in counts]
    tilings = [t["format"]["layout"]["tiling"] for t in sides]
    if (max(counts) == 1 or tilings[0] == tilings[1]) and owners[0] == owners[1] and plain > 1 and chance(draw, 80):
        # Otherwise everything would be local.
        owners = [None, {"rotation": draw(st.integers(1, plain - 1)), "embedding": None}]
    return {
        "source": sides[0],
        "destination": sides[1],
        "mapping": mapping,
        "staging": staging,
        "outside": outside,
        "source_owners": owners[0],
        "destination_owners": owners[1],
        "device_tiles": device if told else None,
    }
