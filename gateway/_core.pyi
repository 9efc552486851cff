from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

class Server:
    def __init__(
        self,
        *,
        postgres: list[tuple[str, int]],
        read_write: bool,
        sslmode: str,
        sslrootcert: Path | None,
        database: str,
        role: str,
        password: str,
        host: str,
        port: int,
        reserved_for: list[str] = ...,
        nodes: list[tuple[str, tuple[list[tuple[str, int]], bool, str, Path | None, str], str, str]] = ...,
        tls: tuple[Path, Path, bool] | None = None,
        postmaster: int | None = None,
        writers_first: bool = True,
    ) -> None: ...
    @property
    def address(self) -> tuple[str, int]: ...
    def metrics(self) -> str: ...
    def reload_tls(self) -> None: ...
    def know_nodes(
        self, nodes: list[tuple[str, tuple[list[tuple[str, int]], bool, str, Path | None, str], str, str]]
    ) -> None: ...
    def last_calls(
        self,
    ) -> list[tuple[str, tuple[str, str, str], float, tuple[float, int, str] | None]]: ...
    def stop(self) -> None: ...

class Mirror:
    def __init__(self, *, host: str, port: int, old: str, new: str, report: Path) -> None: ...
    @property
    def address(self) -> tuple[str, int]: ...
    @property
    def new_answers(self) -> bool: ...
    def switch(self, new: bool, close: bool) -> None: ...
    def metrics(self) -> str: ...
    def stop(self) -> None: ...

def start_log(level: str, *, json: bool) -> None: ...
def self_signed(names: list[str], days: int) -> tuple[str, str]: ...

class TsqlError(Exception):
    """A text of T-SQL cannot be run; `args` are the number, the line (from 1) and the text of the error."""

    args: tuple[int, int, str]

def charset_name(name: str) -> str | None: ...
def decode_text(charset: str, bytes: bytes) -> str | None: ...
def fill_facts(script: str) -> str: ...
def translate(
    text: str, *, database: str = "", sybase: bool = False, quoted_identifiers: bool | None = None
) -> list[str]: ...
def encode_lines(pieces: list[bytes | tuple[Any, ...]]) -> bytes: ...
def encode_rows(columns: list[tuple[bool, Any]]) -> tuple[bytes, bytes]: ...
def encode_header(payload: int, name: str, year: int, points: int, pairs: list[tuple[str, str]]) -> bytes: ...
def encode_events(
    payload: int,
    begin: int,
    nanoseconds: Any,
    values: Any,
    severity: Any | None,
    status: Any | None,
    fields: list[tuple[str, Any]],
) -> bytes: ...
def bin_starts(times: Any, width: int) -> bytes: ...
def combine(parts: Sequence[Any], rows: int, starts: Any) -> list[bytes]: ...
def whole_figures(name: str, times: Any, values: Any, counts: Any, middles: Any) -> bytes: ...
def unpack_numbers(contents: Sequence[tuple[int, Any, int]], width: int, room: Any) -> None: ...
def summarise(values: Any, nulls: Any | None, rows: int, starts: Any) -> list[bytes]: ...

_Policy: TypeAlias = tuple[
    bool, int, int | None, float | None, int, list[tuple[float, bool] | None], int | None
]
_Reading: TypeAlias = bool | int | float | str | bytes | None

class Cells:
    """The readings of a table's columns, set by any thread, and the rows made from them. A policy: whether it
    monitors, microseconds of a cycle and of the shortest period, seconds of the longest, microseconds that a
    clock may be ahead, the deadband of each column (a distance, and whether it is relative), the index of the
    column of nanoseconds. Times are in microseconds since 1970."""

    def __init__(self, policy: _Policy) -> None: ...
    def adopt(self, policy: _Policy) -> None: ...
    def believed(self, stamp: int, signal: str) -> tuple[int, int | None]: ...
    def set(self, readings: Sequence[tuple[int, _Reading]], stamp: int, nanoseconds: int) -> None: ...
    def take_dropped(self) -> int: ...
    def scan(self) -> tuple[_Reading, ...]: ...
    def due(self) -> list[tuple[int, tuple[_Reading, ...]]]: ...

def moved(
    deadbands: Sequence[tuple[float, bool] | None],
    before: Sequence[_Reading],
    after: Sequence[_Reading],
    excluded: int | None = None,
) -> bool:
    """Whether one of some readings counts as changed, each with its deadband; one of them may be excluded."""

FIRST_TIME: int
FREE_FAILURES: int
REFUSAL_PAUSE: float
TURN: float
LONGEST_WAIT: float
FORGOTTEN: float
MOST_REMEMBERED: int
"""Seconds since 1970; a source's time before it is none."""

class Signals:
    """Process variables that set columns of a table: each has its name, and the indexes of its columns. An
    exception among readings is the reason why its column cannot hold the value. Any thread may call them."""

    def __init__(self, cells: Cells, variables: Sequence[tuple[str, Sequence[int]]]) -> None: ...
    def read(
        self,
        number: int,
        readings: Sequence[tuple[int, _Reading | Exception]],
        severity: int,
        status: int,
        seconds: int,
        nanoseconds: int,
    ) -> None: ...
    def lose(self, number: int) -> None: ...
    def miss(self) -> None: ...
    def events(self, seconds: float) -> list[tuple[int, int, str, Any, Any]]: ...

