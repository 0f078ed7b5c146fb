"""Compiler dumps: everything that Rust's debug text can say, and everything that a dump can get wrong."""

from __future__ import annotations

import json
import pickle
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiling.errors import DumpError, FieldError, LayoutError, PolicyError
from tiling.layout import F8F143, F16, AxisView, CoordinateMapping, OwnerMap, TensorAxis, TensorType
from tiling.midgraph import MAX_DEPTH, Copy, MidGraph, parse_midgraph

# --- Rust debug text -------------------------------------------------------------------------------------------------


def axis(where: str, partitions: int, block: int = 1, stride: str = "None", padding: str = "Zero") -> str:
    return (
        f"AxisTiling {{ axis: {where}, partitions: {partitions}, padding_groups: 1, block_size: {block}, "
        f"padding_multiple: {block}, shard_padding_multiple: 1, padding: {padding}, tile_stride: {stride} }}"
    )


def tensor_type(
    shape: str, tile_count: int, axes: list[str], order: str = "RowMajor", precision: str = "F16", replicas: int = 1
) -> str:
    return (
        f"TensorType {{ shape: TensorShape([{shape}]), format: TensorFormat {{ precision: {precision}, "
        f"layout: Layout {{ order: {order}, tiling: TensorTiling {{ tile_count: {tile_count}, replicas: {replicas}, "
        f"axes: [{', '.join(axes)}] }}, memory_class: Ipu21Standard }} }} }}"
    )


def value(id: int, type_: str, owners: str = "rotation: 0, embedding: None") -> str:
    return (
        f"MidValue {{ id: MidValueId({id}), owners: OwnerMap {{ {owners} }}, tensor_type: {type_}, "
        f"origin: ValueId({id // 2}), storage_group: MidValueId({id}) }}"
    )


def operation(kind: str, inputs: list[int], results: list[int], rest: str = "operands: [], output_aliases: []") -> str:
    ids = [", ".join(f"MidValueId({i})" for i in some) for some in (inputs, results)]
    source = "source: Some(OperationId(3))"
    return f"MidOperation {{ {source}, inputs: [{ids[0]}], results: [{ids[1]}], kind: {kind}, {rest} }}"


def copy(
    source: int,
    result: int,
    policy: str = "DirectRetile",
    mapping: str = "offsets: [], view: None",
    packing: str = "Direct",
) -> str:
    kind = f"Copy {{ mapping: CoordinateMapping {{ {mapping} }}, policy: {policy}, packing: {packing} }}"
    return operation(kind, [source], [result])


def graph(
    values: list[str], operations: list[str], rest: str = "estimated_cycles: 10", inputs: str = "", outputs: str = ""
) -> str:
    return (
        f"MidGraph {{ tile_count: 16, inputs: [{inputs}], values: [{', '.join(values)}], "
        f"operations: [{', '.join(operations)}], outputs: [{outputs}], {rest} }}"
    )


LINEAR = tensor_type("6, 32", 12, [axis("Linear", 12, 4, padding="Reject")])
ROWS = tensor_type("6, 32", 6, [axis("FromStart(0)", 3), axis("FromEnd(1)", 2, 16, "Some(3)")])
LEFT = tensor_type("6, 32", 4, [axis("FromEnd(2)", 4)], "Amp(Left)", replicas=1)
BLOCKS = tensor_type("64, 32", 2, [axis("FromEnd(1)", 2, 16)], "BlockMajor(Matrix { row_block: 32, column_block: 16 })")
TRANSPOSED = BLOCKS.replace("BlockMajor(Matrix {", "BlockMajor(TransposedMatrix {")
EIGHT_BIT = tensor_type("6, 32", 2, [axis("FromStart(0)", 2)], precision="F8F143 { scale_exponent: -4 }")

INPUT = r'MidInput { name: "le\u{df}t \"a\\b\"", kind: Host, value: MidValueId(0) }'
GEMM = (
    "Gemm { axes: GemmAxes { left_inner: FromEnd(2), valid_inner: None }, rows: 0..16, time: 1.5ms, scale: -0.5, "
    "tiny: 1e-7, low: -inf, mode: Initialize, window: Window(1, -2), unit: (), pair: (1, true), tiles: {1, 2}, "
    "by_name: {\"a\": 1, b: [2]}, by_pair: {(1, 2): 3}, letter: '\\'', path: mode::Fast, left: FromStart(0), }"
)
EXTRAS = "operands: [Local(OperandWindow([])), Local(OperandWindow([]))], output_windows: []"

