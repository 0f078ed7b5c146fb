import numpy as np
from numpy.typing import NDArray

from ._sides import SideTable

def count(
    source: SideTable,
    destination: SideTable,
    offsets: NDArray[np.int64],
    share: bool,
    shape: NDArray[np.int64],
    grain: int,
    same: bool,
    source_device: NDArray[np.int32] | None,
    destination_device: NDArray[np.int32] | None,
    holder: NDArray[np.int32],
    taker: NDArray[np.int32],
    sent: NDArray[np.int64],
    received: NDArray[np.int64],
) -> tuple[int, int, int, int] | None: ...
