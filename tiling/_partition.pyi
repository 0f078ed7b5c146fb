import numpy as np
from numpy.typing import NDArray

def fill_bounds(
    logical: int,
    groups: int,
    per_group: int,
    block: int,
    blocks: int,
    shard_multiple: int,
    start: NDArray[np.int64],
    logical_end: NDArray[np.int64],
    physical_end: NDArray[np.int64],
) -> None: ...
def fill_overlay(
    source: NDArray[np.int64],
    destination: NDArray[np.int64],
    offset: int,
    share_padding: bool,
    row: NDArray[np.int64],
    segments: NDArray[np.int64],
    carried: NDArray[np.int64],
) -> int: ...