DUMP = graph(
    [
        value(0, LINEAR),
        value(1, ROWS, "rotation: 1, embedding: Some([3, 1, 2, 5, 4, 0, 7])"),
        value(2, LEFT),
        value(3, BLOCKS),
        value(4, TRANSPOSED),
        value(7, EIGHT_BIT),
    ],
    [
        copy(0, 1, "StageLogicalThenTransform", packing="Staged"),
        copy(0, 2, "Automatic"),
        copy(2, 1, mapping="offsets: [0, -1], view: None"),
        operation(GEMM, [1, 2], [3], EXTRAS),
        copy(
            3,
            4,
            mapping="offsets: [], view: Some(AxisView { split_axis: 1, merge_axis: 0, factor: 2, reversed: true })",
        ),
        operation("ReductionSum { partials: 8 }", [4], [4]),
        operation("Barrier", [], []),
        operation("Cast(F16, 3)", [4], [7]),
        copy(4, 7, 'LocalKernel { name: "x" }'),
    ],
    "estimated_cycles: 116606, peak_memory: MemoryPeaks { standard: 101496, total: 165888 }",
    INPUT,
    "MidValueId(7)",
)


def pretty(text: str, trailing_comma: bool = True) -> str:
    """The `{:#?}` form of a compact dump."""
    out, depth = [""], 0
    for token in re.findall(r"""[(\[{] ?[\])}]|"(?:[^"\\]|\\.)*"|'\\?.'|[\[({]|[\])}]|, ?|[^\[\](){},"']+""", text):
        if token in ("[", "(", "{"):
            depth += 1
            out.append(f"{token}\n{'    ' * depth}")
        elif token in ("]", ")", "}"):
            depth -= 1
            if out[-1].startswith(","):
                out.pop()
            out[-1] = out[-1].rstrip(" ")
            out += ["," * trailing_comma, f"\n{'    ' * depth}{token}"]
        elif token[0] == ",":
            out[-1] = out[-1].rstrip(" ")
            out.append(f",\n{'    ' * depth}")
        else:
            out.append(token if out[-1].endswith('"') else token.lstrip(" "))
    return "".join(out)


def debug(obj: Any) -> str:
    """Rust debug text of the JSON form of a type."""
    if obj is None:
        return "None"
    if isinstance(obj, list):
        return f"[{', '.join(map(debug, obj))}]"
    if isinstance(obj, dict):
        if len(obj) == 1 and next(iter(obj))[0].isupper():
            ((name, content),) = obj.items()
            return (
                f"{name} {debug(content)}"
                if isinstance(content, dict) and "Major" not in name
                else f"{name}({debug(content)})"
            )
        return "{ " + ", ".join(f"{name}: {named(name, content)}" for name, content in obj.items()) + " }"
    return str(obj)


STRUCTS = {"format": "TensorFormat", "layout": "Layout", "tiling": "TensorTiling"}


def named(name: str, content: Any) -> str:
    if name in STRUCTS:
        return f"{STRUCTS[name]} {debug(content)}"
    if name == "axes":
        return f"[{', '.join(f'AxisTiling {debug(entry)}' for entry in content)}]"
    if name == "shape":
        return f"TensorShape({debug(content)})"
    if name == "tile_stride":
        return "None" if content is None else f"Some({content})"
    return debug(content)


def broken(text: str) -> DumpError:
    with pytest.raises(DumpError) as caught:
        parse_midgraph(text)
    return caught.value


def place(text: str, at: int) -> tuple[int, int]:
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


# --- what is read ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def dump() -> MidGraph:
    return parse_midgraph(DUMP)


