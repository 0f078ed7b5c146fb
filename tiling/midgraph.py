"""Compiler dumps: the Rust debug text of a `MidGraph`, read into the value types of :mod:`tiling.layout`.

The text is parsed with lark into a small tree that keeps positions; the tree is turned into the JSON form that serde
gives the same values, and from there the value types read it, so a dump and a JSON file pass the same checks. Whatever
is wrong is a :class:`~tiling.errors.DumpError` with the line and column where it is.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from functools import cache, cached_property
from typing import Any, Final, Literal, TypeVar

from lark import Lark, Token, Transformer
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken
from msgspec import Struct

from .errors import DumpError, FieldError, LayoutError, PolicyError
from .layout import MAX_SIZE, MAX_TILES, CoordinateMapping, OwnerMap, TensorType

#: How deep brackets may be nested. Real dumps have about 12 levels; the limit keeps hostile text off Python's stack.
MAX_DEPTH: Final = 64

# --- what is read ----------------------------------------------------------------------------------------------------

_STAGING: Final[dict[str, Literal["none", "auto"]]] = {
    "DirectRetile": "none",
    "StageLogicalThenTransform": "auto",
    "Automatic": "auto",
}


class MidInput(Struct, frozen=True):
    """An input of the graph: its name, its kind ("Host", "Parameter", ..) and the id of its value."""

    name: str
    kind: Any
    value: int


class MidValue(Struct, frozen=True):
    """A tensor of the graph.

    Attributes
    ----------
    id : int
        What operations refer to it by.
    owners : OwnerMap
        Which device tiles own its shards.
    type : TensorType
        Its shape and format.
    origin, storage_group : int or None
        The value of the source graph that it holds, and the value that it shares storage with (its own id if none).
    """

    id: int
    owners: OwnerMap
    type: TensorType
    origin: int | None = None
    storage_group: int | None = None


class Operation(Struct, frozen=True):
    """An operation, kept by name and fields.

    Attributes
    ----------
    name : str
        Its kind: "Gemm", "ReductionSum", .. ("Copy" is a :class:`Copy`).
    inputs, results : tuple of int
        Ids of the values that it reads and writes.
    fields : dict
        The fields of its kind in JSON form (unnamed ones by their number, "0", "1", ..); not to be changed.
    extras : dict
        What else the dump says of it (`source`, `operands`, ..), by name; not to be changed.
    """

    name: str
    inputs: tuple[int, ...]
    results: tuple[int, ...]
    fields: dict[str, Any]
    extras: dict[str, Any]

    def __hash__(self) -> int:  # dicts have none; equal operations are equal in these
        return hash((self.name, self.inputs, self.results))

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.inputs))} -> {', '.join(map(str, self.results))})"


class Copy(Operation, frozen=True):
    """An operation that gives a tensor a new tiling, order or place; it has one input and one result.

    Attributes
    ----------
    source, destination : MidValue
        The values that it reads and writes.
    mapping : CoordinateMapping
        Where destination coordinates take their values from.
    policy : str
        How the compiler wants it done; `staging` says what that means here.
    packing : object
        A label that is carried along.
    """

    source: MidValue
    destination: MidValue
    mapping: CoordinateMapping
    policy: str
    packing: Any

    __hash__ = Operation.__hash__  # a class with its own fields would be given one of all of them

    @property
    def staging(self) -> Literal["none", "auto"]:
        """The policy as a staging: "none" or "auto".

        Raises
        ------
        PolicyError
            If the policy is one that is read but not planned.
        """
        try:
            return _STAGING[self.policy]
        except KeyError:
            raise PolicyError(
                f"copies with the policy {self.policy} are not planned",
                where=repr(self),
                value=self.policy,
                accepted=", ".join(_STAGING),
            ) from None

    def __repr__(self) -> str:
        return f"Copy({self.source.id} -> {self.destination.id} {self.policy})"


class MidGraph(Struct, frozen=True, dict=True, eq=False):
    """A graph of tensors and operations, as the compiler dumps it. Graphs are equal when their contents are.

    Attributes
    ----------
    tile_count : int
        Tiles of the device.
    inputs : tuple of MidInput
    values : tuple of MidValue
    operations : tuple of Operation
    outputs : tuple of int
        Ids of values.
    fields : dict
        What else the dump says, by name (`estimated_cycles`, `peak_memory`, ..), in JSON form; not to be changed.
    label : str
        The text that stood before the dump in a log, or "".
    line : int
        The line that the dump starts in, from 1.
    """

    tile_count: int
    inputs: tuple[MidInput, ...]
    values: tuple[MidValue, ...]
    operations: tuple[Operation, ...]
    outputs: tuple[int, ...]
    fields: dict[str, Any]
    label: str = ""
    line: int = 1

    def value(self, id: int) -> MidValue:
        """The value with this id.

        Raises
        ------
        FieldError
            If there is none.
        """
        try:
            return self._by_id[id]
        except (KeyError, TypeError):
            raise FieldError(
                "no such value in the graph", where="id", value=id, accepted="ids of graph.values"
            ) from None

    @cached_property
    def _by_id(self) -> dict[int, MidValue]:
        return {value.id: value for value in self.values}

    @property
    def copies(self) -> tuple[Copy, ...]:
        """The operations that are copies, in order."""
        return tuple(operation for operation in self.operations if isinstance(operation, Copy))

    def phases(self) -> list[tuple[Copy, ...]]:
        """The copies that run together, phase by phase.

        Copies with no other operation between them form one phase; one that reads a result of the phase starts the
        next.
        """
        phases: list[list[Copy]] = []
        written: set[int] | None = None  # by the phase that is still open; None after another operation
        for operation in self.operations:
            if not isinstance(operation, Copy):
                written = None
                continue
            if written is None or operation.source.id in written:
                phases.append([])
                written = set()
            phases[-1].append(operation)
            written.add(operation.destination.id)
        return [tuple(phase) for phase in phases]

    def _contents(self) -> tuple[Any, ...]:
        return self.tile_count, self.inputs, self.values, self.operations, self.outputs, self.fields

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MidGraph) and self._contents() == other._contents()

    def __hash__(self) -> int:
        return hash((self.tile_count, self.values, self.operations, self.outputs))

    def __repr__(self) -> str:
        label = f"{self.label!r}, " if self.label else ""
        return f"MidGraph({label}{self.tile_count} tiles, {len(self.values)} values, {list(self.operations)})"


def parse_midgraph(text: str) -> MidGraph:
    """Read one dump, `MidGraph { .. }`, on one line or pretty-printed.

    Raises
    ------
    DumpError
        With the line and column in `text` where it breaks off, does not parse, or says something that is not accepted:
        unknown or missing fields in types, values and copies, values that are referred to but not there, ids that occur
        twice, copies with other than one input and one result.
    """
    if not isinstance(text, str):
        raise FieldError("not a text", where="text", value=type(text).__name__, accepted="str")
    source = Source(text)
    start = len(text) - len(text.lstrip())
    if DUMP_START.match(text, start) is None:
        raise source.error("not a dump", start, accepted="MidGraph { .. }")
    return read_graph(source, start, len(text))


# --- text and positions ----------------------------------------------------------------------------------------------

DUMP_START: Final = re.compile(r"\bMidGraph\s*(?=\{)")

#: What matters when brackets are matched. A string that is not closed goes to the end of its line, so that each
#: character is looked at once, whatever the text.
BRACKET_TOKEN: Final = re.compile(
    r"""(?P<string>"(?:[^"\\\n]++|\\.)*+(?P<closed>")?)|'(?:[^'\\\n]|\\[^\n']{1,10}|\\')'|(?P<open>[\[({])|(?P<close>[\])}])"""
)


