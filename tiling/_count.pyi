import numpy as np
from numpy.typing import NDArray

from ._sides import SideTable

class Analysis:
    decided: bool
    def __init__(
        self,
        source: SideTable,
        destination: SideTable,
        offsets: NDArray[np.int64],
        share: bool,
        shape: NDArray[np.int64],
        same: bool,
    ) -> None: ...
    def load_device(
        self,
        source: NDArray[np.int32] | None,
        order: NDArray[np.int32] | None,
        destination: NDArray[np.int32] | None,
        holder: NDArray[np.int32],
        taker: NDArray[np.int32],
    ) -> None: ...
    def count(
        self, sent: NDArray[np.int64] | None = None, received: NDArray[np.int64] | None = None
    ) -> tuple[int, int, int, int, int] | None: ...

def count_many(
    sources: list[SideTable],
    destinations: list[SideTable],
    offsets: NDArray[np.int64],
    share: NDArray[np.uint8],
    out: NDArray[np.int64],
) -> None: ...
