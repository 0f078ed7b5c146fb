"""The command. Exit statuses: 0 done, 1 a check failed, 2 the input was wrong, 128 + n ended by signal n."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any, Final, NoReturn, TypeVar, cast

import click
import msgspec
from click.shell_completion import get_completion_class
from rich import console as rich_console
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from . import __version__, explorer, plotting, report, tables
from .copying import plan_copy
from .counting import count_copy
from .errors import FieldError, LayoutError
from .exchange import ExchangePhase
from .files import check_target, replacing, write_whole
from .layout import (
    F16,
    AxisTiling,
    AxisView,
    BlockMajor,
    CoordinateMapping,
    OwnerMap,
    TensorType,
    check_integer,
    read_record,
    read_type,
)
from .ownership import ShardTable, enumerate_shards, exact_sum
from .regions import STAGINGS

F = TypeVar("F", bound=Callable[..., Any])

STYLES = {report.BUILT: "green", report.DIFFERS: "bold red", report.NOT_BUILT: "dim", "": ""}
WIDE = 240  # columns where no terminal says how many
ROOMY = 160  # columns that a table with types in it needs
NARROW = 72  # columns that a table with figures alone needs

FAILED, WRONG = 1, 2  # exit statuses
INTERRUPTED, PIPE_CLOSED = 130, 141  # as if the signal had ended the process

REPORT_FORMS: Final = ("csv", "json")
TABLE_FORMS: Final = ("csv", "json", "parquet")


class Console(rich_console.Console):
    """A terminal that leaves a closed pipe to the command."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def fail(error: Exception | str) -> NoReturn:
    """One line on standard error, exit status 2."""
    if isinstance(error, OSError):
        where = "standard output" if error.filename is None else click.format_filename(error.filename)
        text = f"{where}: {error.strerror}"
    else:
        text = " ".join(str(error).split())
    click.echo(f"tiling: error: {text}", err=True)
    sys.exit(WRONG)


class Commands(click.Group):
    """The commands, with exit statuses that say what happened, and one line for every error."""

    def main(self, *args: Any, **more: Any) -> NoReturn:
        if sys.stdout is None:  # closed: nothing can be printed, and nobody asked for it
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115
        try:
            status = super().main(*args, **{**more, "standalone_mode": False})
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            status = WRONG
        except click.UsageError as error:
            about = f" (see {error.ctx.command_path} --help)" if error.ctx else ""
            fail(f"{error.format_message().rstrip('.')}{about}")
        except (click.Abort, KeyboardInterrupt):
            click.echo("tiling: interrupted", err=True)
            status = INTERRUPTED
        sys.exit(status if isinstance(status, int) else 0)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            made = super().invoke(ctx)
            sys.stdout.flush()
            return made
        except BrokenPipeError:  # whoever reads has had enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(PIPE_CLOSED)
        except (LayoutError, OSError) as error:
            fail(error)


def formats(command: F) -> F:
    """The options of the commands that print."""
    path = click.Path(path_type=Path)
    command = click.option("-o", "--output", type=path, help="Write a file: .csv, .json; lists also .parquet.")(command)
    command = click.option("--csv", "form", flag_value="csv", help="Print CSV.")(command)
    return click.option("--json", "form", flag_value="json", help="Print JSON.")(command)


def written(what: str) -> Callable[[F], F]:
    """The options of the commands that write one file."""

    def options(command: F) -> F:
        path = click.Path(path_type=Path)
        command = click.option("--json", "is_json", is_flag=True, help="Say what was written as JSON.")(command)
        return click.option("-o", "--output", required=True, type=path, help=what)(command)

    return options


def many(command: F) -> F:
    """The files of the commands on phases."""
    return click.argument("paths", nargs=-1, type=click.Path(path_type=Path))(command)


def cases_of(paths: tuple[Path, ...]) -> report.Cases:
    """The copies and phases of one file, one retile between the types of two, or the built-in example."""
    if len(paths) > 2:
        raise FieldError("too many files", where="PATHS", value=len(paths), accepted="none, one, or two tensor types")
    if len(paths) < 2:
        return report.cases_of_file(paths[0]) if paths else report.example_cases()
    source, destination = (read_type(path) for path in paths)
    case = report.CopyCase(_from_to(*paths), source, destination, CoordinateMapping())
    return report.Cases(case.name, (("", (report.PhaseCase("one copy", (case,)),)),))


