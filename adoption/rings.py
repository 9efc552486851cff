"""Finds the rings of an old database, their logs, and a site's own tables.

A ring has a fixed number of rows, each with a whole number as its key, a time, and readings. Its log has the
same readings, and an unlimited number of rows; it may be in another database. Other tables stay tables of the
site. A file of rules overrides this.
"""

import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias

import pymssql

from ringlog.adoption.errors import AdoptionError
from ringlog.adoption.server.names import quoted
from ringlog.adoption.server.objects import Old, OldTable
from ringlog.adoption.server.session import rows_of

TYPES = {
    "real": "real",
    "float": "double",
    "double precision": "double",
    "int": "int",
    "integer": "int",
    "smallint": "smallint",
    "tinyint": "smallint",
    "bigint": "bigint",
    "bit": "bit",
}
"""Types of readings, and their types in a facility file; varchar and char are varchar(n)."""

_WHOLE = ("int", "integer", "smallint", "bigint", "numeric", "decimal")
_TIMES = ("datetime", "smalldatetime", "datetime2", "bigdatetime", "datetimeoffset")
_LONGEST_RING = 1_000_000
_YEAR_0 = timedelta(days=366)


@dataclass(frozen=True)
class Ring:
    """A table of the facility: its ring and, if there is one, its log."""

    table: OldTable
    seq_no: str
    time: str
    log: OldTable | None
    cycle: float
    """seconds from row to row"""


@dataclass(frozen=True)
class Sorted:
    """The tables by their kind."""

    rings: tuple[Ring, ...]
    site: tuple[OldTable, ...]
    decisions: tuple[str, ...]
    """decisions and checks that are left to the administrator"""
    away: tuple[Ring, ...] = ()
    """rings of databases that are migrated with this one"""


@dataclass(frozen=True)
class Rules:
    """The file of rules: `[ring.<table>]` with seq_no, time, log and cycle; `site = [tables]`.

    Of several databases a table may be named as `database.table`.
    """

    rings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    site: frozenset[str] = frozenset()

    def applied(self, databases: Sequence[Old]) -> "_Decided":
        """The tables that the rules name. Raises AdoptionError for one that does not exist."""
        rings = {
            _key(_named(name, databases)): (
                {**rule, "log": _named(str(rule["log"]), databases)} if "log" in rule else rule
            )
            for name, rule in self.rings.items()
        }
        logs = {_key(rule["log"]) for rule in rings.values() if "log" in rule}
        return _Decided(rings, {_key(_named(name, databases)) for name in self.site}, logs)


_Key: TypeAlias = tuple[str, str]
"""A table by its database and its name here."""


def _key(table: OldTable) -> _Key:
    return table.database, table.name


@dataclass(frozen=True)
class _Decided:
    """The rules, by tables."""

    rings: Mapping[_Key, Mapping[str, Any]]
    """each with its log as a table"""
    site: Collection[_Key]
    logs: Collection[_Key]


def _named(name: str, databases: Sequence[Old]) -> OldTable:
    found = [
        table
        for each in databases
        for table in each.tables
        if name in (table.name, f"{table.database}.{table.name}")
    ]
    if not found:
        nowhere = "the old database does not have" if len(databases) == 1 else "none of the databases has"
        raise AdoptionError(f"the rules name the table {name!r}, which {nowhere}")
    if len(found) > 1:
        raise AdoptionError(
            f"the rules name the table {name!r}, which {' and '.join(each.database for each in found)} have: "
            f'write "{found[0].database}.{found[0].name}"'
        )
    return found[0]


_KEYS = {"seq_no", "time", "log", "cycle"}


def read_rules(path: Path) -> Rules:
    """Reads a file of rules. Raises AdoptionError for unknown keys."""
    try:
        content = tomllib.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise AdoptionError(f"{path}: {error}") from None
    if unknown := set(content) - {"ring", "site"}:
        raise AdoptionError(f"{path}: '{unknown.pop()}' is neither ring nor site")
    rings = content.get("ring", {})
    for name, rule in rings.items():
        if not isinstance(rule, dict) or set(rule) - _KEYS:
            raise AdoptionError(f"{path}: [ring.{name}] has seq_no, time, log and cycle, and nothing else")
    return Rules(rings, frozenset(content.get("site", ())))


Bounds = Callable[[OldTable, str], tuple[Any, Any]]
"""Queries the old server for the least and the greatest value of a column."""


