"""PB files of an EPICS Archiver Appliance: each has samples of a PV, of the time with which its name ends.

A PV's files may be in several folders (the stores), and overlap where the appliance was killed. Times are in
nanoseconds since 1970 here.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ringlog.gateway import PbError, PbFile
from ringlog.history.archive.parquet.forms import SAMPLES
from ringlog.history.archive.parquet.late import same_rows
from ringlog.history.incoming import Description, IncomingError, Source, cast
from ringlog.history.sources.buffers import arrow_type
from ringlog.history.sources.folders import files_in
from ringlog.schema.column_type import ColumnType, Kind
from ringlog.schema.relations.partitions import Week

_READ = 4 << 20
"""bytes of a file that are decoded at once"""
_TOGETHER = 1 << 17
"""samples of short parts that become a batch"""
_TIME = pa.timestamp("ns", "UTC")
_DAMAGES = 20
"""damaged lines that are described"""
_HOUR = timedelta(hours=1)
_ALWAYS = (-(1 << 63), (1 << 63) - 1)
_ALARMS = {"SEVR": "severity", "STAT": "status"}
"""EPICS's fields that a sample has in a column of its own"""
# PlainStoragePlugin's names: chunk key, its terminator, and the year to the minute
_NAME = re.compile(r"(.+)\D(\d{4}(?:_\d\d){0,4})\.pb")


@dataclass
class LeftOut:
    """Counts of data that readers of PB files have left out."""

    damaged: int = 0
    damages: list[str] = field(default_factory=list)
    """file, line and damage of the first damaged lines"""
    repeated: int = 0
    fields: "Counter[str]" = field(default_factory=Counter)
    """samples with EPICS's fields that were not wanted"""


class _File:
    """A file that is read in parts, whose times ascend."""

    def __init__(self, path: Path, begins: int, ends: int) -> None:
        self.path = path
        self.begins = begins
        self.ends = ends
        self.size = path.stat().st_size
        self.done = 0
        """bytes that were read"""
        self._position: tuple[int, int | None] | None = None

    def rewind(self) -> None:
        self.done, self._position = 0, None

    def read(
        self, pv: "Pv", since: int, until: int, fields: Sequence[str], left_out: LeftOut
    ) -> Iterator[pa.RecordBatch]:
        """The samples from `since` on and before `until`, both within the time of its name."""
        first, last = since, until
        try:
            file = PbFile(self.path, pv.skips)
            if file.name != pv.name:
                raise IncomingError(f"{self.path} has the PV {file.name}, and others of its name {pv.name}")
            if self._position is not None:
                file.resume(self._position)
            elif since > self.begins:
                file.seek(since)
            else:
                first = _ALWAYS[0]
            if until == self.ends:
                last = _ALWAYS[1]
            is_more, skipped, described = True, 0, 0
            while is_more:
                samples, is_more = file.read(first, last, _READ, [*fields])
                self._position = file.position
                self.done = self._position[0]
                left_out.damaged += file.skipped - skipped
                skipped = file.skipped
                damages = file.damages
                left_out.damages += [f"{self.path}: {damage}" for damage in damages[described:]]
                del left_out.damages[_DAMAGES:]
                described = len(damages)
                left_out.fields.update(samples[-1])
                if samples[0]:
                    batch = _batch(file, samples, fields)
                    times = times_of(batch)
                    if times[0] < since or times[-1] >= until:
                        raise IncomingError(f"{self.path} has samples outside of the time of its name")
                    yield batch
        except (PbError, OSError) as error:
            raise IncomingError(f"{self.path}: {error}") from None


