"""The command and its reports, as a person runs them."""

import csv
import io
import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import engine
import numpy as np
import pytest
import strategies
import test_midgraph as dumps
import twin
from click.testing import CliRunner
from hypothesis import given
from rich.console import Console

import tiling
from tiling import execute, report
from tiling.cli import main, print_tables


def run(*arguments):
    return CliRunner().invoke(main, [str(a) for a in arguments])


def type_file(path, type):
    path.write_text(json.dumps(type.to_json()), "utf-8")
    return path


def test_the_example_prints_the_six_phases():
    result = run("report", "--check")
    assert result.exit_code == 0
    for words in ("8,612", "29,652", "88,718", "32,961", "164,610", "88,507", "built: logged phase 5"):
        assert words in result.output


def test_json_and_csv_have_the_same_rows():
    made = json.loads(run("report", "--json").output)
    rows = list(csv.DictReader(io.StringIO(run("report", "--csv").output)))
    shown = {None: ""}
    assert [{key: str(shown.get(value, value)) for key, value in row.items()} for row in made["rows"]] == rows
    phases = [row for row in made["rows"] if not row["copy"]]
    assert [row["transfers"] for row in phases] == [8612, 29652, 88718, 32961, 164610, 88507]
    assert made["differs"] is False


def case():
    whole, rows = (
        tiling.TensorType.replicated([64, 64], tiling.F16, 1),
        tiling.TensorType.sharded([64, 64], tiling.F16, 0, 4),
    )
    copy = report.CopyCase("rows", whole, rows, tiling.CoordinateMapping())
    return report.PhaseCase("run 0", (copy,))


def test_a_phase_has_copies():
    with pytest.raises(tiling.FieldError, match=r"run 3: a phase without copies.*at least one"):
        report.PhaseCase("run 3", ())
    with pytest.raises(tiling.FieldError, match=r"phases\[1\]\.copies: a phase without copies"):
        report.CaseFile.from_json(
            {
                "title": "",
                "types": {"a": tiling.TensorType.replicated([4], tiling.F16, 1).to_json()},
                "phases": [
                    {"name": "0", "copies": [{"name": "", "source": "a", "destination": "a"}]},
                    {"name": "1", "copies": []},
                ],
            }
        )


@pytest.mark.parametrize(
    ("transfers", "bound", "status", "differs"),
    [(3, 1536, "built", False), (3, 1537, "differs", True), (4, 1536, "not built", True)],
)
def test_statuses(transfers, bound, status, differs):
    log = [report.Logged("lower phase 3", transfers, bound)]
    made = report.build("one", [("graph", [case()])], log)
    assert made.rows[-1].status == status
    assert made.differs is differs


def test_a_record_that_matches_outweighs_a_provisional_one():
    log = [report.Logged("first phase 3", 3, 1), report.Logged("last phase 3", 3, 1536)]
    made = report.build("one", [("graph", [case()])], log)
    assert (made.rows[-1].status, made.rows[-1].logged) == ("built", "last phase 3")


def test_check_exits_with_1(monkeypatch):
    wrong = report.build("one", [("graph", [case()])], [report.Logged("lower phase 3", 3, 1537)])
    monkeypatch.setattr(report, "example", lambda progress, verify: wrong)
    assert run("report").exit_code == 0
    result = run("report", "--check")
    assert result.exit_code == 1
    assert "differs" in result.output


def test_progress_counts_copies():
    calls = []
    report.build("one", [("graph", [case(), case()])], progress=lambda done, total: calls.append((done, total)))
    assert calls == [(1, 2), (2, 2)]


def test_one_copy(tmp_path):
    a = type_file(tmp_path / "a.json", tiling.TensorType.sharded([64, 64], tiling.F16, 0, 8))
    b = type_file(tmp_path / "b.json", tiling.TensorType.sharded([64, 64], tiling.F16, 1, 8))
    row = json.loads(run("copy", a, b, "--json").output)["rows"][0]
    assert (row["transfers"], row["local_runs"], row["bound"]) == (448, 64, 224)
    assert "448" in run("copy", a, b).output
    listed = list(csv.DictReader(io.StringIO(run("copy", a, b, "--list").output)))
    assert len(listed) == 448
    assert list(listed[0].values()) == ["0", "0", "16", "16", "1", "0"]


def test_one_copy_through_a_view(tmp_path):
    heads = type_file(tmp_path / "heads.json", tiling.TensorType.sharded([6, 5, 8], tiling.F16, 0, 6))
    merged = type_file(tmp_path / "merged.json", tiling.TensorType.sharded([2, 5, 24], tiling.F16, 0, 2))
    there = json.loads(run("copy", merged, heads, "--view", "2,0,3", "--json").output)["rows"][0]
    back = json.loads(run("copy", heads, merged, "--view", "2,0,3,reversed", "--json").output)["rows"][0]
    assert there["bytes"] == back["bytes"] > 0