class TestGraph:
    def test_top_level(self, dump: MidGraph) -> None:
        assert dump.tile_count == 16
        assert [v.id for v in dump.values] == [0, 1, 2, 3, 4, 7]
        assert dump.outputs == (7,)
        assert dump.fields == {"estimated_cycles": 116606, "peak_memory": {"standard": 101496, "total": 165888}}
        assert (dump.label, dump.line) == ("", 1)

    def test_inputs_and_escapes(self, dump: MidGraph) -> None:
        (one,) = dump.inputs
        assert (one.name, one.kind, one.value) == ('leßt "a\\b"', "Host", 0)

    def test_types_go_through_their_json_form(self, dump: MidGraph) -> None:
        linear = dump.value(0).type
        assert linear.shape == (6, 32)
        assert linear.precision == F16
        assert linear.tiling.is_linear
        assert linear.tiling.axes[0].tile_stride is None
        rows = dump.value(1)
        assert [a.axis for a in rows.type.tiling.axes] == [TensorAxis("FromStart", 0), TensorAxis("FromEnd", 1)]
        assert rows.type.tiling.axes[1].tile_stride == 3
        assert rows.owners == OwnerMap(1, (3, 1, 2, 5, 4, 0, 7))
        assert dump.value(2).type.order.name == "Left"
        assert repr(dump.value(3).type.order) == "BlockMajor.Matrix(32x16)"
        assert repr(dump.value(4).type.order) == "BlockMajor.TransposedMatrix(32x16)"
        assert dump.value(7).type.precision == F8F143(-4)
        assert (dump.value(7).origin, dump.value(7).storage_group) == (3, 7)

    def test_copies(self, dump: MidGraph) -> None:
        first = dump.operations[0]
        assert isinstance(first, Copy)
        assert first.source is dump.value(0)
        assert first.destination is dump.value(1)
        assert (first.name, first.inputs, first.results) == ("Copy", (0,), (1,))
        assert (first.policy, first.packing, first.mapping) == (
            "StageLogicalThenTransform",
            "Staged",
            CoordinateMapping(),
        )
        assert first.extras == {"source": 3, "operands": [], "output_aliases": []}
        assert [c.staging for c in dump.copies[:4]] == ["auto", "auto", "none", "none"]
        assert dump.copies[2].mapping == CoordinateMapping((0, -1))
        assert dump.copies[3].mapping == CoordinateMapping((), AxisView(1, 0, 2, reversed=True))

    def test_other_operations_keep_name_and_fields(self, dump: MidGraph) -> None:
        gemm = dump.operations[3]
        assert (gemm.name, gemm.inputs, gemm.results) == ("Gemm", (1, 2), (3,))
        assert gemm.fields == {
            "axes": {"left_inner": {"FromEnd": 2}, "valid_inner": None},
            "rows": "0..16",
            "time": "1.5ms",
            "scale": -0.5,
            "tiny": 1e-7,
            "low": float("-inf"),
            "mode": "Initialize",
            "window": {"Window": [1, -2]},
            "unit": [],
            "pair": [1, True],
            "tiles": [1, 2],
            "by_name": {"a": 1, "b": [2]},
            "by_pair": [[[1, 2], 3]],
            "letter": "'",
            "path": "mode::Fast",
            "left": {"FromStart": 0},
        }
        assert gemm.extras == {"source": 3, "operands": [{"Local": []}, {"Local": []}], "output_windows": []}
        assert [o.name for o in dump.operations if not isinstance(o, Copy)] == [
            "Gemm",
            "ReductionSum",
            "Barrier",
            "Cast",
        ]
        assert dump.operations[5].fields == {"partials": 8}
        assert dump.operations[6].fields == {}
        assert dump.operations[7].fields == {"0": "F16", "1": 3}

    def test_unknown_policy_is_read_and_refused_when_planned(self, dump: MidGraph) -> None:
        last = dump.copies[-1]
        assert last.policy == "LocalKernel"
        assert last.fields["policy"] == {"LocalKernel": {"name": "x"}}
        with pytest.raises(
            PolicyError, match=r"LocalKernel.*accepted: DirectRetile, StageLogicalThenTransform, Automatic"
        ):
            _ = last.staging

    def test_phases(self, dump: MidGraph) -> None:
        ids = [[(c.source.id, c.destination.id) for c in phase] for phase in dump.phases()]
        # The third copy reads what the second wrote, so it starts a phase; then every other operation ends one.
        assert ids == [[(0, 1), (0, 2)], [(2, 1)], [(3, 4)], [(4, 7)]]

    def test_a_phase_is_only_cut_by_what_it_wrote_itself(self) -> None:
        values = [value(i, ROWS) for i in range(5)]
        phases = parse_midgraph(graph(values, [copy(0, 1), copy(1, 2), copy(1, 3), copy(2, 4)])).phases()
        assert [[c.destination.id for c in phase] for phase in phases] == [[1], [2, 3], [4]]

    def test_no_operations_no_phases(self) -> None:
        empty = parse_midgraph("MidGraph { tile_count: 1, inputs: [], values: [], operations: [], outputs: [] }")
        assert empty.phases() == []
        assert empty.fields == {}

    def test_absent_mapping_and_view_of_another_name(self) -> None:
        values = [value(0, ROWS), value(1, ROWS)]
        text = graph(values, [copy(0, 1)])
        identity = text.replace("CoordinateMapping { offsets: [], view: None }", "None")
        assert parse_midgraph(identity).copies[0].mapping == CoordinateMapping()
        view = "view: Some(SplitMerge { split_axis: 0, merge_axis: 1, factor: 3, reversed: false })"
        assert parse_midgraph(text.replace("view: None", view)).copies[0].mapping.view == AxisView(0, 1, 3)

    def test_equality_is_of_contents(self, dump: MidGraph) -> None:
        again = parse_midgraph("\n" + DUMP)
        assert again == dump
        assert hash(again) == hash(dump)
        assert again.line == 2
        assert again != parse_midgraph(DUMP.replace("116606", "116607"))
        assert dump != DUMP
        assert {dump.copies[0]: 1}[again.copies[0]] == 1
        assert pickle.loads(pickle.dumps(dump)) == dump

    def test_repr_is_one_line(self, dump: MidGraph) -> None:
        assert repr(dump).startswith("MidGraph(16 tiles, 6 values, [Copy(0 -> 1 StageLogicalThenTransform), ")
        assert "Gemm(1, 2 -> 3)" in repr(dump)

    def test_value_by_id(self, dump: MidGraph) -> None:
        with pytest.raises(FieldError, match="no such value in the graph, got 5"):
            dump.value(5)

    def test_frozen(self, dump: MidGraph) -> None:
        with pytest.raises(AttributeError):
            dump.tile_count = 3  # type: ignore[misc]