class Pv:
    """The samples of a PV. `skips`: damaged lines are left out."""

    def __init__(self, name: str, files: Sequence[_File], skips: bool = False) -> None:
        self.name = name
        self.files = sorted(files, key=lambda file: (file.begins, file.ends))
        self.skips = skips
        self._first = 0
        """the first file that is not read to its end"""

    def rewind(self) -> None:
        """Lets the next call of `read` begin at any time."""
        self._first = 0
        for file in self.files:
            file.rewind()

    @property
    def header(self) -> PbFile:
        """The newest file, for its header. Raises IncomingError."""
        return header_of(self.files[-1].path)

    def read(
        self,
        since: int,
        until: int,
        kind: pa.DataType | None,
        described: Description,
        left_out: LeftOut,
        fields: Sequence[str] = (),
    ) -> Iterator[pa.RecordBatch]:
        """The samples from `since` on and before `until`, each once, in the order of their times: time, value
        as `kind`, or as it is there, severity, status, and the fields as texts. A further call continues with
        later times. Raises IncomingError."""
        wanted = None if kind is None else pa.field("value", kind)
        parts = self._parts(since, until, wanted, described, left_out, fields)
        before: pa.RecordBatch | None = None
        for batch in parts:
            if before is not None and times_of(batch)[0] == times_of(before)[-1]:
                batch = pa.concat_batches([before.slice(before.num_rows - 1), batch])
                batch = self._once(batch, described, left_out).slice(1)
            else:
                batch = self._once(batch, described, left_out)
            if batch.num_rows:
                before = batch
                yield batch

    def _parts(
        self,
        since: int,
        until: int,
        wanted: pa.Field | None,
        described: Description,
        left_out: LeftOut,
        fields: Sequence[str],
    ) -> Iterator[pa.RecordBatch]:
        while self._first < len(self.files) and self.files[self._first].ends <= since:
            self._first += 1
        there = [file for file in self.files[self._first :] if file.begins < until and since < file.ends]
        edges = {edge for file in there for edge in (file.begins, file.ends) if since < edge < until}
        for begin, end in pairwise(sorted({since, until, *edges})):
            streams = [
                self._cast(file.read(self, begin, end, fields, left_out), wanted, described)
                for file in there
                if file.begins <= begin and end <= file.ends
            ]
            if len(streams) < 2:
                for stream in streams:
                    yield from stream
                continue
            for parts in in_step(streams):
                batch = pa.concat_batches([part for part in parts if part is not None])
                yield batch.take(np.argsort(times_of(batch), kind="stable"))

    def _cast(
        self, batches: Iterator[pa.RecordBatch], wanted: pa.Field | None, described: Description
    ) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if wanted is not None:
                value = cast(batch["value"], wanted, self.name, described)
                batch = batch.set_column(batch.schema.get_field_index("value"), "value", value)
            yield batch

    def _once(self, batch: pa.RecordBatch, described: Description, left_out: LeftOut) -> pa.RecordBatch:
        times = times_of(batch)
        again = np.flatnonzero(times[1:] == times[:-1])
        if not len(again):
            return batch
        rows = pa.table(batch)
        same = same_rows(rows.take(again), rows.take(again + 1))
        if not same.all() and described.repeated == "refuse":
            moment = batch["time"][int(again[~same][0])]
            raise IncomingError(
                f'PV {self.name} has two samples at {moment}: repeated = "first" in the description keeps the'
                " first"
            )
        left_out.repeated += len(again)
        kept = np.ones(len(times), bool)
        kept[again + 1] = False
        return batch.filter(pa.array(kept))


class _PbFiles(Source):
    def __init__(self, path: Path, described: Description, tree: Mapping[str, Pv] | None = None) -> None:
        self._path = path.absolute()
        self._described = described
        self._tree = find(path, skips=described.damaged == "skip") if tree is None else tree
        self._used: list[Pv] = []
        self._lost = LeftOut()

    @property
    def left_out(self) -> int:  # type: ignore[override]
        return self._lost.damaged + self._lost.repeated

    def fraction(self) -> float | None:
        files = [file for pv in self._used for file in pv.files]
        size = sum(file.size for file in files)
        return sum(file.done for file in files) / size if size else None

    def remarks(self) -> Iterator[str]:
        lost = self._lost
        if lost.damaged:
            yield f"{lost.damaged} damaged lines: left out"
            yield from lost.damages
        if lost.repeated:
            yield f"{lost.repeated} repeated samples: left out"
        if lost.fields:
            counts = ", ".join(f"{name} of {n}" for name, n in sorted(lost.fields.items()))
            yield f"EPICS's fields that samples had are left out: {counts} samples"

    def _begin(self, start: datetime | None, pvs: Sequence[Pv]) -> int:
        """The time from which on they are read."""
        since = min(file.begins for pv in pvs for file in pv.files)
        since = since if start is None else max(since, nanoseconds(start))
        for pv in pvs:
            pv.rewind()
            for file in pv.files:
                if file.ends <= since:
                    file.done = file.size
        self._used = [*pvs]
        return since