def _from_to(*paths: Path) -> str:
    return " to ".join(click.format_filename(path, shorten=True) for path in paths)


def say_written(output: Path, is_json: bool, **facts: int | str | list[str]) -> None:
    """What a file that was written is and holds."""
    facts = {"bytes": output.stat().st_size, **facts}
    if is_json:
        click.echo(json.dumps({"output": str(output), **facts}))
        return
    words: list[str] = []
    for name, fact in facts.items():
        words += [f"{fact:,} {name}"] if isinstance(fact, int) else [fact] if isinstance(fact, str) else fact
    click.echo(f"{click.format_filename(output)}: {', '.join(words)}")


def chosen_form(form: str | None, output: Path | None, accepted: tuple[str, ...]) -> str | None:
    """The format that the options ask for, if they do; where no file can be written is said before any work."""
    if output is None:
        return form
    check_target(output)
    if form is None:
        form = output.suffix.lower().removeprefix(".")
        if form not in accepted:
            names = ", ".join(f".{name}" for name in accepted)
            raise FieldError("unknown suffix", where="--output", value=str(output), accepted=names)
    return form


def show(made: report.Report | tables.Table, form: str | None, output: Path | None) -> None:
    """Print a report for people; write it, or a table, in a format (CSV by default) to a file or to standard output."""
    if form is None and isinstance(made, report.Report):
        print_tables(made)
    else:
        write(made, form, sys.stdout if output is None else output)


def write(made: report.Report | tables.Table, form: str | None, out: Path | IO[str]) -> None:
    if isinstance(made, report.Report):
        text = made.to_json() + "\n" if form == "json" else made.to_csv()
        with replacing(out) if isinstance(out, Path) else nullcontext(out) as file:
            file.write(text)
    elif form == "parquet":
        made.to_parquet(cast(Path, out))  # which only a file's name can ask for
    elif form == "json":
        made.to_json(out)
    else:
        made.to_csv(out)


EPILOG: Final = """
\b
Begin with these:
  tiling report                          the built-in example, phase by phase
  tiling report build.log --check        a compiler's log, and whether the
                                         figures in it are the ones found here
  tiling copy a.json b.json              one retile's transfers, bytes, bound
  tiling copy a.json b.json --list       the transfers themselves
  tiling shards a.json                   who owns what
  tiling show a.json -o a.png            the same as a picture
  tiling traffic build.log -o t.png      who sends how much to whom
  tiling explore build.log -o page.html  all of it, to click through

\b
A type's file is what TensorType.to_json gives; the same fields in TOML or
YAML do, too. `tiling example -o a.json` writes one to begin with.

\b
Exit statuses: 0 done; 1 a check failed; 2 the input was wrong, and one line
on standard error says where, what was given and what would be accepted; 130
interrupted.
NO_COLOR=1 turns colours off. `tiling completion bash` (or zsh, fish) prints
what makes the shell complete names.
"""


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]}, epilog=EPILOG)
@click.version_option(__version__, prog_name="tiling")
def main() -> None:
    """Exact tensor layouts over tiles: how many transfers does a retile need, and how bad is the busiest tile?

    A retile gives a tensor that lives in pieces on many tiles another tiling, another element order, or both.
    """


@main.command("report", short_help="Count the copies and phases of a log or a graph.")
@click.argument("path", required=False, type=click.Path(path_type=Path))
@formats
@click.option("--check", is_flag=True, help="Exit with status 1 if a built phase differs.")
@click.option(
    "--verify", is_flag=True, help="Carry every copy out on random bytes too; status 1 if any comes out wrong."
)
def report_command(path: Path | None, form: str | None, output: Path | None, check: bool, verify: bool) -> None:
    """Report on the copies and phases of a build log or a graph's dump.

    PATH is a log (its dumps and exchange phases are found) or a file with a dump `MidGraph { .. }`. Without it, the
    built-in example is reported on: the six exchange phases of a SigLIP MLP for 1,472 tiles.
    """
    with progress_bar() as progress:
        form = chosen_form(form, output, REPORT_FORMS)
        made = report.example(progress, verify) if path is None else report.of_file(path, progress, verify)
    show(made, form, output)
    wrong = [row for row in made.rows if row.bytes_right is False]
    for row in wrong:
        click.echo(f"tiling: the bytes of {row.phase}, {row.copy} come out wrong", err=True)
    if check and made.differs:
        click.echo("tiling: a built phase differs from its log", err=True)
    if wrong or (check and made.differs):
        sys.exit(FAILED)