class TestForms:
    def test_pretty_printed(self, dump: MidGraph) -> None:
        text = pretty(DUMP)
        assert text.count("\n") > 200
        assert ",\n}" in text
        assert parse_midgraph(text) == dump

    def test_no_trailing_commas(self, dump: MidGraph) -> None:
        assert parse_midgraph(pretty(DUMP, trailing_comma=False)) == dump

    def test_carriage_returns_and_surrounding_space(self, dump: MidGraph) -> None:
        assert parse_midgraph(" \r\n" + pretty(DUMP).replace("\n", "\r\n") + "\r\n") == dump

    def test_hidden_fields(self) -> None:
        text = graph([], [], "x: Foo { a: 1, .. }, y: Bar { .. }")
        assert parse_midgraph(text).fields == {"x": {"Foo": {"a": 1}}, "y": {"Bar": {}}}

    def test_words_that_only_look_like_others(self) -> None:
        text = graph([], [], "a: info, b: inf_1, c: Nonesuch, d: inf, e: -3, f: ..4, g: 3.., h: 2..=5, i: 12µs")
        values = parse_midgraph(text).fields
        assert list(values.values()) == ["info", "inf_1", "Nonesuch", float("inf"), -3, "..4", "3..", "2..=5", "12µs"]

    @pytest.mark.parametrize(
        ("text", "read"),
        [(r"\n\t\r\0\'\"\\", "\n\t\r\0'\"\\"), (r"\u{1F600}", "\U0001f600"), (r"\x41", "A"), ("é漢", "é漢"), ("", "")],
    )
    def test_escapes(self, text: str, read: str) -> None:
        assert parse_midgraph(graph([], [], f'x: "{text}"')).fields == {"x": read}

    def test_deep_but_not_too_deep(self) -> None:
        deep = MAX_DEPTH - 1  # the graph's own bracket is one
        fields = parse_midgraph(graph([], [], f"x: {'[' * deep}{']' * deep}")).fields
        assert json.dumps(fields["x"]) == "[" * deep + "]" * deep

    def test_lists_of_any_length(self) -> None:
        assert parse_midgraph(graph([], [], f"x: [{'1, ' * 20000}]")).fields["x"] == [1] * 20000


