"""Pictures: who owns which part of a tensor, the order of a shard's elements, and the traffic of phases.

Drawn with matplotlib (the extra `plot`), which is imported when a picture is asked for. Figures are made directly,
without pyplot and its global state, so they can be made on any thread and without a display. What is drawn is bounded
by pixels, not by elements: images are sampled and binned, and the titles say so.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import ceil, prod
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from .copying import CopyPlan
from .counting import CopyCount
from .errors import FieldError, SizeError, extra
from .exchange import ExchangePhase
from .files import check_target, write_whole
from .layout import OwnerMap, TensorAxis, TensorType, check_instance, check_integer
from .ownership import Ownership, device_size, owner_tiles, resolve
from .report import short_type
from .storage import StorageMap, digits
from .tables import Int32, Int64

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    Parent = Figure | SubFigure
    Draw = Callable[[Parent, ExchangePhase, float], None]

Part = ExchangePhase | CopyPlan | CopyCount

DPI: Final = 150
MOST_PANELS: Final = 36
MOST_PHASES: Final = 12
MOST_TILES: Final = 2**20
MOST_LENGTH: Final = 2**50  # of a drawn axis: its positions are exact in float64, and in int64 times the samples
WHOLE_SHARD: Final = 1024  # elements of a shard that is drawn whole; of larger ones a corner is
REACH: Final = (16, 64)  # least and most elements of such a corner along one axis

GREY: Final = "#555555"
BOUND_COLOUR: Final = "#D55E00"  # vermilion and blue of the palette by Okabe and Ito, apart for all kinds of eyes
LOAD_COLOUR: Final = "#0072B2"
LOADS: Final = ("sent", "received")
HATCH: Final = "////"
LEADING: Final = 1.35  # of lines of text
SMALL, LEAST = 8.0, 5.5  # font sizes in points
DIGIT: Final = 0.62  # width of a digit, of the font size
MOST_NUMBERS: Final = 600  # that are written in one panel
LEFT, RIGHT, BOTTOM, GAP = 1.0, 1.2, 0.9, 0.35  # margins, and the gaps between panels, in inches
WIDTH: Final = 6.2  # of what is drawn between the margins

Box = tuple[float, float, float, float]  # left, top, width, height; inches from the parent's upper left corner


# --- the public functions --------------------------------------------------------------------------------------------


def plot_tiling(
    type: TensorType,
    owners: OwnerMap | None = None,
    *,
    device_tiles: int | None = None,
    axes: Sequence[int] | None = None,
) -> Figure:
    """Draw which tile owns which part of a tensor.

    Rank 0 is one element and rank 1 one row. Of higher ranks two axes are drawn, with one panel for each combination of
    the other axes' partitions (36 evenly chosen ones if there are more, which the title says). Axes are drawn as they
    are stored, their partitions side by side with their padding (hatched); the ticks are tensor coordinates, in
    elements. A linear tiling is drawn over rows of the last axis, all other axes merged in row-major order.

    The colour is the device tile's number; the number itself stands in every part that has room for it. Of replicas the
    lowest tile gives the colour; "5 +11" are tile 5 and 11 others.

    Parameters
    ----------
    type : TensorType
    owners : OwnerMap, optional
    device_tiles : int, optional
        As for :func:`tiling.enumerate_shards`.
    axes : pair of int, optional
        The axes that go down and across, from the start or (negative) from the end. By default the two that are cut
        into the most partitions, later axes first where equal, in the tensor's order. Not for linear tilings.

    Returns
    -------
    matplotlib.figure.Figure
        The owners are the images with the gid "owners", one for each panel: a sample for each element, or for each
        pixel where there are fewer of them.

    Raises
    ------
    MissingExtraError
        Without matplotlib.
    TilingError, OrderError, OwnerError, FieldError
        If the type, the owner map or the axes are not legal.
    SizeError
        With over 2^20 tiles, or an axis over 2^50 elements.
    """
    scene = _scene(type, owners, device_tiles, axes)
    figure = _figure(*_tiling_size(scene))
    _draw_tiling(figure, scene)
    return figure


def plot_order(
    type: TensorType | StorageMap,
    owners: OwnerMap | None = None,
    *,
    shard: int = 0,
    device_tiles: int | None = None,
) -> Figure:
    """Draw the order of a shard's elements in memory, as a path through its last two axes.

    Arrows join elements that follow each other in memory, dotted lines those between which others come that are not in
    the picture; steps along a row or a column that pass others by are bent. A shard of over 1,024 elements, or 64 along
    an axis, is drawn by its first corner: two of the order's largest steps along each axis, 16 to 64 elements. Of ranks
    over 2 the first matrix is drawn. The title says so.

    Parameters
    ----------
    type : TensorType or StorageMap
        A storage map is one shard, without a place and without padding.
    owners, device_tiles
        As for :func:`tiling.enumerate_shards`.
    shard : int
        Its row in the shard table; 0 for a storage map.

    Returns
    -------
    matplotlib.figure.Figure
        The steps are the lines with the gids "path" (arrows) and "jumps" (dotted).

    Raises
    ------
    MissingExtraError
        Without matplotlib.
    TilingError, OrderError, OwnerError, SizeError, FieldError
        If the type, the owner map or the shard is not legal.
    """
    order = _Order(type, owners, shard, device_tiles)
    figure = _figure(*_order_size(order))
    _draw_order(figure, order)
    return figure


def plot_layout(
    type: TensorType,
    owners: OwnerMap | None = None,
    *,
    shard: int = 0,
    device_tiles: int | None = None,
    axes: Sequence[int] | None = None,
) -> Figure:
    """Draw `plot_tiling` and `plot_order` side by side; parameters and errors are theirs."""
    scene, order = _scene(type, owners, device_tiles, axes), _Order(type, owners, shard, device_tiles)
    (left, left_height), (right, right_height) = _tiling_size(scene), _order_size(order)
    figure = _figure(left + right, max(left_height, right_height))
    sides: Any = figure.subfigures(1, 2, wspace=0, width_ratios=[left, right])
    _draw_tiling(sides[0], scene)
    _draw_order(sides[1], order)
    return figure


def plot_traffic(parts: Part | Sequence[Part], titles: Sequence[str] | None = None) -> Figure:
    """Draw the words that go from tile to tile, and what each tile sends and receives against the bound.

    The matrix has a row for each source and a column for each destination; each destination of a multicast counts.
    Where there are more tiles than pixels, the words of a few tiles are summed. A count has no list: of phases with
    one, the loads alone are drawn. Words are 4 bytes, rounded up per transfer.

    Parameters
    ----------
    parts : ExchangePhase, CopyPlan or CopyCount, or a sequence of 1 to 12 of them
        Each has a picture of its own, in a grid.
    titles : sequence of str, optional
        What is written over each of them.

    Returns
    -------
    matplotlib.figure.Figure
        The matrix is the image with the gid "traffic"; loads and bounds are those of `plot_loads`.

    Raises
    ------
    MissingExtraError
        Without matplotlib.
    FieldError
        If the parts are not those, or the titles not as many.
    SizeError
        With over 2^20 tiles.
    """
    phases, names = _phases(parts, titles)
    side = 5.2 if len(phases) == 1 else 3.4
    return _grid(phases, names, _draw_traffic, side + 3.0, side + 2.5)


def plot_loads(parts: Part | Sequence[Part], titles: Sequence[str] | None = None) -> Figure:
    """Draw the words that each tile sends and receives, against the bound: the busiest tile's.

    Where there are more tiles than pixels, the busiest of every few is drawn. Parameters and errors are those of
    :func:`plot_traffic`.

    Returns
    -------
    matplotlib.figure.Figure
        The curves have the gids "sent" and "received", the lines at the bound "bound".
    """
    return _grid(*_phases(parts, titles), _draw_loads, 8.5, 5.5)


def save_picture(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure to a file, in the form that its suffix names (.png, .svg, .pdf and others).

    The file is replaced as a whole, or left as it was.

    Raises
    ------
    MissingExtraError
        Without matplotlib.
    FieldError
        If the suffix is none that matplotlib writes, or something is there that is no file.
    OSError
        If the file can't be written.
    """
    form = picture_form(path)
    out = io.BytesIO()
    figure.savefig(out, format=form)
    write_whole(path, out.getvalue())