@main.command("explore", short_help="Write a page to click through.")
@many
@written("Where the page goes: .html.")
def explore_command(paths: tuple[Path, ...], output: Path, is_json: bool) -> None:
    """Write a page to explore copies and phases with: one file, for any browser, that needs no network.

    PATHS is a build log, a graph's dump or a file that `convert` wrote; or two tensor types, for one retile; or
    nothing, for the built-in example.
    """
    with progress_bar("listing copies") as progress:
        chosen_form(None, output, ("html", "htm"))
        explorer.write_page(output, cases_of(paths), progress)
    say_written(output, is_json)


@main.command("copy", short_help="Count or list the transfers of one retile.")
@click.argument("source", type=click.Path(path_type=Path))
@click.argument("destination", type=click.Path(path_type=Path))
@formats
@click.option(
    "--staging", type=click.Choice(STAGINGS), default="auto", show_default=True, help="Which sides are staged."
)
@click.option("--offsets", help="Where destination coordinate 0 reads, as in 1,0,0.")
@click.option("--view", help="SPLIT,MERGE,FACTOR or SPLIT,MERGE,FACTOR,reversed.")
@click.option(
    "--outside",
    type=click.Choice(("error", "zero")),
    default="error",
    show_default=True,
    help="What to do with reads outside the source.",
)
@click.option("--device-tiles", type=int, help="The device's tiles.")
@click.option("--list", "listed", flag_value="transfers", help="List the transfers, a line for each destination.")
@click.option("--loads", "listed", flag_value="loads", help="List the words that each tile sends and receives.")
def copy_command(
    source: Path,
    destination: Path,
    form: str | None,
    output: Path | None,
    staging: str,
    offsets: str | None,
    view: str | None,
    outside: str,
    device_tiles: int | None,
    listed: str | None,
) -> None:
    """Count (or list) the transfers of one retile, from SOURCE to DESTINATION.

    Both are files with a tensor type's JSON form, or with the same fields in TOML (.toml) or YAML (.yaml, .yml). Lists
    are CSV if nothing else is asked for.
    """
    made: report.Report | tables.Table
    form = chosen_form(form, output, TABLE_FORMS if listed else REPORT_FORMS)
    mapping = CoordinateMapping(_numbers("--offsets", offsets), _view(view))
    types = read_type(source), read_type(destination)
    more: dict[str, Any] = {"staging": staging, "outside": outside, "device_tiles": device_tiles}
    if listed == "transfers":
        made = plan_copy(*types, mapping, **more).transfers
    else:
        count = count_copy(*types, mapping, **more)
        case = report.CopyCase(_from_to(source, destination), *types, mapping)
        row = report.copy_row("", "", case, count)
        made = count.tile_loads if listed else report.Report("one copy", (row,), _remarks(case, row))
    show(made, form, output)


def _remarks(case: report.CopyCase, row: report.Row) -> tuple[str, ...]:
    """What a count alone does not say of one copy."""
    remarks = [f"{row.misaligned:,} of the transfers are not whole words"] if row.misaligned else []
    shape, whole = case.destination.shape, case.source.shape
    if shape != whole and case.mapping.view is None:
        remarks.append(f"a crop: {' x '.join(map(str, shape))} of {' x '.join(map(str, whole))} elements")
    return tuple(remarks)


