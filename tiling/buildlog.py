"""Build logs of the compiler: graph dumps, exchange phases, allocation failures, package phases.

A log is a sequence of entries, `TIMESTAMP LEVEL [span{..}:]* message key=value ..`, that end at a line end or, where
the line ends were lost, at the next timestamp. It is read in one pass from front to back, in time and memory
proportional to its size. Entries of other kinds are skipped and counted.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

from .errors import DumpError, FieldError
from .layout import MAX_SIZE, TensorType
from .midgraph import BRACKET_TOKEN, DUMP_START, MidGraph, Source, read_graph, read_type, read_value, unquote

# --- what is read ----------------------------------------------------------------------------------------------------


class ExchangeRecord(Struct, frozen=True):
    """One exchange phase as the compiler prepared it and, if it came to that, optimized its schedule.

    Attributes
    ----------
    phase : int
        The phase's number in the program.
    stage : str
        Where in the build it was logged: the innermost span's `phase` attribute, else the span's name, else "".
    transfers : int
        How many; a multicast counts once.
    maximum_identical_destinations : int or None
        How often the most-written place is written.
    initial_horizon, selected_horizon : int or None
        Cycles of the first schedule and of the one that was chosen; None without an optimized record.
    endpoint_lower_bound, lower_bound_gap : int or None
        Cycles below which no schedule can get, and how far the chosen one is from that.
    selected_kind : str or None
        The kind of schedule that was chosen.
    neighborhood_improvements : int or None
        Steps that the local search took.
    line : int
        Where the prepared record is in the log, from 1.
    """

    phase: int
    stage: str
    transfers: int
    maximum_identical_destinations: int | None = None
    initial_horizon: int | None = None
    selected_horizon: int | None = None
    endpoint_lower_bound: int | None = None
    lower_bound_gap: int | None = None
    selected_kind: str | None = None
    neighborhood_improvements: int | None = None
    line: int = 1

    @property
    def is_optimized(self) -> bool:
        """Whether the log has a schedule for it."""
        return self.endpoint_lower_bound is not None


class Comparison(Struct, frozen=True):
    """A phase whose schedules with ordinary and with paired (64-bit) messages were compared; horizons in cycles."""

    phase: int
    stage: str
    candidates: int | None
    ordinary_horizon: int
    paired_horizon: int
    use_paired: bool
    line: int = 1


class AllocationFailure(Struct, frozen=True):
    """A tile's buffer for a tensor that found no room.

    `bytes` is what was wanted, `fields` what else the log says (`first`, `last`, `free`, `active`, ..), in JSON form.
    """

    tile: int
    memory_class: str
    bytes: int
    alignment: int | None
    tensor_type: TensorType
    fields: dict[str, Any]
    line: int = 1

    def __hash__(self) -> int:  # a dict has none
        return hash((self.tile, self.bytes, self.tensor_type))


class PackagePhase(Struct, frozen=True):
    """A part of the build and how long it took.

    Attributes
    ----------
    name : str
        Its name: the record's, or that of the span that was closed (as :attr:`ExchangeRecord.stage`).
    seconds : float
        Time that it took; of a closed span, the time that it was busy.
    idle_seconds : float or None
        Time that a closed span was open but not busy.
    success : bool or None
        Whether it succeeded, where the log says so.
    spans : tuple of str
        Names of the spans that the entry was logged in, outermost first.
    line : int
        Where the record is in the log, from 1.
    """

    name: str
    seconds: float
    idle_seconds: float | None = None
    success: bool | None = None
    spans: tuple[str, ...] = ()
    line: int = 1


class BuildLog(Struct, frozen=True):
    """What a build log says.

    Attributes
    ----------
    graphs : list of MidGraph
        Every dump, in order; `label` is the text before it, `line` where it starts.
    phases : list of ExchangeRecord
        In order of their prepared records.
    comparisons : list of Comparison
    allocation_failures : list of AllocationFailure
    package_phases : list of PackagePhase
    entries, timestamped, skipped : int
        Number of entries, of those with a timestamp, and of those of other kinds.
    """

    graphs: list[MidGraph]
    phases: list[ExchangeRecord]
    comparisons: list[Comparison]
    allocation_failures: list[AllocationFailure]
    package_phases: list[PackagePhase]
    entries: int
    timestamped: int
    skipped: int

    def __repr__(self) -> str:
        return (
            f"BuildLog({self.entries} entries: {len(self.graphs)} graphs, {len(self.phases)} exchange phases, "
            f"{len(self.allocation_failures)} allocation failures)"
        )


def read_log(path: str | os.PathLike[str]) -> BuildLog:
    """Read a build log, or a file with dumps alone. It is taken as UTF-8; bytes that are not are read as U+FFFD.

    Raises
    ------
    DumpError
        With line and column, as :func:`parse_log`.
    OSError
        If the file can't be read.
    """
    try:
        name = os.fspath(path)
    except TypeError:
        raise FieldError("not a path", where="path", value=path, accepted="str, os.PathLike") from None
    try:
        with open(name, "rb") as file:
            data = file.read()
    except ValueError as error:  # a zero character in the name
        raise FieldError(f"not a path ({error})", where="path", value=name, accepted="str, os.PathLike") from None
    return parse_log(data.decode("utf-8-sig", errors="replace"))


def parse_log(text: str) -> BuildLog:
    """Read a build log that is in memory.

    Raises
    ------
    DumpError
        With line and column: a dump that breaks off (at the end, or where the next timestamp stands) or does not parse,
        or a record of a known kind that lacks a field or has one that can't be read.
    """
    if not isinstance(text, str):
        raise FieldError("not a text", where="text", value=type(text).__name__, accepted="str")
    return _LogReader(text).read()


# --- entries ---------------------------------------------------------------------------------------------------------

_HEADER: Final = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)[ \t]+(?:TRACE|DEBUG|INFO|WARN|ERROR)(?=\s|$)"
)
_SPAN_NAME: Final = re.compile(r"[^\s{}:=\"\[\]()]+")
_KEY: Final = re.compile(r"(?<![^\s{])([A-Za-z_][\w.]*)=")
_EVENT: Final = re.compile(rf"(?P<end>\n)|(?P<dump>{DUMP_START.pattern})|{_KEY.pattern}")
_SPACE: Final = re.compile(r"\s")
_NONSPACE: Final = re.compile(r"\S")
_QUOTED: Final = re.compile(r'"(?:[^"\\\n]++|\\.)*+"(?=[\s,;:}\])]|$)')
_OPENER: Final = re.compile(r"(?:[A-Za-z_][\w:]*+(?: (?=\{))?)?([\[({])")
_LINE_BREAK: Final = re.compile(r"[ \t\r]*\n")
_DUMP_OR_STRING: Final = re.compile(rf'"(?:[^"\\\n]++|\\.)*+"|(?P<dump>{DUMP_START.pattern})')
_INTEGER: Final = re.compile(r"-?\d{1,19}")
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)(ns|[µμu]s|ms|s)")
_UNITS: Final = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}

_Range = tuple[int, int]


class _Entry:
    """An entry: where its parts are in the text."""

    __slots__ = ("message", "spans", "start", "values")

    def __init__(self, start: int) -> None:
        self.start = start
        self.spans: list[tuple[str, _Range]] = []  # name and attributes
        self.message = ""
        self.values: dict[str, _Range] = {}  # the first of a key counts: later ones are in the tail


class _Brackets:
    """Matches brackets of debug values that are asked for from front to back.

    Each character is looked at once, however often values do not close.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._ends: dict[int, int] = {}
        self._scanned = 0

    def end(self, at: int, stop: int) -> int | None:
        """Where the value that opens with the bracket at `at` ends, or None if it does not before `stop`."""
        if at >= self._scanned:
            self._ends.clear()
            self._scanned = self._match(at, stop)
        return self._ends.get(at)

    def _match(self, at: int, stop: int) -> int:
        open_: list[int] = []
        for token in BRACKET_TOKEN.finditer(self.text, at, stop):
            if token["open"]:
                open_.append(token.start())
            elif token["close"]:
                self._ends[open_.pop()] = token.end()
                if not open_:
                    return token.end()
            elif token["string"] and not token["closed"]:
                break
        return stop


