"""Other ecosystems' shardings, as tensor types and owner maps.

:mod:`tiling.interop.jax` reads and gives JAX's `NamedSharding`, :mod:`tiling.interop.dtensor` reads the placements of
PyTorch's DTensor. Both give a :class:`PlacedType`: a tensor type, and which device owns which of its tiles. A device
is one tile, and its shard is stored row-major.

Mesh axes that cut no tensor axis replicate: the devices along them hold the same region. A copy reads the replica on
the reading device itself if there is one (a local run, no transfer), else the first one in the order of the mesh.
Devices that need the same bytes of one shard get them in one multicast, which counts as one transfer. So n row blocks
on n devices need n transfers to be replicated, each to n - 1 others, and the way back needs none. Counts are those of
the contiguous runs that must move, not of the messages of some collective's algorithm (a ring, say).
"""

from .mesh import PlacedType, count_placed

__all__ = ["PlacedType", "count_placed"]