def picture_form(path: str | os.PathLike[str]) -> str:
    """The picture format that a path's suffix names; for checks before anything is drawn, errors as `save_picture`."""
    accepted = sorted(extra("matplotlib.backend_bases", "plot").FigureCanvasBase.get_supported_filetypes())
    form = Path(path).suffix[1:].lower()
    if form not in accepted:
        raise FieldError(
            "no picture format has this suffix",
            where="path",
            value=os.fspath(path),
            accepted=", ".join(f".{name}" for name in accepted),
        )
    check_target(path)
    return form


# --- figures ---------------------------------------------------------------------------------------------------------


def _mpl(module: str) -> Any:
    return extra(f"matplotlib.{module}", "plot")


def _figure(width: float, height: float) -> Figure:
    figure: Figure = _mpl("figure").Figure(figsize=(_whole(width), _whole(height)), dpi=DPI, facecolor="white")
    return figure


def _whole(inches: float) -> float:
    """Whole pixels, so that the samples of an image can be as wide as each other."""
    return round(inches * DPI) / DPI


def _size(parent: Parent) -> tuple[float, float]:
    """Width and height in inches."""
    return parent.bbox.width / DPI, parent.bbox.height / DPI


def _add_axes(parent: Parent, box: Box, **more: Any) -> Axes:
    (width, height), (left, top, across, down) = _size(parent), map(_whole, box)
    axes = parent.add_axes((left / width, 1 - (top + down) / height, across / width, down / height), **more)
    axes.tick_params(labelsize=SMALL, length=2.5)
    return axes


def _wrapped(width: float, title: str, notes: Iterable[str]) -> list[tuple[str, float, str]]:
    """The lines of a caption that is so many inches wide: text, font size and colour."""
    parts = [(title, 10.0, "black"), *((note, SMALL, GREY) for note in notes)]
    return [
        (line, size, colour) for text, size, colour in parts for line in wrap(text, int((width - 0.6) * 130 / size))
    ]


def _caption_height(width: float, title: str, notes: Iterable[str]) -> float:
    return 0.45 + sum(size for _, size, _ in _wrapped(width, title, notes)) * LEADING / 72


def _caption(parent: Parent, title: str, notes: Iterable[str]) -> float:
    """Write a title and notes below it at the parent's upper edge; returns what height they take."""
    width, height = _size(parent)
    down = 0.12
    for line, size, colour in _wrapped(width, title, notes):
        parent.text(0.3 / width, 1 - down / height, line, size=size, color=colour, va="top", parse_math=False)
        down += size * LEADING / 72
    return _caption_height(width, title, notes)


def _shades(count: int, most: float = 1.0) -> Any:
    """So many colours of viridis, which is even to the eye and clear to the colour-blind; without the palest to 1."""
    shades = extra("matplotlib", "plot").colormaps["viridis"]
    return _mpl("colors").ListedColormap(shades(np.linspace(0, most, count)))


def _colour_bar(parent: Parent, box: Box, colours: Any, label: str) -> Any:
    bar = parent.colorbar(colours, cax=_add_axes(parent, box))
    bar.set_label(label, size=SMALL)
    bar.ax.tick_params(labelsize=SMALL, length=2.5)
    return bar


def _legend(parent: Parent, down: float, handles: list[Any]) -> None:
    """A legend in the lower margin of what ends so many inches down."""
    width, height = _size(parent)
    parent.legend(
        handles=handles, loc="upper left", bbox_to_anchor=(LEFT / width, 1 - (down + 0.5) / height),
        ncols=len(handles), frameon=False, fontsize=SMALL, borderpad=0, borderaxespad=0,
    )  # fmt: skip


def _hatch(axes: Axes, rectangles: list[Rectangle]) -> None:
    verts = [[(x, y), (x + w, y), (x + w, y + h), (x, y + h)] for x, y, w, h in rectangles]
    axes.add_collection(
        _mpl("collections").PolyCollection(verts, facecolor="none", edgecolor=GREY, linewidth=0, hatch=HATCH),
        autolim=False,
    )


def _padding_patch() -> Any:
    return _mpl("patches").Patch(facecolor="white", edgecolor=GREY, hatch=HATCH, linewidth=0, label="padding")