class _LogReader:
    def __init__(self, text: str) -> None:
        self.source = Source(text)
        self.text = text
        self.headers = [match.start() for match in _HEADER.finditer(text)]
        self.brackets = _Brackets(text)
        self.word = (0, 0)  # the last stretch without a space that was looked for
        self.types: dict[str, TensorType] = {}  # allocation failures come in dozens for one type
        self.graphs: list[MidGraph] = []
        self.prepared: list[dict[str, Any]] = []
        self.latest: dict[tuple[str, int], dict[str, Any]] = {}  # of the prepared, by stage and phase
        self.comparisons: list[Comparison] = []
        self.failures: list[AllocationFailure] = []
        self.package: list[PackagePhase] = []
        self.kinds = {
            "prepared large physical exchange phase": self.on_prepared,
            "optimized physical exchange schedule": self.on_optimized,
            "compared ordinary and paired exchange schedules": self.on_compared,
            "tile allocation does not fit": self.on_failure,
            "package build phase finished": self.on_package,
            "close": self.on_close,
        }

    def read(self) -> BuildLog:
        entries = timestamped = skipped = at = 0
        while start := _NONSPACE.search(self.text, at):
            entry = _Entry(start.start())
            header = _HEADER.match(self.text, entry.start)
            graphs = len(self.graphs)
            at = self.scan(entry, header.end() if header else entry.start, header is not None)
            kind = self.kinds.get(entry.message) if header else None
            used = kind is not None and kind(entry)
            entries += 1
            timestamped += header is not None
            skipped += not used and graphs == len(self.graphs)
        return BuildLog(
            self.graphs,
            [ExchangeRecord(**record) for record in self.prepared],
            self.comparisons,
            self.failures,
            self.package,
            entries,
            timestamped,
            skipped,
        )

    def next_header(self, at: int) -> int:
        """The next place from `at` on where an entry with a timestamp may start, or the end of the text."""
        i = bisect_left(self.headers, at)
        return self.headers[i] if i < len(self.headers) else len(self.text)

    def stop(self, at: int) -> int:
        """Where a part of an entry that starts at `at` must end: with its line or before the next timestamp."""
        return min(self.source.line_end(at), self.next_header(at))

    # One entry: its spans, message, values and dumps.

    def scan(self, entry: _Entry, at: int, timestamped: bool) -> int:
        """Fill in an entry from `at` on and read its dumps; returns where it ends."""
        if timestamped:
            at = self.spans(entry, at)
        tail = at  # the end of the last value or dump
        message: int | None = None  # where it ends
        while True:
            limit = self.next_header(at)
            event = _EVENT.search(self.text, at, limit)
            here = event.start() if event else limit
            if message is None:
                message = here
                entry.message = self.text[tail:message].strip()
            if event is None or event["end"]:
                return here
            if event["dump"]:
                at = self.dump(here, self.label(entry, tail, here))
                tail = at
                continue
            start = event.end()
            if DUMP_START.match(self.text, start):
                at = end = self.dump(start, self.label(entry, tail, here))
            elif end := self.debug_value_end(start, self.brackets):
                if self.text.find("MidGraph", start, end) >= 0:
                    self.dumps_inside(entry, start, end)
                at = end
            else:
                # What looks like a debug value but does not close may still hold a dump.
                end, opener = self.word_end(start), _OPENER.match(self.text, start, limit)
                at = opener.end() if opener else end
            entry.values.setdefault(event[3], (start, end))
            tail = at

    def spans(self, entry: _Entry, at: int) -> int:
        """Read `span{..}:span:` after a header; returns where the message starts."""
        stop = self.stop(at)
        start = _NONSPACE.search(self.text, at, stop)
        if start is None:
            return at
        spans: list[tuple[str, _Range]] = []
        here = start.start()
        while name := _SPAN_NAME.match(self.text, here, stop):
            here = name.end()
            attributes = (here, here)
            if self.text.startswith("{", here):
                end = self.brackets.end(here, stop)
                if end is None:
                    break
                attributes, here = (here + 1, end - 1), end
            if not self.text.startswith(":", here):
                break
            here += 1
            spans.append((name[0], attributes))
            if here == stop or self.text[here].isspace():
                entry.spans = spans
                return here
        return at  # no spans, then, but a message

    def label(self, entry: _Entry, start: int, stop: int) -> str:
        """What a dump is called: the words before it or, where there are none, the entry's message."""
        words = " ".join(self.text[start:stop].split()).strip(" ,;:=")
        return words or " ".join(entry.message.split()).strip(" ,;:=")

    def debug_value_end(self, start: int, brackets: _Brackets) -> int:
        """Where the quoted or bracketed value at `start` ends; 0 if there is none that closes in this entry."""
        quoted = _QUOTED.match(self.text, start)
        if quoted:
            return quoted.end()
        stop = self.value_stop(start)
        opener = _OPENER.match(self.text, start, stop)
        return (brackets.end(opener.start(1), stop) or 0) if opener else 0

    def value_stop(self, start: int) -> int:
        """Where a value must end: as its line does or, if it is pretty-printed, before the next timestamp."""
        opener = _OPENER.match(self.text, start)
        is_pretty = opener and _LINE_BREAK.match(self.text, opener.end())
        return self.next_header(start) if is_pretty else self.stop(start)

    def word_end(self, start: int) -> int:
        if not self.word[0] <= start < self.word[1]:
            space = _SPACE.search(self.text, start)
            self.word = start, space.start() if space else len(self.text)
        return min(self.word[1], self.stop(start))

    def dump(self, start: int, label: str) -> int:
        """Read the dump that starts here; returns where it ends."""
        limit = self.next_header(start)
        brace = self.text.index("{", start)
        end = _Brackets(self.text).end(brace, limit)
        if end is None and limit < len(self.text):
            # It breaks off, or a string in it looks like an entry. If it reads well as a whole it is the latter.
            end = _Brackets(self.text).end(brace, len(self.text))
            if end is not None:
                try:
                    self.graphs.append(read_graph(self.source, start, end, label))
                    return end
                except DumpError:
                    end = None
        stop = limit if end is None else end
        self.graphs.append(read_graph(self.source, start, stop, label))
        return stop

    def dumps_inside(self, entry: _Entry, start: int, end: int) -> None:
        """Read the dumps in a debug value, such as a list of them."""
        at = start
        while found := _DUMP_OR_STRING.search(self.text, at, end):
            at = found.end() if found["dump"] is None else self.dump(found.start(), self.label(entry, 0, 0))

    # Values.

    def raw(self, place: _Range) -> str:
        return self.text[slice(*place)]

    def wanted(self, entry: _Entry, key: str) -> _Range:
        try:
            return entry.values[key]
        except KeyError:
            raise self.source.error(f"the record `{entry.message}` has no `{key}`", entry.start) from None

    def bad(self, key: str, place: _Range, accepted: str) -> DumpError:
        return self.source.error(f"`{key}` can't be read", place[0], value=self.raw(place), accepted=accepted)

    def integer(self, entry: _Entry, key: str) -> int:
        place = self.wanted(entry, key)
        text = self.raw(place)
        if not _INTEGER.fullmatch(text) or not 0 <= int(text) <= MAX_SIZE:
            raise self.bad(key, place, "integers from 0 to 2^63-1")
        return int(text)

    def optional_integer(self, entry: _Entry, key: str) -> int | None:
        return self.integer(entry, key) if key in entry.values else None

    def boolean(self, entry: _Entry, key: str) -> bool:
        place = self.wanted(entry, key)
        text = self.raw(place)
        if text not in ("true", "false"):
            raise self.bad(key, place, "true, false")
        return text == "true"

    def string(self, entry: _Entry, key: str) -> str:
        return self.unquoted(self.wanted(entry, key))

    def unquoted(self, place: _Range) -> str:
        text = self.raw(place)
        if not _QUOTED.fullmatch(text):
            return text
        try:
            return unquote(text)
        except ValueError:  # an escape that is none: take it as it stands
            return text[1:-1]

    def seconds(self, entry: _Entry, key: str) -> float:
        place = self.wanted(entry, key)
        match = _DURATION.fullmatch(self.raw(place))
        if match is None:
            raise self.bad(key, place, "a number with the unit ns, µs, ms or s")
        return float(match[1]) * _UNITS[re.sub("[µμ]", "u", match[2])]

    def tensor_type(self, entry: _Entry, key: str) -> TensorType:
        start, end = self.wanted(entry, key)
        if self.text[end - 1] != "}":  # it breaks off: let the parser say where
            end = self.value_stop(start)
        text = self.raw((start, end))
        if text not in self.types:
            self.types[text] = read_type(self.source, start, end)
        return self.types[text]

    def other(self, place: _Range) -> Any:
        """The JSON form of a value that is kept as it is; its text if it has none."""
        text = self.raw(place)
        if text[:1] == '"':
            return self.unquoted(place)
        try:
            return read_value(self.source, *place)
        except DumpError:
            return text

    def attributes(self, place: _Range) -> Iterator[tuple[str, _Range]]:
        at, stop = place
        brackets = _Brackets(self.text)
        while key := _KEY.search(self.text, at, stop):
            start = key.end()
            at = min(self.debug_value_end(start, brackets) or self.word_end(start), stop)
            yield key[1], (start, at)

    def stage(self, entry: _Entry) -> str:
        if not entry.spans:
            return ""
        name, attributes = entry.spans[-1]
        return next((self.unquoted(place) for key, place in self.attributes(attributes) if key == "phase"), name)

    def line(self, entry: _Entry) -> int:
        return self.source.place(entry.start)[0]

    # Records, by their message. Each says whether it took the entry.

    def on_prepared(self, entry: _Entry) -> bool:
        record: dict[str, Any] = {
            "phase": self.integer(entry, "phase"),
            "stage": self.stage(entry),
            "transfers": self.integer(entry, "transfers"),
            "maximum_identical_destinations": self.optional_integer(entry, "maximum_identical_destinations"),
            "line": self.line(entry),
        }
        self.prepared.append(record)
        self.latest[record["stage"], record["phase"]] = record
        return True

    def on_optimized(self, entry: _Entry) -> bool:
        optimized = {
            "initial_horizon": self.optional_integer(entry, "initial_horizon"),
            "selected_horizon": self.integer(entry, "selected_horizon"),
            "endpoint_lower_bound": self.integer(entry, "endpoint_lower_bound"),
            "lower_bound_gap": self.optional_integer(entry, "lower_bound_gap"),
            "selected_kind": self.string(entry, "selected_kind") if "selected_kind" in entry.values else None,
            "neighborhood_improvements": self.optional_integer(entry, "neighborhood_improvements"),
        }
        prepared = self.latest.get((self.stage(entry), self.integer(entry, "phase")))
        if prepared is None:  # the log starts after it
            return False
        prepared.update(optimized)
        return True

    def on_compared(self, entry: _Entry) -> bool:
        self.comparisons.append(
            Comparison(
                self.integer(entry, "phase"),
                self.stage(entry),
                self.optional_integer(entry, "candidates"),
                self.integer(entry, "ordinary_horizon"),
                self.integer(entry, "paired_horizon"),
                self.boolean(entry, "use_paired"),
                self.line(entry),
            )
        )
        return True

    def on_failure(self, entry: _Entry) -> bool:
        known = ("tile", "class", "bytes", "alignment", "tensor_type")
        self.failures.append(
            AllocationFailure(
                self.integer(entry, "tile"),
                self.string(entry, "class"),
                self.integer(entry, "bytes"),
                self.optional_integer(entry, "alignment"),
                self.tensor_type(entry, "tensor_type"),
                {key: self.other(place) for key, place in entry.values.items() if key not in known},
                self.line(entry),
            )
        )
        return True

    def on_package(self, entry: _Entry) -> bool:
        self.package.append(
            PackagePhase(
                self.string(entry, "phase"),
                self.integer(entry, "elapsed_ms") / 1000,
                success=self.boolean(entry, "success") if "success" in entry.values else None,
                spans=tuple(name for name, _ in entry.spans),
                line=self.line(entry),
            )
        )
        return True

    def on_close(self, entry: _Entry) -> bool:
        if not entry.spans or "time.busy" not in entry.values:
            return False  # a message of that word
        self.package.append(
            PackagePhase(
                self.stage(entry),
                self.seconds(entry, "time.busy"),
                self.seconds(entry, "time.idle") if "time.idle" in entry.values else None,
                spans=tuple(name for name, _ in entry.spans),
                line=self.line(entry),
            )
        )
        return True
