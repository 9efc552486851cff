"""The facility, its tables and their columns, as frozen values."""

import re
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cached_property
from typing import NamedTuple

from ringlog.schema.column_type import ColumnType
from ringlog.schema.facility_files.parameters import Parameter

KEY_COLUMNS = ("seq_no", "time")
"""The columns before the data columns of every ring and log."""

MOST_POINTS = 2**26
"""PostgreSQL's values end at 1 GB, of which a point may take 12 bytes in transit."""

SUMMARY_LEVELS = {"10 s": 10, "1 min": 60, "10 min": 600, "1 h": 3600, "1 day": 86_400}
"""Spans that summaries may have, and their seconds; each is a multiple of the one before."""

SAMPLE_LEVELS = (3600, 86_400)
"""Spans of summaries of samples: the blocks of samples are within an hour."""


NANOSECONDS = "nanoseconds"
"""The last column of a table that keeps the nanoseconds of a row's time, 0 to 999."""


def nanoseconds_of(table: str) -> str:
    """The signal of a table's column NANOSECONDS."""
    return f"{table}/{NANOSECONDS}"


@dataclass(frozen=True)
class LogPolicy:
    """The rows that put_<table> stores in the log.

    `nth`: rows 1, 1 + nth, 1 + 2 nth, … of the ring; 1 is every row.
    `period`: in seconds; the first row that arrives in each period, counted from 2000-01-01 00:00 UTC.
    """

    nth: int = 1
    period: float | None = None

    @property
    def every(self) -> bool:
        return self.nth == 1 and self.period is None


@dataclass(frozen=True)
class Retention:
    """The time for which log rows are kept, in units of the calendar. Its text is a PostgreSQL interval."""

    amount: int
    unit: str  # day, week, month or year

    def __str__(self) -> str:
        return f"{self.amount} {self.unit}" + "s" * (self.amount > 1)


@dataclass(frozen=True)
class Sampling:
    """When a writer takes a row from its source.

    `scan` takes one each cycle; `monitor` takes one when something has changed, at least `min_period` seconds
    after the previous one, and collects the changes of a cycle. With `max_period` or deadbands a row without
    changes is omitted, until the last one is `max_period` seconds old. A time stamp of the
    source that is more than `clock_drift` seconds ahead of the writer's clock is not used.
    """

    mode: str = "scan"
    min_period: float | None = None
    max_period: float | None = None
    clock_drift: float = 1800.0


class Deadband(NamedTuple):
    """The distance by which a reading must move to count as a change: in its unit, or relative to the one
    before."""

    distance: float
    relative: bool = False

    @classmethod
    def of(cls, text: str) -> "Deadband | None":
        """A deadband of a table of samples or of one of its signals; None for a record's own and for none."""
        if text in ("", "ADEL", "MDEL"):
            return None
        return cls(float(text[:-1]) / 100, relative=True) if text.endswith("%") else cls(float(text))


@dataclass(frozen=True, slots=True)
class Column:
    """A data column, which is a signal. `limits` (low and high) and the wider `alarm_limits` are in `unit`;
    nothing enforces them."""

    name: str
    signal: str
    type: ColumnType
    """Callers may give its text: real, numeric(10,2), varchar(40), double[] …"""
    unit: str = ""
    description: str = ""
    limits: tuple[float, float] | None = None
    alarm_limits: tuple[float, float] | None = None
    states: tuple[tuple[int, str], ...] = ()
    """Names of whole numbers."""
    held: bool = False
    """Each value holds until the next, as a set point does: readers draw steps and do not interpolate."""
    deadband: Deadband | None = None
    points: int | None = None
    """The most points of a waveform; None for a single value."""
    compress: bool = False
    """Whether PostgreSQL compresses the waveform."""
    byte_order: str = "little"
    """The byte order of packed waveforms on the wire: the facility's."""
    renamed_from: str | None = None
    """Its previous name."""
    retired: bool = False
    """It is no longer written, and can be read."""

    def __post_init__(self) -> None:
        if isinstance(self.type, str):
            object.__setattr__(self, "type", ColumnType.of(self.type))

    @property
    def is_waveform(self) -> bool:
        return self.points is not None

    @property
    def is_packed(self) -> bool:
        """Whether it is a waveform of numbers, which is sent packed; one of texts is sent as text."""
        return self.type.is_packed

    @property
    def is_float(self) -> bool:
        """Whether it holds NaN and infinities, by itself or in a waveform."""
        return self.type.is_float

    @property
    def is_text(self) -> bool:
        return self.type.is_text

    @property
    def is_number(self) -> bool:
        """Whether it holds single numbers, a bit being 0 or 1."""
        return self.type.is_number


