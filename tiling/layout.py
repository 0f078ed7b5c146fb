"""Value types: what a tensor's layout is, and its JSON form.

Every type is frozen, hashable and comparable, and checks its own fields when it is made; whether a tiling fits a tensor
(axes in range, padding, tile counts) is decided where it is used, by :mod:`tiling.ownership`. The JSON form is the one
that serde gives the same types of the compiler, so its files are read as they are.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeVar, cast, get_args

import msgspec
import msgspec.yaml
from msgspec import Struct
from msgspec.structs import force_setattr

from .errors import FieldError, LayoutError, extra
from .files import file_name, read_whole

MAX_TILES: Final = 2**31 - 1
MAX_SIZE: Final = 2**63 - 1

Padding = Literal["Reject", "Zero"]
MemoryClass = Literal["Ipu21Standard", "Ipu21Interleaved"]

AmpRole = Literal["Left", "TransposedLeft", "TransposedRight", "Output", "TransposedOutput"]
BlockKind = Literal["Matrix", "TransposedMatrix"]
AMP_ROLES: Final[tuple[str, ...]] = get_args(AmpRole)
BLOCK_KINDS: Final[tuple[str, ...]] = get_args(BlockKind)


# --- checks of single fields -----------------------------------------------------------------------------------------


def check_integer(value: Any, where: str, low: int, high: int = MAX_SIZE) -> int:
    """`value` as an int in [low, high]; numpy's integers are taken, booleans and floats are not."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool) or not low <= number <= high:
        top = {MAX_SIZE: "2^63-1", MAX_TILES: "2^31-1"}.get(high, str(high))
        raise FieldError("not an integer in range", where=where, value=value, accepted=f"integers from {low} to {top}")
    return number


def _sequence(value: Any, where: str) -> tuple[Any, ...]:
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise FieldError("not a sequence", where=where, value=value, accepted="a list or tuple")
    return tuple(value)


def _integers(value: Any, where: str, low: int) -> tuple[int, ...]:
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise FieldError("not a sequence of integers", where=where, value=value, accepted="a list or tuple of integers")
    return tuple(check_integer(item, f"{where}[{i}]", low) for i, item in enumerate(value))


def check_choice(value: Any, where: str, choices: Sequence[str]) -> None:
    if not isinstance(value, str) or value not in choices:
        raise FieldError("unknown name", where=where, value=value, accepted=", ".join(choices))


def check_instance(value: Any, where: str, kind: type) -> None:
    if not isinstance(value, kind):
        raise FieldError("wrong type", where=where, value=value, accepted=kind.__name__)


# --- the JSON form ---------------------------------------------------------------------------------------------------


def _decode(kind: Any, obj: Any) -> Any:
    try:
        if isinstance(obj, (str, bytes)):
            return msgspec.json.decode(obj, type=kind, dec_hook=_variant_from_json)
        return msgspec.convert(obj, type=kind, dec_hook=_variant_from_json)
    except msgspec.ValidationError as error:
        what, _, path = str(error).partition(" - at `$")
        path = path.rstrip("`").lstrip(".")
        cause = error.__cause__
        if isinstance(cause, FieldError):  # from one of our own checks: keep its parts, prefix the path
            raise (cause.under(path) if path else cause) from None
        raise FieldError(what[:1].lower() + what[1:], where=path or kind.__name__) from None
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise FieldError(f"not JSON ({error})", where=kind.__name__) from None


class Record(Struct, frozen=True, forbid_unknown_fields=True):
    """A value type whose JSON form is an object with the fields' names."""

    @classmethod
    def from_json(cls, obj: Any) -> Self:
        """Read the JSON form: a dict as `json.loads` gives it, or its text (str or bytes).

        Raises
        ------
        FieldError
            With the path of the field that is missing, unknown, of the wrong type or out of range.
        """
        return cast(Self, _decode(cls, obj))

    def to_json(self) -> dict[str, Any]:
        """The JSON form as a dict; `from_json` reads it back to an equal value."""
        return cast("dict[str, Any]", msgspec.json.decode(msgspec.json.encode(self, enc_hook=_variant_to_json)))


