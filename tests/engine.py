"""The engine's answers in the twin's form: plain lists, from JSON-form inputs."""

import tiling


def arguments(case):
    """A case of `strategies.copies` as `plan_copy`'s arguments."""
    case = dict(case)
    read = {
        "source": tiling.TensorType,
        "destination": tiling.TensorType,
        "mapping": tiling.CoordinateMapping,
        "source_owners": tiling.OwnerMap,
        "destination_owners": tiling.OwnerMap,
    }
    for name, kind in read.items():
        if case.get(name) is not None:
            case[name] = kind.from_json(case[name])
    return case


def transfers(plan):
    x = plan.transfers
    starts = x.destination_start.tolist()
    ends = list(zip(x.destination_tile.tolist(), x.destination_offset.tolist(), strict=True))
    rows = zip(x.source_tile.tolist(), x.source_offset.tolist(), x.bytes.tolist(), strict=True)
    return [(tile, at, size, ends[starts[i] : starts[i + 1]]) for i, (tile, at, size) in enumerate(rows)]


def rows(table, *columns):
    return list(zip(*(getattr(table, name).tolist() for name in columns), strict=True))


def local(plan):
    return rows(plan.local, "tile", "source_offset", "bytes", "destination_offset")


def zero_fill(plan):
    return rows(plan.zero_fill, "tile", "offset", "bytes")