def one_line_on_stderr(result, *words):
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("tiling: error: ")
    assert result.stderr.count("\n") == 1
    for word in words:
        assert word in result.stderr


def test_errors_are_one_line(tmp_path):
    good = type_file(tmp_path / "a.json", tiling.TensorType.replicated([4], tiling.F16, 1))
    other = type_file(tmp_path / "b.json", tiling.TensorType.replicated([5], tiling.F16, 1))
    broken = tmp_path / "c.json"
    broken.write_text('{"shape": [4, "x"], "format": {}}')
    one_line_on_stderr(run("report", tmp_path / "none.log"), "none.log", "No such file")
    one_line_on_stderr(run("report", tmp_path), "directory")
    one_line_on_stderr(run("copy", good, broken), "c.json", "shape[1]")
    one_line_on_stderr(run("copy", good, other), "outside")
    one_line_on_stderr(run("copy", good, good, "--offsets", "x"), "--offsets")
    one_line_on_stderr(run("copy", good, good, "--view", "1,2"), "--view")
    empty = tmp_path / "empty.log"
    empty.write_text("nothing\n")
    one_line_on_stderr(run("report", empty), "empty.log", "neither a graph")


def test_a_log_that_breaks_off_gives_line_and_column(tmp_path):
    broken = tmp_path / "broken.log"
    broken.write_text("first line\nGEMM MidGraph { tile_count: 4, inputs: [")
    one_line_on_stderr(run("report", broken), "line 2, column")


@pytest.mark.parametrize("arguments", [["--help"], ["report", "--help"], ["copy", "--help"], ["--version"]])
def test_help(arguments):
    assert run(*arguments).exit_code == 0


def test_a_log_for_machines(tmp_path):
    log = Path(__file__).parent / "data" / "logs" / "lines.log"
    facts = json.loads(run("report", "--json", log).output)["log"]
    read = tiling.read_log(log)
    assert facts["entries"] == read.entries
    assert [r["transfers"] for r in facts["exchange_phases"]] == [r.transfers for r in read.phases]
    assert [f["bytes"] for f in facts["allocation_failures"]] == [f.bytes for f in read.allocation_failures]
    assert tiling.TensorType.from_json(facts["allocation_failures"][0]["tensor_type"])
    assert f"{read.entries} entries" in run("report", log).output


@pytest.mark.parametrize("width", [40, 60, 71, 72, 80, 120])
def test_narrow_terminals_get_whole_numbers(width, monkeypatch):
    narrow = Console(width=width, force_terminal=True, color_system=None, record=True, file=io.StringIO())
    monkeypatch.setattr("tiling.cli.Console", lambda **options: narrow)
    print_tables(report.example())
    text = narrow.export_text()
    assert max(map(len, text.splitlines())) <= width
    for figure in ("164,610", "49,317,120", "31,890,048", "26,880"):
        assert figure in text
    assert "…" not in text


def test_copies_that_are_not_planned_are_left_out_and_named(tmp_path):
    path = tmp_path / "graph.txt"
    kernel = dumps.copy(1, 0, "LocalKernel")
    apart = dumps.operation("Barrier", [], [])
    values = [dumps.value(0, dumps.LINEAR), dumps.value(1, dumps.ROWS), dumps.value(2, dumps.LEFT)]
    path.write_text(dumps.graph(values, [dumps.copy(0, 2, "Automatic"), apart, kernel]), "utf-8")
    made = report.of_file(path)
    assert [row.phase for row in made.rows if not row.copy] == ["run 0"]
    assert "run 1 is left out" in made.notes[-1]
    assert "LocalKernel" in made.notes[-1]


def test_verify_carries_every_copy_out(monkeypatch):
    result = run("report", "--verify", "--check", "--json")
    assert result.exit_code == 0
    rows = json.loads(result.output)["rows"]
    assert [row["bytes_right"] for row in rows if row["copy"]] == [True] * 10
    assert "bytes right" in run("report", "--verify").output

    def spoiled(plan, buffers):
        made = execute(plan, buffers)
        made.data[-1] ^= 1
        return made

    monkeypatch.setattr(report, "execute", spoiled)
    result = run("report", "--verify")
    assert result.exit_code == 1
    assert "phase 0, weights come out wrong" in result.output


def test_verify_a_log(tmp_path):
    log = Path(__file__).parent / "data" / "logs" / "lines.log"
    made = report.of_file(log, verify=True)
    assert {row.bytes_right for row in made.rows if row.copy} == {True}