@dataclass(frozen=True)
class Table:
    """A ring of `rows` rows with its log; a new row is written every `cycle` seconds."""

    name: str
    rows: int
    cycle: float
    columns: tuple[Column, ...]
    """The data columns, without seq_no and time."""
    description: str = ""
    log: LogPolicy = field(default_factory=LogPolicy)
    retention: Retention | None = None
    """None keeps the log for ever."""
    sample: Sampling = field(default_factory=Sampling)
    nan: str = "keep"
    """How NaN and infinities are stored: "keep" bit for bit, "null" as no reading."""
    summaries: tuple[int, ...] = ()
    """Spans of the log's summaries in seconds, of SUMMARY_LEVELS, shortest first; none: no summaries."""
    renamed_from: str | None = None
    """Its previous name."""
    retired: bool = False
    """It is no longer written, and can be read."""
    node: str | None = None
    """The node that has it; None: the first server."""
    collect: float = 0.0
    """Seconds for which a writer collects rows before it sends them."""

    @property
    def written(self) -> "Table":
        """The table with the columns that are still written."""
        return replace(self, columns=tuple(column for column in self.columns if not column.retired))

    @cached_property
    def ring_refers_to_log(self) -> bool:
        """Whether the ring leaves its waveforms to the log, which has every row: each is written once."""
        return self.log.every and any(column.is_waveform for column in self.columns)

    @property
    def nanoseconds(self) -> int | None:
        """The index of the column with the nanoseconds; None: the table keeps microseconds."""
        last = len(self.columns) - 1
        return last if self.columns[last].signal == nanoseconds_of(self.name) else None


@dataclass(frozen=True)
class SampleSignal:
    """A signal of a table of samples, as a facility file lists it: see `Column` for what it has."""

    name: str
    unit: str = ""
    description: str = ""
    limits: tuple[float, float] | None = None
    alarm_limits: tuple[float, float] | None = None
    states: tuple[tuple[int, str], ...] = ()
    held: bool = False
    address: str = ""
    """Its name at the source, where that is another."""
    deadband: str = ""
    """As in the file: a number, "0.5 %", "ADEL" or "MDEL"; empty: that of the table."""
    policy: str = ""
    """The name of its policy; empty: the first that applies."""


@dataclass(frozen=True)
class SamplePolicy:
    """How writers take signals of samples to which it is the first that applies, or that name it."""

    name: str
    period: float | None = None
    """Seconds, of each of which the latest event is taken (scan); None: every event (monitor)."""
    address: str = "*"
    """Pattern of the signal's name at its source; * stands for any characters."""
    record_types: tuple[str, ...] = ()
    """EPICS record types, of which its record must have one; empty: any source."""
    rate: float | None = None
    """The least number of events a second."""

    def applies(self, address: str, record_type: str | None, rate: float | None) -> bool:
        """Whether it is for such a signal; None: not known yet."""
        pattern = ".*".join(map(re.escape, self.address.split("*")))
        return (
            re.fullmatch(pattern, address) is not None
            and (not self.record_types or record_type in self.record_types)
            and (self.rate is None or (rate is not None and rate >= self.rate))
        )


