import numpy as np
from numpy.typing import NDArray

def fill_offsets(
    table: NDArray[np.int64],
    widths: NDArray[np.int64],
    itemsize: int,
    coordinates: NDArray[np.int64],
    out: NDArray[np.int64],
) -> int: ...
def fill_coordinates(
    table: NDArray[np.int64],
    widths: NDArray[np.int64],
    itemsize: int,
    offsets: NDArray[np.int64],
    size: int,
    out: NDArray[np.int64],
) -> int: ...
def fill_spans(
    table: NDArray[np.int64],
    widths: NDArray[np.int64],
    itemsize: int,
    low: NDArray[np.int64],
    high: NDArray[np.int64],
    out: NDArray[np.int64] | None,
) -> int: ...
def fill_gaps(
    table: NDArray[np.int64],
    tile: NDArray[np.int32],
    widths: NDArray[np.int64],
    low: NDArray[np.int64],
    high: NDArray[np.int64],
    itemsize: int,
    tiles: NDArray[np.int32] | None,
    out: NDArray[np.int64] | None,
) -> int: ...