R = TypeVar("R", bound=Record)


class _Variant:
    """A value type whose JSON form is serde's externally tagged enum: a name, or an object with one key."""

    __slots__ = ("_hash", "_key")
    _key: tuple[Any, ...]
    _hash: int
    _JSON: str

    def __init__(self, *key: Any) -> None:
        object.__setattr__(self, "_key", key)
        object.__setattr__(self, "_hash", hash(key))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._key == other._key

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> Any:
        return type(self), self._key

    @classmethod
    def from_json(cls, obj: Any) -> Self:
        """Read the JSON form (a str is the name itself; text of JSON is taken as bytes)."""
        if isinstance(obj, bytes):
            try:
                obj = msgspec.json.decode(obj)
            except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
                raise FieldError(f"not JSON ({error})", where=cls.__name__) from None
        return cast(Self, _variant_from_json(cls, obj))

    @classmethod
    def _of_tag(cls, tag: str, content: Any) -> Self:
        raise NotImplementedError

    def to_json(self) -> Any:
        """The JSON form: a name, or a dict with one key."""
        raise NotImplementedError


def _variant_from_json(kind: Any, obj: Any) -> Any:
    if isinstance(obj, str):
        return kind._of_tag(obj, None)
    if isinstance(obj, Mapping) and len(obj) == 1:
        ((tag, content),) = obj.items()
        if content is not None:
            return kind._of_tag(tag, content)
    raise FieldError("not a variant", value=obj, accepted=kind._JSON)


def _variant_to_json(value: Any) -> Any:
    return value.to_json()


def _content(tag: str, content: Any, fields: tuple[str, ...]) -> tuple[Any, ...]:
    """The fields of a struct variant; all must be there and no others."""
    if not isinstance(content, Mapping) or set(content) != set(fields):
        raise FieldError("wrong fields", where=tag, value=content, accepted=f"an object with {', '.join(fields)}")
    return tuple(content[name] for name in fields)


# --- the types -------------------------------------------------------------------------------------------------------


class Precision(_Variant):
    """An element type: `F16`, `F32` or `F8F143(scale_exponent)`.

    The scale is a power of two for the whole tensor; it does not affect layout, but precisions are equal only with
    equal scales.
    """

    __slots__ = ()
    _JSON = '"F16", "F32", {"F8F143": {"scale_exponent": 0}}'
    _ITEMSIZES: Final = {"F16": 2, "F32": 4, "F8F143": 1}

    def __init__(self, name: str, scale_exponent: int | None = None) -> None:
        check_choice(name, "precision", tuple(self._ITEMSIZES))
        if name == "F8F143":
            scale_exponent = check_integer(scale_exponent, "F8F143.scale_exponent", -(2**31), 2**31 - 1)
        elif scale_exponent is not None:
            raise FieldError("only F8F143 has a scale", where="scale_exponent", value=scale_exponent, accepted="None")
        super().__init__(name, scale_exponent)

    @property
    def name(self) -> str:
        """F16, F32 or F8F143."""
        return cast(str, self._key[0])

    @property
    def scale_exponent(self) -> int | None:
        """The power of two of F8F143, else None."""
        return cast("int | None", self._key[1])

    @property
    def itemsize(self) -> int:
        """Bytes per element: 1, 2 or 4."""
        return self._ITEMSIZES[self._key[0]]

    @property
    def lane(self) -> int:
        """Elements in 32 bytes, the innermost unit of the packed orders."""
        return 32 // self.itemsize

    @classmethod
    def _of_tag(cls, tag: str, content: Any) -> Self:
        if content is None:
            check_choice(tag, "", ("F16", "F32"))
            return cls(tag)
        check_choice(tag, "", ("F8F143",))
        return cls(tag, *_content(tag, content, ("scale_exponent",)))

    def to_json(self) -> Any:
        return self.name if self.scale_exponent is None else {self.name: {"scale_exponent": self.scale_exponent}}

    def __repr__(self) -> str:
        return self.name if self.scale_exponent is None else f"{self.name}({self.scale_exponent})"