@dataclass(frozen=True)
class SampleTable:
    """A table of samples: each signal has values of one type at times of its own, with severity and status.

    Its signals are rows of the registry: the file lists some, procedures add others."""

    name: str
    type: ColumnType
    ring: int = 1000
    """`online.<table>` shows so many latest samples of each signal."""
    description: str = ""
    retention: Retention | None = None
    """None keeps the log for ever."""
    clock_drift: timedelta = timedelta(minutes=30)
    """A sample further ahead of the server's clock is not stored."""
    signals: tuple[SampleSignal, ...] = ()
    deadband: str = ""
    """How far a value must move to be taken, as in the file; empty: every event."""
    collect: float = 1.0
    """Seconds of samples that a writer sends in one call."""
    summaries: tuple[int, ...] = SAMPLE_LEVELS
    """Spans of summaries in seconds, of SAMPLE_LEVELS, shortest first; none: no summaries, as of texts and
    waveforms."""
    points: int | None = None
    """The most points of a waveform; None for single values."""
    node: str | None = None
    """The node that has it; None: the first server."""

    def __post_init__(self) -> None:
        if not self.type.is_fixed:
            object.__setattr__(self, "summaries", ())


@dataclass(frozen=True)
class CaptureRule:
    """Registers an event when a signal leaves its alarm limits: see docs/how-to/captures.md."""

    name: str
    signals: tuple[str, ...]
    """Names or patterns; * stands for any characters."""
    tables: tuple[str, ...]
    before: float
    after: float
    """Seconds, as `before`."""
    keep_days: float | None
    """None: for ever."""
    pause: float
    """Least seconds from one event of the rule to the next."""
    note: str
    node: str | None
    """The server that has the tables; None: the first."""


KEEP_DROPPED = Retention(14, "day")
"""How long weeks past retention are set aside before they are dropped."""


@dataclass(frozen=True)
class History:
    """Weeks stay in the log for `online`, then they go to files below `archive`, a path or s3://bucket/folder."""

    online: Retention
    archive: str
    keep_replaced: Retention = Retention(30, "day")
    """How long files stay after they were replaced, or after the retention of their table."""

    def of(self, node: str) -> "History":
        """A node's: its files are below the same folder, where no other server's are."""
        is_path = self.archive.startswith("/")
        folder, mark, options = (self.archive, "", "") if is_path else self.archive.partition("?")
        return replace(self, archive=f"{folder.rstrip('/')}/nodes/{node}{mark}{options}")


@dataclass(frozen=True)
class Node:
    """Another server that has tables of its own. `dsn` is an administrator's connection string, without the
    password."""

    name: str
    dsn: str


@dataclass(frozen=True)
class Facility:
    """The content of a facility file. `timezone` (IANA name) is meant by clients that send times without one;
    `byte_order`, little or big, is that of packed waveforms which they send and get."""

    name: str
    timezone: str
    tables: tuple[Table, ...]
    clock_tolerance: timedelta | None = timedelta(days=1)
    """How far ahead of the server's clock a row's time may be for its ring. None: without a limit."""
    history: History | None = None
    """None: nothing leaves PostgreSQL."""
    parameters: tuple[Parameter, ...] = ()
    byte_order: str = "little"
    nodes: tuple[Node, ...] = ()
    keep_dropped: Retention | None = KEEP_DROPPED
    """None: weeks past retention are dropped at once."""
    groups: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Groups of tables, of any server, for rights: names of tables by the group's name."""
    sample_tables: tuple[SampleTable, ...] = ()
    policies: tuple[SamplePolicy, ...] = ()
    """Policies for the signals of tables of samples, for their writers."""
    captures: tuple[CaptureRule, ...] = ()
    digest: str | None = field(default=None, init=False, compare=False, repr=False)
    """Digest of the file and of the server whose part this is. None: not read from a file, or changed by
    `replace`."""

    @property
    def every_table(self) -> "tuple[Table | SampleTable, ...]":
        return *self.tables, *self.sample_tables

    def as_file_says(self, digest: str | None) -> "Facility":
        """The same, of a file with this digest."""
        facility = replace(self)
        object.__setattr__(facility, "digest", digest)
        return facility

    def of(self, node: str | None) -> "Facility":
        """The part of the facility on one server: a node's tables, or for the first one (None) everything
        else."""
        tables = tuple(table for table in self.tables if table.node == node)
        sampled = tuple(table for table in self.sample_tables if table.node == node)
        rules = tuple(rule for rule in self.captures if rule.node == node)
        part = replace(self, tables=tables, sample_tables=sampled, nodes=(), captures=rules)
        if node is None:
            return part.as_file_says(self.digest)
        part = replace(part, parameters=(), history=self.history and self.history.of(node))
        return part.as_file_says(self.digest and f"{self.digest} {node}")
