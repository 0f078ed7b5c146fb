"""The pictures of the documents, drawn by the library when they are built."""

from pathlib import Path

from tiling import (
    F16,
    ROW_MAJOR,
    Amp,
    AxisTiling,
    AxisView,
    BlockMajor,
    CoordinateMapping,
    ExchangePhase,
    OwnerMap,
    StorageMap,
    TensorType,
    plan_copy,
    plot_loads,
    plot_order,
    plot_tiling,
    plot_traffic,
    save_picture,
)
from tiling.report import example_cases

ORDERS = (  # and the shards that show them
    (ROW_MAJOR, [16, 32]),
    (BlockMajor("Matrix", 32, 8), [32, 32]),
    (Amp("Left"), [16, 32]),
    (Amp("TransposedLeft"), [32, 32]),
    (Amp("TransposedRight"), [32, 32]),
    (Amp("Output"), [8, 32]),
)


def pictures():
    """File names and figures."""
    yield "tiling.svg", plot_tiling(TensorType.tiled([12, 16], F16, {0: 3, 1: 4}))
    blocks = AxisTiling(0, 3, block_size=4, padding="Zero")
    padded = AxisTiling(1, 2, shard_padding_multiple=16, padding="Zero")
    yield "padding.svg", plot_tiling(TensorType.tiled([10, 28], F16, [blocks, padded]))
    yield "replicas.svg", plot_tiling(TensorType.tiled([2, 6], F16, {1: 3}, replicas=2))
    yield "turns.svg", plot_tiling(TensorType.tiled([2, 6], F16, [AxisTiling(1, 3, tile_stride=1)], replicas=2))
    yield "linear.svg", plot_tiling(TensorType.linear([4, 10], F16, 3, grain=4))
    for order, widths in ORDERS:
        yield f"order-{order.name}.svg", plot_order(StorageMap(order, F16, widths))
    rows = TensorType.tiled([8, 16], F16, {0: 4})
    yield "embedded.svg", plot_tiling(rows, OwnerMap(0, (7, 5, 3, 1)))
    yield "rotated.svg", plot_tiling(rows, OwnerMap(1, (7, 5, 3, 1)))
    rows, blocks = TensorType.tiled([64, 64], F16, {0: 16}), TensorType.tiled([64, 64], F16, {0: 4, 1: 4})
    yield "retile.svg", plot_traffic(plan_copy(rows, blocks))
    wide, heads = TensorType.tiled([2, 5, 12], F16, {0: 2}), TensorType.tiled([6, 5, 4], F16, {0: 6})
    yield "view.svg", plot_traffic(plan_copy(wide, heads, CoordinateMapping((), AxisView(2, 0, 3))))
    rows = TensorType.tiled([48, 64], F16, {0: 6})
    gather = plan_copy(rows, TensorType.tiled([48, 64], F16, {0: 2}))
    broadcast = plan_copy(rows, TensorType.replicated([48, 64], F16, 6))
    yield "loads.svg", plot_loads(ExchangePhase([gather, broadcast]))
    copies = example_cases().graphs[0][1][4].copies
    plans = [plan_copy(c.source, c.destination, c.mapping, device_tiles=c.device_tiles) for c in copies]
    yield "phase4.png", plot_traffic(ExchangePhase(plans), ["phase 4"])


def draw_all(folder: Path):
    folder.mkdir(exist_ok=True)
    for name, figure in pictures():
        save_picture(figure, folder / name)