@main.command("shards", short_help="List which tile owns what.")
@click.argument("path", metavar="TYPE", type=click.Path(path_type=Path))
@formats
@click.option("--owners", "owner_map", type=click.Path(path_type=Path), help="A file with an owner map's JSON form.")
@click.option("--device-tiles", type=int, help="The device's tiles.")
def shards_command(
    path: Path, form: str | None, output: Path | None, owner_map: Path | None, device_tiles: int | None
) -> None:
    """List the shards of a tensor: which tile owns which region, and where in the tile's buffer it is.

    TYPE is a file with a tensor type's JSON form, or with the same fields in TOML (.toml) or YAML (.yaml, .yml).
    Regions are half-open, START:END on each axis, and +N where N elements of padding follow.
    """
    form = chosen_form(form, output, TABLE_FORMS)
    type = read_type(path)
    owners = None if owner_map is None else read_record(OwnerMap, owner_map)
    made = enumerate_shards(type, owners, device_tiles)
    if form is None:
        print_shards(type, made)
    else:
        show(made, form, output)


@main.command("show", short_help="Draw a tiling and an element order.")
@click.argument("path", metavar="TYPE", type=click.Path(path_type=Path))
@written("The picture: .png, .svg, .pdf, ..")
@click.option("--tiling", "only", flag_value="tiling", help="Draw the owners alone.")
@click.option("--order", "only", flag_value="order", help="Draw the order of one shard's elements alone.")
@click.option("--shard", type=int, default=0, show_default=True, help="Whose order, as a row of the shard table.")
@click.option("--axes", help="Which axes go down and across, as in 0,2; by default the two that are cut most.")
@click.option("--owners", "owner_map", type=click.Path(path_type=Path), help="A file with an owner map's JSON form.")
@click.option("--device-tiles", type=int, help="The device's tiles.")
def show_command(
    path: Path,
    output: Path,
    is_json: bool,
    only: str | None,
    shard: int,
    axes: str | None,
    owner_map: Path | None,
    device_tiles: int | None,
) -> None:
    """Draw which tile owns which part of a tensor, and the order of one shard's elements.

    TYPE is a file with a tensor type's JSON form, or with the same fields in TOML (.toml) or YAML (.yaml, .yml).
    """
    with progress_bar("drawing"):
        plotting.picture_form(output)
        type = read_type(path)
        owners = None if owner_map is None else read_record(OwnerMap, owner_map)
        plane = _numbers("--axes", axes) or None
        if only == "tiling":
            figure = plotting.plot_tiling(type, owners, device_tiles=device_tiles, axes=plane)
        elif only == "order":
            figure = plotting.plot_order(type, owners, shard=shard, device_tiles=device_tiles)
        else:
            figure = plotting.plot_layout(type, owners, shard=shard, device_tiles=device_tiles, axes=plane)
        plotting.save_picture(figure, output)
    say_written(output, is_json)


@main.command("traffic", short_help="Draw who sends how much to whom.")
@many
@written("The picture: .png, .svg, .pdf, ..")
@click.option("--phase", "chosen", type=int, multiple=True, help="Which phase, counted from 0; may be repeated.")
@click.option("--all", "is_all", is_flag=True, help=f"Draw all phases, if they are at most {plotting.MOST_PHASES}.")
def traffic_command(
    paths: tuple[Path, ...], output: Path, is_json: bool, chosen: tuple[int, ...], is_all: bool
) -> None:
    """Draw the words that go from tile to tile, and what each tile sends and receives against the bound.

    PATHS is as for `explore`. Phases are counted through all graphs; by default the one with the highest bound is
    drawn.
    """
    with progress_bar("drawing"):
        plotting.picture_form(output)
        cases = cases_of(paths)
        listed = [(label, phase) for label, phases in cases.graphs for phase in phases]
        phases = [
            (f"phase {n}: {label}, {phase.name}" if label else phase.name, phase.copies)
            for n, (label, phase) in enumerate(listed)
        ]
        if not phases:
            accepted = "a graph with copies that are planned"
            raise FieldError("no phase to draw", where=cases.title, accepted=accepted)
        if is_all:
            chosen = tuple(range(len(phases)))
        elif not chosen:
            bounds = [ExchangePhase(copy.count() for copy in copies).endpoint_lower_bound for _, copies in phases]
            chosen = (bounds.index(max(bounds)),)
        check_integer(len(chosen), "phases in one picture", 1, plotting.MOST_PHASES)
        drawn = [phases[check_integer(n, "--phase", 0, len(phases) - 1)] for n in chosen]
        titles = [title for title, _ in drawn]
        plans = [ExchangePhase(copy.plan() for copy in copies) for _, copies in drawn]
        plotting.save_picture(plotting.plot_traffic(plans, titles), output)
    say_written(output, is_json, phases=titles)


