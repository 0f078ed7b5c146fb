"""Counts that no list could hold, against closed forms worked out by hand; and many counts at once."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tiling
from tiling import F16, F32, AxisTiling, CoordinateMapping, TensorType
from tiling.regions import check

LONGEST = 16_592


def test_rows_to_columns_of_2_to_40_elements():
    """n x n tiles exchange blocks of rows: every tile sends each row of its block to each other tile."""
    n, tiles = 2**20, 2**10
    source, destination = TensorType.sharded([n, n], F16, 0, tiles), TensorType.sharded([n, n], F16, 1, tiles)
    count = tiling.count_copy(source, destination)
    side = n // tiles
    assert count.transfers == tiles * (tiles - 1) * side == 1_072_693_248
    assert count.local_runs == tiles * side
    assert count.bytes == count.transfers * side * 2
    assert count.misaligned == 0
    assert set(count.sent_words.tolist()) == set(count.received_words.tolist()) == {(tiles - 1) * side * side // 2}


def test_a_billion_odd_messages():
    """Columns of 1,023 F16 elements: every message is 2,046 bytes, 512 words, and no whole number of them."""
    tiles, side, width = 2**10, 2**10, 1023
    shape = [tiles * side, tiles * width]
    source, destination = TensorType.sharded(shape, F16, 0, tiles), TensorType.sharded(shape, F16, 1, tiles)
    count = tiling.count_copy(source, destination)
    assert count.transfers == count.misaligned == tiles * (tiles - 1) * side == 1_072_693_248
    assert set(count.sent_words.tolist()) == set(count.received_words.tolist()) == {(tiles - 1) * side * 512}


@pytest.mark.parametrize("precision", [F16, F32])
def test_over_2_to_31_transfers(precision):
    """A transpose of storage moves element by element: n^2 of them, but for what stays on its tile."""
    n, tiles = 2**17, 2**8
    lanes = tiling.Amp("TransposedLeft")
    source = TensorType.sharded([n, n], precision, 0, tiles, block_size=8)
    destination = TensorType.sharded([n, n], precision, 1, tiles, order=lanes)
    count = tiling.count_copy(source, destination, staging="none")
    assert count.misaligned == (0 if precision == F32 else count.transfers)
    assert set(count.sent_words.tolist()) == {n * n // tiles * (tiles - 1) // tiles}
    assert count.transfers == n * n // tiles * (tiles - 1) == 17_112_760_320
    assert count.local_runs == n * n // tiles
    assert count.bytes == precision.itemsize * count.transfers
    with pytest.raises(tiling.TooManyTransfersError, match="17112760320"):
        tiling.plan_copy(source, destination, staging="none", max_transfers=10**9)
    with pytest.raises(tiling.SizeError, match="transfers"):
        tiling.plan_copy(source, destination, staging="none")


def test_65_536_tiles():
    """256 x 256 blocks to rows: each row takes from the 256 blocks beside each other, each block from itself."""
    tiles = 2**16
    blocks = TensorType.tiled([tiles, 4096], F16, {0: 256, 1: 256})
    rows = TensorType.sharded([tiles, 4096], F16, 0, tiles)
    count = tiling.count_copy(blocks, rows)
    # Row r is in the blocks of row block r // 256, on tiles r // 256 + 256 * k; it is on tile r itself.
    stays = sum(1 for r in range(tiles) if r % 256 == r // 256)
    assert count.transfers == tiles * 256 - stays
    assert count.local_runs == stays
    assert count.endpoint_lower_bound == max(256 * 16 // 2, 256 * 8)


@pytest.mark.parametrize("scale", [1, 1000])
def test_long_runs_are_cut_in_the_count_too(scale):
    """1-D repartition of 6 into 4: 8 overlaps of which 2 stay; each is cut at the longest message."""
    size = 12_000 * scale
    source, destination = TensorType.sharded([size], F16, 0, 6), TensorType.sharded([size], F16, 0, 4)
    count = tiling.count_copy(source, destination)
    twelfth = size // 12
    # Source parts of 2 twelfths, destination parts of 3: overlaps (source, destination, twelfths).
    overlaps = [(0, 0, 2), (1, 0, 1), (1, 1, 1), (2, 1, 2), (3, 2, 2), (4, 2, 1), (4, 3, 1), (5, 3, 2)]
    moved = [n * twelfth * 2 for a, b, n in overlaps if a != b]
    assert count.transfers == sum(-(-n // LONGEST) for n in moved)
    assert count.bytes == sum(moved)
    assert count.local_runs == 2
    if scale == 1:
        assert len(tiling.plan_copy(source, destination).transfers) == count.transfers


def test_panels_a_thousand_times_wider_are_counted_the_same_way():
    """The closed form decides wide and narrow alike: work does not grow with the extents."""
    for scale in (1, 1000):
        source = TensorType.tiled([4, 64, 1152 * scale], F16, [AxisTiling(2, 4, block_size=2), AxisTiling(0, 4)],
                                  order=tiling.Amp("TransposedLeft"))  # fmt: skip
        destination = TensorType.tiled([4, 64, 1152 * scale], F16, [AxisTiling(2, 16, block_size=2)],
                                       order=tiling.Amp("TransposedLeft"))  # fmt: skip
        assert check(source, destination).analysis.decided
        # 16 parts of 72 columns and 16 rows each; a quarter of a source shard's 4 x 4 panels and parts.
        pieces = -(-72 * scale * 16 * 2 // LONGEST)
        count = tiling.count_copy(source, destination)
        assert count.transfers + pieces * count.local_runs == 4 * 4 * 16 * pieces


def test_offsets_and_replicas():
    """Three quarters of the rows, twice: each of six parts goes once to two tiles, none of which has it already."""
    source = TensorType.sharded([64, 16], F16, 0, 8)
    destination = TensorType.tiled([48, 16], F16, {0: 3}, replicas=2)
    count = tiling.count_copy(source, destination, CoordinateMapping([16, 0]))
    # Source tile t has rows 8t..8t+8; destination part p (tiles 2p, 2p+1) rows 16p+16..16p+32: source tiles 2p+2, 2p+3.
    assert count.transfers == 6
    assert count.local_runs == 0
    assert count.received_words.tolist() == [128] * 6 + [0, 0]
    assert count.sent_words.tolist() == [0, 0] + [64] * 6


def pairs(n):
    made = []
    for k in range(n):
        source = TensorType.sharded([96, 64], F16, k % 2, 1 + k % 7)
        destination = TensorType.sharded([96, 64], F16, 1 - k % 2, 1 + k % 5)
        made.append((source, destination) if k % 3 else (source, destination, None))
    return made


def test_many_counts_with_threads_and_progress():
    asked, calls = pairs(600), []
    alone = tiling.count_copies(asked, progress=lambda done, total: calls.append((done, total)))
    assert calls == [(256, 600), (512, 600), (600, 600)]
    with ThreadPoolExecutor(2) as executor:
        together = tiling.count_copies(asked, executor=executor)
    for name in ("transfers", "bytes", "misaligned", "local_runs", "bound", "destination_tile_bytes"):
        assert getattr(alone, name).tolist() == getattr(together, name).tolist()
    assert alone.transfers.tolist() == [tiling.count_copy(*pair).transfers for pair in asked]
    assert len(tiling.count_copies([])) == 0


def test_many_counts_name_the_pair_that_is_wrong():
    whole = TensorType.replicated([4], F16, 1)
    asked = [*pairs(300), (whole, TensorType.replicated([5], F16, 1))]
    with pytest.raises(tiling.CopyError, match=r"pairs\[300\].*outside"):
        tiling.count_copies(asked)


def test_results_are_their_own():
    """Kept analyses don't share arrays with results."""
    pair = pairs(3)[2]
    first, second = tiling.count_copy(*pair), tiling.count_copy(*pair)
    first.sent_words[:] = -1
    assert (second.sent_words >= 0).all()
    assert np.shares_memory(first.sent_words, second.sent_words) is False


