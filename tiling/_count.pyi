from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

from ._sides import SideTable

@disjoint_base
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
        device: tuple[Any, ...] | None,
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