class Source:
    """A text, and the line and column of any offset in it."""

    __slots__ = ("_ends", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._ends: list[int] | None = None

    @property
    def line_ends(self) -> list[int]:
        """Offsets of the line feeds."""
        if self._ends is None:
            self._ends = [match.start() for match in re.finditer("\n", self.text)]
        return self._ends

    def line_end(self, at: int) -> int:
        """Where the line of this offset ends: at its line feed or at the end of the text."""
        line = bisect_right(self.line_ends, at - 1)
        return self.line_ends[line] if line < len(self.line_ends) else len(self.text)

    def place(self, at: int) -> tuple[int, int]:
        """Line and column of an offset, both from 1."""
        line = bisect_right(self.line_ends, at - 1)
        return line + 1, at - (self.line_ends[line - 1] if line else -1)

    def error(self, what: str, at: int, *, value: Any = None, accepted: str = "") -> DumpError:
        line, column = self.place(at)
        return DumpError(what, line=line, column=column, value=value, accepted=accepted)


# --- grammar ---------------------------------------------------------------------------------------------------------

# Openers hold the name before them (`AxisTiling {`, `Some(`, `rows:`): a third of the tokens, and the parser's time is
# their number. What Rust's derived Debug prints of ranges, durations and hidden fields (`..`) is read as well.
_GRAMMAR: Final = r"""
?start: value
?value: STRING | CHAR | NUMBER | RANGE | DURATION | WORD | struct | sequence | braces
struct: STRUCT [field ("," field)* ","?] HIDDEN? "}"
field: FIELD value
sequence: (TUPLE | PAREN) [_items] ")" | SQUARE [_items] "]"
braces: CURLY [entry ("," entry)* ","?] "}"
entry: FIELD value | value [":" value]
_items: value ("," value)* ","?

STRUCT.3: /[A-Za-z_]\w*(?:::\w+)*\s*\{/
TUPLE.3: /[A-Za-z_]\w*(?:::\w+)*\(/
FIELD.2: /[A-Za-z_]\w*\s*:(?!:)/
WORD: /[A-Za-z_]\w*(?:::\w+)*/
RANGE.3: /-?\d+\.\.=?(?:-?\d+)?|\.\.=?-?\d+/
DURATION.2: /\d+(?:\.\d+)?(?:ns|µs|us|ms|s)\b/
NUMBER.1: /-?(?:\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|inf\b)/
STRING: /"(?:[^"\\\n]|\\.)*"/
CHAR: /'(?:[^'\\\n]|\\[^\n']{1,10}|\\')'/
HIDDEN: ".."
PAREN: "("
SQUARE: "["
CURLY: "{"
%ignore /\s+/
"""

_READABLE: Final = {
    "STRUCT": "a struct",
    "TUPLE": "a tuple struct",
    "FIELD": "a field",
    "WORD": "a name",
    "NUMBER": "a number",
    "STRING": "a string",
    '"': "'\"'",
    "PAREN": "'('",
    "SQUARE": "'['",
    "CURLY": "'{'",
    "COMMA": "','",
    "COLON": "':'",
    "RPAR": "')'",
    "RSQB": "']'",
    "RBRACE": "'}'",
    "$END": "the end",
}

_PART_OF_A_WORD: Final = re.compile(r"[\w:.'\\+-]*\s*")
_WORD: Final = re.compile(r"[A-Za-z_][\w:]*")
_ESCAPE: Final = re.compile(r"\\(?:u\{([0-9A-Fa-f]{1,6})\}|x([0-7][0-9A-Fa-f])|(.?))")
_ESCAPED: Final = {"n": "\n", "r": "\r", "t": "\t", "0": "\0", "\\": "\\", '"': '"', "'": "'"}


class _Group:
    """A bracketed value: its opening token, which tells its kind and name, and what is inside."""

    __slots__ = ("fields", "items", "opener")

    def __init__(self, opener: Token, items: list[_Node], fields: list[tuple[Token, _Node]]) -> None:
        self.opener, self.items, self.fields = opener, items, fields

    @property
    def name(self) -> str:
        """The name of a struct or tuple struct, else ""."""
        match = _WORD.match(self.opener)
        return match[0] if match else ""


_Node = Token | _Group
_Entry = tuple[_Node, _Node | None]


class _TreeBuilder(Transformer[Token, Any]):
    """Runs while the parser does, so no walk over a tree is needed."""

    def field(self, children: list[Any]) -> tuple[Token, _Node]:
        return children[0], children[1]

    def struct(self, children: list[Any]) -> _Group:
        return _Group(children[0], [], [child for child in children[1:] if type(child) is tuple])

    def sequence(self, children: list[Any]) -> _Group:
        return _Group(children[0], children[1:], [])

    def entry(self, children: list[Any]) -> _Entry:
        return children[0], children[1] if len(children) > 1 else None

    def braces(self, children: list[Any]) -> _Group:
        """A set, or a map: `{a, b}`, `{k: v}`."""
        entries = children[1:]
        if any(value is not None for _, value in entries):
            return _Group(children[0], [], entries)
        return _Group(children[0], [key for key, _ in entries], [])


@cache
def _parser() -> Lark:
    return Lark(_GRAMMAR, parser="lalr", lexer="contextual", transformer=_TreeBuilder(), maybe_placeholders=False)


def _parse(source: Source, start: int, stop: int) -> _Node:
    """The tree of the one value in this part of the text; its positions count from `start`."""
    _check_depth(source, start, stop)
    try:
        return _parser().parse(source.text[start:stop])  # type: ignore[return-value]
    except UnexpectedInput as error:
        raise _syntax_error(source, start, stop, error) from None


def _check_depth(source: Source, start: int, stop: int) -> None:
    depth = 0
    for token in BRACKET_TOKEN.finditer(source.text, start, stop):
        if token["open"]:
            depth += 1
            if depth > MAX_DEPTH:
                raise source.error(
                    "nested too deeply", token.start(), accepted=f"at most {MAX_DEPTH} levels of brackets"
                )
        elif token["close"]:
            depth -= 1


def _syntax_error(source: Source, start: int, stop: int, error: UnexpectedInput) -> DumpError:
    expected: Iterable[str] = ()
    if isinstance(error, UnexpectedToken):
        at = start + (error.token.start_pos or 0)
        expected = error.accepts or error.expected
        if error.token.type == "$END":
            at = stop
    else:
        at = start + (error.pos_in_stream or 0)
        if isinstance(error, UnexpectedCharacters):
            expected = error.allowed or ()
    broken_off = ""
    if isinstance(error, UnexpectedCharacters) and source.text.startswith('"', at):
        broken_off, expected = "in a string that is not closed", ('"',)  # a whole one would have been a token
    elif "$END" not in expected and _PART_OF_A_WORD.fullmatch(source.text, at, stop):
        broken_off, at = "here", start + len(source.text[start:stop].rstrip())
    accepted = ", ".join(text for name, text in _READABLE.items() if name in expected)
    line, column = source.place(start)
    what = f"what starts at line {line}, column {column} " + (
        f"breaks off {broken_off}" if broken_off else "does not parse here"
    )
    value = None if broken_off else source.text[at : min(at + 20, stop)]
    return source.error(what, at, value=value, accepted=accepted)


# --- tree to JSON form -----------------------------------------------------------------------------------------------

# Structs whose name serde leaves out. Another name may be an enum's variant, so it is kept: `{name: fields}`.
_PLAIN: Final = frozenset(
    [
        *("MidGraph", "MidInput", "MidValue", "MidOperation", "GemmAxes", "MemoryPeaks", "OwnerMap", "TensorType"),
        *("TensorFormat", "Layout", "TensorTiling", "AxisTiling", "CoordinateMapping", "AxisView"),
    ]
)
_NEWTYPES: Final = frozenset(("Some", "TensorShape", "OperandWindow"))  # and all that end in Id
_WORDS: Final = {"None": None, "true": True, "false": False}

_Kind = TypeVar("_Kind", OwnerMap, TensorType, CoordinateMapping)


def unquote(text: str) -> str:
    """The string or character that Rust's debug text shows; ValueError if an escape is none of Rust's."""

    def character(match: re.Match[str]) -> str:
        code = match[1] or match[2]
        if code is None:
            if match[3] not in _ESCAPED:
                raise ValueError(match[0])
            return _ESCAPED[match[3]]
        point = int(code, 16)
        if point > 0x10FFFF or 0xD800 <= point < 0xE000:
            raise ValueError(match[0])
        return chr(point)

    inner = text[1:-1]
    return _ESCAPE.sub(character, inner) if "\\" in inner else inner


class _Reader:
    """Turns one tree into values, and knows where in the text each of its nodes stands."""

    def __init__(self, source: Source, start: int) -> None:
        self.source, self.start = source, start

    def error(self, what: str, node: _Node, *, value: Any = None, accepted: str = "") -> DumpError:
        return self.source.error(what, self.start + _position(node), value=value, accepted=accepted)

    # The JSON form. The recursion is as deep as the brackets, which have a limit.

    def plain(self, node: _Node) -> Any:
        if isinstance(node, Token):
            return self._plain_token(node)
        kind, name = node.opener.type, node.name
        if kind == "STRUCT":
            fields = self._plain_fields(node)
            return fields if name in _PLAIN else {name: fields}
        if kind == "CURLY" and node.fields:
            return self._plain_map(node)
        items = [self.plain(item) for item in node.items]
        if kind != "TUPLE":
            return items
        if len(items) != 1:
            return {name: items}
        return items[0] if _is_newtype(node) else {name: items[0]}

    def _plain_token(self, token: Token) -> Any:
        if token.type == "WORD":
            return _WORDS.get(token, str(token))
        if token.type == "NUMBER":
            if len(token) > 40:  # longer than any that a machine has, and dear to convert
                raise self.error("the number is too long", token, value=str(token), accepted="at most 40 characters")
            return int(token) if token.lstrip("-").isdigit() else float(token)
        if token.type in ("STRING", "CHAR"):
            try:
                return unquote(token)
            except ValueError as error:
                raise self.error(
                    "unknown escape in a string",
                    token,
                    value=str(error),
                    accepted=r"""\n, \r, \t, \0, \\, \", \', \u{..}""",
                ) from None
        return str(token)  # ranges and durations

    def _plain_fields(self, node: _Group) -> dict[str, Any]:
        return {name: self.plain(value) for name, value in self.named(node).items()}

    def _plain_map(self, node: _Group) -> Any:
        keys = [_field_name(key) if _is_field(key) else self.plain(key) for key, _ in node.fields]
        values = [None if value is None else self.plain(value) for _, value in node.fields]
        if any(isinstance(key, (list, dict)) for key in keys):
            return [[key, value] for key, value in zip(keys, values, strict=True)]
        return {str(key): value for key, value in zip(keys, values, strict=True)}

    def named(self, node: _Group) -> dict[str, _Node]:
        """A struct's fields by name."""
        fields = {_field_name(name): value for name, value in node.fields}
        if len(fields) != len(node.fields):
            seen: set[str] = set()
            for token, _ in node.fields:
                if (name := _field_name(token)) in seen:
                    raise self.error(f"the field `{name}` occurs twice", token)
                seen.add(name)
        return fields

    # Parts of known kind.

    def struct(self, node: _Node, name: str, path: str, required: str, optional: str | None = "") -> dict[str, _Node]:
        """The fields of the struct of this name, checked; with `optional` None any others are taken."""
        if not isinstance(node, _Group) or node.opener.type != "STRUCT" or node.name != name:
            raise self.error(f"{path}: not a {name}", node, value=_shown(node), accepted=f"{name} {{ .. }}")
        fields = self.named(node)
        missing = [word for word in required.split() if word not in fields]
        if missing:
            raise self.error(f"{path}: {name} has no field `{missing[0]}`", node, accepted=required.replace(" ", ", "))
        if optional is not None:
            known = [*required.split(), *optional.split()]
            for token, _ in node.fields:
                if _field_name(token) not in known:
                    what = f"{path}: {name} has an unknown field `{_field_name(token)}`"
                    raise self.error(what, token, accepted=", ".join(known))
        return fields

    def items(self, node: _Node, path: str) -> list[_Node]:
        if not isinstance(node, _Group) or node.opener.type != "SQUARE":
            raise self.error(f"{path}: not a list", node, value=_shown(node), accepted="[ .. ]")
        return node.items

    def variant(self, node: _Node, path: str) -> str:
        """The name of an enum's variant, with or without content."""
        name = node.name if isinstance(node, _Group) else str(node) if node.type == "WORD" else ""
        if not name:
            raise self.error(f"{path}: not a variant", node, value=_shown(node), accepted="a name, a struct")
        return name

    def integer(self, node: _Node, path: str, low: int, high: int) -> int:
        value = self.plain(node)
        if type(value) is not int or not low <= value <= high:
            raise self.error(
                f"{path}: not an integer in range", node, value=value, accepted=f"integers from {low} to {high}"
            )
        return value

    def optional_id(self, fields: dict[str, _Node], name: str, path: str) -> int | None:
        node = fields.get(name)
        return None if node is None or node == "None" else self.integer(node, f"{path}.{name}", 0, MAX_SIZE)

    def ids(self, node: _Node, path: str, known: dict[int, MidValue]) -> tuple[int, ...]:
        """The ids in a list, all of values that the graph has."""
        return tuple(self.known_id(item, f"{path}[{i}]", known) for i, item in enumerate(self.items(node, path)))

    def known_id(self, node: _Node, path: str, known: dict[int, MidValue]) -> int:
        id = self.integer(node, path, 0, MAX_SIZE)
        if id not in known:
            raise self.error(f"{path}: there is no value {id}", node, accepted="ids of the graph's values")
        return id

    def typed(self, kind: type[_Kind], node: _Node, path: str) -> _Kind:
        """A value type, by way of its JSON form; its errors are given their place in the text."""
        obj = self.plain(node)
        if not isinstance(obj, dict):
            raise self.error(f"{path}: not a {kind.__name__}", node, value=obj, accepted=f"{kind.__name__} {{ .. }}")
        try:
            return kind.from_json(obj)
        except LayoutError as error:
            where = "" if error.where == kind.__name__ else error.where
            what = f"{'.'.join(filter(None, (path, where)))}: {error.what}"
            raise self.error(what, _find(node, where, error.what), value=error.value, accepted=error.accepted) from None

    # The graph.

    def graph(self, node: _Node, label: str, line: int) -> MidGraph:
        fields = self.struct(node, "MidGraph", "graph", "tile_count inputs values operations outputs", None)
        values: dict[int, MidValue] = {}
        for i, item in enumerate(self.items(fields.pop("values"), "values")):
            value = self.value(item, f"values[{i}]")
            if value.id in values:
                raise self.error(f"values[{i}].id: the id {value.id} occurs twice", item)
            values[value.id] = value
        inputs = self.items(fields.pop("inputs"), "inputs")
        operations = self.items(fields.pop("operations"), "operations")
        return MidGraph(
            tile_count=self.integer(fields.pop("tile_count"), "tile_count", 1, MAX_TILES),
            inputs=tuple(self.input(item, f"inputs[{i}]", values) for i, item in enumerate(inputs)),
            values=tuple(values.values()),
            operations=tuple(self.operation(item, f"operations[{i}]", values) for i, item in enumerate(operations)),
            outputs=self.ids(fields.pop("outputs"), "outputs", values),
            fields={name: self.plain(value) for name, value in fields.items()},
            label=label,
            line=line,
        )

    def input(self, node: _Node, path: str, values: dict[int, MidValue]) -> MidInput:
        fields = self.struct(node, "MidInput", path, "name kind value")
        name = self.plain(fields["name"])
        if not isinstance(name, str):
            raise self.error(f"{path}.name: not a string", fields["name"], value=name, accepted='".."')
        return MidInput(name, self.plain(fields["kind"]), self.known_id(fields["value"], f"{path}.value", values))

    def value(self, node: _Node, path: str) -> MidValue:
        fields = self.struct(node, "MidValue", path, "id owners tensor_type", "origin storage_group")
        return MidValue(
            self.integer(fields["id"], f"{path}.id", 0, MAX_SIZE),
            self.typed(OwnerMap, fields["owners"], f"{path}.owners"),
            self.typed(TensorType, fields["tensor_type"], f"{path}.tensor_type"),
            self.optional_id(fields, "origin", path),
            self.optional_id(fields, "storage_group", path),
        )

    def operation(self, node: _Node, path: str, values: dict[int, MidValue]) -> Operation:
        fields = self.struct(node, "MidOperation", path, "kind", None)
        kind = fields.pop("kind")
        name = self.variant(kind, f"{path}.kind")
        if name == "Copy":  # of which nothing may be unknown or missing
            self.struct(
                node, "MidOperation", path, "inputs results kind", "source operands output_aliases output_windows"
            )
        inputs, results = (
            self.ids(fields.pop(key), f"{path}.{key}", values) if key in fields else () for key in ("inputs", "results")
        )
        extras = {key: self.plain(value) for key, value in fields.items()}
        if name == "Copy":
            return self.copy(node, kind, path, values, inputs, results, extras)
        return Operation(name, inputs, results, self.details(kind), extras)

    def details(self, kind: _Node) -> dict[str, Any]:
        """The content of a variant, whatever it is; unnamed fields by their number."""
        if not isinstance(kind, _Group):
            return {}
        if kind.opener.type == "STRUCT":
            return self._plain_fields(kind)
        return {str(i): self.plain(item) for i, item in enumerate(kind.items)}

    def copy(
        self,
        node: _Node,
        kind: _Node,
        path: str,
        values: dict[int, MidValue],
        inputs: tuple[int, ...],
        results: tuple[int, ...],
        extras: dict[str, Any],
    ) -> Copy:
        if len(inputs) != 1 or len(results) != 1:
            got = f"{len(inputs)} inputs, {len(results)} results"
            raise self.error(f"{path}: a copy of several values", node, value=got, accepted="one input and one result")
        fields = self.struct(kind, "Copy", f"{path}.kind", "mapping policy packing")
        mapping, policy = fields["mapping"], fields["policy"]
        return Copy(
            "Copy",
            inputs,
            results,
            {name: self.plain(value) for name, value in fields.items()},
            extras,
            values[inputs[0]],
            values[results[0]],
            CoordinateMapping() if mapping == "None" else self.mapping(mapping, f"{path}.kind.mapping"),
            self.variant(policy, f"{path}.kind.policy"),
            self.plain(fields["packing"]),
        )

    def mapping(self, node: _Node, path: str) -> CoordinateMapping:
        fields = self.struct(node, "CoordinateMapping", path, "offsets", "view")
        view = fields.get("view")
        while isinstance(view, _Group) and view.opener.type == "TUPLE" and view.name == "Some" and len(view.items) == 1:
            view = view.items[0]
        if isinstance(view, _Group) and view.opener.type == "STRUCT" and isinstance(node, _Group):
            # The view's struct is known by its place, whatever its name.
            opener = Token.new_borrow_pos("STRUCT", "AxisView {", view.opener)
            renamed = _Group(opener, view.items, view.fields)
            entries = [(name, renamed if _field_name(name) == "view" else value) for name, value in node.fields]
            node = _Group(node.opener, [], entries)
        return self.typed(CoordinateMapping, node, path)


def _position(node: _Node) -> int:
    token = node if isinstance(node, Token) else node.opener
    return token.start_pos or 0


def _is_field(node: _Node) -> bool:
    return isinstance(node, Token) and node.type == "FIELD"


def _field_name(token: _Node) -> str:
    return str(token)[:-1].rstrip()


def _is_newtype(node: _Group) -> bool:
    return node.opener.type == "TUPLE" and (node.name in _NEWTYPES or node.name.endswith("Id"))


def _shown(node: _Node) -> str:
    return str(node) if isinstance(node, Token) else f"{str(node.opener).rstrip()}.."


def _find(node: _Node, path: str, what: str) -> _Node:
    """The node that a path such as `format.layout.tiling.axes[0]` leads to; parts that are not there are passed over.

    If an unknown field is what is wrong, its name.
    """
    for part in re.findall(r"[^.\[\]]+", path):
        node = _step(node, part)
    unknown = re.search(r"unknown field `(\w+)`", what)
    while unknown and isinstance(node, _Group):
        name = next((name for name, _ in node.fields if _is_field(name) and _field_name(name) == unknown[1]), None)
        if name is not None:
            return name
        if len(node.items) != 1:
            break
        node = node.items[0]
    return node


def _step(node: _Node, part: str) -> _Node:
    """The node that one part of a path leads to, through whatever is wrapped around it."""
    inner = node
    while isinstance(inner, _Group):
        named = {_field_name(name): value for name, value in inner.fields if _is_field(name)}
        if part in named:
            return named[part]
        if inner.opener.type != "TUPLE":
            return inner.items[int(part)] if part.isdigit() and int(part) < len(inner.items) else node
        if len(inner.items) != 1:
            return node
        if part == inner.name:
            return inner.items[0]
        inner = inner.items[0]
    return node


# --- parts of a longer text, for logs --------------------------------------------------------------------------------


def read_graph(source: Source, start: int, stop: int, label: str = "") -> MidGraph:
    """The dump in this part of a text; lines and columns count in the whole text."""
    return _Reader(source, start).graph(_parse(source, start, stop), label, source.place(start)[0])


def read_type(source: Source, start: int, stop: int) -> TensorType:
    """The tensor type, `TensorType { .. }`, in this part of a text."""
    return _Reader(source, start).typed(TensorType, _parse(source, start, stop), "tensor_type")


def read_value(source: Source, start: int, stop: int) -> Any:
    """The JSON form of any debug value in this part of a text."""
    return _Reader(source, start).plain(_parse(source, start, stop))