@given(strategies.copies())
def test_moved_arrays_are_the_twins(case):
    if case["outside"] == "zero":
        return
    arguments = engine.arguments(case)
    source, destination = arguments["source"], arguments["destination"]
    array = np.arange(math.prod(source.shape), dtype=np.int64).reshape(source.shape)
    mapping = arguments["mapping"] or tiling.CoordinateMapping()
    got = report.moved(array, destination.shape, mapping)
    assert got.shape == destination.shape
    assert got.ravel().tolist() == twin.move(array.ravel(), source.shape, destination.shape, case["mapping"])


# --- cases in files --------------------------------------------------------------------------------------------------

LINES = Path(__file__).parent / "data" / "logs" / "lines.log"


def without_notes(cases):
    return replace(cases, title="", notes=(), log=None)


@pytest.mark.parametrize("path", [None, LINES], ids=["example", "log"])
def test_cases_go_through_a_file(path, tmp_path):
    there = tmp_path / "cases.json"
    cases = report.example_cases() if path is None else report.cases_of_file(path)
    result = run("convert", *[path or []][: path is not None], "-o", there)
    count = sum(len(phase.copies) for _, phases in cases.graphs for phase in phases)
    assert result.output.endswith(f" {count} copies\n")
    assert without_notes(report.cases_of_file(there)) == without_notes(cases)
    again = tmp_path / "again.json"
    assert run("convert", there, "-o", again).exit_code == 0
    assert again.read_bytes() == there.read_bytes()
    rows = [json.loads(run("report", p, "--json").output)["rows"] for p in ([path] if path else []) + [there]]
    assert rows[0] == rows[-1]
    assert len(rows[0]) >= count


def test_cases_by_hand(tmp_path):
    path = tmp_path / "cases.toml"
    type_ = tiling.TensorType.sharded([8, 8], tiling.F16, 0, 4).to_json()
    copies = [{"name": "rows to columns", "source": "rows", "destination": "columns", "offsets": [0, 0]}]
    columns = tiling.TensorType.sharded([8, 8], tiling.F16, 1, 4).to_json()
    made = {"title": "by hand", "types": {"rows": type_, "columns": columns}, "device_tiles": 9}
    file = report.CaseFile.from_json({**made, "phases": [{"name": "a", "copies": copies}]})
    ((label, (phase,)),) = file.cases().graphs
    assert (label, phase.name, phase.copies[0].device_tiles, phase.copies[0].count().transfers) == ("", "a", 9, 24)
    path.write_text(
        'title = "by hand"\nphases = [{name = "a", copies = [{name = "b", source = "x", destination = "rows"}]}]\n'
        "[types.rows]\nshape = [4]\n[types.rows.format]\nprecision = 'F16'\n[types.rows.format.layout]\n"
        "order = 'RowMajor'\nmemory_class = 'Ipu21Standard'\n"
        "tiling = {tile_count = 1, replicas = 1, axes = []}\n"
    )
    result = run("report", path)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    for words in (str(path), "phases[0].copies[0].source", "'x'", "accepted: 'rows'"):
        assert words in result.stderr


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"phases": 5}, "phases"),
        ({"phases": [{"name": "a", "copies": [{"name": "b"}]}]}, "phases[0].copies[0]"),
        ({"types": {"rows": {"shape": [4]}}}, "types"),
        ({"more": 1}, "more"),
        ({"device_tiles": "many"}, "device_tiles"),
    ],
)
def test_case_files_with_errors(change, where):
    with pytest.raises(tiling.FieldError) as caught:
        report.CaseFile.from_json({"title": "", "types": {}, "phases": [], **change})
    assert where in str(caught.value)


# --- the command as a whole ------------------------------------------------------------------------------------------


def test_every_command_has_help_json_and_a_line_in_the_list():
    listed = run("--help").output
    for name, command in main.commands.items():
        assert f"  {name} " in listed
        assert "..." not in command.get_short_help_str(100)
        text = run(name, "--help").output
        assert text.startswith(f"Usage: main {name}")
        assert ("--json" in text) == (name != "completion")


def test_example_is_a_type_that_every_command_takes(tmp_path):
    path = tmp_path / "type.json"
    facts = json.loads(run("example", "-o", path, "--json").output)
    assert facts["bytes"] == path.stat().st_size
    assert facts["type"] == str(tiling.TensorType.from_json(path.read_bytes()))
    assert json.loads(run("copy", path, path, "--json").output)["rows"][0]["transfers"] == 0
    assert run("shards", path).output.startswith(facts["type"])


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell):
    result = run("completion", shell)
    assert result.exit_code == 0
    assert "_TILING_COMPLETE=" + shell + "_complete" in result.stdout
    asked = {"_TILING_COMPLETE": f"{shell}_complete", "COMP_WORDS": "tiling sh"}
    asked["COMP_CWORD"] = "sh" if shell == "fish" else "1"
    assert "shards" in CliRunner().invoke(main, env=asked, prog_name="tiling").output