class PbRows(_PbFiles):
    """PVs as the columns of a log: a row for each time of a sample, with nulls for PVs without one.

    The description's `columns` name a PV, its SEVR or STAT, or a field (PV.EGU) for the log's columns."""

    @property
    def described(self) -> Description:
        """The description of the batches, which have the names of the log's columns."""
        return Description(digits=self._described.digits, values=self._described.values)

    def __str__(self) -> str:
        return f"pb:{self._path}"

    def batches(self, wanted: pa.Schema, start: datetime | None, end: datetime) -> Iterator[pa.RecordBatch]:
        """See Source."""
        sources = {
            column: source for column in wanted.names if (source := self._find(self._described.named(column)))
        }
        if not sources:
            raise IncomingError(f"no column of the log is one of the PVs: {some([*self._tree])}")
        names = [*dict.fromkeys(name for name, _ in sources.values())]
        since = self._begin(start, [self._tree[name] for name in names])
        if since >= nanoseconds(end):
            return
        with ExitStack() as stack:
            streams = []
            for name in names:
                parts = {column: part for column, (of, part) in sources.items() if of == name}
                stream = self._stream(name, parts, wanted, since, end)
                streams.append(stack.enter_context(closing(stream)))  # type: ignore[type-var]
            for step in in_step(streams):
                present = [batch for batch in step if batch is not None]
                times = np.unique(np.concatenate([times_of(batch) for batch in present]))
                columns = {"time": pa.array(times).cast(_TIME)}
                for batch in present:
                    indexes = times_of(batch).searchsorted(times)
                    missing = times_of(batch).take(indexes, mode="clip") != times
                    chosen = pa.array(indexes, mask=missing)
                    columns |= {
                        column: batch[column].take(chosen)
                        for column in batch.schema.names
                        if column != "time"
                    }
                for column in sources:
                    if column not in columns:
                        columns[column] = pa.nulls(len(times), wanted.field(column).type)
                yield pa.RecordBatch.from_pydict(columns)

    def _find(self, named: str) -> tuple[str, str] | None:
        """The PV and the part of it that a description names."""
        if named in self._tree:
            return named, "value"
        name, _, part = named.rpartition(".")
        return (name, _ALARMS.get(part, part)) if name in self._tree else None

    def _stream(
        self, name: str, parts: Mapping[str, str], wanted: pa.Schema, since: int, end: datetime
    ) -> Iterator[pa.RecordBatch]:
        """A PV's samples as columns of the log, by `parts`: what each column is of them."""
        fields = {part: None for part in parts.values() if part not in ("value", *_ALARMS.values())}
        of_value = next((column for column, part in parts.items() if part == "value"), None)
        kind = None if of_value is None else wanted.field(of_value).type
        pv = self._tree[name]
        for batch in pv.read(since, nanoseconds(end), kind, self._described, self._lost, [*fields]):
            columns = [batch["time"], *(batch[part] for part in parts.values())]
            yield pa.RecordBatch.from_arrays(columns, names=["time", *parts])