F16: Final = Precision("F16")
F32: Final = Precision("F32")


def F8F143(scale_exponent: int) -> Precision:
    """The 8-bit float with a power-of-two scale for the whole tensor."""
    return Precision("F8F143", scale_exponent)


class TensorAxis(_Variant):
    """An axis by its index from the start (0 is first) or from the end (1 is last), or `Linear`: all axes flattened."""

    __slots__ = ()
    _JSON = '{"FromStart": 0}, {"FromEnd": 1}, "Linear"'

    def __init__(self, kind: str, index: int | None = None) -> None:
        check_choice(kind, "axis", ("FromStart", "FromEnd", "Linear"))
        if kind == "Linear":
            if index is not None:
                raise FieldError("Linear has no index", where="axis", value=index, accepted="None")
        else:
            index = check_integer(index, f"axis.{kind}", int(kind == "FromEnd"), MAX_TILES)
        super().__init__(kind, index)

    @classmethod
    def of(cls, axis: TensorAxis | int | str) -> TensorAxis:
        """An axis as people write it: 0, 1, .. from the start; -1, -2, .. from the end; "Linear"."""
        if isinstance(axis, TensorAxis):
            return axis
        if axis == "Linear":
            return cls("Linear")
        number = check_integer(axis, "axis", -MAX_TILES, MAX_TILES)
        return cls("FromStart", number) if number >= 0 else cls("FromEnd", -number)

    @property
    def is_linear(self) -> bool:
        """Whether it stands for all axes, flattened."""
        return self.kind == "Linear"

    @property
    def kind(self) -> str:
        """FromStart, FromEnd or Linear."""
        return cast(str, self._key[0])

    @property
    def index(self) -> int | None:
        """From 0 at the start, from 1 at the end; None for Linear."""
        return cast("int | None", self._key[1])

    def resolve(self, rank: int) -> int:
        """The axis' number from the start in a tensor of this rank; may be out of range, which the caller checks."""
        kind, index = self._key
        return cast(int, index if kind == "FromStart" else rank - index)

    @classmethod
    def _of_tag(cls, tag: str, content: Any) -> Self:
        if content is None:
            check_choice(tag, "", ("Linear",))
            return cls(tag)
        check_choice(tag, "", ("FromStart", "FromEnd"))
        return cls(tag, content)

    def to_json(self) -> Any:
        return "Linear" if self.is_linear else {self.kind: self.index}

    def __repr__(self) -> str:
        return {"Linear": "Linear", "FromStart": f"{self.index}", "FromEnd": f"-{self.index}"}[self.kind]


LINEAR: Final = TensorAxis("Linear")