def bounds_by(connection: pymssql.Connection) -> Bounds:
    """Queries over a session at the old server."""

    def bounds_of(table: OldTable, column: str) -> tuple[Any, Any]:
        with connection.cursor() as cursor:
            cursor.execute(f"select min({quoted(column)}), max({quoted(column)}) from {table.qualified_name}")
            first, last = rows_of(cursor)[0]
        return moment(first), moment(last)

    return bounds_of


def moment(value: Any) -> Any:
    """A time as Python has it; pymssql gives a bigdatetime of TDS 5.0 as its eight bytes.

    They are microseconds since the first day of the year 0 (SAP ASE, Reference Manual: bigdatetime).
    """
    if isinstance(value, bytes) and len(value) == 8:
        return datetime(1, 1, 1) + timedelta(microseconds=int.from_bytes(value, "little")) - _YEAR_0
    return value


def sort(databases: Sequence[Old], rules: Rules, bounds: Bounds) -> list[Sorted]:
    """Finds the rings and logs among the tables of each database. Raises AdoptionError for the rules.

    The names of rings are those of one facility: of two databases' rings of one name the first is the ring.
    """
    decided = rules.applied(databases)
    rings: list[Ring] = []
    done = []
    for old in databases:
        others = [each for other in databases if other is not old for each in other.tables]
        found, decisions = _rings_of(old, others, decided, bounds, rings)
        rings += found
        done.append((old, found, decisions))
    of_rings = {_key(ring.table) for ring in rings}
    logs = {_key(ring.log): ring for ring in rings if ring.log is not None}
    return [
        Sorted(
            tuple(found),
            tuple(each for each in old.tables if _key(each) not in of_rings and _key(each) not in logs),
            (*decisions, *_logs_of_others(old, logs)),
            tuple(ring for ring in rings if ring not in found),
        )
        for old, found, decisions in done
    ]


def _logs_of_others(old: Old, logs: Mapping[_Key, Ring]) -> Iterator[str]:
    for table in old.tables:
        ring = logs.get(_key(table))
        if ring is not None and ring.table.database != table.database:
            yield f"table {table.name} is the log of the ring {ring.table.database}..{ring.table.name}"


def _rings_of(
    old: Old, others: Sequence[OldTable], decided: _Decided, bounds: Bounds, before: Sequence[Ring]
) -> tuple[list[Ring], list[str]]:
    """The rings of a database, and the open decisions. `before`: the rings of earlier databases."""
    decisions: list[str] = []
    rings: list[Ring] = []
    taken = {ring.table.name.lower(): ring for ring in before}
    for table in old.tables:
        rule = decided.rings.get(_key(table))
        if _key(table) in decided.site or _key(table) in decided.logs:
            continue
        shape = _shape(table, rule)
        if shape is None:
            continue
        seq_no, time = shape
        reasons = [] if rule is not None else [*_against(table, seq_no, time, bounds)]
        if reasons:
            # an empty table, or one that misses by more, is no ring to anybody
            if len(reasons) == 1 and table.rows > 1:
                decisions.append(
                    f"table {table.name} could be a ring, but {reasons[0]}: it stays a site table"
                )
            continue
        if first := taken.get(table.name.lower()):
            decisions.append(
                f"table {table.name} could be a ring, but {first.table.database} has one of this name, and a "
                "facility has one: it stays a site table"
            )
            continue
        used = {*decided.site, *(_key(ring.log) for ring in (*before, *rings) if ring.log is not None)}
        free = [each for each in (*old.tables, *others) if _key(each) not in used]
        log, doubts = _log_of(table, seq_no, rule, free)
        decisions += doubts
        cycle = float(rule["cycle"]) if rule and "cycle" in rule else _cycle(table, log, time, bounds)
        rings.append(Ring(table, seq_no, time, log, cycle))
        if log is None:
            decisions.append(
                f"ring {table.name} has no log: from now on it has one (log = … in the facility file)"
            )
        if not rule or "cycle" not in rule:
            decisions.append(f"ring {table.name}: its cycle is {cycle:g} s according to its times")
        if (seq_no, time) != ("seq_no", "time"):
            decisions.append(
                f"ring {table.name}: its columns {seq_no} and {time} are seq_no and time here; calls of "
                f"put_{table.name.lower()} by name need @seq_no and @time"
            )
    return rings, decisions


