"""Tensors cut over a mesh of devices, which is what the shardings of other ecosystems have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from operator import itemgetter
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from ..counting import CopyCount, count_copy
from ..errors import FieldError, LayoutError, OwnerError, SizeError
from ..layout import F32, MAX_TILES, AxisTiling, OwnerMap, Precision, TensorType, check_instance
from ..ownership import MAX_RANK, ShardTable, enumerate_shards, resolve
from ..tables import Int64, check_rows

UNEVEN: Final = ("error", "pad")


@dataclass(frozen=True, slots=True)
class PlacedType:
    """A tensor type and where its tiles are: one side of `plan_copy` and `count_copy`.

    Attributes
    ----------
    type : TensorType
        Row-major, one tile for each device of the mesh.
    owners : OwnerMap
        The device of each tile; the identity where the mesh names the devices in order.
    """

    type: TensorType
    owners: OwnerMap

    def shards(self) -> ShardTable:
        """The regions of all devices; column `tile` has the device numbers."""
        return enumerate_shards(self.type, self.owners)


def count_placed(source: PlacedType, destination: PlacedType) -> CopyCount:
    """Count the transfers from one placing of a tensor to another, exactly; see :func:`tiling.count_copy`.

    Raises
    ------
    CopyError, OwnerError, SizeError
        If the two are not of one shape and precision, or don't fit the machine.
    """
    check_instance(source, "source", PlacedType)
    check_instance(destination, "destination", PlacedType)
    return count_copy(source.type, destination.type, source_owners=source.owners, destination_owners=destination.owners)


def count_between(placing: Callable[[Any], PlacedType], source: Any, destination: Any) -> CopyCount:
    """Count between two shardings of another ecosystem, which `placing` reads; errors say which of the two is meant."""
    placed = []
    for name, sharding in (("source", source), ("destination", destination)):
        try:
            placed.append(placing(sharding))
        except LayoutError as error:
            raise error.under(name) from None
    return count_placed(*placed)


def extents(shape: Iterable[int]) -> tuple[int, ...]:
    """A shape, checked."""
    return TensorType.replicated(shape, F32, 1).shape


def numbered(sizes: Sequence[int]) -> Int64:
    """The devices 0, 1, .. of a mesh in row-major order."""
    if len(sizes) > MAX_RANK:
        raise SizeError("too many mesh axes", where="mesh", value=len(sizes), accepted=f"at most {MAX_RANK}")
    check_rows(prod(sizes), "devices", 64)  # they are Python's numbers, too
    return np.arange(prod(sizes), dtype=np.int64).reshape(sizes)


def check_devices(devices: Int64) -> None:
    """The device numbers of a mesh: at least one, distinct, and possible tile numbers."""
    numbers, counts = np.unique(devices, return_counts=True)
    if not devices.size:
        raise FieldError("the mesh is empty", where="mesh", value=devices.shape, accepted="at least one device")
    for wrong in numbers[(numbers < 0) | (numbers >= MAX_TILES)].tolist():
        raise OwnerError("not a device number", where="mesh", value=wrong, accepted="0 to 2^31-2")
    for twice in numbers[counts > 1].tolist():
        raise OwnerError("a device stands in the mesh twice", where="mesh", value=twice, accepted="distinct devices")


def place(
    shape: Iterable[int],
    precision: Precision,
    devices: Int64,
    cuts: Iterable[tuple[AxisTiling, Sequence[int]]],
) -> PlacedType:
    """Cut a tensor over a mesh.

    Parameters
    ----------
    shape : extents in elements
    precision : Precision
    devices : int64 array, one dimension for each mesh axis
        The device at each mesh coordinate, checked.
    cuts : iterable of (AxisTiling, mesh axes)
        How a tensor axis is cut (without a stride), and the mesh axes that do it, slowest first: a device's partition
        is the mixed-radix number of its coordinates on them. Mesh axes that are in no cut replicate.

    Raises
    ------
    TilingError, SizeError
        If a cut does not fit its axis, or the tensor its machine.
    """
    # Mesh axes of size 1 have one coordinate, wherever they stand.
    digits = [(cut, [m for m in axes if devices.shape[m] > 1]) for cut, axes in cuts if cut.partitions > 1]
    steps = _steps(devices.shape)
    if any(steps[a] != steps[b] * devices.shape[b] for _, axes in digits for a, b in pairwise(axes)):
        # Some axis is cut by mesh axes that are not neighbours in this order, so its partition is no digit of the mesh
        # position. It is one of the position in a mesh whose axes are rearranged; the owner map undoes that. The first
        # replica stays the same: its coordinates on the axes that replicate are 0.
        order = [m for _, axes in digits for m in axes]
        order += [m for m in range(devices.ndim) if m not in order]
        devices = devices.transpose(order)
        digits = [(cut, [order.index(m) for m in axes]) for cut, axes in digits]
        steps = _steps(devices.shape)
    packed = replicas = devices.size // prod(cut.partitions for cut, _ in digits)
    tilings = []
    for step, cut in sorted(((steps[axes[-1]], cut) for cut, axes in digits), key=itemgetter(0)):
        tilings.append(cut if step == packed else replace(cut, tile_stride=step))
        packed *= cut.partitions
    type = TensorType.tiled(shape, precision, tilings, replicas=replicas)
    resolve(type)
    in_order = np.array_equal(devices.ravel(), np.arange(devices.size))
    return PlacedType(type, OwnerMap() if in_order else OwnerMap(0, tuple(devices.ravel().tolist())))


def _steps(sizes: tuple[int, ...]) -> list[int]:
    """What one step along each mesh axis adds to the row-major position in the mesh."""
    return [prod(sizes[m + 1 :]) for m in range(len(sizes))]
