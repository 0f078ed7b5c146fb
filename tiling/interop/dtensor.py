"""PyTorch's DTensor: a device mesh and its placements as a tensor type and an owner map.

A DTensor has one placement for each dimension of its mesh. The placements that shard one tensor dimension nest from
left to right, and each cuts as `torch.chunk` does: chunks of the extent over the mesh dimension's size, rounded up;
later ones are smaller or empty. Rank `r` is tile `r`.

PyTorch is not needed: its own placements are taken as they are, and :class:`Shard` and :class:`Replicate` stand in.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from operator import mul
from typing import Any

import numpy as np

from ..counting import CopyCount
from ..errors import FieldError, TilingError
from ..layout import MAX_TILES, AxisTiling, Precision, TensorAxis, check_choice, check_integer
from ..tables import Int64
from .mesh import UNEVEN, PlacedType, check_devices, count_between, extents, numbered, place


@dataclass(frozen=True, slots=True)
class Shard:
    """Cut tensor dimension `dim` (negative: from the end) along a mesh dimension."""

    dim: int

    def is_shard(self) -> bool:
        return True

    def is_replicate(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class Replicate:
    """The same on all ranks of a mesh dimension."""

    def is_shard(self) -> bool:
        return False

    def is_replicate(self) -> bool:
        return True


def from_placements(
    shape: Iterable[int], precision: Precision, mesh: Any, placements: Sequence[Any], *, uneven: str = "error"
) -> PlacedType:
    """Read the placements of a tensor on a mesh.

    Parameters
    ----------
    shape : iterable of int
        The tensor's global shape, in elements.
    precision : Precision
    mesh : tuple of int, or integer array, or torch.distributed.DeviceMesh
        A tuple is the mesh's shape, of ranks 0, 1, .. in row-major order; an array has the rank at each coordinate.
    placements : sequence of Shard and Replicate
        One for each mesh dimension; PyTorch's or this module's.
    uneven : {"error", "pad"}
        What to do with chunks of different sizes that no axis tiling has: refuse them, or pad each chunk with zeros to
        the size of the first one (which leaves every chunk's elements as they are, and makes its buffer larger).
        Chunks that an axis tiling has, such as 4, 4, 2 or 3, 3, 0, are never padded.

    Raises
    ------
    FieldError
        For placements that are neither (partial sums, strided shards), and meshes that are none.
    TilingError
        For chunks that no axis tiling has, naming them.
    OwnerError
        If a rank is in the mesh twice.
    """
    check_choice(uneven, "uneven", UNEVEN)
    shape = extents(shape)
    ranks = _ranks(mesh)
    if isinstance(placements, str) or not isinstance(placements, Sequence) or len(placements) != ranks.ndim:
        raise FieldError(
            "not one placement for each mesh dimension",
            where="placements",
            value=placements,
            accepted=f"{ranks.ndim} placements",
        )
    mesh_axes: dict[int, list[int]] = {}
    for m, placement in enumerate(placements):
        dim = _dim(placement, f"placements[{m}]", len(shape))
        if dim is not None:
            mesh_axes.setdefault(dim, []).append(m)
    cuts = [(_cut(dim, shape[dim], [ranks.shape[m] for m in axes], uneven), axes) for dim, axes in mesh_axes.items()]
    return place(shape, precision, ranks, cuts)


def count_resharding(
    shape: Iterable[int],
    precision: Precision,
    mesh: Any,
    source: Sequence[Any],
    destination: Sequence[Any],
    *,
    uneven: str = "error",
) -> CopyCount:
    """Count the transfers that a tensor needs from one list of placements to another on its mesh, exactly.

    The arguments are those of :func:`from_placements`, and so are the errors; their `where` begins with ``source`` or
    ``destination``. Between two meshes, count with :func:`tiling.interop.count_placed`.
    """
    placing = partial(from_placements, extents(shape), precision, mesh, uneven=uneven)
    return count_between(placing, source, destination)


def _ranks(mesh: Any) -> Int64:
    """The rank at each mesh coordinate."""
    if isinstance(mesh, tuple):
        return numbered([check_integer(size, f"mesh[{m}]", 1, MAX_TILES) for m, size in enumerate(mesh)])
    given = getattr(mesh, "mesh", mesh)
    ranks = np.asarray(given) if hasattr(given, "__array__") else None
    if ranks is None or not np.issubdtype(ranks.dtype, np.integer):
        raise FieldError(
            "not a mesh", where="mesh", value=mesh, accepted="its shape as a tuple, or an integer array of ranks"
        )
    ranks = ranks.astype(np.int64)
    check_devices(ranks)
    return ranks


def _dim(placement: Any, where: str, rank: int) -> int | None:
    """The tensor dimension that a placement shards, from the start; None if it replicates."""
    if isinstance(placement, type) or not hasattr(placement, "is_replicate") or not hasattr(placement, "is_shard"):
        raise FieldError("not a placement", where=where, value=placement, accepted="Shard(dim), Replicate()")
    if placement.is_replicate():
        return None
    if not placement.is_shard():
        raise FieldError("neither shards nor replicates", where=where, value=placement, accepted="Shard, Replicate")
    dim = check_integer(placement.dim, f"{where}.dim", -MAX_TILES, MAX_TILES)
    if not -rank <= dim < rank:
        raise TilingError(
            f"dimension out of range for rank {rank}",
            where=f"{where}.dim",
            value=dim,
            accepted=f"{-rank} to {rank - 1}" if rank else "Replicate",
        )
    return dim % rank


def _chunks(extent: int, sizes: Sequence[int]) -> list[int]:
    """The widths of an axis' chunks, cut along mesh dimensions of these sizes in turn."""
    widths = [extent]
    for size in sizes:
        full = [-(-width // size) for width in widths]
        widths = [
            max(min(width - k * chunk, chunk), 0)
            for width, chunk in zip(widths, full, strict=True)
            for k in range(size)
        ]
    return widths


def _cut(dim: int, extent: int, sizes: Sequence[int], uneven: str) -> AxisTiling:
    """The axis tiling that has just these chunks.

    An axis tiling cuts equal groups alike, each into wide partitions and then narrow ones, whose difference is one
    block. The leading mesh dimensions, as far as they divide, can be such groups.
    """
    widths = _chunks(extent, sizes)
    axis, parts = TensorAxis.of(dim), len(widths)
    leading = [groups for groups in accumulate((1, *sizes[:-1]), mul) if extent % groups == 0]
    for groups in leading:
        of_group = widths[: parts // groups]
        wide, narrow = of_group[0], of_group[-1]
        block, count = wide - narrow or 1, of_group.count(wide)
        if of_group == [wide] * count + [narrow] * (len(of_group) - count) and narrow % block == 0:
            return AxisTiling(axis, parts, padding_groups=groups, block_size=block)
    for groups in leading:
        each = parts // groups
        if widths[:each] != _chunks(extent // groups, [each]):
            continue
        if uneven == "pad":
            return AxisTiling(axis, parts, padding_groups=groups, padding_multiple=each, padding="Zero")
        remedy = f'multiples of {parts}, or uneven="pad"'
        break
    else:
        remedy = f"multiples of {parts}"
    shown = ", ".join(map(str, widths[:12])) + (", .." if parts > 12 else "")
    raise TilingError(
        f"no axis tiling cuts it into the chunks {shown}: partitions are whole blocks, the wide ones one block wider",
        where=f"shape[{dim}]",
        value=extent,
        accepted=remedy,
    )