class ChannelAccess:
    """Monitors by EPICS's libca for one thread, which adds and removes them; events may be taken in another.
    A variable with `signals` sets the columns of its number there, by their types or fields (`parts`); the
    others give events (number, nanoseconds since 1970 or None for a loss, value, severity, status) and
    properties (number, "states", "numbers" or a record's field, content). Raises OSError if the library
    cannot be used."""

    def __init__(self, libca: str) -> None: ...
    def add(
        self,
        number: int,
        name: str,
        *,
        is_text: bool = False,
        is_array: bool = False,
        is_log: bool = False,
        has_properties: bool = False,
        signals: Signals | None = None,
        parts: Sequence[tuple[int, str]] = (),
    ) -> None: ...
    def remove(self, number: int) -> None: ...
    def flush(self) -> None: ...
    def read_fields(self) -> None: ...
    def end(self) -> None: ...
    def events(
        self, seconds: float
    ) -> tuple[list[tuple[int, int | None, Any, int, int]], list[tuple[int, str, Any]]]: ...

class OldServerError(Exception):
    """Rows of an old server cannot be read: no connection, a refusal, or bytes that are not TDS."""

class OldServer:
    """A session at an old server for one thread. The timeout is in seconds, for an answer to begin or go on.
    Raises OldServerError, and is closed then."""

    def __init__(
        self,
        *,
        host: str,
        port: int,
        user: str,
        password: str,
        database: str,
        version: str,
        client: str,
        application: str,
        timeout: float,
    ) -> None: ...
    @property
    def packet_size(self) -> int: ...
    def query(self, text: str) -> list[tuple[str, str]]: ...
    def read(
        self, rows: int, bytes: int
    ) -> tuple[int, list[tuple[bytes | None, bytes | None, bytes]]] | None: ...
    def close(self) -> None: ...

class BcpFile:
    """A data file of bcp, for one thread. A field of its rows: the column's name, the host type without SQL
    or SYB, whether ASE has written it, bytes of the prefix and of the value, the terminator, and the log's
    type as the Arrow C data interface writes it, None: it is skipped. `scale` is that of datetime2. Raises
    OldServerError, and ValueError for an unknown character set."""

    def __init__(
        self,
        path: Path,
        fields: Sequence[tuple[str, str, bool, int, int, bytes, str | None]],
        charset: str,
        scale: int,
    ) -> None: ...
    @property
    def columns(self) -> list[tuple[str, str]]: ...
    @property
    def done(self) -> int: ...
    def read(self, bytes: int) -> tuple[int, list[tuple[bytes | None, bytes | None, bytes]]] | None: ...

CellKind: TypeAlias = tuple[int, int] | float | int | str
"""Of a column: least and greatest whole number, the greatest number, the most characters of a text, or its
type."""

class CsvFile:
    """A recording in CSV, for one thread: first its names, then, with a conversion, its rows. Raises
    ValueError, for the text up to `line`, and OSError."""

    def __init__(self, path: Path) -> None: ...
    @property
    def line(self) -> int: ...
    def names(self) -> list[str]: ...
    def convert(
        self,
        columns: int,
        cells: Sequence[tuple[int, CellKind, Callable[[str], str]]],
        below: int | None,
        time: Callable[[str], tuple[int, int]],
    ) -> None:
        """`cells` are those behind the time: the index of the column in the table, its kind, and a function
        for cells of other forms, which returns JSON or raises the error. `time` returns microseconds since
        1970 and nanoseconds, which are for the column `below`."""

    def read(self, rows: int, size: int) -> list[tuple[int, str]]:
        """The next rows, at the end none: their times, and their readings in the form of a spool. At most so
        many, and about so many bytes. An error is raised when the rows before it have been read."""

class Batch:
    """Rows of a spool as the argument of put_<table>_batch. A column is its name, and whether it is a
    real."""

    def __init__(self, columns: Sequence[tuple[str, bool]]) -> None: ...
    def text(self, rows: Sequence[tuple[int | None, int, str]]) -> str:
        """Of rows: seq_no, microseconds since 1970, and readings without waveforms. Raises ValueError."""

class PbError(Exception): ...

_Texts: TypeAlias = tuple[bytes, bytes, bytes]
"""a byte for each that is there, bounds of 32 bits, and content"""
PbPosition: TypeAlias = tuple[int, int | None]
"""a byte of the file, and the time of the sample before it"""

class PbFile:
    """A PB file of the Archiver Appliance, for one thread. With `skips` damaged lines are left out. Times are
    in nanoseconds since 1970. Raises PbError, and OSError."""

    def __init__(self, path: Path, skips: bool) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def year(self) -> int: ...
    @property
    def format(self) -> str: ...
    @property
    def is_waveform(self) -> bool: ...
    @property
    def fields(self) -> list[tuple[str, str]]: ...
    @property
    def position(self) -> PbPosition: ...
    @property
    def skipped(self) -> int: ...
    @property
    def damages(self) -> list[str]: ...
    def seek(self, since: int) -> None: ...
    def resume(self, position: PbPosition) -> None: ...
    def read(self, since: int, until: int, bytes: int, fields: Sequence[str]) -> tuple[PbSamples, bool]: ...

PbSamples: TypeAlias = tuple[int, bytes, bytes, bytes, bytes | None, _Texts, list[_Texts], dict[str, int]]
"""count, times, severities, statuses, bounds of waveforms, values or their points, wanted fields, and the
numbers of samples with other fields"""
