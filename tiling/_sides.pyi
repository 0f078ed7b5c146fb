import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

@disjoint_base
class SideTable:
    has_classes: bool
    def __init__(
        self,
        itemsize: int,
        staged: bool,
        bounds: list[NDArray[np.int64]],
        strides: tuple[int, ...],
        digits: tuple[tuple[int, int, int], ...],
        tiles: int,
        replicas: int,
        stepped: bool,
    ) -> None: ...
    def load_classes(
        self,
        of_tile: NDArray[np.int32],
        partitions: NDArray[np.int32],
        row: NDArray[np.int64],
        ordinals: NDArray[np.int32],
    ) -> None: ...
    def load_pieces(self, row: NDArray[np.int64], begin: NDArray[np.int64], grain: int, scattered: bool) -> None: ...