@main.command("convert", short_help="Write a log's graphs as one JSON file.")
@many
@written("Where the copies and phases go: .json.")
def convert_command(paths: tuple[Path, ...], output: Path, is_json: bool) -> None:
    """Write copies and phases as a JSON file, to keep or to change by hand.

    PATHS is as for `explore`. `report`, `traffic`, `explore` and `convert` itself take such a file in a log's place.
    """
    chosen_form(None, output, ("json",))
    file = cases_of(paths).file()
    write_whole(output, msgspec.json.format(msgspec.json.encode(file.to_json())))
    copies = sum(len(phase.copies) for phase in file.phases)
    say_written(output, is_json, types=len(file.types), phases=len(file.phases), copies=copies)


@main.command("example", short_help="Write a type's file to begin with.")
@written("Where the type goes: .json.")
def example_command(output: Path, is_json: bool) -> None:
    """Write a tensor type's JSON form, to be changed by hand: [4608, 4608] F16 in 16x16 blocks over 36 x 40 tiles."""
    axes = [AxisTiling(0, 36, block_size=16), AxisTiling(1, 40, block_size=16)]
    made = TensorType.tiled([4608, 4608], F16, axes, order=BlockMajor("TransposedMatrix", 16, 16))
    chosen_form(None, output, ("json",))
    write_whole(output, (json.dumps(made.to_json(), indent=2) + "\n").encode())
    say_written(output, is_json, type=str(made))


@main.command("completion", short_help="Print a shell's completion script.")
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
def completion_command(shell: str) -> None:
    """Print what makes a shell complete commands, options and files.

    \b
    bash:  eval "$(tiling completion bash)"   in ~/.bashrc
    zsh:   eval "$(tiling completion zsh)"    in ~/.zshrc
    fish:  tiling completion fish > ~/.config/fish/completions/tiling.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(main, {}, "tiling", "_TILING_COMPLETE").source())


def _numbers(option: str, text: str | None) -> tuple[int, ...]:
    try:
        return tuple(int(word) for word in text.split(",")) if text else ()
    except ValueError:
        raise FieldError("not numbers", where=option, value=text, accepted="integers with commas between") from None


def _view(text: str | None) -> AxisView | None:
    if text is None:
        return None
    flipped = text.endswith(",reversed")
    numbers = _numbers("--view", text.removesuffix(",reversed"))
    if len(numbers) != 3:
        raise FieldError(
            "not a view", where="--view", value=text, accepted="SPLIT,MERGE,FACTOR, and ,reversed if it is"
        )
    return AxisView(*numbers, reversed=flipped)


@contextmanager
def progress_bar(work: str = "counting copies") -> Iterator[report.Progress | None]:
    """A bar on standard error while a terminal looks on; it goes away when the work is done."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (TextColumn(work), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("")
        yield lambda done, total: bar.update(task, completed=done, total=total)


def print_tables(made: report.Report) -> None:
    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDE)
    console.print(f"[bold]{escape(made.title)}[/]", highlight=False)
    for note in made.notes:
        console.print(f"  {escape(note)}", highlight=False)
    for graph in dict.fromkeys(row.graph for row in made.rows):
        rows = [row for row in made.rows if row.graph == graph]
        make = wide_table if console.width >= ROOMY else narrow_table if console.width >= NARROW else stacked
        console.print(make(graph, rows), highlight=False)
    types = "A type: shape, precision, order, tiles (x replicas), axis/partitions. " if console.width >= ROOMY else ""
    console.print(f"[dim]{types}Sent, received and bound: words of 4 bytes, of the busiest tile.[/]", highlight=False)