counts = st.integers(1, 2**31 - 1)
sizes = st.integers(1, 2**63 - 1)
orders = st.one_of(
    st.just("RowMajor"),
    st.sampled_from(["Left", "TransposedLeft", "TransposedRight", "Output", "TransposedOutput"]).map(
        lambda r: {"Amp": r}
    ),
    st.tuples(st.sampled_from(["Matrix", "TransposedMatrix"]), sizes, sizes).map(
        lambda t: {"BlockMajor": {t[0]: {"row_block": t[1], "column_block": t[2]}}}
    ),
)
precisions = st.sampled_from(["F16", "F32"]) | st.integers(-9, 9).map(lambda e: {"F8F143": {"scale_exponent": e}})
axes = st.just("Linear") | st.tuples(st.sampled_from(["FromStart", "FromEnd"]), counts).map(lambda t: {t[0]: t[1]})
axis_tilings = st.fixed_dictionaries(
    {
        "axis": axes,
        "partitions": counts,
        "padding_groups": sizes,
        "block_size": sizes,
        "padding_multiple": sizes,
        "shard_padding_multiple": sizes,
        "padding": st.sampled_from(["Reject", "Zero"]),
        "tile_stride": st.none() | counts,
    }
)
types = st.fixed_dictionaries(
    {
        "shape": st.lists(st.integers(0, 2**63 - 1), max_size=4),
        "format": st.fixed_dictionaries(
            {
                "precision": precisions,
                "layout": st.fixed_dictionaries(
                    {
                        "order": orders,
                        "tiling": st.fixed_dictionaries(
                            {"tile_count": counts, "replicas": counts, "axes": st.lists(axis_tilings, max_size=3)}
                        ),
                        "memory_class": st.sampled_from(["Ipu21Standard", "Ipu21Interleaved"]),
                    }
                ),
            }
        ),
    }
)


@given(types, st.booleans())
def test_text_and_json_give_the_same_type(obj: dict[str, Any], is_pretty: bool) -> None:
    text = graph([value(0, f"TensorType {debug(obj)}")], [])
    read = parse_midgraph(pretty(text) if is_pretty else text).values[0].type
    assert read == TensorType.from_json(obj)
    assert read.to_json() == obj


# --- what is wrong ---------------------------------------------------------------------------------------------------