def _shape(table: OldTable, rule: Mapping[str, Any] | None) -> tuple[str, str] | None:
    """The columns of the row's number and of its time, where the table has them."""
    if rule is not None and "seq_no" in rule and "time" in rule:
        for column in (rule["seq_no"], rule["time"]):
            if table.column(column) is None:
                raise AdoptionError(
                    f"the rules name column {column!r} of table {table.name}, which does not exist"
                )
        return str(rule["seq_no"]), str(rule["time"])
    numbers = [
        key[0]
        for key in table.keys
        if len(key) == 1 and (column := table.column(key[0])) is not None and column.type in _WHOLE
    ]
    times = [column.name for column in table.columns if column.type in _TIMES]
    if not numbers or not times:
        return None
    time = next((name for name in times if name.lower() == "time"), times[0])
    return numbers[0], time


def _against(table: OldTable, seq_no: str, time: str, bounds: Bounds) -> list[str]:
    """Reasons against a ring."""
    reasons = []
    readings = [column for column in table.columns if column.name not in (seq_no, time)]
    if odd := [column for column in readings if facility_type(column.type, column.length) is None]:
        reasons.append(f"column {odd[0].name} is {odd[0].declared}")
    if not readings:
        reasons.append("it has no readings")
    if not 2 <= table.rows <= _LONGEST_RING:
        reasons.append(f"it has {table.rows} rows")
    elif not reasons:
        first, last = bounds(table, seq_no)
        if (first, last) != (1, table.rows):
            reasons.append(f"its {seq_no} goes from {first} to {last} and it has {table.rows} rows")
    return reasons


def facility_type(kind: str, length: int) -> str | None:
    """The type in a facility file; None for one that readings cannot have."""
    if kind in ("varchar", "char"):
        return f"varchar({length})" if length > 0 else None
    if kind in ("nvarchar", "nchar", "univarchar", "unichar"):
        return f"varchar({length // 2})" if length > 0 else None
    return TYPES.get(kind)


def _log_of(
    table: OldTable, seq_no: str, rule: Mapping[str, Any] | None, others: Sequence[OldTable]
) -> tuple[OldTable | None, list[str]]:
    """The table with the same columns whose row numbers repeat; by the rules, else by columns and name.

    It is one of the ring's own database, or of another where its own has none. A table with more columns, or
    without the row's number, is the log only by the rules, without the columns that a log cannot have. With
    the open decisions.
    """
    if rule and "log" in rule:
        log = rule["log"]
        if absent := [column.name for column in table.columns if log.column(column.name) is None]:
            raise AdoptionError(
                f"the rules name the log {log.name} of {table.name}, which has no {absent[0]}"
            )
        if more := _beside(log, table):
            return log, [f"log {log.name} has {more} besides the ring's: not migrated"]
        return log, []
    readings = {(column.name, column.type) for column in table.columns if column.name != seq_no}
    alike = [
        other
        for other in others
        if _key(other) != _key(table)
        and other.owner == table.owner
        and table.name.lower() in other.name.lower()
        and readings <= {(column.name, column.type) for column in other.columns}
        and (seq_no,) not in other.keys
    ]
    own = [other for other in alike if other.database == table.database]
    if len(own or alike) != 1:
        return None, []
    (log,) = own or alike
    there = f"{log.database}.." if log.database != table.database else ""
    missing = "" if log.column(seq_no) is not None else f"no {seq_no}, the number of the ring's row"
    if odd := missing or _beside(log, table):
        return None, [
            f"table {there}{log.name} could be the log of {table.name}, but has {odd}: it stays a site table"
            + ("" if missing else " (by --rules it is the log, without that)")
        ]
    return log, [f"ring {table.name}: its log is taken to be {there}{log.name}"] if there else []


def _beside(log: OldTable, ring: OldTable) -> str:
    """The columns that a log has and its ring lacks."""
    names = [column.name for column in log.columns if ring.column(column.name) is None]
    return f"column{'s' * (len(names) > 1)} {', '.join(names)}" if names else ""


def _cycle(table: OldTable, log: OldTable | None, time: str, bounds: Bounds) -> float:
    """Seconds from row to row, between the oldest and the newest."""
    of = log if log is not None and log.rows > 1 else table
    first, last = bounds(of, time)
    if first is None or of.rows < 2 or last <= first:
        return 1.0
    seconds = (last - first).total_seconds() / (of.rows - 1)
    return float(f"{min(max(seconds, 1e-3), 86_400.0):.3g}")