def _frame(axes: Axes, rows: _Line, columns: _Line, width: float, height: float) -> None:
    """Limits and ticks of axes of so many inches; rows go down."""
    axes.set_xlim(0, max(columns.length, 1))
    axes.set_ylim(max(rows.length, 1), 0)
    for axis, line, inches in ((axes.xaxis, columns, 1.3 * width), (axes.yaxis, rows, 2 * height)):
        axis.set_ticks(*(line.ticks(min(max(int(inches), 1), 10)) if line.name else ([], [])))


def _name_axes(parent: Parent, box: Box, rows: _Line, columns: _Line) -> None:
    """What goes down and across, written beside and below a box; upright where there is room."""
    (width, height), (left, top, across, down) = _size(parent), box
    is_upright = down > 2.2
    for line, x, y, turned in (
        (columns, left + across / 2, top + down + 0.35, False),
        (rows, 0.2 if is_upright else 0.45, top + down / 2, is_upright),
    ):
        if line.name:
            text = f"{line.name} (elements)"
            if line is rows and not is_upright:
                text = "\n".join(wrap(text, 11))
            where: dict[str, Any] = {"ha": "center", "va": "center", "rotation": 90 if turned else 0}
            parent.text(x / width, 1 - y / height, text, size=SMALL, **where)


def _ticks(axis: Any, most: int = 8) -> None:
    """At most so many whole numbers, written 1,472."""
    axis.set_major_locator(_mpl("ticker").MaxNLocator(most, integer=True))
    axis.set_major_formatter(_mpl("ticker").StrMethodFormatter("{x:,.0f}"))


def _say(axes: Axes, text: str) -> None:
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color=GREY, size=SMALL)


def _ink(colour: Sequence[float]) -> str:
    """Black or white, whichever can be read on a colour."""
    red, green, blue = colour[:3]
    return "black" if 0.3 * red + 0.59 * green + 0.11 * blue > 0.5 else "white"


# --- tilings ---------------------------------------------------------------------------------------------------------


class _Line:
    """An axis as it is drawn: its partitions side by side with their padding, so that nothing overlaps.

    `edges` (partitions + 1,) are the drawn positions, `start` and `logical` (partitions,) the tensor coordinates of the
    partitions and their widths without padding; all in elements.
    """

    def __init__(self, name: str, bounds: Int64) -> None:
        self.name, self.start, self.logical = name, bounds[0], bounds[1] - bounds[0]
        self.edges: Int64 = np.concatenate([[0], np.cumsum(bounds[2] - bounds[0])])
        self.partitions = len(self.start)
        self.length = int(self.edges[-1])

    @classmethod
    def of_axis(cls, owned: Ownership, axis: int) -> _Line:
        parts = owned.cuts[axis].partitions
        return cls(f"axis {axis}" + (f", {parts} partitions" if parts > 1 else ""), owned.cuts[axis].bounds)

    @classmethod
    def whole(cls, name: str, extent: int) -> _Line:
        return cls(name, np.array([[0], [extent], [extent]], np.int64))

    def samples(self, most: int) -> tuple[Int64, Int64]:
        """The elements at the centres of at most so many equal steps: drawn positions and partitions."""
        count = min(self.length, most)
        at = (2 * np.arange(count) + 1) * self.length // max(2 * count, 1)
        return at, np.searchsorted(self.edges, at, side="right") - 1

    def is_padding(self, at: Int64, part: Int64) -> NDArray[np.bool_]:
        padding: NDArray[np.bool_] = at - self.edges[part] >= self.logical[part]
        return padding

    def padding(self) -> list[tuple[int, int]]:
        """The drawn intervals that are padding: first position and length."""
        low, high = self.edges[:-1] + self.logical, self.edges[1:]
        return [(int(low[k]), int(high[k] - low[k])) for k in np.flatnonzero(low < high)]

    def ticks(self, most: int) -> tuple[list[int], list[str]]:
        """At most so many ticks: drawn positions, and tensor coordinates to write there.

        At partitions' starts, or at round numbers where there is one partition; and at the end.
        """
        used = np.flatnonzero(np.diff(self.edges))
        if not len(used):
            return [], []
        last = used[-1]
        end = int(self.edges[last] + self.logical[last])
        if len(used) == 1:
            step = next(
                step for power in range(19) for step in (10**power, 2 * 10**power, 5 * 10**power) if step * most >= end
            )
            pairs = [(at, at) for at in range(0, end, step)]
        else:
            chosen = used[:: ceil(len(used) / most)]
            pairs = list(zip(self.edges[chosen].tolist(), self.start[chosen].tolist(), strict=True))
        room = 0.6 * self.length / most
        pairs = [pair for pair in pairs if pair[0] == 0 or end - pair[0] >= room]
        pairs.append((end, int(self.start[last] + self.logical[last])))
        return [at for at, _ in pairs], [f"{c:,}" if c < 10**7 else f"{c:.4g}" for _, c in pairs]


Rectangle = tuple[int, int, int, int]  # left, top, width, height; drawn positions
Cell = tuple[Rectangle, Int32]  # a place for a number, and the tiles that own it


class _Scene:
    """What a picture of a tiling shows: an axis down and one across, and panels, each with an image and cells on it."""

    rows: _Line
    columns: _Line
    panels: list[str]  # their titles

    def __init__(self, type: TensorType, owned: Ownership, owners: OwnerMap | None, device_tiles: int) -> None:
        self.type, self.owned, self.device_tiles = type, owned, device_tiles
        self.device = owner_tiles(owners, owned.tile_count, device_tiles)
        self.notes = [] if owners is None else [f"{owners}"]

    def image(self, panel: int, across: int, down: int) -> tuple[Int32, NDArray[np.bool_]]:
        """The lowest tile that owns each of at most so many samples (down, across), and which are padding."""
        raise NotImplementedError

    def bands(self, panel: int) -> list[Rectangle]:
        """Where there is padding; they may overlap."""
        return []

    def cells(self, panel: int, width: float, height: float) -> Iterator[Cell]:
        """The parts that are at least so wide and high, in elements."""
        raise NotImplementedError

    def outlines(self, across: float, down: float) -> list[Any]:
        """Lines between parts, as vertices; where an element takes so many points, and the lines leave room."""
        raise NotImplementedError


