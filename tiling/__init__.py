"""Exact tensor layouts over tiles: shards, storage orders, and the transfers between two tilings.

The rooms, one way through (each module imports only from those before it)::

    errors, files    what a caller got wrong; files that are written whole
    tables           columns, and the forms in which they leave     Table
    layout           what a tensor's layout is                      TensorType, OwnerMap, CoordinateMapping, read_type
    ownership        which tile owns which region                   enumerate_shards
    storage          where an element of a shard lives              StorageMap
    regions, runs    who needs what of whom; the kernel for it
    compacting       strided short lists                            Transfers.compact
    copying          which bytes go from which tile to which        plan_copy
    counting         how many, and how bad the busiest tile is      count_copy, count_copies
    exchange         several copies together                        ExchangePhase
    buffers          bytes in those layouts, plans carried out      pack, unpack, execute
    midgraph, buildlog   compiler dumps and logs                    parse_midgraph, read_log
    report           tables for people
    plotting         pictures
    explorer         a page for a browser
    interop          shardings of JAX and PyTorch                   interop.jax, interop.dtensor
    cli              the command

The border to the compiled modules: `regions.retile` (copies), `ownership.resolve` (types) and the methods of
`StorageMap` check and normalise what a caller gives, once; the kernels in `_partition`, `_ownership`, `_storage`,
`_copy`, `_count`, `_fill`, `_compact`, `_exchange` and `_buffers` get C-contiguous int32 and int64 columns of the right
sizes and trust them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

try:
    from . import _sides  # noqa: F401
except ImportError as error:
    raise ImportError(
        "these are tiling's sources, and nothing is built here: start Python in another folder to get an installed "
        "package, or build in place (make build)"
    ) from error

from .buffers import Buffers, execute, pack, unpack
from .compacting import StridedTransfers
from .copying import CopyPlan, LocalRuns, Spans, Transfers, plan_copy
from .counting import CopyCount, CopyCounts, TileLoads, count_copies, count_copy
from .errors import (
    AlignmentError,
    BufferShapeError,
    CopyError,
    DumpError,
    FieldError,
    LayoutError,
    MissingExtraError,
    OrderError,
    OwnerError,
    PolicyError,
    SizeError,
    TableError,
    TilingError,
    TooManyTransfersError,
)
from .exchange import ExchangePhase
from .layout import (
    F8F143,
    F16,
    F32,
    LINEAR,
    ROW_MAJOR,
    Amp,
    AxisTiling,
    AxisView,
    BlockMajor,
    CoordinateMapping,
    ElementOrder,
    Layout,
    OwnerMap,
    Precision,
    TensorAxis,
    TensorFormat,
    TensorTiling,
    TensorType,
    read_type,
)
from .ownership import ShardTable, enumerate_shards
from .storage import StorageMap
from .tables import Table

if TYPE_CHECKING:
    from .buildlog import BuildLog, parse_log, read_log
    from .midgraph import MidGraph, parse_midgraph
    from .plotting import plot_layout, plot_loads, plot_order, plot_tiling, plot_traffic, save_picture

__version__ = "0.1.0"

# What readers of dumps and logs need (a parser generator), and pictures, are imported when first asked for.
_LAZY = {
    "BuildLog": "buildlog",
    "MidGraph": "midgraph",
    "parse_log": "buildlog",
    "parse_midgraph": "midgraph",
    "plot_layout": "plotting",
    "plot_loads": "plotting",
    "plot_order": "plotting",
    "plot_tiling": "plotting",
    "plot_traffic": "plotting",
    "read_log": "buildlog",
    "save_picture": "plotting",
}


def __getattr__(name: str) -> Any:
    if name in ("explorer", "interop"):
        return import_module(f".{name}", __name__)
    if name in _LAZY:
        return getattr(import_module(f".{_LAZY[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "F8F143",
    "F16",
    "F32",
    "LINEAR",
    "ROW_MAJOR",
    "AlignmentError",
    "Amp",
    "AxisTiling",
    "AxisView",
    "BlockMajor",
    "BufferShapeError",
    "Buffers",
    "BuildLog",
    "CoordinateMapping",
    "CopyCount",
    "CopyCounts",
    "CopyError",
    "CopyPlan",
    "DumpError",
    "ElementOrder",
    "ExchangePhase",
    "FieldError",
    "Layout",
    "LayoutError",
    "LocalRuns",
    "MidGraph",
    "MissingExtraError",
    "OrderError",
    "OwnerError",
    "OwnerMap",
    "PolicyError",
    "Precision",
    "ShardTable",
    "SizeError",
    "Spans",
    "StorageMap",
    "StridedTransfers",
    "Table",
    "TableError",
    "TensorAxis",
    "TensorFormat",
    "TensorTiling",
    "TensorType",
    "TileLoads",
    "TilingError",
    "TooManyTransfersError",
    "Transfers",
    "count_copies",
    "count_copy",
    "enumerate_shards",
    "execute",
    "pack",
    "parse_log",
    "parse_midgraph",
    "plan_copy",
    "plot_layout",
    "plot_loads",
    "plot_order",
    "plot_tiling",
    "plot_traffic",
    "read_log",
    "read_type",
    "save_picture",
    "unpack",
]
