import numpy as np
from numpy.typing import NDArray

def fill_classes(
    axes: NDArray[np.int64],
    replicas: int,
    of_tile: NDArray[np.int32],
    row: NDArray[np.int64],
    tiles: NDArray[np.int32],
) -> int: ...
def fill_shards(
    axes: NDArray[np.int64],
    bounds: NDArray[np.int64],
    device: NDArray[np.int32] | None,
    itemsize: int,
    count: int,
    device_tiles: int,
    words: NDArray[np.int64],
) -> None: ...
def count_pieces(
    grains: int, grain: int, tiles: int, columns: int, begin: NDArray[np.int64], first: NDArray[np.int64]
) -> int: ...
def fill_pieces(
    begin: NDArray[np.int64],
    first: NDArray[np.int64],
    columns: int,
    piece_begin: NDArray[np.int64],
    piece_ordinal: NDArray[np.int32],
) -> None: ...
def fill_linear_shards(
    shape: NDArray[np.int64],
    piece_begin: NDArray[np.int64],
    piece_ordinal: NDArray[np.int32],
    device: NDArray[np.int32] | None,
    itemsize: int,
    device_tiles: int,
    words: NDArray[np.int64],
) -> None: ...