class _Linear(_Scene):
    """Tile t has the elements `begin[t]` to `begin[t + 1]`, row after row."""

    def __init__(self, type: TensorType, owned: Ownership, owners: OwnerMap | None, device_tiles: int) -> None:
        super().__init__(type, owned, owners, device_tiles)
        *outer, self.width = type.shape
        name = {0: "", 1: "axis 0"}.get(len(outer), f"axes 0 to {len(outer) - 1} merged")
        self.rows, self.columns = _Line.whole(name, prod(outer)), _Line.whole(f"axis {len(outer)}", self.width)
        self.panels = [""]
        self.begin = _intervals(owned)

    def image(self, panel: int, across: int, down: int) -> tuple[Int32, NDArray[np.bool_]]:
        row, column = self.rows.samples(down)[0], self.columns.samples(across)[0]
        element = row[:, None] * self.width + column
        ordinal = np.searchsorted(self.begin, element, side="right") - 1
        return self.device[ordinal], np.zeros(element.shape, np.bool_)

    def cells(self, panel: int, width: float, height: float) -> Iterator[Cell]:
        """Of each tile the whole rows, or else the longer piece of a row."""
        begin, end = self.begin[:-1], self.begin[1:]
        first, last = -(-begin // self.width), end // self.width
        cut = np.clip(first * self.width, begin, end)
        low = np.where(cut - begin >= end - cut, begin, cut)
        is_block = first < last
        left = np.where(is_block, 0, low % self.width)
        top = np.where(is_block, first, low // self.width)
        across = np.where(is_block, self.width, np.maximum(cut - begin, end - cut))
        down = np.where(is_block, last - first, 1)
        for t in np.flatnonzero((across >= width) & (down >= height)).tolist():
            yield (int(left[t]), int(top[t]), int(across[t]), int(down[t])), self.device[t : t + 1]

    def outlines(self, across: float, down: float) -> list[Any]:
        rows = self.rows.length / self.owned.tile_count  # of a tile, on average
        if max(rows, 1) * down < LEAST or min(rows, 1) * self.width * across < LEAST / 2:
            return []
        row, column = np.divmod(self.begin[1:-1], self.width)
        return [
            [(self.width, r), (c, r), (c, r + 1), (0, r + 1)] if c else [(0, r), (self.width, r)]
            for r, c in zip(row.tolist(), column.tolist(), strict=True)
        ]


class _Boxes(_Scene):
    """The class of tiles that own a place is a sum over the axes' partitions; other axes' partitions give panels."""

    def __init__(
        self, type: TensorType, owned: Ownership, owners: OwnerMap | None, device_tiles: int, plane: list[int]
    ) -> None:
        super().__init__(type, owned, owners, device_tiles)
        drawn = [(_Line.of_axis(owned, a), owned.class_strides[a]) for a in plane]
        missing = [(_Line.whole("", 1), 0)] * (2 - len(plane))
        (self.rows, self.row_stride), (self.columns, self.column_stride) = missing + drawn
        _, self.member, ordinals = owned.classes
        self.members = self.device[ordinals]
        self.lowest: Int32 = np.minimum.reduceat(self.members, self.member[:-1])
        others = [a for a in range(owned.rank) if a not in plane]
        slices = list(product(*(np.flatnonzero(owned.cuts[a].widths).tolist() for a in others)))
        count = len(slices)
        if count > MOST_PANELS:
            slices = [slices[k * count // MOST_PANELS] for k in range(MOST_PANELS)]
        self.panels, self.bases, self.unused = [], [], []
        for parts in slices:
            bounds = {a: owned.cuts[a].bounds[:2, p].tolist() for a, p in zip(others, parts, strict=True)}
            cut = {a: bounds[a] for a in others if owned.cuts[a].partitions > 1}
            self.panels.append(_index(owned.rank, cut))
            self.bases.append(sum(p * owned.class_strides[a] for a, p in zip(others, parts, strict=True)))
            self.unused.append(any(start == end for start, end in bounds.values()))
        self._note(count)

    def _note(self, panels: int) -> None:
        owned = self.owned
        if owned.replicas > 1:
            lowest = f"colours and numbers are the lowest tile's, +{owned.replicas - 1} are the others"
            self.notes.append(f"{owned.replicas} replicas: each part is on {owned.replicas} tiles; {lowest}")
        filled = owned.replicas * prod(int(np.count_nonzero(cut.logical_widths)) for cut in owned.cuts)
        if filled < owned.tile_count:
            self.notes.append(f"{owned.tile_count - filled:,} of {owned.tile_count:,} tiles own no element")
        if panels > MOST_PANELS:
            self.notes.append(f"{MOST_PANELS} of {panels:,} slices are drawn")

    def image(self, panel: int, across: int, down: int) -> tuple[Int32, NDArray[np.bool_]]:
        (row, r), (column, c) = self.rows.samples(down), self.columns.samples(across)
        classes = self.bases[panel] + (r * self.row_stride)[:, None] + c * self.column_stride
        padding = self.rows.is_padding(row, r)[:, None] | self.columns.is_padding(column, c)
        return self.lowest[classes], padding | self.unused[panel]

    def bands(self, panel: int) -> list[Rectangle]:
        if self.unused[panel]:
            return [(0, 0, self.columns.length, self.rows.length)]
        return _bands(self.rows, self.columns)

    def cells(self, panel: int, width: float, height: float) -> Iterator[Cell]:
        for r in np.flatnonzero(self.rows.logical >= height).tolist():
            for c in np.flatnonzero(self.columns.logical >= width).tolist():
                k = self.bases[panel] + r * self.row_stride + c * self.column_stride
                corner = int(self.columns.edges[c]), int(self.rows.edges[r])
                widths = int(self.columns.logical[c]), int(self.rows.logical[r])
                yield (*corner, *widths), self.members[self.member[k] : self.member[k + 1]]

    def outlines(self, across: float, down: float) -> list[Any]:
        lines: list[Any] = []
        wide, high = self.columns.length, self.rows.length
        if high / self.rows.partitions * down >= LEAST / 2:
            lines += [[(0, y), (wide, y)] for y in self.rows.edges[1:-1].tolist()]
        if wide / self.columns.partitions * across >= LEAST / 2:
            lines += [[(x, 0), (x, high)] for x in self.columns.edges[1:-1].tolist()]
        return lines


def _intervals(owned: Ownership) -> Int64:
    """The first element of each tile of a linear tensor, and the end: (tiles + 1,); the first tiles have a grain more.

    `Ownership.pieces` has them too, beside a row for each piece; a picture needs no table.
    """
    short, long = divmod(prod(owned.shape) // owned.grain, owned.tile_count)
    ordinal = np.arange(owned.tile_count + 1)
    begin: Int64 = (ordinal * short + np.minimum(ordinal, long)) * owned.grain
    return begin


def _shard(owned: Ownership, shard: int) -> tuple[int, Int64]:
    """A shard's ordinal, and its start, logical end and physical end: (3, rank)."""
    if not owned.is_linear:
        ordinal = check_integer(shard, "shard", 0, owned.tile_count - 1)
        parts = [ordinal // s % cut.partitions for s, cut in zip(owned.strides, owned.cuts, strict=True)]
        bounds = [cut.bounds[:, part] for cut, part in zip(owned.cuts, parts, strict=True)]
        return ordinal, np.array(bounds, np.int64).reshape(-1, 3).T
    begin, width = _intervals(owned), owned.shape[-1]
    first = np.append(0, np.cumsum(-(-begin[1:] // width) - begin[:-1] // width))  # piece of each tile
    shard = check_integer(shard, "shard", 0, int(first[-1]) - 1)
    ordinal = int(np.searchsorted(first, shard, side="right")) - 1
    row = int(begin[ordinal]) // width + shard - int(first[ordinal])
    low, high = max(int(begin[ordinal]), row * width), min(int(begin[ordinal + 1]), (row + 1) * width)
    start = np.array(np.unravel_index(low, owned.shape), np.int64)
    end = start + 1
    end[-1] = start[-1] + high - low
    return ordinal, np.stack([start, end, end])


def _bands(rows: _Line, columns: _Line) -> list[Rectangle]:
    """Padding of the rows, all across, and of the columns, all down."""
    across = [(0, low, columns.length, length) for low, length in rows.padding()]
    return across + [(low, 0, length, rows.length) for low, length in columns.padding()]


def _index(rank: int, bounds: Mapping[int, Sequence[int]]) -> str:
    """A slice as Python writes it: [0, 4:8, :, :]; axes that are not named are whole."""
    words = [":"] * rank
    for axis, (start, end) in bounds.items():
        words[axis] = str(start) if end == start + 1 else f"{start}:{end}"
    return f"[{', '.join(words)}]"


def _checked(type: TensorType, owners: OwnerMap | None, device_tiles: int | None) -> tuple[Ownership, int]:
    """What follows from a type's tiling, and the device's tiles; few enough to draw."""
    check_instance(type, "type", TensorType)
    if owners is not None:
        check_instance(owners, "owners", OwnerMap)
    owned = resolve(type)
    return owned, _drawable(device_size([(owned.tile_count, owners)], device_tiles))


def _scene(
    type: TensorType, owners: OwnerMap | None, device_tiles: int | None, axes: Sequence[int] | None
) -> _Linear | _Boxes:
    owned, tiles = _checked(type, owners, device_tiles)
    longest = max((cut.total for cut in owned.cuts), default=0)
    if owned.is_linear:
        longest = max(longest, prod(type.shape[:-1]))
    if longest > MOST_LENGTH:
        raise SizeError("an axis is too long for a picture", where="type", value=longest, accepted="at most 2^50")
    if not owned.is_linear:
        return _Boxes(type, owned, owners, tiles, _plane(owned, axes))
    if axes is not None:
        raise FieldError("a linear tiling is drawn over its rows", where="axes", value=axes, accepted="None")
    return _Linear(type, owned, owners, tiles)


def _drawable(tiles: int) -> int:
    if tiles > MOST_TILES:
        raise SizeError("too many tiles for a picture", where="device_tiles", value=tiles, accepted="at most 2^20")
    return tiles


def _plane(owned: Ownership, axes: Sequence[int] | None) -> list[int]:
    """The axes that are drawn down and across; fewer than two below rank 2."""
    if axes is None:
        most_cut = sorted(range(owned.rank), key=lambda a: (owned.cuts[a].partitions, a))
        return sorted(most_cut[-2:])
    plane = [TensorAxis.of(a).resolve(owned.rank) for a in axes] if isinstance(axes, Sequence) else []
    if len(plane) != 2 or plane[0] == plane[1] or not all(0 <= a < owned.rank for a in plane):
        accepted = f"two different axes of {owned.rank}" if owned.rank > 1 else f"None for rank {owned.rank}"
        raise FieldError("not two axes", where="axes", value=axes, accepted=accepted)
    return plane


def _panel_grid(scene: _Scene) -> tuple[int, int, float, float]:
    """Panels down and across, and a panel's width and height in inches, near the tensor's proportions."""
    ratio = min(max(scene.rows.length / max(scene.columns.length, 1), 0.3), 1.1)
    if scene.rows.length == 1:
        ratio = 0.12
    count = max(len(scene.panels), 1)
    across = min(range(1, count + 1), key=lambda n: abs(ceil(count / n) * ratio / n - 0.8))
    width = (WIDTH - GAP * (across - 1)) / across
    return ceil(count / across), across, width, max(width * ratio, 0.5)


def _tiling_title(scene: _Scene) -> str:
    return f"Owners of {short_type(scene.type)}"


def _tiling_size(scene: _Scene) -> tuple[float, float]:
    down, _, _, height = _panel_grid(scene)
    width = LEFT + WIDTH + RIGHT
    top = _caption_height(width, _tiling_title(scene), scene.notes)
    return width, top + down * (height + GAP) - GAP + BOTTOM


def _draw_tiling(parent: Parent, scene: _Scene) -> None:
    down, across, width, height = _panel_grid(scene)
    top = _caption(parent, _tiling_title(scene), scene.notes)
    colours = _mpl("cm").ScalarMappable(
        _mpl("colors").Normalize(-0.5, scene.device_tiles - 0.5),
        _shades(min(scene.device_tiles, 256)),
    )
    has_padding = False
    for panel in range(max(len(scene.panels), 1)):
        i, j = divmod(panel, across)
        axes = _add_axes(parent, (LEFT + j * (width + GAP), top + i * (height + GAP), width, height))
        _frame(axes, scene.rows, scene.columns, width, height)
        if j:
            axes.set_yticklabels([])
        if panel + across < len(scene.panels):
            axes.set_xticklabels([])
        if not scene.panels or not scene.rows.length or not scene.columns.length:
            _say(axes, "no elements")
            continue
        if len(scene.panels) > 1:
            title = scene.panels[panel]
            axes.set_title(title, size=min(SMALL, 72 * width / (DIGIT * len(title))), pad=2)
        has_padding |= _draw_panel(axes, scene, panel, colours, width, height)
    bottom = top + down * (height + GAP) - GAP
    _name_axes(parent, (LEFT, top, WIDTH, bottom - top), scene.rows, scene.columns)
    bar = _colour_bar(parent, (LEFT + WIDTH + 0.15, top, 0.15, bottom - top), colours, "tile")
    _tile_axis(bar.ax.yaxis, "tile", min(int(4 * (bottom - top)), 9))
    if has_padding:
        _legend(parent, bottom, [_padding_patch()])


def _draw_panel(axes: Axes, scene: _Scene, panel: int, colours: Any, width: float, height: float) -> bool:
    """Image, padding, outlines and numbers of a panel of so many inches; returns whether there is padding."""
    tiles, padding = scene.image(panel, int(width * DPI), int(height * DPI))
    place: dict[str, Any] = {
        "extent": (0, scene.columns.length, scene.rows.length, 0), "aspect": "auto", "interpolation": "nearest",
    }  # fmt: skip
    axes.imshow(tiles, cmap=colours.cmap, norm=colours.norm, gid="owners", **place)
    if padding.any():
        white = _mpl("colors").ListedColormap(["white"])
        axes.imshow(np.ma.masked_equal(padding, False), cmap=white, alpha=0.6, gid="padding", **place)
        _hatch(axes, scene.bands(panel))
    across, down = 72 * width / scene.columns.length, 72 * height / scene.rows.length
    lines = _mpl("collections").LineCollection(scene.outlines(across, down), colors="white", linewidths=0.6)
    axes.add_collection(lines, autolim=False)
    numbers = []
    for (left, top, wide, high), owners in scene.cells(panel, LEAST * DIGIT / across, LEAST * LEADING / down):
        for text in _numbers(owners):
            size = min(10.0, wide * across / (DIGIT * (len(text) + 1)), high * down / LEADING)
            if size >= LEAST:
                numbers.append((left + wide / 2, top + high / 2, text, size, int(owners.min())))
                break
    if len(numbers) > MOST_NUMBERS:
        numbers = []
    usual = np.median([size for _, _, _, size, _ in numbers]) if numbers else LEAST
    for x, y, text, size, tile in numbers:
        axes.text(
            x, y, text, size=min(size, usual), color=_ink(colours.to_rgba(tile)), ha="center", va="center", gid="number"
        )
    return bool(padding.any())


def _numbers(tiles: Int32) -> Iterator[str]:
    """How the tiles of a part could be written, best first."""
    more = len(tiles) - 1
    if 0 < more < 4:
        yield ", ".join(map(str, sorted(tiles.tolist())))
    if more:
        yield f"{tiles.min()} +{more}"
    yield f"{tiles.min()}"


# --- orders ----------------------------------------------------------------------------------------------------------


class _Order:
    """A shard's corner: the elements of its first matrix, in the order of memory.

    `rows` and `columns` are the corner's, with padding; `position` (n,) are places in memory, counted in elements and
    ascending, and `point` (n, 2) the row and column that are stored there.
    """

    def __init__(
        self, type: TensorType | StorageMap, owners: OwnerMap | None, shard: int, device_tiles: int | None
    ) -> None:
        self.notes: list[str] = []
        if isinstance(type, StorageMap):
            check_integer(shard, "shard", 0, 0)
            self.map, logical = type, type.widths
            what = f"{list(logical)}"
        else:
            owned, tiles = _checked(type, owners, device_tiles)
            ordinal, (start, end, physical) = _shard(owned, shard)
            tile = owner_tiles(owners, owned.tile_count, tiles)[ordinal]
            self.map, logical = StorageMap(type.order, type.precision, physical - start), tuple((end - start).tolist())
            bounds = dict(enumerate(zip(start.tolist(), end.tolist(), strict=True)))
            what = f"shard {shard} on tile {tile}, {_index(owned.rank, bounds)}"
        self.title = f"Order of {what} {self.map.precision} {self.map.order}"
        widths, rank = self.map.widths, len(self.map.widths)
        whole, used = (1, 1, *widths)[-2:], (1, 1, *logical)[-2:]
        corner = whole
        if prod(whole) > WHOLE_SHARD or max(whole) > REACH[1]:
            corner = min(whole[0], self._reach(-2)), min(whole[1], self._reach(-1))
            self.notes.append(f"the first {corner[0]} x {corner[1]} of {whole[0]:,} x {whole[1]:,} elements")
        if rank > 2:
            self.notes.append(f"the first matrix, [{'0, ' * (rank - 2)}:, :] of the shard's {list(widths)}")
        names = f"axis {rank - 2}" * (rank > 1), f"axis {rank - 1}" * (rank > 0)
        # Where an outer axis has nothing but padding, so has its first matrix.
        self.rows, self.columns = (
            _Line(name, np.array([[0], [min(part, cut) * (0 not in logical[:-2])], [cut * (self.map.bytes > 0)]]))
            for name, part, cut in zip(names, used, corner, strict=True)
        )
        grid = np.indices((self.rows.length, self.columns.length), np.int64).reshape(2, -1).T
        points = np.zeros((len(grid), rank), np.int64)
        points[:, -2:] = grid[:, max(2 - rank, 0) :]
        position = self.map.offset(points) // self.map.precision.itemsize
        order = np.argsort(position)
        self.position, self.point = position[order], grid[order]

    def _reach(self, axis: int) -> int:
        """How far a corner goes along an axis: two of the largest steps that the order takes along it."""
        rank, (least, most) = len(self.map.widths), REACH
        steps = [step for a, step, _ in digits(self.map.order, self.map.precision, rank) if a == rank + axis]
        return min(max(2 * max(steps, default=1), least), most)


def _element(order: _Order) -> float:
    """The side of an element in inches."""
    return min(WIDTH / max(order.columns.length, order.rows.length, 1), 0.7)


def _order_box(order: _Order) -> tuple[float, float]:
    if not len(order.point):
        return 2.0, 0.8
    return _element(order) * order.columns.length, _element(order) * order.rows.length


def _order_size(order: _Order) -> tuple[float, float]:
    width, height = _order_box(order)
    width = LEFT + max(width, 3.5) + RIGHT
    return width, _caption_height(width, order.title, order.notes) + max(height, 0.8) + BOTTOM


def _curves(point: NDArray[np.float64], start: Int64) -> NDArray[np.float64]:
    """The steps from some points to the next, as lines (steps, 9, 2).

    Those along a row or a column that pass others by are bent, so that they can be told from the steps between those.
    """
    step = point[start + 1] - point[start]
    passes = ((step == 0).any(axis=1) & (np.abs(step).max(axis=1, initial=0) > 1))[:, None, None]
    aside = np.sign(step)[:, None, ::-1] * [1, -1]
    t = np.linspace(0, 1, 9)[:, None]
    curves: NDArray[np.float64] = point[start][:, None] + t * step[:, None] + passes * 1.4 * t * (1 - t) * aside
    return curves


def _draw_order(parent: Parent, order: _Order) -> None:
    top = _caption(parent, order.title, order.notes)
    width, height = _order_box(order)
    axes = _add_axes(parent, (LEFT, top, width, height))
    _frame(axes, order.rows, order.columns, width, height)
    _name_axes(parent, (LEFT, top, width, height), order.rows, order.columns)
    if not len(order.point):
        _say(axes, "nothing stored")
        return
    lines = _mpl("collections").LineCollection
    right, down = order.columns.length, order.rows.length
    grid = [[(x, 0), (x, down)] for x in range(1, right)] + [[(0, y), (right, y)] for y in range(1, down)]
    axes.add_collection(lines(grid, colors="#dddddd", linewidths=0.4), autolim=False)
    padding = _bands(order.rows, order.columns)
    _hatch(axes, padding)
    step = np.diff(order.position)
    jumps = np.stack([order.point[:-1], order.point[1:]], axis=1)[step > 1][..., ::-1] + 0.5
    axes.add_collection(lines(jumps, colors=GREY, linewidths=0.6, linestyles=":", gid="jumps"), autolim=False)
    colours = _mpl("cm").ScalarMappable(
        _mpl("colors").Normalize(0, max(int(order.position[-1]), 1)), _shades(256, 0.85)
    )
    x, y = (order.point[:, ::-1] + 0.5).T
    start = np.flatnonzero(step == 1)
    curves = _curves(np.stack([x, y], axis=1), start)
    shaft = min(0.05 * _element(order), 0.02)
    form = {"cmap": colours.cmap, "norm": colours.norm}
    path = lines(curves, array=order.position[start], linewidths=72 * shaft, gid="path", **form)
    axes.add_collection(path, autolim=False)
    if len(start):
        last = curves[:, -1] - curves[:, -2]
        last *= 0.6 / np.linalg.norm(last, axis=1, keepdims=True)
        axes.quiver(
            *(curves[:, -1] - last).T, *last.T, order.position[start], angles="xy", scale_units="xy", scale=1,
            units="inches", width=shaft, headwidth=5, headlength=5, headaxislength=4.5, minlength=0, **form,
        )  # fmt: skip
    axes.plot(x[:1], y[:1], "o", color=colours.to_rgba(0), markersize=5, gid="first")
    if 72 * _element(order) > 3 * SMALL and len(x) <= MOST_NUMBERS:
        for at, (row, column) in zip(order.position.tolist(), order.point.tolist(), strict=True):
            axes.text(column + 0.06, row + 0.08, f"{at}", size=LEAST, color=GREY, ha="left", va="top", gid="number")
    size = order.map.precision.itemsize
    label = f"place in memory\n(elements of {size} byte{'s' * (size > 1)})"
    bar = _colour_bar(parent, (LEFT + width + 0.15, top, 0.15, max(height, 1.3)), colours, label)
    _ticks(bar.ax.yaxis, max(int(2 * height), 1))
    key = _mpl("lines").Line2D
    keys = [key([], [], color=colours.to_rgba(0), marker="o", linestyle="", markersize=5, label="first")]
    if len(start):
        keys.append(key([], [], color=colours.to_rgba(0), linewidth=1.2, label="next in memory"))
    if len(jumps):
        keys.append(key([], [], color=GREY, linewidth=0.8, linestyle=":", label="others between"))
    _legend(parent, top + height, keys + [_padding_patch()] * bool(padding))


# --- traffic ---------------------------------------------------------------------------------------------------------


def _phases(parts: Part | Sequence[Part], titles: Sequence[str] | None) -> tuple[list[ExchangePhase], list[str]]:
    listed = list(parts) if isinstance(parts, Sequence) else [parts]
    if not 1 <= len(listed) <= MOST_PHASES:
        accepted = f"1 to {MOST_PHASES} in one picture"
        raise FieldError("not a number of phases to draw", where="parts", value=len(listed), accepted=accepted)
    phases = []
    for i, part in enumerate(listed):
        if not isinstance(part, Part):
            accepted = "ExchangePhase, CopyPlan, CopyCount"
            raise FieldError("not a phase or a copy", where=f"parts[{i}]", value=part, accepted=accepted)
        phases.append(part if isinstance(part, ExchangePhase) else ExchangePhase([part]))
        _drawable(phases[-1].device_tiles)
    names = [""] * len(phases) if titles is None else list(titles)
    if len(names) != len(phases):
        raise FieldError("not one title for each part", where="titles", value=titles, accepted=f"{len(phases)} titles")
    return phases, names


def _grid(phases: list[ExchangePhase], titles: list[str], draw: Draw, width: float, height: float) -> Figure:
    """One picture of so many inches for each phase, in rows of at most three."""
    across = min(len(phases), 2 if len(phases) == 4 else 3)
    down = ceil(len(phases) / across)
    figure = _figure(width * across, height * down)
    cells = figure.subfigures(down, across, wspace=0, hspace=0, squeeze=False).ravel()
    for cell, phase, title in zip(cells, phases, titles, strict=False):
        figures = f"{phase.transfers:,} transfers, {phase.bytes:,} bytes, bound {phase.endpoint_lower_bound:,} words"
        top = _caption(cell, title or figures, [figures] if title else [])
        draw(cell, phase, top)
    return figure


def _draw_loads(parent: Parent, phase: ExchangePhase, top: float) -> None:
    width, height = _size(parent)
    each = (height - top - BOTTOM - GAP) / 2
    bins = max(ceil(phase.device_tiles / ((width - LEFT - 0.4) * DPI)), 1)
    for i, name in enumerate(LOADS):
        axes = _add_axes(parent, (LEFT, top + i * (each + GAP), width - LEFT - 0.4, each))
        _curve(axes, phase, name, bins)
        words = getattr(phase, f"{name}_words")
        busiest = f"{name}: most on tile {words.argmax():,}, {words.max():,} words" if words.any() else f"{name}: none"
        axes.set_title(busiest, size=SMALL, pad=3, loc="left")
        _ticks(axes.yaxis, 5)
        axes.set_xlim(-0.5, max(phase.device_tiles, 1) - 0.5)
        _tile_axis(axes.xaxis, "tile" if i else "")
    _legend(parent, height - BOTTOM, _load_keys(phase, bins))


def _draw_traffic(parent: Parent, phase: ExchangePhase, top: float) -> None:
    """The matrix; over its columns what tiles receive, and beside its rows what they send."""
    if any(isinstance(part, CopyCount) for part in phase.parts):
        return _draw_loads(parent, phase, top)
    width, height = _size(parent)
    strip, gap = 0.7, 0.1
    side = min(width - LEFT - strip - gap - RIGHT, height - top - strip - gap - BOTTOM)
    tiles, limit = max(phase.device_tiles, 1), int(side * DPI)
    bins = ceil(tiles / limit)
    count = ceil(tiles / bins)
    side = limit // count * count / DPI  # each bin as many pixels as the others
    left, low = LEFT, top + strip + gap
    axes = _add_axes(parent, (left, low, side, side))
    over = _add_axes(parent, (left, top, side, strip))
    beside = _add_axes(parent, (left + side + gap, low, strip, side))
    source, destination, words = phase.traffic
    matrix = np.zeros((count, count), np.int64)
    np.add.at(matrix, (source // bins, destination // bins), words)
    end = bins * count - 0.5
    if len(words):
        norm, is_wide = _norm(int(matrix[matrix > 0].min()), int(matrix.max()))
        image = axes.imshow(
            np.ma.masked_equal(matrix, 0), cmap=_shades(256, 0.95).reversed(), norm=norm, gid="traffic",
            interpolation="nearest", aspect="auto", extent=(-0.5, end, end, -0.5),
        )  # fmt: skip
        place = (left + side + gap + strip + 0.2, low, 0.15, side)
        bar = _colour_bar(parent, place, image, f"words per {bins} x {bins} tiles" if bins > 1 else "words")
        _ticks(bar.ax.yaxis)
        if is_wide:
            bar.ax.yaxis.set_major_locator(_mpl("ticker").LogLocator(subs=(1, 2, 5)))
            bar.ax.yaxis.set_minor_locator(_mpl("ticker").NullLocator())
    else:
        _say(axes, "no transfers")
    _curve(over, phase, "received", bins)
    _curve(beside, phase, "sent", bins, upright=False)
    for each, name in ((axes, "destination tile"), (over, "")):
        _tile_axis(each.xaxis, name)
        each.set_xlim(-0.5, end)
    for each, name in ((axes, "source tile"), (beside, "")):
        _tile_axis(each.yaxis, name)
        each.set_ylim(end, -0.5)
    _legend(parent, low + side, _load_keys(phase, bins))


def _norm(least: int, most: int) -> tuple[Any, bool]:
    """How words become colours, and whether by equal ratios: where the most are many times the least."""
    norms = _mpl("colors")
    if most > 20 * least:
        return norms.LogNorm(least, most), True
    return norms.Normalize(0, most), False


def _curve(axes: Axes, phase: ExchangePhase, name: str, bins: int, upright: bool = True) -> None:
    """The words that tiles send or receive, and the bound; tiles go to the right, or (not upright) down."""
    words, bound = getattr(phase, f"{name}_words"), phase.endpoint_lower_bound
    edges = np.append(np.arange(0, len(words), bins), len(words))
    heights = np.maximum.reduceat(words, edges[:-1]) if len(words) else words
    form: dict[str, Any] = {"fill": True, "color": LOAD_COLOUR, "gid": name}
    axes.stairs(heights, edges - 0.5, orientation="vertical" if upright else "horizontal", **form)
    line = axes.axhline if upright else axes.axvline
    line(bound, color=BOUND_COLOUR, linestyle="--", linewidth=1.2, gid="bound")
    across, limits = (axes.yaxis, axes.set_ylim) if upright else (axes.xaxis, axes.set_xlim)
    limits(0, max(1.1 * bound, 1))
    across.set_ticks(*([0, bound], ["0", f"{bound:,}"]) if bound else ([0], ["0"]))
    across.set_label_text(f"{name}\n(words)" if upright else f"{name} (words)", size=SMALL)
    axes.spines[["top", "right"]].set_visible(False)


def _tile_axis(axis: Any, name: str, most: int = 8) -> None:
    """Ticks and label of an axis of tiles; without a name the one beside it has them."""
    _ticks(axis, most)
    axis.set_label_text(name, size=SMALL)
    if not name:
        axis.set_major_formatter(_mpl("ticker").NullFormatter())


def _load_keys(phase: ExchangePhase, bins: int) -> list[Any]:
    load = f"words of a tile (the busiest of each {bins})" if bins > 1 else "words of a tile"
    bound = f"bound: {phase.endpoint_lower_bound:,} words"
    return [
        _mpl("patches").Patch(facecolor=LOAD_COLOUR, label=load),
        _mpl("lines").Line2D([], [], color=BOUND_COLOUR, linestyle="--", linewidth=1.2, label=bound),
    ]