class ElementOrder(_Variant):
    """How the elements of one shard follow each other in memory: `RowMajor`, `BlockMajor(..)` or `Amp(role)`."""

    __slots__ = ()
    _JSON = '"RowMajor", {"Amp": "Left"}, {"BlockMajor": {"Matrix": {"row_block": 16, "column_block": 16}}}'

    def __init__(self, name: str, row_block: int | None = None, column_block: int | None = None) -> None:
        check_choice(name, "order", ("RowMajor", *BLOCK_KINDS, *AMP_ROLES))
        if name in BLOCK_KINDS:
            row_block = check_integer(row_block, "row_block", 1)
            column_block = check_integer(column_block, "column_block", 1)
        elif row_block is not None or column_block is not None:
            raise FieldError("only block-major orders have blocks", where="order", value=name, accepted="no blocks")
        super().__init__(name, row_block, column_block)

    @property
    def name(self) -> str:
        """RowMajor, Matrix, TransposedMatrix, Left, TransposedLeft, TransposedRight, Output or TransposedOutput."""
        return cast(str, self._key[0])

    @property
    def row_block(self) -> int | None:
        """Elements; None for orders without blocks."""
        return cast("int | None", self._key[1])

    @property
    def column_block(self) -> int | None:
        """Elements; None for orders without blocks."""
        return cast("int | None", self._key[2])

    @property
    def lanes_along(self) -> Literal["rows", "columns"] | None:
        """The lane order: which elements of a matrix stand side by side in a lane; None for RowMajor and outputs."""
        if self.name in ("Left", "TransposedRight", "TransposedMatrix"):
            return "rows"
        return "columns" if self.name in ("TransposedLeft", "Matrix") else None

    @classmethod
    def _of_tag(cls, tag: str, content: Any) -> Self:
        if content is None:
            check_choice(tag, "", ("RowMajor",))
            return cls(tag)
        check_choice(tag, "", ("BlockMajor", "Amp"))
        if tag == "Amp":
            check_choice(content, "Amp", AMP_ROLES)
            return cls(content)
        if not isinstance(content, Mapping) or len(content) != 1:
            raise FieldError(
                "wrong fields", where="BlockMajor", value=content, accepted="one of " + ", ".join(BLOCK_KINDS)
            )
        ((kind, blocks),) = content.items()
        check_choice(kind, "BlockMajor", BLOCK_KINDS)
        return cls(kind, *_content(kind, blocks, ("row_block", "column_block")))

    def to_json(self) -> Any:
        if self.name in BLOCK_KINDS:
            return {"BlockMajor": {self.name: {"row_block": self.row_block, "column_block": self.column_block}}}
        return self.name if self.name == "RowMajor" else {"Amp": self.name}

    def __repr__(self) -> str:
        if self.name in BLOCK_KINDS:
            return f"BlockMajor.{self.name}({self.row_block}x{self.column_block})"
        return self.name if self.name == "RowMajor" else f"Amp.{self.name}"


ROW_MAJOR: Final = ElementOrder("RowMajor")


def BlockMajor(kind: BlockKind, row_block: int, column_block: int) -> ElementOrder:
    """Blocks of a matrix: `row_block` rows by `column_block` columns, or, transposed, columns by rows.

    A lane of 32 bytes lies along the block's rows ("Matrix": a lane down a column of the tensor, "TransposedMatrix":
    along a row of it), so `row_block` is a multiple of the lane's elements.
    """
    check_choice(kind, "BlockMajor", BLOCK_KINDS)
    return ElementOrder(kind, row_block, column_block)


def Amp(role: AmpRole) -> ElementOrder:
    """The order of one operand of the matrix unit: Left, TransposedLeft, TransposedRight, Output, TransposedOutput."""
    check_choice(role, "Amp", AMP_ROLES)
    return ElementOrder(role)


