from typing import Any

import numpy as np
from numpy.typing import NDArray

class SideTable:
    def __init__(
        self,
        itemsize: int,
        staged: bool,
        bounds: list[NDArray[np.int64]],
        digits: list[tuple[int, int, int]],
        classes: tuple[Any, ...],
        pieces: tuple[NDArray[np.int64], NDArray[np.int64], int, bool] | None,
        replicas: int,
    ) -> None: ...
