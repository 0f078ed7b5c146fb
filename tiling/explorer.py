"""A page to explore copies and phases with: one file that works offline, for any browser.

The page has two tile grids (what each tile sends and receives), a tile's shards and partners, and a histogram of the
messages' sizes. What is proportional to the transfers is summed here, per tile and per pair of tiles; a copy's sums are
columns of the narrowest numbers, deflated, one block of base64 a copy. Charts are drawn by plotly.js, out of the Python
package `plotly` (extra `explore`), which carries the whole library as one file.
"""

from __future__ import annotations

import html
import json
import os
import re
import zlib
from base64 import b64encode
from collections.abc import Iterator
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from .copying import CopyPlan
from .errors import FieldError, extra
from .exchange import ExchangePhase
from .files import check_target, write_whole
from .layout import CoordinateMapping
from .ownership import enumerate_shards
from .report import Cases, CopyCase, Progress, Row, cases_of_file, cases_of_graphs, example_cases, short_type
from .tables import Int64

if TYPE_CHECKING:
    from .midgraph import MidGraph

Columns = dict[str, NDArray[Any]]

SAFE: Final = str.maketrans({c: f"\\u{ord(c):04x}" for c in "<>&"})  # JSON that can't end a <script>
EXACT: Final = 2**53  # from here on a browser's numbers are not exact, and its BigInts are


