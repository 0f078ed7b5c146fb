import numpy as np
from numpy.typing import NDArray

from ._count import Analysis

def is_filled(analysis: Analysis) -> bool: ...
def fill(
    analysis: Analysis,
    tile_of_class: NDArray[np.int32],
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