class AxisTiling(Record, frozen=True):
    """How one axis is cut into partitions.

    Parameters
    ----------
    axis : TensorAxis or int or "Linear"
        Which axis; integers as numpy counts them (-1 is the last).
    partitions : int
        How many, at least 1.
    padding_groups : int
        The axis is cut into this many equal groups first, each padded on its own.
    block_size : int
        Elements that are never cut apart (`Linear`: the grain).
    padding_multiple : int
        The axis (each group) is padded to a multiple of this; `block_size` when left out.
    shard_padding_multiple : int
        Each partition's allocation is padded to a multiple of this.
    padding : "Reject" or "Zero"
        Whether padding that is needed is an error or filled with zeros.
    tile_stride : int or None
        The tile number's step along this axis; None packs.
    """

    axis: TensorAxis
    partitions: int
    padding_groups: int = 1
    block_size: int = 1
    padding_multiple: int = cast(int, None)
    shard_padding_multiple: int = 1
    padding: Padding = "Reject"
    tile_stride: int | None = None

    if TYPE_CHECKING:  # fields are narrower than what is taken for them, here and below

        def __init__(
            self,
            axis: TensorAxis | int | Literal["Linear"],
            partitions: int,
            padding_groups: int = 1,
            block_size: int = 1,
            padding_multiple: int | None = None,
            shard_padding_multiple: int = 1,
            padding: Padding = "Reject",
            tile_stride: int | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        if not isinstance(self.axis, TensorAxis):
            force_setattr(self, "axis", TensorAxis.of(self.axis))
        if self.padding_multiple is None:
            force_setattr(self, "padding_multiple", self.block_size)
        for name in ("partitions", "padding_groups", "block_size", "padding_multiple", "shard_padding_multiple"):
            high = MAX_TILES if name == "partitions" else MAX_SIZE
            force_setattr(self, name, check_integer(getattr(self, name), name, 1, high))
        if self.tile_stride is not None:
            force_setattr(self, "tile_stride", check_integer(self.tile_stride, "tile_stride", 1, MAX_TILES))
        check_choice(self.padding, "padding", ("Reject", "Zero"))

    def __repr__(self) -> str:
        words = [f"{self.axis} in {self.partitions}"]
        words += [f"{self.padding_groups} groups"] if self.padding_groups != 1 else []
        words += [f"block {self.block_size}"] if self.block_size != 1 else []
        words += [f"padded to {self.padding_multiple}"] if self.padding_multiple != self.block_size else []
        words += [f"shards padded to {self.shard_padding_multiple}"] if self.shard_padding_multiple != 1 else []
        words += ["no padding"] if self.padding == "Reject" else []
        words += [f"stride {self.tile_stride}"] if self.tile_stride is not None else []
        return " ".join(words)


class TensorTiling(Record, frozen=True):
    """How a tensor is cut over tiles: `tile_count` = `replicas` times the product of the partitions.

    `axes` lists the tiled axes; others are whole on every tile. Without an explicit stride the tile number packs the
    replicas first, then the axes in listed order.
    """

    tile_count: int
    replicas: int = 1
    axes: tuple[AxisTiling, ...] = ()

    if TYPE_CHECKING:

        def __init__(self, tile_count: int, replicas: int = 1, axes: Iterable[AxisTiling] = ()) -> None: ...

    def __post_init__(self) -> None:
        force_setattr(self, "tile_count", check_integer(self.tile_count, "tile_count", 1, MAX_TILES))
        force_setattr(self, "replicas", check_integer(self.replicas, "replicas", 1, MAX_TILES))
        if not isinstance(self.axes, tuple):
            force_setattr(self, "axes", _sequence(self.axes, "axes"))
        for i, axis in enumerate(self.axes):
            check_instance(axis, f"axes[{i}]", AxisTiling)

    @property
    def is_linear(self) -> bool:
        """Whether any axis entry is `Linear` (it must then be the only one)."""
        for axis in self.axes:  # noqa: SIM110  (in the planner's loop; a generator would cost more than the rest)
            if axis.axis is LINEAR or axis.axis == LINEAR:
                return True
        return False

    def __repr__(self) -> str:
        axes = ", ".join(map(repr, self.axes)) or "whole"
        copies = f" x{self.replicas} replicas" if self.replicas != 1 else ""
        return f"{self.tile_count} tiles{copies}: {axes}"


class Layout(Record, frozen=True):
    """An element order, a tiling, and a memory class (a label that is carried along)."""

    order: ElementOrder
    tiling: TensorTiling
    memory_class: MemoryClass = "Ipu21Standard"

    def __post_init__(self) -> None:
        check_instance(self.order, "order", ElementOrder)
        check_instance(self.tiling, "tiling", TensorTiling)
        check_choice(self.memory_class, "memory_class", ("Ipu21Standard", "Ipu21Interleaved"))


class TensorFormat(Record, frozen=True):
    """A precision and a layout."""

    precision: Precision
    layout: Layout

    def __post_init__(self) -> None:
        check_instance(self.precision, "precision", Precision)
        check_instance(self.layout, "layout", Layout)


class TensorType(Record, frozen=True):
    """A tensor's shape and format: everything that decides where its bytes are, but for its owner map."""

    shape: tuple[int, ...]
    format: TensorFormat

    def __post_init__(self) -> None:
        force_setattr(self, "shape", _integers(self.shape, "shape", 0))
        check_instance(self.format, "format", TensorFormat)

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def precision(self) -> Precision:
        """That of the format."""
        return self.format.precision

    @property
    def order(self) -> ElementOrder:
        """That of the layout."""
        return self.format.layout.order

    @property
    def tiling(self) -> TensorTiling:
        """That of the layout."""
        return self.format.layout.tiling

    def __repr__(self) -> str:
        return f"TensorType({list(self.shape)} {self.precision} {self.order}, {self.tiling})"

    # The comfortable ways in.

    @classmethod
    def tiled(
        cls,
        shape: Iterable[int],
        precision: Precision,
        axes: Mapping[int, int] | Iterable[AxisTiling] = (),
        *,
        order: ElementOrder = ROW_MAJOR,
        replicas: int = 1,
        tile_count: int | None = None,
        memory_class: MemoryClass = "Ipu21Standard",
    ) -> Self:
        """A tensor cut along axes: `{axis: partitions}` or a list of :class:`AxisTiling`.

        `tile_count` is implied by the partitions and the replicas when it is left out.
        """
        cuts = (
            tuple(AxisTiling(cast(TensorAxis, a), p) for a, p in axes.items())
            if isinstance(axes, Mapping)
            else _sequence(axes, "axes")
        )
        for i, cut in enumerate(cuts):
            check_instance(cut, f"axes[{i}]", AxisTiling)
        if tile_count is None:
            tile_count = replicas
            for cut in cuts:
                tile_count *= cut.partitions
        tiling = TensorTiling(tile_count, replicas, cuts)
        return cls(cast("tuple[int, ...]", shape), TensorFormat(precision, Layout(order, tiling, memory_class)))

    @classmethod
    def replicated(
        cls, shape: Iterable[int], precision: Precision, tiles: int, *, order: ElementOrder = ROW_MAJOR
    ) -> Self:
        """A tensor that is whole on each of `tiles` tiles."""
        return cls.tiled(shape, precision, order=order, replicas=tiles)

    @classmethod
    def linear(cls, shape: Iterable[int], precision: Precision, tiles: int, grain: int = 1) -> Self:
        """A tensor whose elements in row-major order are dealt out in contiguous intervals of whole grains."""
        return cls.tiled(shape, precision, [AxisTiling(LINEAR, tiles, block_size=grain)])

    @classmethod
    def sharded(
        cls,
        shape: Iterable[int],
        precision: Precision,
        axis: int,
        tiles: int,
        *,
        block_size: int = 1,
        padding: Padding = "Zero",
        order: ElementOrder = ROW_MAJOR,
    ) -> Self:
        """A tensor cut along one axis into `tiles` partitions of whole blocks."""
        cut = AxisTiling(cast(TensorAxis, axis), tiles, block_size=block_size, padding=padding)
        return cls.tiled(shape, precision, [cut], order=order)


class OwnerMap(Record, frozen=True):
    """Which device tile owns a tiling's ordinal: `embedding[(ordinal + rotation) % n]`, n = len(embedding).

    Without an embedding it is `(ordinal + rotation) % device_tiles`.
    """

    rotation: int = 0
    embedding: tuple[int, ...] | None = None

    if TYPE_CHECKING:

        def __init__(self, rotation: int = 0, embedding: Iterable[int] | None = None) -> None: ...

    def __post_init__(self) -> None:
        force_setattr(self, "rotation", check_integer(self.rotation, "rotation", 0, MAX_TILES))
        if self.embedding is not None:
            force_setattr(self, "embedding", _integers(self.embedding, "embedding", 0))

    def __repr__(self) -> str:
        where = "" if self.embedding is None else f", embedded in {len(self.embedding)} tiles"
        return f"OwnerMap(rotation {self.rotation}{where})"


class AxisView(Record, frozen=True):
    """Splits one axis and merges its slow part into another: [.., split = f*w, .., merge = m] to [.., w, .., m*f].

    `reversed` is the inverse. Axes count from the start and differ; the factor divides.
    """

    split_axis: int
    merge_axis: int
    factor: int
    reversed: bool = False

    def __post_init__(self) -> None:
        force_setattr(self, "split_axis", check_integer(self.split_axis, "split_axis", 0, MAX_TILES))
        force_setattr(self, "merge_axis", check_integer(self.merge_axis, "merge_axis", 0, MAX_TILES))
        force_setattr(self, "factor", check_integer(self.factor, "factor", 1))
        if not isinstance(self.reversed, bool):
            raise FieldError("not a boolean", where="reversed", value=self.reversed, accepted="True, False")
        if self.split_axis == self.merge_axis:
            raise FieldError(
                "the axes are the same",
                where="merge_axis",
                value=self.merge_axis,
                accepted="an axis other than split_axis",
            )


class CoordinateMapping(Record, frozen=True):
    """Which source coordinate a destination coordinate takes its value from: `d + offsets`, seen through a view.

    No offsets (an empty tuple) means zeros.
    """

    offsets: tuple[int, ...] = ()
    view: AxisView | None = None

    if TYPE_CHECKING:

        def __init__(self, offsets: Iterable[int] = (), view: AxisView | None = None) -> None: ...

    def __post_init__(self) -> None:
        force_setattr(self, "offsets", _integers(self.offsets, "offsets", -MAX_SIZE))
        if self.view is not None:
            check_instance(self.view, "view", AxisView)


# --- types in files --------------------------------------------------------------------------------------------------


def read_type(path: str | os.PathLike[str]) -> TensorType:
    """Read a tensor type from a file: TOML (.toml) or YAML (.yaml, .yml) with the fields of the JSON form, or JSON.

    YAML needs pyyaml (the extra ``yaml``). It is read as plain data, without aliases.

    Raises
    ------
    FieldError
        With the file and the path of the field, as :meth:`TensorType.from_json`.
    OSError
        If the file can't be read.
    MissingExtraError
        Without pyyaml, for YAML.
    """
    return read_record(TensorType, path)


def read_record(kind: type[R], path: str | os.PathLike[str]) -> R:
    """Any value type from a file, as `read_type` reads a tensor type."""
    name = file_name(path)
    data = read_whole(name)
    try:
        if name.lower().endswith(".toml"):
            return kind.from_json(_from_toml(data))
        if name.lower().endswith((".yaml", ".yml")):
            return kind.from_json(_from_yaml(data))
        return kind.from_json(data)
    except LayoutError as error:
        raise error.within(name) from None


def _from_toml(data: bytes) -> dict[str, Any]:
    import tomllib  # few types come from such files

    try:
        return tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise FieldError(f"not TOML ({error})") from None


def _from_yaml(data: bytes) -> dict[Any, Any]:
    yaml = extra("yaml", "yaml")
    try:
        # A few lines of aliases of aliases can stand for a value that no machine holds.
        events = yaml.parse(data, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        if any(isinstance(event, yaml.AliasEvent) for event in events):
            raise FieldError("has aliases", accepted="YAML without aliases")
        obj = msgspec.yaml.decode(data)
    except (yaml.YAMLError, msgspec.DecodeError, RecursionError) as error:
        raise FieldError(f"not YAML ({error})") from None
    if not isinstance(obj, dict):
        raise FieldError("not a mapping", value=obj, accepted="fields and their values")
    return obj
