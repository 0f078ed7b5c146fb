"""Reports: the copies and phases of a log, a graph or the built-in example, as one table.

A report is rows; the command prints them as a table, JSON or CSV.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from .buffers import execute, pack
from .copying import CopyPlan, plan_copy
from .counting import CopyCount, count_copy
from .errors import FieldError, LayoutError, PolicyError
from .exchange import ExchangePhase
from .files import file_name
from .layout import AxisView, CoordinateMapping, OwnerMap, Record, TensorType, read_record
from .regions import StagingChoice

if TYPE_CHECKING:
    from .buildlog import BuildLog
    from .midgraph import Copy, MidGraph

EXAMPLE: Final = "siglip_mlp.json"

BUILT: Final = "built"
DIFFERS: Final = "differs"
NOT_BUILT: Final = "not built"

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class CopyCase:
    """One copy to report on: a name and `count_copy`'s arguments."""

    name: str
    source: TensorType
    destination: TensorType
    mapping: CoordinateMapping
    staging: StagingChoice = "auto"
    source_owners: OwnerMap | None = None
    destination_owners: OwnerMap | None = None
    device_tiles: int | None = None

    def count(self) -> CopyCount:
        return count_copy(**self._arguments())

    def plan(self) -> CopyPlan:
        return plan_copy(**self._arguments())

    def _arguments(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "name"}


class Logged(Record, frozen=True, omit_defaults=True):
    """Figures of a phase that a compiler built: where they stand, and what they are (None: not said)."""

    where: str
    transfers: int
    endpoint_lower_bound: int | None = None
    local_runs: int | None = None


@dataclass(frozen=True, slots=True)
class PhaseCase:
    """The copies of one phase, and the logged figures that it must have, if they are known to be its own."""

    name: str
    copies: tuple[CopyCase, ...]
    logged: Logged | None = None

    def __post_init__(self) -> None:
        if not self.copies:
            raise FieldError("a phase without copies", where=self.name, accepted="at least one copy")


@dataclass(frozen=True, slots=True)
class Cases:
    """What a report is made from: graphs (a label and phases each), a log's phase records, and notes.

    `log` is what a log has beside its graphs, for machines; None where there is no log.
    """

    title: str
    graphs: tuple[tuple[str, tuple[PhaseCase, ...]], ...]
    records: tuple[Logged, ...] = ()
    notes: tuple[str, ...] = ()
    log: dict[str, Any] | None = None

    def report(self, progress: Progress | None = None, verify: bool = False) -> Report:
        made = build(self.title, self.graphs, self.records, self.notes, progress, verify)
        return replace(made, log=self.log)

    def file(self) -> CaseFile:
        """The same as a file's fields; notes, and what a log has beside its graphs, are left out."""
        names: dict[TensorType, str] = {}
        phases = []
        for graph, listed in self.graphs:
            for phase in listed:
                copies = []
                for copy in phase.copies:
                    a, b = (names.setdefault(type, f"type {len(names)}") for type in (copy.source, copy.destination))
                    more = (copy.staging, copy.source_owners, copy.destination_owners, copy.device_tiles)
                    copies.append(CopyFields(copy.name, a, b, copy.mapping.offsets, copy.mapping.view, *more))
                phases.append(PhaseFields(phase.name, tuple(copies), graph, phase.logged))
        types = {name: type for type, name in names.items()}
        return CaseFile(self.title, types, tuple(phases), records=self.records)


class CopyFields(Record, frozen=True, omit_defaults=True):
    """A copy in a `CaseFile`: `source` and `destination` name two of its types."""

    name: str
    source: str
    destination: str
    offsets: tuple[int, ...] = ()
    view: AxisView | None = None
    staging: StagingChoice = "auto"
    source_owners: OwnerMap | None = None
    destination_owners: OwnerMap | None = None
    device_tiles: int | None = None


class PhaseFields(Record, frozen=True, omit_defaults=True):
    """A phase in a `CaseFile`; phases of one `graph` stand together."""

    name: str
    copies: tuple[CopyFields, ...]
    graph: str = ""
    logged: Logged | None = None


