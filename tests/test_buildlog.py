"""Build logs: entries, spans, values, records and dumps, with and without line ends, and what can be wrong."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from test_midgraph import LINEAR, PIECES, ROWS, axis, copy, graph, place, pretty, tensor_type, value

from tiling.buildlog import BuildLog, PackagePhase, parse_log, read_log
from tiling.errors import DumpError, FieldError, LayoutError
from tiling.layout import F8F143, TensorType
from tiling.midgraph import MidGraph, parse_midgraph

LOGS = Path(__file__).parent / "data" / "logs"
LINES = (LOGS / "lines.log").read_text(encoding="utf-8")
JOINED = (LOGS / "joined.log").read_text(encoding="utf-8")

STAMP = "2026-03-01T08:00:00.137500Z  INFO "
PREPARED = "prepared large physical exchange phase phase=3 transfers=12 maximum_identical_destinations=1"
COMPARED = "compared ordinary and paired exchange schedules"
OPTIMIZED = (
    "optimized physical exchange schedule phase=3 initial_horizon=99 selected_horizon=90 endpoint_lower_bound=80 "
    'lower_bound_gap=10 selected_kind="full-duplex" neighborhood_improvements=0'
)
SMALL = graph([value(0, LINEAR), value(1, ROWS)], [copy(0, 1)])
TYPE = tensor_type("6, 32", 4, [axis("FromEnd(2)", 4)], "Amp(Left)")
FAILURE = f"tile allocation does not fit tile=5 class=Standard bytes=96 alignment=8 free=[(1, 2)] tensor_type={TYPE}"


def figures(log: BuildLog) -> tuple[int, ...]:
    """Entries, timestamped, dumps, prepared, optimized, compared, failures, phases, (stage, phase), all transfers."""
    return (
        log.entries,
        log.timestamped,
        len(log.graphs),
        len(log.phases),
        sum(record.is_optimized for record in log.phases),
        len(log.comparisons),
        len(log.allocation_failures),
        len({record.phase for record in log.phases}),
        len({(record.stage, record.phase) for record in log.phases}),
        sum(record.transfers for record in log.phases),
    )


def broken(text: str) -> DumpError:
    with pytest.raises(DumpError) as caught:
        parse_log(text)
    return caught.value


# --- whole logs ------------------------------------------------------------------------------------------------------


class TestWholeLogs:
    def test_with_line_ends(self) -> None:
        log = read_log(LOGS / "lines.log")
        assert figures(log) == (20, 17, 4, 4, 3, 1, 2, 3, 4, 120 + 35 + 121 + 7)
        assert log.skipped == 4
        assert [(g.label, g.line) for g in log.graphs] == [
            ("CANDIDATE 0: 1200", 3),
            ("kept two graphs", 4),
            ("and second", 4),
            ("CANDIDATE 1: 900", 5),
        ]
        assert [g.fields["estimated_cycles"] for g in log.graphs] == [1200, 1100, 1150, 900]
        assert log.graphs[0].inputs[0].name == 'in "0" {'

    def test_without_line_ends(self) -> None:
        log = read_log(str(LOGS / "joined.log"))
        assert figures(log) == (7, 7, 1, 1, 1, 0, 2, 1, 1, 1440)
        assert log.skipped == 0
        assert log.graphs[0].label == "CANDIDATE 7: 77"

    @pytest.mark.parametrize("joint", [" ", "\t"])
    def test_a_log_that_lost_its_line_ends(self, joint: str) -> None:
        log, joined = parse_log(LINES), parse_log(LINES.replace("\n", joint))
        assert joined.graphs == log.graphs
        assert (joined.entries, joined.timestamped) == (17, 17)  # other lines are tails
        assert figures(joined)[2:] == figures(log)[2:]
        assert [(f.tile, f.tensor_type) for f in joined.allocation_failures] == [
            (f.tile, f.tensor_type) for f in log.allocation_failures
        ]
        assert [p.seconds for p in joined.package_phases] == [p.seconds for p in log.package_phases]

    def test_carriage_returns(self) -> None:
        assert figures(parse_log(LINES.replace("\n", "\r\n"))) == figures(parse_log(LINES))

    def test_exchange_records(self) -> None:
        first, second, third, last = parse_log(LINES).phases
        assert (first.phase, first.stage, first.transfers, first.endpoint_lower_bound) == (0, "provisional", 120, 256)
        assert (second.initial_horizon, second.selected_horizon, second.lower_bound_gap) == (72, 70, 6)
        assert (third.stage, third.selected_kind, third.neighborhood_improvements) == ("lower", "balanced", 0)
        assert (last.stage, last.phase, last.maximum_identical_destinations) == ("lower", 2, 1)
        assert not last.is_optimized
        assert {last.initial_horizon, last.selected_horizon, last.lower_bound_gap, last.selected_kind} == {None}
        lines = LINES.splitlines()
        assert all("prepared large" in lines[record.line - 1] for record in (first, second, third, last))

    def test_comparisons(self) -> None:
        (one,) = parse_log(LINES).comparisons
        assert (one.phase, one.stage, one.candidates) == (0, "provisional", 18)
        assert (one.ordinary_horizon, one.paired_horizon, one.use_paired) == (300, 280, True)

    def test_allocation_failures(self) -> None:
        left, eight_bit = parse_log(LINES).allocation_failures
        assert (left.tile, left.memory_class, left.bytes, left.alignment) == (5, "Ipu21Interleaved", 35712, 32)
        assert left.tensor_type.order.name == "Left"
        assert left.fields == {
            "first": 3,
            "last": 4,
            "free": [[327680, 360448], [368376, 376832]],
            "active": [[4294967295, 524288, 96768], [40, 866304, 31752]],
        }
        assert eight_bit.tensor_type.precision == F8F143(-4)  # pretty-printed, over many lines
        assert eight_bit.fields["active"] == []

    def test_package_phases(self) -> None:
        start, lower, build = parse_log(LINES).package_phases
        assert (start.name, start.seconds, start.idle_seconds) == (
            "start",
            pytest.approx(297e-6),
            pytest.approx(1.48e-6),
        )
        assert start.spans == ("compiler.build", "start")
        assert (lower.name, lower.seconds, lower.success) == ("lower", 5.978, True)
        assert (build.name, build.seconds) == ("compiler.build", 12.5)
        assert [p.success for p in parse_log(JOINED).package_phases] == [True, False]

    def test_records_can_be_keys(self) -> None:
        log = parse_log(LINES)
        assert len({*log.phases, *log.comparisons, *log.allocation_failures, *log.package_phases}) == 10
        assert repr(log) == "BuildLog(20 entries: 4 graphs, 4 exchange phases, 2 allocation failures)"


REAL = {
    "siglip-mlp": (171, 160, 6, 12, 12, 4, 0, 6, 12, 826_120),
    "attention-qk": (151, 148, 0, 21, 21, 1, 0, 7, 14, 564_861),
    "siglip-b2": (244, 244, 0, 61, 61, 13, 24, 61, 61, 3_085_456),
}


@pytest.mark.skipif("TILING_LOGS" not in os.environ, reason="TILING_LOGS does not name a folder of real logs")
@pytest.mark.parametrize("name", REAL)
def test_real_logs(name: str) -> None:
    path = Path(os.environ["TILING_LOGS"]) / f"{name}.log"
    log = read_log(path)
    assert figures(log) == REAL[name]
    for record in log.phases:
        assert record.selected_horizon is not None
        assert record.endpoint_lower_bound is not None
        assert record.lower_bound_gap == record.selected_horizon - record.endpoint_lower_bound
    joined = parse_log(path.read_text(encoding="utf-8").replace("\n", " "))
    assert joined.graphs == log.graphs
    assert figures(joined) == (log.timestamped, *REAL[name][1:])


# --- entries ---------------------------------------------------------------------------------------------------------


class TestEntries:
    @pytest.mark.parametrize(
        ("text", "entries", "timestamped"),
        [
            ("", 0, 0),
            ("\n \n\t\n", 0, 0),
            ("words alone", 1, 0),
            (f"{STAMP}a\n\n{STAMP}b\nc\n", 3, 2),
            (f"{STAMP}a {STAMP}b{STAMP}c", 3, 3),
            (f"before {STAMP}a", 2, 1),
            (f"{STAMP}at=2026-03-01T08:00:00Z x", 1, 1),  # a time, but no level
            (f'{STAMP}said="{STAMP}b" x=1', 1, 1),  # in a string
            (f'{STAMP}cut="b {STAMP}c{{phase="x"}}: d', 2, 2),  # the string is not closed
            (f"{STAMP}x=(1 {STAMP}y=)", 2, 2),
            ("2026-03-01T08:00:00+01:00 WARN a", 1, 1),
            (STAMP.strip(), 1, 1),
        ],
    )
    def test_where_entries_end(self, text: str, entries: int, timestamped: int) -> None:
        log = parse_log(text)
        assert (log.entries, log.timestamped, log.skipped) == (entries, timestamped, entries)

    @pytest.mark.parametrize(
        ("spans", "stage"),
        [
            ("", ""),
            ("one: ", "one"),
            ("one{a=1}:two: ", "two"),
            ("one:two{a=1 b=2}: ", "two"),
            ('one:two{phase="plan"}: ', "plan"),
            ('one{phase="plan"}:two: ', "two"),
            ('one{phase="plan"}:two{a="}: " list=[(1, 2)] phase="final" }: ', "final"),
            ('two{inner=P { phase="x" } phase="y"}: ', "y"),
            ("two{phase=word}: ", "word"),
            ('two{phase="a\\"b c"}: ', 'a"b c'),
            ("a.b-c::d: ", ""),  # not a span
        ],
    )
    def test_stage(self, spans: str, stage: str) -> None:
        log = parse_log(f"{STAMP}{spans}{PREPARED}")
        assert [record.stage for record in log.phases] == ([stage] if "::" not in spans else [])

    def test_spans_that_are_none(self) -> None:
        assert parse_log(f"{STAMP}a{{b=(}}: c\n{STAMP}a{{: {PREPARED}\n{STAMP}").phases == []

    def test_values_of_all_kinds_before_the_wanted_ones(self) -> None:
        noise = 'a="x y=1 {" b=[(1, 2), Some("]")] c=T { d: 1 } e={1, 2} f=(3) g=w(4)'
        log = parse_log(f"{STAMP}{PREPARED.replace('phase=3', noise + ' phase=3')} tail of words phase=9 transfers=1")
        assert [(r.phase, r.transfers) for r in log.phases] == [(3, 12)]

    @pytest.mark.parametrize("noise", ["a=(", 'a="x', "a=[(1, 2)", "a={", 'a=("', "a=", "a==", 'a=x"', "a=(]", "a=)"])
    def test_values_that_do_not_close_take_nothing_with_them(self, noise: str) -> None:
        text = f"{STAMP}{PREPARED.replace('phase=3', noise + ' phase=3')}\n"
        log = parse_log(text + text)
        assert [(r.phase, r.transfers) for r in log.phases] == [(3, 12)] * 2

    def test_half_open_ranges_and_stray_brackets(self) -> None:
        log = parse_log(f"{STAMP}{PREPARED.replace('phase=3', 'a=[0, 5) phase=3')}")
        assert log.phases[0].phase == 3

    def test_optimized_goes_with_the_latest_prepared_of_its_phase_and_stage(self) -> None:
        entries = [
            ("a", PREPARED),
            ("b", PREPARED),
            ("a", PREPARED.replace("transfers=12", "transfers=13")),
            ("a", PREPARED.replace("phase=3", "phase=4")),
            ("a", OPTIMIZED),
            ("c", OPTIMIZED),  # without a prepared one
        ]
        log = parse_log("\n".join(f"{STAMP}{stage}: {text}" for stage, text in entries))
        assert [(r.stage, r.phase, r.transfers, r.is_optimized) for r in log.phases] == [
            ("a", 3, 12, False),
            ("b", 3, 12, False),
            ("a", 3, 13, True),
            ("a", 4, 12, False),
        ]
        assert log.skipped == 1

    @pytest.mark.parametrize(
        ("text", "seconds"),
        [("816ns", 816e-9), ("297µs", 297e-6), ("297μs", 297e-6), ("3us", 3e-6), ("58.4ms", 0.0584), ("121s", 121.0)],
    )
    def test_durations(self, text: str, seconds: float) -> None:
        (phase,) = parse_log(f"{STAMP}one: close time.busy={text}").package_phases
        assert phase == PackagePhase("one", pytest.approx(seconds), spans=("one",), line=1)

    def test_close_is_a_word_too(self) -> None:
        log = parse_log(f"{STAMP}close time.busy=1s\n{STAMP}one: close to done x=1\n{STAMP}one: close x=1")
        assert (log.package_phases, log.skipped) == ([], 3)


# --- dumps in logs ---------------------------------------------------------------------------------------------------


class TestDumps:
    @pytest.mark.parametrize("stamp", ["", STAMP])
    @pytest.mark.parametrize("dump", [SMALL, pretty(SMALL)], ids=["compact", "pretty"])
    @pytest.mark.parametrize(
        ("before", "after", "label"),
        [
            ("", "", ""),
            ("BEST 2: 17 ", "", "BEST 2: 17"),
            ("chosen graph=", " cost=3", "chosen"),
            ("chosen rank=1 BEST 3: ", " tail", "BEST 3"),
            ("chosen rank=1 graph=Some(", ")", "chosen"),
            ("chosen (", ")", "chosen ("),
            ("chosen x=[ (", "", "("),  # does not close
            ("chosen graph=dump::", "", "chosen"),
        ],
    )
    def test_places(self, stamp: str, dump: str, before: str, after: str, label: str) -> None:
        text = f"\n{stamp}{before}{dump}{after}\n{STAMP}{PREPARED}"
        log = parse_log(text)
        assert log.graphs == [parse_midgraph(SMALL)]
        assert (log.graphs[0].label, log.graphs[0].line) == (label, 2)
        assert len(log.phases) == 1
        assert log.skipped == 0
        if "Some(" not in before or dump is SMALL:
            assert log.entries == 2

    def test_several_in_one_entry(self) -> None:
        text = f"{STAMP}a 1: {SMALL} b 2: {pretty(SMALL)} best={SMALL} all=[{SMALL}, {SMALL}] c {SMALL}"
        log = parse_log(text)
        assert [g.label for g in log.graphs] == ["a 1", "b 2", "a 1", "a 1", "a 1", "c"]
        assert set(log.graphs) == {parse_midgraph(SMALL)}
        assert log.entries == 1

    def test_one_after_the_other(self) -> None:
        log = parse_log(f"A {SMALL}\nB {SMALL}\n{pretty(SMALL)}\n{SMALL}{SMALL}")
        assert ([g.label for g in log.graphs], log.entries) == (["A", "B", "", "", ""], 4)

    def test_words_and_strings_are_none(self) -> None:
        log = parse_log(f'the MidGraph is lowered\n{STAMP}x="MidGraph {{" y=["MidGraph {{"]\nOldMidGraph {{')
        assert log.graphs == []

    def test_a_name_that_looks_like_an_entry(self) -> None:
        name = f"x {STAMP}y"
        text = SMALL.replace("inputs: []", f'inputs: [MidInput {{ name: "{name}", kind: Host, value: MidValueId(0) }}]')
        log = parse_log(f"A {text}\n{STAMP}b")
        assert (log.graphs[0].inputs[0].name, log.entries) == (name, 2)

    def test_a_file_with_a_dump_alone(self, tmp_path: Path) -> None:
        path = tmp_path / "graph.txt"
        path.write_text(pretty(SMALL), encoding="utf-8")
        assert read_log(path).graphs == [parse_midgraph(SMALL)]


class TestBrokenDumps:
    CUT = SMALL[: SMALL.index("block_size: 16") + len("block_size: 16")]

    @pytest.mark.parametrize(
        "after",
        ["", "\n", f"\n{STAMP}more words", f" {STAMP}more words", f"\n{STAMP}best {SMALL}\n", f"{STAMP}a{{b=1}}: }} ]"],
    )
    def test_breaks_off(self, after: str) -> None:
        before = f"{STAMP}words\n\n{STAMP}graph 7: "
        error = broken(before + self.CUT + after)
        assert (error.line, error.column) == (3, len(STAMP) + len("graph 7: ") + len(self.CUT) + 1)
        assert f"what starts at line 3, column {len(STAMP) + 10} breaks off here; accepted: ',', '}}'" in str(error)

    def test_breaks_off_in_a_string(self) -> None:
        text = SMALL.replace("inputs: []", 'inputs: [MidInput { name: "le')
        text = text[: text.index('"le') + 3]
        for after in ("", f' {STAMP}span{{phase="x"}}: more {SMALL}'):
            error = broken(f"\n{text}{after}")
            assert (error.line, error.column) == (2, text.index('"le') + 1)
            assert "breaks off in a string that is not closed" in str(error)

    def test_pretty_printed(self) -> None:
        text = pretty(SMALL)
        cut = text.index("padding: Zero")
        error = broken(f"A\n{text[:cut].rstrip()}\n{STAMP}b")
        assert (error.line, error.column) == place(f"A\n{text}", 2 + len(text[:cut].rstrip()))

    def test_goes_on_with_something_else(self) -> None:
        error = broken(f"A {self.CUT}\nB {SMALL}\n")
        assert (error.line, error.column) == (2, 1)
        assert "what starts at line 1, column 3 does not parse here, got 'B MidGraph" in str(error)

    def test_what_is_wrong_inside_has_its_place_in_the_file(self) -> None:
        text = f"{STAMP}a\nB {SMALL.replace('offsets: []', 'offsets: [1, x]')}\n"
        error = broken(text)
        assert (error.line, error.column) == place(text, text.index("x]"))
        assert "operations[0].kind.mapping.offsets[1]" in str(error)

    def test_nested_too_deeply(self) -> None:
        assert "nested too deeply" in str(broken("x MidGraph { a: " + "[" * 100_000))
        assert parse_log("x a=" + "[" * 100_000).entries == 1  # of no interest

    def test_every_dump_is_looked_at(self) -> None:
        error = broken(f"{SMALL} {SMALL} MidGraph {{}}")
        assert error.column == 2 * len(SMALL) + 3
        assert "MidGraph has no field `tile_count`" in str(error)


class TestBadRecords:
    @pytest.mark.parametrize(
        ("text", "old", "new", "at", "says"),
        [
            (
                PREPARED,
                " transfers=12",
                "",
                "",
                "the record `prepared large physical exchange phase` has no `transfers`",
            ),
            (
                PREPARED,
                "=12",
                "=-12",
                "-12",
                "`transfers` can't be read, got '-12'; accepted: integers from 0 to 2^63-1",
            ),
            (PREPARED, "=12", "=many", "many", "`transfers` can't be read, got 'many'"),
            (PREPARED, "=12", "=" + "9" * 5000, "9", "`transfers` can't be read, got '9999"),
            (PREPARED, "=12", "=", "", "`transfers` can't be read"),
            (PREPARED, "=12", "=1.5", "1.5", "`transfers` can't be read, got '1.5'"),
            (PREPARED, "phase=3", 'phase="3"', '"3"', "`phase` can't be read"),
            (OPTIMIZED, "endpoint_lower_bound=80 ", "", "", "has no `endpoint_lower_bound`"),
            (OPTIMIZED, "selected_horizon=90", "selected_horizon=x", "x ", "`selected_horizon` can't be read"),
            (FAILURE, "tile=5 ", "", "", "the record `tile allocation does not fit` has no `tile`"),
            (FAILURE, f" tensor_type={TYPE}", "", "", "has no `tensor_type`"),
            (
                FAILURE,
                "partitions: 4",
                "partitions: 0",
                "0, padding_groups",
                "tensor_type.format.layout.tiling.axes[0].partitions: not an",
            ),
            (FAILURE, "partitions: 4", "partition: 4", "partition: 4", "unknown field `partition`"),
            (FAILURE, TYPE, TYPE[:-30], None, "breaks off here; accepted: "),
            (FAILURE, TYPE, "TensorType", "TensorType", "tensor_type: not a TensorType, got 'TensorType'"),
            (FAILURE, TYPE, "@@", "@@", "does not parse here, got '@@'"),
            (
                "one: close time.busy=3m",
                "",
                "",
                "3m",
                "`time.busy` can't be read, got '3m'; accepted: a number with the unit",
            ),
            ('package build phase finished phase="a"', "", "", "", "has no `elapsed_ms`"),
            (
                f"{COMPARED} phase=1 ordinary_horizon=1 paired_horizon=1 use_paired=yes",
                "",
                "",
                "yes",
                "`use_paired` can't be read, got 'yes'; accepted: true, false",
            ),
        ],
    )
    def test_message_and_place(self, text: str, old: str, new: str, at: str | None, says: str) -> None:
        assert old in text
        log = f"words\n{STAMP}{text.replace(old, new, 1)}\n{STAMP}x\n"
        error = broken(log)
        assert says in str(error)
        assert error.line == 2
        if at:
            key = re.search(r"`([\w.]+)` can't", str(error))
            start = log.index(f"{key[1]}=", log.index("phase=") if key[1] == "phase" else 0) if key else 0
            assert (error.line, error.column) == place(log, log.index(at, start))
        elif at == "" and "has no" in says:
            assert error.column == 1

    def test_a_pretty_printed_type_that_breaks_off(self) -> None:
        text = f"{STAMP}{FAILURE.replace(TYPE, pretty(TYPE)[:-2])}"
        error = broken(f"{text}\n{STAMP}x")
        assert (error.line, error.column) == place(text, len(text))
        assert "breaks off here; accepted: a field, '}'" in str(error)

    def test_records_are_only_taken_from_entries_with_a_timestamp(self) -> None:
        assert parse_log(f"{PREPARED}\n").phases == []

    def test_other_fields_of_a_failure_are_kept_as_they_are(self) -> None:
        text = FAILURE.replace("free=[(1, 2)]", 'a=@@ b="x\\ty" c="\\q" d=1.5 e=none f=true g=[0, 5) h=None i={1: 2}')
        (failure,) = parse_log(STAMP + text).allocation_failures
        expected = {"a": "@@", "b": "x\ty", "c": "\\q", "d": 1.5, "e": "none", "f": True, "g": "[0, 5)", "h": None}
        assert failure.fields == {**expected, "i": {"1": 2}}

    def test_debug_values_after_the_type(self) -> None:
        (failure,) = parse_log(f"{STAMP}{FAILURE} active=[(1, 2)] and a tail").allocation_failures
        assert failure.fields == {"free": [[1, 2]], "active": [[1, 2]]}
        assert isinstance(failure.tensor_type, TensorType)


class TestFiles:
    def test_byte_order_mark_and_bytes_that_are_no_text(self, tmp_path: Path) -> None:
        path = tmp_path / "a.log"
        path.write_bytes(b"\xef\xbb\xbf" + f"{STAMP}\n{STAMP}{PREPARED}\n".encode() + b"\xff\xfe words\n")
        assert figures(read_log(path))[:4] == (3, 2, 0, 1)

    def test_bytes_that_are_no_text_in_a_dump(self, tmp_path: Path) -> None:
        path = tmp_path / "a.log"
        path.write_bytes(b"x\n" + SMALL.replace("rotation", "ro@ation").encode().replace(b"@", b"\xff"))
        with pytest.raises(DumpError, match=r"line 2, column .* does not parse here"):
            read_log(path)

    def test_not_a_path(self) -> None:
        with pytest.raises(FieldError, match=r"path: not a path.*accepted: str, os.PathLike"):
            read_log(3)  # type: ignore[arg-type]
        with pytest.raises(FieldError, match=r"path: not a path .*null"):
            read_log("a\0b")

    def test_not_a_text(self) -> None:
        with pytest.raises(FieldError, match="text: not a text, got 'bytes'; accepted: str"):
            parse_log(b"")  # type: ignore[arg-type]

    def test_no_such_file(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            read_log(tmp_path / "none.log")


# --- anything at all -------------------------------------------------------------------------------------------------


def attempt(text: str) -> BuildLog | LayoutError:
    try:
        return parse_log(text)
    except LayoutError as error:
        return error


def dumps_in(text: str) -> list[tuple[int, int]]:
    """Where the dumps of a sound log are."""
    found = []
    for start in re.finditer(r"MidGraph \{", text):
        end = start.end()
        while text.count("{", start.start(), end) - 1 != text.count("}", start.start(), end):  # one is in a string
            end = text.index("}", end) + 1
        found.append((start.start(), end))
    return found


@pytest.mark.parametrize("text", [LINES, JOINED], ids=["lines", "joined"])
@given(data=st.data())
def test_a_log_that_is_cut_anywhere(text: str, data: Any) -> None:
    cut = data.draw(st.integers(0, len(text)))
    read = attempt(text[:cut])
    if any(start + len("MidGraph {") <= cut < end for start, end in dumps_in(text)):
        assert isinstance(read, DumpError)
        assert (read.line, read.column) <= place(text, cut)
        assert "breaks off" in str(read)
    elif isinstance(read, BuildLog):
        assert figures(read) <= figures(parse_log(text))


changes_ = st.lists(
    st.tuples(st.floats(0, 1), st.integers(0, 12), st.sampled_from([*PIECES.split(), "\n", STAMP, "=", "a=("])),
    max_size=4,
)


@pytest.mark.parametrize("text", [LINES, JOINED], ids=["lines", "joined"])
@given(changes=changes_)
def test_mutations_give_a_log_or_a_layout_error(text: str, changes: list[tuple[float, int, str]]) -> None:
    for part, remove, insert in changes:
        at = int(part * len(text))
        text = text[:at] + insert + text[at + remove :]
    read = attempt(text)
    assert repr(read) if isinstance(read, BuildLog) else re.match(r"line \d+, column \d+: ", str(read))


WORDS = [
    "a",
    "a=",
    "a{b=1}:",
    *":()[]{}'\"\\",
    "MidGraph",
    "MidGraph {",
    "one: close time.busy=1s ",
    "TensorType {",
    "Some(",
]
words = st.sampled_from([*WORDS, " ", "\n", "\r\n", ", ", STAMP, SMALL, PREPARED, OPTIMIZED, FAILURE])


@pytest.mark.parametrize(
    "piece",
    [
        "a=( ",
        'a="x ',
        'a=(\\" ',
        'a="\\" ',
        "a=([)] ",
        "a=(\n",
        "MidGraph ",
        "a=(MidGraph ",
        "a{b=(}:",
        "a{",
        "x=A {\n",
        STAMP,
    ],
)
@pytest.mark.parametrize("stamp", ["", STAMP])
def test_long_and_strange_texts_take_time_in_proportion(piece: str, stamp: str) -> None:
    """A square would take minutes."""
    log = parse_log(stamp + piece * 50_000)
    assert log.graphs == []
    assert log.entries >= 1


@given(st.lists(words, max_size=25).map("".join))
@example(f"{STAMP}a=(MidGraph {SMALL}")
def test_any_text(text: str) -> None:
    read = attempt(text)
    if isinstance(read, BuildLog):
        assert read.timestamped <= read.entries
        assert all(isinstance(g, MidGraph) for g in read.graphs)
    else:
        assert str(read)
