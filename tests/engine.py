"""The engine's answers in the twin's form: plain lists, from JSON-form inputs; and the engine in another process."""

import subprocess
import sys

import tiling


def python(code, *arguments, check=True, **options):
    """What code prints in a process of its own. It gets the installed package: -P leaves the checkout alone."""
    command = [sys.executable, "-P", "-c", code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert not check or (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


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