class CaseFile(Record, frozen=True, omit_defaults=True):
    """Cases as a file has them: the built-in example is one.

    `device_tiles` is that of all copies that say nothing else. `records` are figures of which it is not known which
    phase they belong to, as in a log.
    """

    title: str
    types: dict[str, TensorType]
    phases: tuple[PhaseFields, ...]
    device_tiles: int | None = None
    records: tuple[Logged, ...] = ()

    def __post_init__(self) -> None:
        accepted = ", ".join(map(repr, self.types)) or "no types are named"
        for i, phase in enumerate(self.phases):
            if not phase.copies:
                raise FieldError("a phase without copies", where=f"phases[{i}].copies", accepted="at least one copy")
            for k, copy in enumerate(phase.copies):
                for side, name in (("source", copy.source), ("destination", copy.destination)):
                    if name not in self.types:
                        where = f"phases[{i}].copies[{k}].{side}"
                        raise FieldError("no such type", where=where, value=name, accepted=accepted)

    def cases(self) -> Cases:
        graphs: dict[str, list[PhaseCase]] = {}
        for phase in self.phases:
            made = PhaseCase(phase.name, tuple(map(self._case, phase.copies)), phase.logged)
            graphs.setdefault(phase.graph, []).append(made)
        listed = tuple((graph, tuple(phases)) for graph, phases in graphs.items())
        return Cases(self.title, listed, self.records)

    def _case(self, copy: CopyFields) -> CopyCase:
        return CopyCase(
            copy.name,
            self.types[copy.source],
            self.types[copy.destination],
            CoordinateMapping(copy.offsets, copy.view),
            copy.staging,
            copy.source_owners,
            copy.destination_owners,
            self.device_tiles if copy.device_tiles is None else copy.device_tiles,
        )


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a report: a copy (`phase` names the phase it belongs to) or, with `copy` empty, a whole phase.

    `transfers`, `local_runs`, and `bytes` are totals; the busiest tiles are given with their 4-byte words; `bound` is
    the endpoint lower bound in words. `status` of a phase is "built" (a log has this count and bound), "differs" (a log
    has this count, and other figures with it), "not built" (no record is like it), or empty where there is no log.
    `bytes_right` of a copy says whether carrying it out gave the right bytes, if that was asked for. `misaligned`
    transfers are not whole words.
    """

    graph: str
    phase: str
    copy: str
    source: str
    destination: str
    staging: str
    transfers: int
    local_runs: int
    bytes: int
    busiest_sender: int
    sent_words: int
    busiest_receiver: int
    received_words: int
    bound: int
    status: str = ""
    logged: str = ""
    bytes_right: bool | None = None
    misaligned: int = 0


@dataclass(frozen=True, slots=True)
class Report:
    """A title, rows, and what a log has beside its graphs: for people in `notes`, for machines in `log`."""

    title: str
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    has_log: bool = False
    log: dict[str, Any] | None = None

    @property
    def differs(self) -> bool:
        """Whether a built phase differs, or a log's phases were all missed by the graphs beside them."""
        phases = [row for row in self.rows if not row.copy]
        missed = self.has_log and bool(phases) and not any(row.status == BUILT for row in phases)
        return missed or any(row.status == DIFFERS or row.bytes_right is False for row in self.rows)

    def to_json(self) -> str:
        rows = [asdict(row) for row in self.rows]
        facts = {"title": self.title, "rows": rows, "log": self.log, "differs": self.differs}
        return json.dumps(facts, indent=1)

    def to_csv(self) -> str:
        out = io.StringIO()
        writer = csv.DictWriter(out, [field.name for field in fields(Row)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(row) for row in self.rows)
        return out.getvalue()


def short_type(type: TensorType) -> str:
    """A type in one short line: shape, precision, order, tiles, and axis/partitions."""
    tiling = type.tiling
    cuts = (
        "linear" if tiling.is_linear else " ".join(f"{axis.axis}/{axis.partitions}" for axis in tiling.axes) or "whole"
    )
    copies = f" x{tiling.replicas}" if tiling.replicas > 1 else ""
    order = str(type.order).replace("BlockMajor.", "").replace("Amp.", "")
    return f"{list(type.shape)} {type.precision} {order} on {tiling.tile_count}{copies}: {cuts}".replace(", ", ",")


def moves_right(case: CopyCase) -> bool:
    """Carry a copy out on random bytes: whether every byte it gives, padding included, is what packing gives."""
    where = case.device_tiles
    itemsize = case.source.precision.itemsize
    array = np.random.default_rng(0).integers(1, 256, (*case.source.shape, itemsize), np.uint8)
    array = array.view(f"u{itemsize}").reshape(case.source.shape)
    done = execute(case.plan(), pack(array, case.source, case.source_owners, where))
    want = pack(moved(array, case.destination.shape, case.mapping), case.destination, case.destination_owners, where)
    return bool(np.array_equal(done.data, want.data))


def moved(array: NDArray[Any], shape: tuple[int, ...], mapping: CoordinateMapping) -> NDArray[Any]:
    """The array of a destination's shape that a copy's mapping takes out of a source's; see `CoordinateMapping`."""
    view = mapping.view
    if view is not None:
        s, m, f = view.split_axis, view.merge_axis, view.factor
        cut, grown = (m, s) if view.reversed else (s, m)
        # The cut axis becomes two, of which one goes to the grown axis: as its fast part, or reversed as its slow part.
        width = array.shape[cut] // f
        parts = (width, f) if view.reversed else (f, width)
        array = array.reshape(*array.shape[:cut], *parts, *array.shape[cut + 1 :])
        part = np.moveaxis(array, cut + 1 if view.reversed else cut, -1)  # all the others keep their places
        array = np.moveaxis(part, -1, grown if view.reversed else grown + 1)
        array = array.reshape(
            *array.shape[:grown], array.shape[grown] * array.shape[grown + 1], *array.shape[grown + 2 :]
        )
    offsets = mapping.offsets or (0,) * len(shape)
    return array[tuple(slice(o, o + n) for o, n in zip(offsets, shape, strict=True))]


def copy_row(graph: str, phase: str, case: CopyCase, count: CopyCount, verify: bool = False) -> Row:
    return Row(
        graph,
        phase,
        case.name,
        short_type(case.source),
        short_type(case.destination),
        count.staging,
        count.transfers,
        count.local_runs,
        count.bytes,
        *_loads(ExchangePhase([count])),
        bytes_right=moves_right(case) if verify else None,
        misaligned=count.misaligned,
    )


def _loads(phase: ExchangePhase) -> tuple[int, int, int, int, int]:
    sender, receiver = int(phase.sent_words.argmax()), int(phase.received_words.argmax())
    sent, received = int(phase.sent_words[sender]), int(phase.received_words[receiver])
    return sender, sent, receiver, received, phase.endpoint_lower_bound


def _status(case: PhaseCase, phase: ExchangePhase, log: Iterable[Logged]) -> tuple[str, str]:
    """What the log says of a phase, and where."""
    records = list(log) if case.logged is None else [case.logged]
    alike = [r for r in records if case.logged is not None or r.transfers == phase.transfers]

    def same(r: Logged) -> bool:
        return (
            r.transfers == phase.transfers
            and r.endpoint_lower_bound in (None, phase.endpoint_lower_bound)
            and r.local_runs in (None, phase.local_runs)
        )

    matches = [r.where for r in alike if same(r)]
    if matches:
        return BUILT, ", ".join(dict.fromkeys(matches))
    if alike:
        figures = "; ".join(f"{r.where} has {r.transfers} transfers, bound {r.endpoint_lower_bound}" for r in alike)
        return DIFFERS, figures
    return (NOT_BUILT, "") if records else ("", "")


def build(
    title: str,
    graphs: Iterable[tuple[str, Sequence[PhaseCase]]],
    log: Iterable[Logged] = (),
    notes: Iterable[str] = (),
    progress: Progress | None = None,
    verify: bool = False,
) -> Report:
    """Count everything; `verify` carries it out on random bytes. `progress` gets copies done and copies in all."""
    graphs, log = list(graphs), list(log)
    total = sum(len(phase.copies) for _, phases in graphs for phase in phases)
    done, rows = 0, []
    for graph, phases in graphs:
        for phase in phases:
            counts = []
            for case in phase.copies:
                try:
                    counts.append(case.count())
                except LayoutError as error:
                    raise error.within(f"{phase.name}, {case.name}") from None
                rows.append(copy_row(graph, phase.name, case, counts[-1], verify))
                done += 1
                if progress is not None:
                    progress(done, total)
            together = ExchangePhase(counts)
            staging = "/".join(dict.fromkeys(count.staging for count in counts))
            rows.append(
                Row(
                    graph,
                    phase.name,
                    "",
                    "",
                    "",
                    staging,
                    together.transfers,
                    together.local_runs,
                    together.bytes,
                    *_loads(together),
                    *_status(phase, together, log),
                    misaligned=sum(count.misaligned for count in counts),
                )
            )
    return Report(title, tuple(rows), tuple(notes), bool(log))


def example(progress: Progress | None = None, verify: bool = False) -> Report:
    """The report on the built-in example: the six exchange phases of a SigLIP MLP, and what a compiler logged."""
    return example_cases().report(progress, verify)


def example_cases() -> Cases:
    """The built-in example: the six exchange phases of a SigLIP MLP, and what a compiler logged."""
    return CaseFile.from_json(resources.files("tiling").joinpath("data", EXAMPLE).read_bytes()).cases()


def of_file(path: str | os.PathLike[str], progress: Progress | None = None, verify: bool = False) -> Report:
    """The report on a build log, or on a file with a graph's dump; errors as `cases_of_file`."""
    return cases_of_file(path).report(progress, verify)


def cases_of_file(path: str | os.PathLike[str]) -> Cases:
    """The copies and phases of a build log, of a file with a graph's dump, or of a `CaseFile` (.json, .toml, .yaml).

    Raises
    ------
    DumpError
        With line and column, if a dump does not parse.
    FieldError
        If there is neither a graph nor an exchange phase in the file, or the fields of a `CaseFile` are wrong.
    """
    from .buildlog import read_log

    if file_name(path).lower().endswith((".json", ".toml", ".yaml", ".yml")):
        return read_record(CaseFile, path).cases()
    log = read_log(path)
    if not log.graphs and not log.phases and not log.allocation_failures:
        raise FieldError(
            "neither a graph, an exchange phase nor an allocation failure is in the file",
            where=str(path),
            accepted="a build log, or a dump `MidGraph { .. }`",
        )
    records = [Logged(f"{r.stage} phase {r.phase}", r.transfers, r.endpoint_lower_bound) for r in log.phases]
    title = os.fsencode(path).decode(errors="replace")  # as a name need not be text
    made = cases_of_graphs(title, log.graphs)
    return replace(made, records=tuple(records), notes=(*_notes(log), *made.notes), log=_facts(log))


def cases_of_graphs(title: str, graphs: Iterable[MidGraph]) -> Cases:
    """The copies and phases of parsed graphs; `notes` names the phases whose policies are not planned."""
    made, left_out = [], []
    for number, graph in enumerate(graphs):
        label = f"graph {number}" + (f" ({graph.label})" if graph.label else "")
        phases = []
        for k, copies in enumerate(graph.phases()):
            try:
                phases.append(PhaseCase(f"run {k}", tuple(_case(copy, graph.tile_count) for copy in copies)))
            except PolicyError as error:
                left_out.append(f"{label}, run {k} is left out: {error}")
        made.append((label, tuple(phases)))
    return Cases(title, tuple(made), notes=tuple(left_out))


def _case(copy: Copy, tile_count: int) -> CopyCase:
    a, b = copy.source, copy.destination
    name = f"value {a.id} to {b.id}"
    return CopyCase(name, a.type, b.type, copy.mapping, copy.staging, a.owners, b.owners, tile_count)


def _notes(log: BuildLog) -> list[str]:
    distinct = {(r.stage, r.phase) for r in log.phases}
    notes = [
        f"{log.entries} entries, {log.skipped} of other kinds",
        f"{len(log.graphs)} graphs",
        f"{len(log.phases)} exchange phase records of {len(distinct)} (stage, phase), "
        f"{sum(r.transfers for r in log.phases):,} transfers in all",
        f"{len(log.comparisons)} comparisons of ordinary and paired schedules",
        f"{len(log.allocation_failures)} allocation failures",
    ]
    for r in log.phases:
        figures = f"{r.transfers:,} transfers, bound {r.endpoint_lower_bound}, horizon {r.selected_horizon}"
        notes.append(f"line {r.line}: {r.stage} phase {r.phase}: {figures}, {r.selected_kind}")
    notes += [
        f"line {f.line}: {f.bytes:,} bytes do not fit on tile {f.tile}: {short_type(f.tensor_type)}"
        for f in log.allocation_failures
    ]
    return notes


def _facts(log: BuildLog) -> dict[str, Any]:
    """The same for machines, and all of it."""
    return {
        "entries": log.entries,
        "timestamped": log.timestamped,
        "skipped": log.skipped,
        "graphs": [{"label": graph.label, "line": graph.line} for graph in log.graphs],
        "exchange_phases": msgspec.to_builtins(log.phases),
        "comparisons": msgspec.to_builtins(log.comparisons),
        "allocation_failures": [
            {
                "line": f.line,
                "tile": f.tile,
                "memory_class": f.memory_class,
                "bytes": f.bytes,
                "alignment": f.alignment,
                "tensor_type": f.tensor_type.to_json(),
            }
            for f in log.allocation_failures
        ],
        "package_phases": msgspec.to_builtins(log.package_phases),
    }