class TestErrors:
    """Each message says what is wrong and where, and each place is the exact one."""

    @pytest.mark.parametrize(
        ("old", "new", "at", "says"),  # `at`: in the new text, or before it (`<`), or after it (`>`)
        [
            # syntax
            ("tile_count: 16", "tile_count 16", "tile_count", "does not parse here, got 'tile_count 16"),
            ("tile_count: 16", "tile_count: @", "@", "does not parse here, got '@"),
            ("inputs: [", "inputs: ((", ">], values", "does not parse here.*accepted: '\\)'"),
            (
                "MidValueId(7)], estimated_cycles",
                "MidValueId(7), estimated_cycles",
                ">: 116606",
                r"does not parse here.*accepted:.*'\]'",
            ),
            ('{ name: "x" }', '{ name: "x }', '"x', "breaks off in a string that is not closed; accepted: '\"'"),
            ("letter: '", "letter: ,'", ",", "does not parse here, got"),
            # strings and numbers
            (r"le\u{df}t", r"le\qt", '<"', r"unknown escape in a string, got '\\\\q'; accepted: .*u\{"),
            (r"le\u{df}t", r"le\u{d800}t", '<"', "unknown escape"),
            ("116606", "9" * 41, "9", "the number is too long.*at most 40"),
            # fields that are unknown, missing, twice
            ("partitions: 12", "partition: 12", "partition", r"axes\[0\].*unknown field `partition`"),
            ("replicas: 1,", "replicas: 1, spare: 2,", "spare", r"values\[0\].tensor_type.*unknown field `spare`"),
            ("rotation: 0,", "rotation: 0, turn: 1,", "turn", r"values\[0\].owners: .*unknown field `turn`"),
            (
                "origin: ValueId(0),",
                "origin: ValueId(0), x: 1,",
                "x",
                "MidValue has an unknown field `x`; accepted: id",
            ),
            ("packing: Staged", "packing: Staged, way: 1", "way", "Copy has an unknown field `way`.*mapping, policy"),
            ("offsets: [], view", "offsets: [], stride: 2, view", "stride", "unknown field `stride`"),
            ("output_aliases: []", "output_aliases: [], hint: 1", "hint", "MidOperation has an unknown field `hint`"),
            ("kind: Host", "kind: Host, size: 3", "size", "MidInput has an unknown field `size`"),
            ("tile_count: 16, ", "", "<MidGraph", "MidGraph has no field `tile_count`"),
            ("id: MidValueId(0), ", "", "<MidValue {", r"values\[0\]: MidValue has no field `id`"),
            ("padding: Reject", "padding: Reject, padding: Zero", "padding: Zero", "the field `padding` occurs twice"),
            ("policy: Automatic, ", "", "<Copy {", r"operations\[1\].kind: Copy has no field `policy`"),
            ("partitions: 12, ", "", "<AxisTiling {", r"axes\[0\]: .*missing required field `partitions`"),
            # values that are out of range or of the wrong kind
            ("tile_count: 16", "tile_count: 0", "0", "tile_count: not an integer in range, got 0; accepted: .* 1 to"),
            ("tile_count: 16", "tile_count: 1.5", "1.5", "tile_count: not an integer in range, got 1.5"),
            ("FromStart(0)", "FromStart(-1)", "-1", r"values\[1\].*axis.FromStart: not an integer in range, got -1"),
            ("FromEnd(1)", "FromBack(1)", "From", "unknown name, got 'FromBack'; accepted: FromStart, FromEnd"),
            ("Amp(Left)", "Amp(Right)", "Right", "order.Amp: unknown name, got 'Right'; accepted: Left, "),
            ("Amp(Left)", "Some(Left)", "Some(", "order: unknown name, got 'Left'; accepted: RowMajor"),
            ("row_block: 32", "row_block: 0", "0", r"order.*row_block: not an integer in range, got 0"),
            ("scale_exponent: -4", "scale: -4", "<F8F143 {", "F8F143: wrong fields, got .*scale_exponent"),
            ("F8F143 { scale_exponent: -4 }", "F8F143", "F8F143", "precision: unknown name, got 'F8F143'"),
            ("tile_stride: Some(3)", "tile_stride: Some(0)", "Some(", "tile_stride: not an integer in range, got 0"),
            ("TensorShape([6, 32])", "TensorShape([6, -32])", "-32", r"shape\[1\]: .*got -32"),
            ("MidValue {", "Value {", "Value", r"values\[0\]: not a MidValue, got 'Value {..'; accepted: MidValue {"),
            ("OwnerMap { rotation: 0, embedding: None }", "3", "3", r"values\[0\].owners: not a OwnerMap, got 3"),
            ("embedding: None", "embedding: Some([-1])", "-1", r"values\[0\].owners.embedding\[0\]: .*got -1"),
            ("outputs: [MidValueId(7)]", "outputs: MidValueId(7)", "Mid", "outputs: not a list"),
            ("kind: Barrier", "kind: 3", "3", "kind: not a variant, got '3'"),
            ("policy: Automatic", 'policy: "x"', '"x"', "policy: not a variant"),
            ("merge_axis: 0", "merge_axis: 1", "1", "mapping.view.merge_axis: the axes are the same, got 1"),
            ("offsets: [0, -1]", "offsets: [0, x]", "x", r"mapping.offsets\[1\]: .*int.*str"),
            # references
            ("id: MidValueId(7)", "id: MidValueId(4)", "<MidValue {", r"values\[5\].id: the id 4 occurs twice"),
            ("outputs: [MidValueId(7)]", "outputs: [MidValueId(9)]", "Mid", r"outputs\[0\]: there is no value 9"),
            ("value: MidValueId(0)", "value: MidValueId(5)", "Mid", r"inputs\[0\].value: there is no value 5"),
            ("results: [MidValueId(3)]", "results: [MidValueId(33)]", "Mid", "there is no value 33"),
            (
                "results: [MidValueId(2)]",
                "results: []",
                "<MidOperation",
                "0 results'; accepted: one input and one result",
            ),
            ("inputs: [MidValueId(0)]", "inputs: [MidValueId(0), MidValueId(1)]", "<MidOp", "got '2 inputs, 1 results"),
        ],
    )
    def test_message_and_place(self, old: str, new: str, at: str, says: str) -> None:
        changed = DUMP.index(old)
        text = DUMP.replace(old, new, 1)
        error = broken(text)
        assert re.search(says, str(error)), str(error)
        expected = {
            "<": lambda: text.rindex(at[1:], 0, changed + len(new)),
            ">": lambda: text.index(at[1:], changed),
        }.get(at[0], lambda: changed + new.index(at))()
        assert (error.line, error.column) == (1, expected + 1), str(error)
        assert str(error).startswith(f"line 1, column {expected + 1}: ")

    def test_line_and_column_of_a_pretty_printed_dump(self) -> None:
        text = pretty(DUMP).replace("replicas: 1", "replicas: -1", 1)
        assert (broken(text).line, broken(text).column) == place(text, text.index("-1"))

    @pytest.mark.parametrize("text", ["", "  ", "MidGraph", "Graph {}", "x MidGraph {}", "[MidGraph {}]", "\n\n 3"])
    def test_not_a_dump(self, text: str) -> None:
        error = broken(text)
        assert "not a dump; accepted: MidGraph { .. }" in str(error)
        assert (error.line, error.column) == place(text, len(text) - len(text.lstrip()))

    def test_not_a_text(self) -> None:
        with pytest.raises(FieldError, match="text: not a text, got 'bytes'; accepted: str"):
            parse_midgraph(b"MidGraph {}")  # type: ignore[arg-type]

    def test_trailing_text(self) -> None:
        error = broken(f"{DUMP}\nMidGraph")
        assert (error.line, error.column) == (2, 1)
        assert "got 'MidGraph'; accepted: the end" in str(error)

    @pytest.mark.parametrize("opener", ["[", "(", "{", "Some(", "A { b: ", '{"k": '])
    @pytest.mark.parametrize("closed", [False, True])
    def test_hostile_nesting(self, opener: str, closed: bool) -> None:
        n = 100_000
        closers = re.sub(r"[^\])}]", "", opener.translate(str.maketrans("[({", "])}")))[::-1]
        error = broken(graph([], [], f"x: {opener * n}1{closers * n if closed else ''}"))
        assert f"nested too deeply; accepted: at most {MAX_DEPTH} levels of brackets" in str(error)
        assert error.column < 2000

    def test_values_in_messages_are_short(self) -> None:
        error = broken(DUMP.replace("scale_exponent: -4", "scale_exponent: [" + "1, " * 5000 + "]"))
        assert len(str(error)) < 500