def write_page(
    path: str | os.PathLike[str],
    source: Cases | MidGraph | str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> int:
    """Write a page to explore copies and phases with.

    Parameters
    ----------
    path : path
        Where the page goes. It is replaced as a whole, or left as it was.
    source : Cases, MidGraph or path, optional
        What the page shows: a report's cases, a parsed graph, a build log or a file with a graph's dump; by default the
        built-in example.
    progress : callable, optional
        Gets copies done and copies in all.

    Returns
    -------
    int
        The page's size in bytes.

    Raises
    ------
    MissingExtraError
        Without the extra `explore`.
    FieldError
        If the source has no copies, or the path is not a file's.
    LayoutError
        If the source can't be read, or a copy can't be listed.
    OSError
        If the page can't be written.
    """
    check_target(path)
    text = page(source, progress).encode("utf-8", "replace")
    write_whole(path, text)
    return len(text)


def page(source: Cases | MidGraph | str | os.PathLike[str] | None = None, progress: Progress | None = None) -> str:
    """The text of the page that `write_page` writes; parameters and errors are the same."""
    plotly = extra("plotly.offline", "explore").get_plotlyjs()
    cases = _cases(source)
    if not any(phases for _, phases in cases.graphs):
        raise FieldError("no copies to show", where=cases.title, accepted="a graph with copies that are planned")
    facts, blocks = _described(cases, progress)
    fill = {
        "title": html.escape(cases.title),
        "style": _template("page.css"),
        "facts": json.dumps(facts).translate(SAFE),
        "blocks": "\n".join(f'<script type="text/plain" class="block">{block}</script>' for block in blocks),
        "plotly": _packed(plotly.encode()),
        "script": _template("page.js"),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: fill[found[1]], _template("page.html"))


def _template(name: str) -> str:
    return resources.files("tiling").joinpath("data", "explorer", name).read_text("utf-8")


def _cases(source: Cases | MidGraph | str | os.PathLike[str] | None) -> Cases:
    from .midgraph import MidGraph

    if source is None:
        return example_cases()
    if isinstance(source, Cases):
        return source
    if isinstance(source, MidGraph):
        return cases_of_graphs(source.label or "graph", [source])
    if isinstance(source, (str, os.PathLike)):
        return cases_of_file(source)
    raise FieldError("not copies to show", where="source", value=source, accepted="Cases, MidGraph, or a file's path")


def _described(cases: Cases, progress: Progress | None) -> tuple[dict[str, Any], list[str]]:
    """The page's facts, and its blocks of columns; copies that are alike in a log's graphs share a block."""
    rows = iter(cases.report().rows)
    total = sum(len(phase.copies) for _, phases in cases.graphs for phase in phases)
    blocks: dict[tuple[str, str], int] = {}  # by the columns' layout, too: the page unpacks a block once
    phases, done = [], 0
    for graph, graph_phases in cases.graphs:
        for phase in graph_phases:
            copies = []
            for case in phase.copies:
                columns, block = _block(case)
                number = blocks.setdefault((block, json.dumps(columns)), len(blocks))
                copies.append({**_copy_facts(case, next(rows)), "columns": columns, "block": number})
                done += 1
                if progress is not None:
                    progress(done, total)
            phases.append({"graph": graph, "name": phase.name, "copies": copies, **_figures(next(rows))})
    return {"title": cases.title, "notes": cases.notes, "phases": phases}, [block for block, _ in blocks]


def _copy_facts(case: CopyCase, row: Row) -> dict[str, Any]:
    return {
        "name": case.name,
        "source": short_type(case.source),
        "destination": short_type(case.destination),
        "mapping": _mapping(case.mapping),
        "rank": case.source.rank,
        **_figures(row),
    }


def _figures(row: Row) -> dict[str, Any]:
    names = (
        "staging", "transfers", "local_runs", "bytes", "busiest_sender", "sent_words", "busiest_receiver",
        "received_words", "bound", "status", "logged",
    )  # fmt: skip
    return {name: getattr(row, name) for name in names}


def _mapping(mapping: CoordinateMapping) -> str:
    """What a copy's mapping does, in words; empty for the identity."""
    words = [f"offsets {list(mapping.offsets)}"] if any(mapping.offsets) else []
    view = mapping.view
    if view is not None:
        back = ", reversed" if view.reversed else ""
        words.append(f"view: axis {view.split_axis} split by {view.factor}, merged into axis {view.merge_axis}{back}")
    return "; ".join(words)


# --- what a copy comes to, per tile and per pair of tiles -----------------------------------------------------------


def copy_columns(case: CopyCase) -> Columns:
    """What a page holds of one copy, as columns.

    Returns
    -------
    dict of str to array
        Per device tile: `sent_words`, `received_words`, `sent_messages`, `received_messages`, `local_runs`,
        `local_bytes`, `source_bytes` and `destination_bytes` (its buffers). A multicast is one message to its sender.

        Per pair of tiles with traffic, by source, then destination: `pair_source`, `pair_destination`,
        `pair_messages`, `pair_words`; each destination of a multicast counts.

        Per tile and size of `sent`, `received` and `local` runs, by tile, then size: `sent_tile`, `sent_size`
        (bytes), `sent_count`, and so on.

        Per shard of each side: `source_shard_tile`, `_start`, `_logical_end`, `_physical_end` (elements, half-open, the
        axes of a shard in turn), `_bytes` and `_offset`, and so on for `destination`.
    """
    plan = case.plan()
    x, local, tiles = plan.transfers, plan.local, plan.device_tiles
    phase = ExchangePhase([plan])
    fan = np.diff(x.destination_start)
    arriving = np.repeat(x.bytes, fan)
    local_bytes = np.zeros(tiles, np.int64)
    np.add.at(local_bytes, local.tile, local.bytes)
    columns: Columns = {
        "sent_words": phase.sent_words,
        "received_words": phase.received_words,
        "sent_messages": np.bincount(x.source_tile, minlength=tiles),
        "received_messages": np.bincount(x.destination_tile, minlength=tiles),
        "local_runs": np.bincount(local.tile, minlength=tiles),
        "local_bytes": local_bytes,
    }
    pair_source, pair_destination, messages, which = _grouped(np.repeat(x.source_tile, fan), x.destination_tile)
    words = np.zeros(len(messages), np.int64)
    np.add.at(words, which, (arriving + 3) // 4)
    columns |= {
        "pair_source": pair_source,
        "pair_destination": pair_destination,
        "pair_messages": messages,
        "pair_words": words,
    }
    for name, tile, size in (
        ("sent", x.source_tile, x.bytes),
        ("received", x.destination_tile, arriving),
        ("local", local.tile, local.bytes),
    ):
        columns[f"{name}_tile"], columns[f"{name}_size"], columns[f"{name}_count"], _ = _grouped(tile, size)
    return columns | dict(_shard_columns(case, plan))


def _grouped(first: NDArray[Any], second: NDArray[Any]) -> tuple[Int64, Int64, Int64, NDArray[np.intp]]:
    """The distinct pairs of two columns in order, how often each occurs, and which one every row is."""
    values, at = np.unique(second, return_inverse=True)
    width = max(len(values), 1)
    key, which, count = np.unique(first.astype(np.int64) * width + at, return_inverse=True, return_counts=True)
    return key // width, values[key % width], count, which


def _shard_columns(case: CopyCase, plan: CopyPlan) -> Iterator[tuple[str, NDArray[Any]]]:
    sides = (("source", case.source, case.source_owners), ("destination", case.destination, case.destination_owners))
    for side, type, owners in sides:
        table = enumerate_shards(type, owners, plan.device_tiles)
        yield f"{side}_bytes", table.tile_bytes
        for name in ("tile", "start", "logical_end", "physical_end", "bytes", "offset"):
            yield f"{side}_shard_{name}", getattr(table, name).ravel()


# --- columns as text -------------------------------------------------------------------------------------------------


def _block(case: CopyCase) -> tuple[list[tuple[str, str, int]], str]:
    """A copy's columns as one text, and what stands in it in turn: name, type, length."""
    narrow = {name: _narrow(column) for name, column in copy_columns(case).items()}
    return (
        [(name, column.dtype.str[1:], len(column)) for name, column in narrow.items()],
        _packed(b"".join(column.tobytes() for column in narrow.values())),
    )


def _narrow(column: NDArray[Any]) -> NDArray[Any]:
    """The same numbers, none of which is negative, in the narrowest type that browsers have an exact array for."""
    top = int(column.max(initial=0))
    kind = "<f8" if 2**32 <= top < EXACT else np.min_scalar_type(top).newbyteorder("<")
    return column.astype(kind)


def _packed(data: bytes) -> str:
    return b64encode(zlib.compress(data, 9)).decode()