def wide_table(graph: str, rows: list[report.Row]) -> Table:
    """Everything of a copy in one row."""
    table = Table(title=escape(graph) or None, title_justify="left", show_edge=False, pad_edge=False)
    table.add_column("copy")
    table.add_column("source, destination", overflow="fold")
    table.add_column("staging")
    for name in ("transfers", "local runs", "bytes", "busiest sender", "busiest receiver", "bound"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("log", overflow="fold")
    for row in rows:
        table.add_row(
            escape(row.copy or row.phase),
            escape(f"{row.source}\n{row.destination}") if row.copy else "",
            row.staging,
            f"{row.transfers:,}",
            f"{row.local_runs:,}",
            f"{row.bytes:,}",
            _busiest(row.busiest_sender, row.sent_words),
            _busiest(row.busiest_receiver, row.received_words),
            f"{row.bound:,}",
            f"[{STYLES[row.status]}]{escape(_logged(row))}[/]" if row.status else _proved(row),
            style="" if row.copy else "bold",
            end_section=not row.copy,
        )
    return table


def narrow_table(graph: str, rows: list[report.Row]) -> Table:
    """The figures alone; types are for wider terminals."""
    table = Table(
        title=escape(graph) or None, title_justify="left", box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0)
    )
    table.add_column("", overflow="fold", ratio=1)
    for name in ("transfers", "local", "bytes", "sent", "received", "bound"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        figures = (row.transfers, row.local_runs, row.bytes, row.sent_words, row.received_words, row.bound)
        table.add_row(
            _named(row), *(f"{n:,}" for n in figures), style="" if row.copy else "bold", end_section=not row.copy
        )
    return table


def stacked(graph: str, rows: list[report.Row]) -> str:
    """Lines that may be folded anywhere, where no table fits."""
    lines = [f"[italic]{escape(graph)}[/]"] if graph else []
    for row in rows:
        lines.append(_named(row) if row.copy else f"[bold]{_named(row)}[/]")
        lines.append(f"  {row.transfers:,} transfers, {row.local_runs:,} local, {row.bytes:,} bytes")
        lines.append(f"  sent {row.sent_words:,}, received {row.received_words:,}, bound {row.bound:,}")
    return "\n".join(lines)


def _named(row: report.Row) -> str:
    name = escape(f"{row.copy}, {row.staging}") if row.copy else escape(row.phase)
    return name + (f" [{STYLES[row.status]}]{row.status}[/]" if row.status else f" {_proved(row)}".rstrip())


def _busiest(tile: int, words: int) -> str:
    return f"tile {tile}: {words:,}" if words else "none"


def _logged(row: report.Row) -> str:
    return f"{row.status}: {row.logged}" if row.logged else row.status


def _proved(row: report.Row) -> str:
    return {True: "[green]bytes right[/]", False: "[bold red]bytes WRONG[/]", None: ""}[row.bytes_right]


def print_shards(type: TensorType, table: ShardTable) -> None:
    """A line for each shard; plain text, as there may be many."""
    size = exact_sum(table.bytes)
    logical = exact_sum((table.logical_end - table.start).prod(axis=1)) * type.precision.itemsize
    fullest = int(table.tile_bytes.argmax())
    click.echo(type)
    click.echo(
        f"{len(table):,} shards on {len(table.tile_bytes):,} tiles, {size:,} bytes, {size - logical:,} of padding; "
        f"most on tile {fullest}, {table.tile_bytes[fullest]:,} bytes"
    )
    columns = {"shard": [*map(str, range(len(table)))], "tile": [*map(str, table.tile.tolist())]}
    for axis in range(type.rank):
        bounds = zip(*(c[:, axis].tolist() for c in (table.start, table.logical_end, table.physical_end)), strict=True)
        columns[f"axis {axis}"] = [f"{a}:{b}" + (f"+{c - b}" if c > b else "") for a, b, c in bounds]
    columns["bytes"], columns["offset"] = ([f"{n:,}" for n in c.tolist()] for c in (table.bytes, table.offset))
    widths = [max(map(len, (name, *column))) for name, column in columns.items()]
    for line in (tuple(columns), *zip(*columns.values(), strict=True)):
        click.echo("  ".join(map(str.rjust, line, widths)))
