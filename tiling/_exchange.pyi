import numpy as np
from numpy.typing import NDArray

def add_words(
    source_tile: NDArray[np.int32],
    size: NDArray[np.int64],
    start: NDArray[np.int64],
    destination_tile: NDArray[np.int32],
    sent: NDArray[np.int64],
    received: NDArray[np.int64],
) -> None: ...
