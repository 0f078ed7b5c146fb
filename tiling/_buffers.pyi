from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

@disjoint_base
class Shards:
    def __init__(
        self,
        itemsize: int,
        table: NDArray[np.int64],
        start: NDArray[np.int64],
        logical_end: NDArray[np.int64],
        physical_end: NDArray[np.int64],
        at: NDArray[np.int64],
    ) -> None: ...
    def pack(self, array: NDArray[Any], data: NDArray[np.uint8]) -> None: ...
    def unpack(self, array: NDArray[Any], data: NDArray[np.uint8]) -> None: ...
    def stage(
        self,
        packing: bool,
        staged: NDArray[np.uint8],
        staged_at: NDArray[np.int64],
        data: NDArray[np.uint8],
    ) -> None: ...

def carry(
    source: NDArray[np.uint8],
    source_start: NDArray[np.int64],
    target: NDArray[np.uint8],
    target_start: NDArray[np.int64],
    source_tile: NDArray[np.int32],
    source_offset: NDArray[np.int64],
    size: NDArray[np.int64],
    destination_start: NDArray[np.int64] | None,
    destination_tile: NDArray[np.int32],
    destination_offset: NDArray[np.int64],
) -> int: ...
def clear(
    target: NDArray[np.uint8],
    start: NDArray[np.int64],
    tile: NDArray[np.int32],
    offset: NDArray[np.int64],
    size: NDArray[np.int64],
) -> int: ...