def test_plans_counts_and_errors_go_between_processes():
    source, destination, *_ = pairs(2)[1]
    plan = tiling.plan_copy(source, destination)
    again = pickle.loads(pickle.dumps(plan))
    assert again.transfers.bytes.tolist() == plan.transfers.bytes.tolist()
    assert again.zero_fill.offset.tolist() == plan.zero_fill.offset.tolist()
    count = pickle.loads(pickle.dumps(tiling.count_copy(source, destination)))
    assert (count.transfers, count.staging) == (len(plan.transfers), plan.staging)
    for error in (
        tiling.DumpError("breaks off", line=3, column=7, value="x", accepted="a field"),
        tiling.CopyError("wrong", where="mapping", value=3),
    ):
        same = pickle.loads(pickle.dumps(error))
        assert type(same) is type(error)
        assert (str(same), vars(same)) == (str(error), vars(error))


def test_single_columns_go_to_a_linear_side_and_back_in_any_order():
    """One column wide, rows are all there is; a packed order scatters them."""
    line = TensorType.linear([2, 2, 32, 1], F32, 4)
    panels = TensorType.replicated([2, 2, 32, 1], F32, 3, order=tiling.Amp("TransposedOutput"))
    array = np.arange(1, 129, dtype=np.uint32).reshape(line.shape)
    for source, destination in ((line, panels), (panels, line)):
        plan = tiling.plan_copy(source, destination, staging="none", device_tiles=4)
        done = tiling.execute(plan, tiling.pack(array, source, device_tiles=4))
        assert (done.data == tiling.pack(array, destination, device_tiles=4).data).all()


def test_one_element_padded_to_blocks():
    source = TensorType.tiled(
        [1, 1], F16,
        [AxisTiling(0, 3, shard_padding_multiple=16, padding="Zero", tile_stride=1),
         AxisTiling(1, 2, shard_padding_multiple=2, padding="Zero", tile_stride=1)],
        order=tiling.BlockMajor("Matrix", 16, 2),
    )  # fmt: skip
    for destination in (source, TensorType.replicated([1, 1], F16, 5)):
        count, plan = tiling.count_copy(source, destination), tiling.plan_copy(source, destination)
        assert (count.transfers, count.local_runs) == (len(plan.transfers), len(plan.local))
        assert count.transfers + count.local_runs <= 5