class PbSamples(_PbFiles):
    """The samples of PVs for a table of samples, in the form of IncomingSamples."""

    form = SAMPLES

    def __init__(
        self,
        path: Path,
        described: Description,
        numbers: Mapping[str, int],
        tree: Mapping[str, Pv] | None = None,
    ) -> None:
        """`numbers`: of the signals, by their PVs."""
        super().__init__(path, described, tree)
        self._pvs = {name: number for name, number in numbers.items() if name in self._tree}

    def __str__(self) -> str:
        # with other signals it is another source
        digest = sha256("\n".join(sorted(self._pvs)).encode()).hexdigest()[:8]
        return f"pb:{self._path} ({len(self._pvs)} PVs, {digest})"

    def batches(self, wanted: pa.Schema, start: datetime | None, end: datetime) -> Iterator[pa.RecordBatch]:
        """See Source. Each batch is of a week, in which samples are ordered by the number of their signal."""
        kind = wanted.field("value").type
        pvs = {number: self._tree[name] for name, number in self._pvs.items()}
        if not pvs:
            raise IncomingError(f"no signal of the table is one of the PVs: {some([*self._tree])}")
        since = self._begin(start, [*pvs.values()])
        week = Week.of(datetime.fromtimestamp(since // 10**9, UTC))
        while week.start < end:
            first, last = max(since, nanoseconds(week.start)), nanoseconds(min(week.end, end))
            parts: list[pa.RecordBatch] = []
            for number, pv in sorted(pvs.items()):
                for batch in pv.read(first, last, kind, self._described, self._lost):
                    parts.append(_numbered(number, batch, wanted))
                    if sum(part.num_rows for part in parts) >= _TOGETHER:
                        yield pa.concat_batches(parts)
                        parts = []
            if parts:
                yield pa.concat_batches(parts)
            week = Week.of(week.end)

    @property
    def unknown(self) -> list[str]:
        """PVs that no signal of the table is."""
        return [name for name in self._tree if name not in self._pvs]


def find(root: Path, *, skips: bool = False) -> dict[str, Pv]:
    """The PVs of a file or a tree, by the headers and names of its files. Raises IncomingError."""
    groups: dict[tuple[Path, str], list[tuple[str, Path]]] = {}
    for path in files_in(root, "pb"):
        match = _NAME.fullmatch(path.name)
        key, part = (match[1], match[2]) if match else (path.name, "")
        groups.setdefault((path.parent, key), []).append((part, path))
    files: dict[str, list[_File]] = {}
    for group in groups.values():
        header = header_of(group[0][1])
        parts = [_time_of(part or str(header.year)) for part, _ in group]
        # parts of 5 and 15 minutes are shorter than the times of their names
        shortest = sorted({begin for begin, end in parts if end - begin < _HOUR})
        following = dict(pairwise(shortest))
        files.setdefault(header.name, []).extend(
            _File(path, nanoseconds(begin), nanoseconds(min(end, following.get(begin, end))))
            for (begin, end), (_, path) in zip(parts, group, strict=True)
        )
    return {name: Pv(name, files[name], skips) for name in sorted(files)}


def header_of(path: Path) -> PbFile:
    """A file for its header. Raises IncomingError."""
    try:
        return PbFile(path, False)
    except (PbError, OSError) as error:
        raise IncomingError(f"{path}: {error}") from None


_EXACT = {
    Kind.DOUBLE: "sifg",
    Kind.REAL: "sf",
    Kind.BIGINT: "si",
    Kind.INT: "si",
    Kind.SMALLINT: "s",
    Kind.TEXT: "u",
}
"""formats of PB files whose every value a type has"""


def fits(header: PbFile, kind: ColumnType) -> bool:
    """Whether a table of samples of this type can have every value of a file."""
    return header.is_waveform is kind.is_array and header.format in _EXACT.get(kind.kind, "")


def _time_of(part: str) -> tuple[datetime, datetime]:
    """The time of a partition, by its name. The shortest are of 5, 15 or 30 minutes."""
    numbers = [int(number) for number in part.split("_")]
    try:
        begin = datetime(*numbers, *(1,) * (3 - len(numbers)), tzinfo=UTC)  # type: ignore[arg-type, misc]
    except ValueError:
        raise IncomingError(f"a file has {part} in its name, which is no time") from None
    match len(numbers):
        case 1:
            return begin, begin.replace(year=begin.year + 1)
        case 2:
            return begin, (begin + timedelta(days=31)).replace(day=1)
        case length:
            return begin, begin + {3: 24 * _HOUR, 4: _HOUR, 5: _HOUR / 2}[length]


def in_step(streams: Sequence[Iterator[pa.RecordBatch]]) -> Iterator[list[pa.RecordBatch | None]]:
    """Parts of streams that are ordered by time: each time a part of each, up to a common time."""
    pending = [next(stream, None) for stream in streams]
    while present := [batch for batch in pending if batch is not None]:
        bound = min(times_of(batch)[-1] for batch in present)
        parts: list[pa.RecordBatch | None] = []
        for index, (batch, stream) in enumerate(zip(pending, streams, strict=True)):
            count = 0 if batch is None else int(times_of(batch).searchsorted(bound, side="right"))
            parts.append(batch.slice(0, count) if batch is not None and count else None)
            if batch is not None and count:
                pending[index] = batch.slice(count) if count < batch.num_rows else next(stream, None)
        yield parts


def times_of(batch: pa.RecordBatch) -> np.ndarray:
    found: np.ndarray = batch["time"].cast(pa.int64()).to_numpy()
    return found


def nanoseconds(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1000


def _numbered(number: int, batch: pa.RecordBatch, wanted: pa.Schema) -> pa.RecordBatch:
    """Samples of a signal as the archive has them."""
    times = times_of(batch)
    microseconds = times // 1000
    columns = [
        pa.array(np.full(len(times), number, np.int32)),
        pa.array(microseconds).cast(pa.timestamp("us", "UTC")),
        pa.array((times - microseconds * 1000).astype(np.int16)),
        *(batch[name] for name in ("value", "severity", "status")),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=wanted)


def _batch(file: PbFile, samples: tuple[Any, ...], fields: Sequence[str]) -> pa.RecordBatch:
    _, times, severities, statuses, waveforms, values, texts, _ = samples
    kind = arrow_type(file.format)
    value = _texts(values) if kind == pa.string() else _plain(kind, values[2])
    if waveforms is not None:
        value = pa.ListArray.from_arrays(_plain(pa.int32(), waveforms), value)
    columns = {
        "time": _plain(_TIME, times),
        "value": value,
        "severity": _plain(pa.int16(), severities),
        "status": _plain(pa.int16(), statuses),
    } | dict(zip(fields, map(_texts, texts), strict=True))
    return pa.RecordBatch.from_pydict(columns)


def _plain(kind: pa.DataType, content: bytes) -> pa.Array:
    count = len(content) * 8 // kind.bit_width
    return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(content)])


def _texts(buffers: tuple[bytes, bytes, bytes]) -> pa.Array:
    there, bounds, content = buffers
    valid = np.packbits(np.frombuffer(there, np.uint8), bitorder="little")
    return pa.Array.from_buffers(pa.string(), len(there), [*map(pa.py_buffer, (valid, bounds, content))])


def some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" … ({len(names)})" if len(names) > 5 else "")