@pytest.mark.parametrize("no_color, has_colours", [("", True), ("1", False)])
def test_colours_can_be_turned_off(no_color, has_colours):
    terminal = {"FORCE_COLOR": "1", "TERM": "xterm-256color", "NO_COLOR": no_color, "COLUMNS": "120"}
    result = CliRunner().invoke(main, ["report"], env=terminal)
    assert ("32mbuilt" in result.stdout) == has_colours  # green


WRONG_USAGE = [["copy", "a"], ["copy", "a", "b", "--staging", "odd"], ["nothing"], ["report", "--nothing"], ["show"]]


@pytest.mark.parametrize("arguments", WRONG_USAGE, ids=" ".join)
def test_wrong_usage_is_one_line_too(arguments):
    result = run(*arguments)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert result.stderr.startswith("tiling: error: ")


def test_interruptions(monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(report, "example", interrupt)
    result = run("report")
    assert (result.exit_code, result.stdout, result.stderr.strip()) == (130, "", "tiling: interrupted")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="has no full device")
@pytest.mark.parametrize(
    "arguments",
    [
        *(["report"], ["report", "--json"], ["shards", "TYPE"], ["copy", "TYPE", "OTHER"]),
        *(["copy", "TYPE", "OTHER", "--json"], ["copy", "TYPE", "OTHER", "--list"]),
    ],
    ids=" ".join,
)
def test_output_that_cannot_be_written(arguments, tmp_path):
    for name, axis in (("TYPE", 0), ("OTHER", 1)):
        type_file(tmp_path / name, tiling.TensorType.sharded([256, 256], tiling.F16, axis, 64))
    command = [sys.executable, "-P", "-m", "tiling", *arguments]

    def status(shell):
        done = subprocess.run(["sh", "-c", shell, "sh", *command], cwd=tmp_path, capture_output=True, text=True)
        return done.returncode, done.stderr

    assert status('"$@" > /dev/full') == (2, "tiling: error: standard output: No space left on device\n")
    assert status('"$@" >&-') == (0, "")
    assert status('{ "$@"; echo $? >&2; } | true')[1] in ("141\n", "0\n")  # 0 if all was taken before


def test_one_retile_is_a_case_for_every_command(tmp_path):
    paths = [
        type_file(tmp_path / name, tiling.TensorType.sharded([8, 8], tiling.F16, axis, 4))
        for axis, name in enumerate(("a.json", "b.json"))
    ]
    case = tmp_path / "case.json"
    assert run("convert", *paths, "-o", case).exit_code == 0
    row = json.loads(run("report", case, "--json").output)["rows"][0]
    assert row["transfers"] == json.loads(run("copy", *paths, "--json").output)["rows"][0]["transfers"] == 24
    result = run("convert", *paths, *paths, "-o", case)
    assert (result.exit_code, result.stderr) == (
        2,
        "tiling: error: PATHS: too many files, got 4; accepted: none, one, or two tensor types\n",
    )


def test_what_a_count_alone_does_not_say(tmp_path):
    whole = type_file(tmp_path / "whole.json", tiling.TensorType.sharded([9, 8], tiling.F16, 0, 3))
    crop = type_file(tmp_path / "crop.json", tiling.TensorType.sharded([5, 7], tiling.F16, 1, 7))
    text = run("copy", whole, crop).output
    assert "a crop: 5 x 7 of 9 x 8 elements" in text
    row = json.loads(run("copy", whole, crop, "--json").output)["rows"][0]
    assert 0 < row["misaligned"] <= row["transfers"]
    assert f"{row['misaligned']} of the transfers are not whole words" in text
    assert "crop" not in run("copy", whole, whole).output


@pytest.mark.parametrize("name", ["a.toml", "a", "a.png"])
def test_suffixes_that_say_something_else(name, tmp_path):
    for command in ("example", "convert", "explore"):
        assert run(command, "-o", tmp_path / name).exit_code == 2
    assert not [*tmp_path.iterdir()]


LATE = {"lark", "matplotlib", "plotly", "pyarrow", "pandas", "polars", "duckdb", "yaml", "jax", "tiling.midgraph"}


def test_what_few_need_is_imported_late():
    loaded = engine.python("import sys, tiling, tiling.cli; print(*sys.modules)").split()
    assert "tiling.cli" in loaded
    assert not LATE & set(loaded)


def test_sources_that_are_not_built_say_so(tmp_path):
    for file in Path(tiling.__file__).parent.glob("*.py"):
        target = tmp_path / "tiling" / file.name
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(file.read_bytes())
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\ntry:\n    import tiling\nexcept ImportError as e: print(e)"
    )
    assert "nothing is built here" in engine.python(code)
