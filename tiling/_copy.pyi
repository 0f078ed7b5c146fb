from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

@disjoint_base
class Runs:
    def __init__(
        self,
        itemsize: int,
        source: tuple[Any, ...],
        tiles: tuple[Any, ...],
        linear: tuple[Any, ...] | None,
        destination: tuple[Any, ...],
        groups: tuple[Any, ...],
        joint: tuple[int, NDArray[np.int64]],
        to_linear: tuple[Any, ...] | None,
    ) -> None: ...
    def count(
        self, sent: NDArray[np.int64] | None = None, received: NDArray[np.int64] | None = None
    ) -> tuple[int, int, int, int, int]: ...
    def fill(
        self,
        source_tile: NDArray[np.int32],
        source_offset: NDArray[np.int64],
        size: NDArray[np.int64],
        start: NDArray[np.int64],
        destination_tile: NDArray[np.int32],
        destination_offset: NDArray[np.int64],
        local_tile: NDArray[np.int32],
        local_source: NDArray[np.int64],
        local_size: NDArray[np.int64],
        local_destination: NDArray[np.int64],
    ) -> tuple[int, int, int]: ...