@given(st.integers(0, len(DUMP) - 1), st.booleans())
def test_a_dump_that_is_cut_anywhere(cut: int, is_pretty: bool) -> None:
    text = pretty(DUMP) if is_pretty else DUMP
    cut = cut * len(text) // len(DUMP)
    error = broken(text[:cut])
    assert 1 <= error.line <= text.count("\n", 0, cut) + 1
    if cut >= len("MidGraph {"):
        assert "what starts at line 1, column 1 breaks off " in str(error)


PIECES = r"""[ ] { } ( ) , : " ' \ - . .. 9 e9 _ µ None Some( F8F143 MidGraph{ MidValueId(1) Linear -1 ::
99999999999999999999 true false 0.5 {} [] Matrix"""
pieces = st.sampled_from([*PIECES.split(), "", " ", "\n", "\0"])


def attempt(text: str) -> MidGraph | LayoutError:
    try:
        return parse_midgraph(text)
    except LayoutError as error:
        return error


@given(st.lists(st.tuples(st.integers(0, len(DUMP)), st.integers(0, 12), pieces), min_size=1, max_size=4))
def test_mutations_give_a_graph_or_a_layout_error(changes: list[tuple[int, int, str]]) -> None:
    text = DUMP
    for at, remove, insert in changes:
        text = text[:at] + insert + text[at + remove :]
    read = attempt(text)
    if isinstance(read, LayoutError):
        assert re.match(r"line \d+, column \d+: ", str(read))
    else:
        assert repr(read)
        assert hash(read) == hash(attempt(text))
        assert len(read.copies) == sum(map(len, read.phases()))


@given(st.text(st.sampled_from("MidGraph{}[]():,\"\\'.-0aA_ \n\t"), max_size=60))
def test_any_text(text: str) -> None:
    assert str(attempt("MidGraph {" + text))
