"""JAX: a `NamedSharding` as a tensor type and an owner map, and back.

Device `d` of a mesh is tile `d.id`; the devices of an `AbstractMesh` are numbered by their place in it, so that
shardings can be compared for machines that one does not have. The rules are those of `Sharding.devices_indices_map`:
an axis is cut into equal blocks along the mesh axes that its entry of the `PartitionSpec` names, the first of them the
slowest, and mesh axes that no entry names replicate (:mod:`tiling.interop` says what that means for counts).

JAX itself (extra ``jax``) is imported when a function here is called.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ..counting import CopyCount
from ..errors import FieldError, OrderError, OwnerError, TilingError, extra
from ..layout import (
    F8F143,
    F16,
    F32,
    ROW_MAJOR,
    AxisTiling,
    OwnerMap,
    Precision,
    TensorAxis,
    TensorType,
    check_choice,
    check_instance,
)
from ..ownership import AxisCut, device_size, owner_tiles, resolve
from ..tables import Int64
from .mesh import UNEVEN, PlacedType, check_devices, count_between, extents, numbered, place

if TYPE_CHECKING:
    from jax.sharding import AbstractMesh, Mesh, NamedSharding

PRECISIONS: Final = {
    "float32": F32,
    "float16": F16,
    "bfloat16": F16,
    "float8_e4m3fn": F8F143(0),
    "float8_e4m3fnuz": F8F143(0),
}


def precision_of(dtype: Any) -> Precision:
    """The precision that stands for a dtype.

    A layout knows how wide an element is and nothing else of it, so bfloat16 is F16, and both 8-bit floats of four
    exponent bits are F8F143 with scale 2^0. For other dtypes of these widths give a precision of the width.

    Parameters
    ----------
    dtype : Precision, or what `numpy.dtype` takes of JAX, numpy or ml_dtypes, or the dtype's name

    Raises
    ------
    FieldError
        If no precision stands for it.
    """
    if isinstance(dtype, Precision):
        return dtype
    try:
        name = dtype if isinstance(dtype, str) else np.dtype(dtype).name
    except (TypeError, ValueError):
        name = str(dtype)
    if name not in PRECISIONS:
        names = ", ".join(PRECISIONS)
        raise FieldError(
            "no precision stands for this dtype", where="dtype", value=name, accepted=f"{names}, or a tiling.Precision"
        )
    return PRECISIONS[name]


def from_sharding(sharding: NamedSharding, shape: Iterable[int], dtype: Any, *, uneven: str = "error") -> PlacedType:
    """Read a sharding of an array.

    Parameters
    ----------
    sharding : jax.sharding.NamedSharding
        Its memory kind is not looked at. `reduced` axes replicate.
    shape : iterable of int
        The array's global shape, in elements.
    dtype : Precision or dtype
        See :func:`precision_of`.
    uneven : {"error", "pad"}
        What to do with an axis that its mesh axes don't divide: refuse it, as JAX does, or pad it with zeros to the
        next multiple, so that all shards have the same size (the last ones hold fewer elements then, or none).

    Returns
    -------
    PlacedType
        Tiles are numbered by their place in the mesh where each axis' partition is then a digit of that number;
        otherwise in a mesh whose axes are rearranged, and the owner map says which device is meant.

    Raises
    ------
    FieldError
        For other shardings, entries of the spec that leave an axis open, sums that are not reduced yet, other dtypes.
    TilingError
        For axes that don't divide, with the mesh axes that should.
    OwnerError
        If the mesh has a device twice.
    """
    check_choice(uneven, "uneven", UNEVEN)
    jax = extra("jax", "jax")
    check_instance(sharding, "sharding", jax.sharding.NamedSharding)
    precision = precision_of(dtype)
    shape = extents(shape)
    mesh, spec = sharding.mesh, sharding.spec
    if spec.unreduced:
        raise FieldError(
            "the devices hold partial sums", where="sharding.spec.unreduced", value=set(spec.unreduced), accepted="none"
        )
    entries = getattr(spec, "partitions", spec)  # newer specs with reduced axes can't be iterated over
    if len(entries) > len(shape):
        raise FieldError(
            "more entries than axes", where="sharding.spec", value=spec, accepted=f"at most {len(shape)} entries"
        )
    devices, names = _devices(mesh), list(mesh.axis_names)
    cuts = []
    for axis, entry in enumerate(entries):
        if entry is jax.sharding.PartitionSpec.UNCONSTRAINED:
            raise FieldError(
                "the compiler is free to cut this axis",
                where=f"sharding.spec[{axis}]",
                value=entry,
                accepted="None, a mesh axis, or a tuple of mesh axes",
            )
        cutters = () if entry is None else entry if isinstance(entry, tuple) else (entry,)
        mesh_axes = [names.index(name) for name in cutters]
        parts = prod(devices.shape[m] for m in mesh_axes)
        if shape[axis] % parts and uneven == "error":
            raise TilingError(
                f"the mesh axes {', '.join(map(str, cutters))} cut it in {parts}, which does not divide it",
                where=f"shape[{axis}]",
                value=shape[axis],
                accepted=f'multiples of {parts}, or uneven="pad"',
            )
        padding: dict[str, Any] = {"padding_multiple": parts, "padding": "Zero"} if shape[axis] % parts else {}
        cuts.append((AxisTiling(TensorAxis.of(axis), parts, **padding), mesh_axes))
    return place(shape, precision, devices, cuts)


def to_sharding(type: TensorType, mesh: Mesh | AbstractMesh, owners: OwnerMap | None = None) -> NamedSharding:
    """Give the sharding of a tensor type over a mesh; `from_sharding` reads it back to the same regions.

    Parameters
    ----------
    type : TensorType
        Row-major, cut into equal blocks without padding. Its precision and memory class are not in a sharding.
    mesh : jax.sharding.Mesh or AbstractMesh
        Of exactly the devices that own the tensor's tiles.
    owners : OwnerMap, optional
        The identity by default.

    Returns
    -------
    jax.sharding.NamedSharding
        Its spec has one entry for every tensor axis.

    Raises
    ------
    OrderError, TilingError, OwnerError
        If the type is not legal or no `PartitionSpec` can say it.
    """
    jax = extra("jax", "jax")
    check_instance(type, "type", TensorType)
    if owners is not None:
        check_instance(owners, "owners", OwnerMap)
    if not isinstance(mesh, (jax.sharding.Mesh, jax.sharding.AbstractMesh)):
        raise FieldError("wrong type", where="mesh", value=mesh, accepted="Mesh, AbstractMesh")
    owned = resolve(type)
    if type.order != ROW_MAJOR:
        raise OrderError("a sharding has no element order", where="type", value=type.order, accepted="RowMajor")
    if owned.is_linear:
        raise TilingError("a sharding cuts axes", where="type.tiling.axes", value=type.tiling, accepted="no Linear")
    devices = _devices(mesh)
    tiles = owner_tiles(owners, owned.tile_count, device_size([(owned.tile_count, owners)], None))
    for device in np.setxor1d(tiles, devices).tolist():
        raise OwnerError(
            "a device of the mesh owns no tile" if device in devices else "a tile's owner is not in the mesh",
            where="mesh",
            value=device,
            accepted="a mesh of the devices that own the tensor's tiles",
        )
    order = np.argsort(tiles)
    ordinals = order[np.searchsorted(tiles[order], devices)]
    spec: list[Any] = []
    for axis, (cut, stride) in enumerate(zip(owned.cuts, owned.strides, strict=True)):
        if not _is_even(cut):
            raise TilingError(
                f"the partitions of axis {axis} are padded or not of one size",
                where="type.tiling",
                value=type.tiling,
                accepted=f"divisors of {cut.extent} as partitions, without padding",
            )
        mesh_axes = _mesh_axes(ordinals // stride % cut.partitions, cut.partitions)
        if mesh_axes is None:
            raise TilingError(
                f"the partitions of axis {axis} don't follow whole mesh axes",
                where="type.tiling",
                value=type.tiling,
                accepted=f"a partition that is a number whose digits are coordinates in {mesh}",
            )
        names = tuple(mesh.axis_names[m] for m in mesh_axes)
        spec.append(names if len(names) > 1 else names[0] if names else None)
    return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*spec))


def count_resharding(
    source: NamedSharding,
    destination: NamedSharding,
    shape: Iterable[int],
    dtype: Any,
    *,
    uneven: str = "error",
) -> CopyCount:
    """Count the transfers that an array needs from one sharding to another, exactly.

    Parameters
    ----------
    source, destination : jax.sharding.NamedSharding
        Over the same or different meshes; devices are told apart by their numbers.
    shape, dtype, uneven
        As for :func:`from_sharding`.

    Returns
    -------
    CopyCount
        Its words per tile are those of device `d.id`.

    Raises
    ------
    LayoutError
        As `from_sharding` does; `where` begins with ``source`` or ``destination``.
    """
    return count_between(partial(from_sharding, shape=extents(shape), dtype=dtype, uneven=uneven), source, destination)


def _devices(mesh: Any) -> Int64:
    """The device at each coordinate of a mesh."""
    if isinstance(mesh, extra("jax", "jax").sharding.AbstractMesh):
        devices = numbered(mesh.axis_sizes)
    else:
        devices = np.array([device.id for device in mesh.devices.flat], np.int64).reshape(mesh.devices.shape)
    check_devices(devices)
    return devices


def _is_even(cut: AxisCut) -> bool:
    """Whether an axis is cut into equal blocks, with no padding."""
    width, rest = divmod(cut.extent, cut.partitions)
    start = np.arange(cut.partitions) * width
    return not rest and bool((cut.bounds == (start, start + width, start + width)).all())


def _mesh_axes(partition: NDArray[np.integer[Any]], partitions: int) -> list[int] | None:
    """The mesh axes, slowest first, whose coordinates are the digits of the partition at each mesh coordinate."""
    origin = (0,) * partition.ndim
    steps = [int(partition.take(min(1, n - 1), axis=m)[origin[1:]]) for m, n in enumerate(partition.shape)]
    digits = sorted((m for m in range(partition.ndim) if steps[m]), key=lambda m: -steps[m])
    count = 1
    for m in reversed(digits):
        if steps[m] != count:
            return None
        count *= partition.shape[m]
    number = sum(step * index for step, index in zip(steps, np.ogrid[*map(slice, partition.shape)], strict=True))
    return digits if count == partitions and (partition == number).all() else None
