"""The SQL of every stored procedure, one concern a file, in folders by subject.

The files are templates of psycopg.sql, which quotes the inserted names.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache, lru_cache
from hashlib import sha256
from importlib.resources import files
from string import Formatter

from psycopg import sql

from ringlog.schema.alarms import SEVERITIES, STATUSES

SCHEMA = "ringlog"

OF_A_TABLE = {
    "put": "put_{}",
    "put_claimed": "put_{}_claimed",
    "put_batch": "put_{}_batch",
    "import": "import_{}",
    "get": "get_{}",
    "get_at": "get_{}_at",
    "get_range": "get_{}_range",
    "last": "last_{}",
}
"""The procedures of each table: file in rows/, and name."""

WRITING = ("put", "put_claimed", "put_batch", "import")
"""Those of them that a retired table does not have."""

OF_A_SAMPLE_TABLE = {
    "put_batch": "put_{}_batch",
    "put_claimed": "put_{}_claimed",
    "put": "put_{}",
    "get": "get_{}",
    "get_at": "get_{}_at",
    "last": "last_{}",
}
"""The procedures of each table of samples: file in samples/, and name."""

_SUPERUSERS = "array_bytes"

OVER_ALL_TABLES = {
    file.name.removesuffix(".sql"): f"{folder}/{file.name.removesuffix('.sql')}"
    for folder in (
        "archive",
        "captures",
        "conditions",
        "housekeeping",
        "marks",
        "nodes",
        "readings",
        "signals",
        "times",
        "trends",
        "views",
        "waveforms",
        "why",
        "writers",
    )
    for file in sorted(files(__name__).joinpath(folder).iterdir(), key=lambda file: file.name)
    if file.name.endswith(".sql") and file.name != f"{_SUPERUSERS}.sql"
}
"""The procedures over all tables: name and file."""

FORMER = ("bins_of_places", "queries_of_bins", "trend_in_bins")
"""Functions of 1.0, which an installation drops; 1.0 makes them again when it takes back a database."""

FOR_EVERYONE = ("demand_log", "partial_logs")
"""Those of them that any login may call; all others only the roles that their files name."""

DEADBAND = r"^(\d+(\.\d+)?|\.\d+)([eE]-?\d+)?( ?%)?$"
"""The form of a deadband that is a number or a part, for PostgreSQL and for Python."""

CAPTURE_SECONDS, CAPTURE_DAYS = 86_400, 36_500
"""The most seconds before and after an event together, and the most days for which a capture is kept."""

SYSTEM_SCHEMAS = ("sys", "sybsystemprocs", "tsql_information_schema", "tsql", "tsql_global")
"""The schemas of T-SQL's system: catalogue views, functions and procedures; those with another form in
TDS 5.0; INFORMATION_SCHEMA; functions of compiled queries; global temporary tables. The first two are named
as in SQL Server and in ASE."""

SYSTEM = (
    "clear",
    "views/schemas",
    "views/types",
    "views/shown_types",
    "views/databases",
    "views/principals",
    "views/relations",
    "views/expressions",
    "views/objects",
    "views/columns",
    "views/indexes",
    "views/constraints",
    "views/modules",
    "views/names",
    "views/permissions",
    "procedures/checkident",
    "views/properties",
    "views/absent",
    "views/information_schema",
    "calling",
    "procedures/extended_properties",
    "procedures/user_types",
    "procedures/sequences",
    "catalogue/sp_tables",
    "catalogue/sp_columns",
    "catalogue/sp_stored_procedures",
    "catalogue/sp_keys",
    "catalogue/sp_privileges",
    "catalogue/sp_statistics",
    "catalogue/sp_databases",
    "procedures/sp_helpindex",
    "procedures/sp_helpconstraint",
    "catalogue/sp_tablecollations",
    "procedures/sp_helptext",
    "procedures/sp_help",
    "procedures/sp_spaceused",
    "procedures/sp_helpdb",
    "procedures/sp_who",
    "procedures/sp_lock",
    "procedures/without_effect",
    "procedures/sp_rename",
    "procedures/sp_applock",
    "procedures/sp_sysmon",
    "elsewhere",
    "rights",
)
"""Files in system/, each after those that it needs."""


@dataclass(frozen=True)
class Procedure:
    """A procedure of schema `ringlog`: its name, and the SQL that makes it, explains it and grants it."""

    name: str
    source: str

    @property
    def digest(self) -> str:
        return sha256(self.source.encode()).hexdigest()


def table_procedures(
    table: str,
    rows: int,
    columns: Sequence[str],
    nth: int = 1,
    period: float | None = None,
    *,
    cycle: float = 1.0,
    clock_tolerance: timedelta | None = None,
    without_nan: Collection[str] = (),
    decimals: Sequence[str] = (),
    waveforms: Mapping[str, int] | None = None,
    ring_schema: str = "online",
    called: str | None = None,
    retired: bool = False,
) -> Iterator[Procedure]:
    """The procedures of a table with a ring of `rows` rows, one every `cycle` seconds.

    `columns` are the data columns in the ring's order. `nth` and `period` (seconds) select the rows for the
    log: see ringlog.schema.facility.LogPolicy. Rows further ahead of the clock than `clock_tolerance` do not
    enter the ring. NaN and infinities become null in the columns `without_nan`; `decimals` refuse them.
    `waveforms` has the maximum number of points of each waveform column; only the log stores them if the
    ring's schema is not online. With `called`, a former name of the table, the procedures are named after it.
    A `retired` table has no procedures that write.
    """
    waveforms = waveforms or {}
    in_ring = [column for column in columns if ring_schema == "online" or column not in waveforms]
    ring, log = sql.Identifier("online", table), sql.Identifier("weeks", table)
    staged = sql.Identifier("pg_temp", table)
    every_column = ["seq_no", "time", *columns]
    quoted = [*map(_quoted, columns)]
    key = [_quoted("seq_no"), _quoted("time")]
    of_the_table: dict[str, sql.Composable | str] = {
        "ring": ring,
        "log": log,
        "every_row": sql.Identifier("log", table),
        "ring_name": sql.Literal(ring.as_string()),
        "rows": sql.Literal(rows),
        "cycle": sql.Literal(cycle),
        "tolerance": sql.Literal(clock_tolerance),
        "without_nan": _without_nan(ring, columns, without_nan, waveforms),
        "staged": staged,
        "staged_name": sql.Literal(staged.as_string()),
        "staged_without_nan": _staged_without_nan(staged, without_nan, waveforms),
        "staged_point_checks": _point_checks("import_points", "import", table, waveforms, staged),
        "decimal_check": _decimal_check("put_decimals", "put", table, decimals),
        "staged_decimal_check": _decimal_check("import_decimals", "import", table, decimals, staged),
        "names": sql.Literal(every_column),
        "columns": ", ".join(quoted),
        "values": _of("r", quoted),
        "assignments": ", ".join(
            f"{name} = {_quoted('r')}.{name}" for name in map(_quoted, ("time", *in_ring))
        ),
        "stored": sql.Identifier(ring_schema, table),
        "point_checks": _point_checks("put_points", "put", table, waveforms),
        "ring_columns": _of("ring", [*key, *quoted]),
        "log_columns": _of("logged", [*key, *quoted]),
        "logged_values": _of("logged", quoted),
        "nth": sql.Literal(nth),
        "period": sql.Literal(None if period is None else timedelta(seconds=period)),
        "policy": _policy(ring, log, nth, period),
        "table": sql.Literal(table),
        "last": sql.Identifier(SCHEMA, OF_A_TABLE["last"].format(table)),
        "summarised": _until(table),
        "put": sql.Identifier(SCHEMA, OF_A_TABLE["put"].format(table)),
        "claimed": sql.Identifier(SCHEMA, OF_A_TABLE["put_claimed"].format(table)),
    }
    written = {name: v if isinstance(v, str) else v.as_string() for name, v in of_the_table.items()}
    put = sql.Literal(OF_A_TABLE["put"].format(called or table)).as_string()
    written["refusal"] = _filled("rows/put_refused", written | {"name": put})
    for file, pattern in OF_A_TABLE.items():
        if retired and file in WRITING:
            continue
        name = pattern.format(called or table)
        written |= {
            "procedure": sql.Identifier(SCHEMA, name).as_string(),
            "this": _quoted(name),
            "name": sql.Literal(name).as_string(),
        }
        yield Procedure(name, _filled(f"rows/{file}", written))


def _until(table: str) -> sql.Composable:
    """The sequence with the time up to which a table is summarised."""
    return sql.SQL("{}::regclass").format(
        sql.Literal(sql.Identifier("summary", f"{table}_until").as_string())
    )


def sample_procedures(
    table: str, kind: str, clock_drift: timedelta, points: int | None = None
) -> Iterator[Procedure]:
    """The procedures of a table of samples whose values are of this SQL type, or waveforms of at most so many
    `points`."""
    of_the_table = _of_samples(table, kind, clock_drift=clock_drift, points=points)
    is_waveform = points is not None
    of_the_table |= {
        "of_each": "lengths" if is_waveform else "samples",
        "sent": _read("samples/put_batch_sent")
        if is_waveform
        else "unnest(signals, times, samples, severities, statuses)",
        "lengths": ",\n  lengths integer[] default null" if is_waveform else "",
        "lengths_type": ", integer[]" if is_waveform else "",
        "one_value": "coalesce(value, '{}')" if is_waveform else "array[value]",
        "one_length": ", null, array[cardinality(value)]" if is_waveform else "",
        "of_waveforms": " Samples has the\npoints of all waveforms, and lengths the number of each one's."
        if is_waveform
        else "",
    }
    for file, pattern in OF_A_SAMPLE_TABLE.items():
        name = pattern.format(table)
        written = of_the_table | {
            "procedure": sql.Identifier(SCHEMA, name).as_string(),
            "this": _quoted(name),
            "name": sql.Literal(name).as_string(),
        }
        check = {"points": str(points), "name": written["name"]}
        written["check"] = _filled("samples/put_batch_points", check) if is_waveform else ""
        yield Procedure(name, _filled(f"samples/{file}", written))


def sample_views(table: str, ring: int, points: int | None = None) -> str:
    """The SQL of `online.<table>` of a table of samples."""
    return _filled("samples/views", _of_samples(table, "", ring=ring, points=points))


@dataclass(frozen=True)
class SampleBlocks:
    """How SQL makes blocks and reads them: a block has arrays of samples, or one waveform."""

    column: str
    """of the values"""
    samples: str
    """the samples of `block`: time, value, severity, status"""
    hour: str
    """expression by which samples of a signal become a block, and its value of them"""
    value: str


VALUES = SampleBlocks(
    "samples",
    "unnest(block.times, block.samples, block.severities, block.statuses)",
    'sent."time" / 3600000000000',
    'array_agg(sent.value order by sent."time")',
)
WAVEFORMS = SampleBlocks(
    "points",
    "(values (block.times[1], block.points, block.severities[1], block.statuses[1]))",
    'sent."time"',
    # of the only one: array_agg would make a matrix of it
    "min(sent.value)",
)


_WITH_SHARED = ("add_signal", "change_signal", "view_samples", "capture_event", "missing_samples")
_SHARED = {
    "deadband": sql.Literal(DEADBAND).as_string(),
    "severities": sql.Literal([*SEVERITIES]).as_string(),
    "statuses": sql.Literal([*STATUSES]).as_string(),
    "capture_seconds": str(CAPTURE_SECONDS),
    "capture_days": str(CAPTURE_DAYS),
    "samples_of_values": sql.Literal(VALUES.samples).as_string(),
    "samples_of_waveforms": sql.Literal(WAVEFORMS.samples).as_string(),
}


def _of_samples(
    table: str, kind: str, *, ring: int = 0, clock_drift: timedelta | None = None, points: int | None = None
) -> dict[str, str]:
    blocks = VALUES if points is None else WAVEFORMS
    names = {
        "log": ("weeks", table),
        "every_sample": ("log", table),
        "online": ("online", table),
        "batch": (SCHEMA, OF_A_SAMPLE_TABLE["put_batch"].format(table)),
        "claimed": (SCHEMA, OF_A_SAMPLE_TABLE["put_claimed"].format(table)),
    }
    return {name: sql.Identifier(*parts).as_string() for name, parts in names.items()} | {
        "summarised": _until(table).as_string(),
        "table": sql.Literal(table).as_string(),
        "type": kind,
        "values": kind if points is not None else f"{kind}[]",
        "of_block": blocks.column,
        "samples_of_block": blocks.samples,
        "block_of_sample": blocks.hour,
        "value_of_block": blocks.value,
        "ring": str(ring),
        "drift": sql.Literal(clock_drift).as_string(),
    }


def _policy(ring: sql.Identifier, log: sql.Identifier, nth: int, period: float | None) -> sql.Composable:
    """The statements that end the call of a row which the log does not take; empty where it takes each."""
    if nth == 1 and period is None:
        return sql.SQL("")
    seconds = None if period is None else timedelta(seconds=period)
    return sql.SQL(_read("rows/put_policy")).format(
        ring=ring, log=log, nth=sql.Literal(nth), period=sql.Literal(seconds)
    )


def _without_nan(
    ring: sql.Identifier, columns: Sequence[str], floats: Collection[str], waveforms: Collection[str]
) -> sql.SQL:
    """The statement that replaces NaN and infinities by null; empty without such columns."""
    if not floats:
        return sql.SQL("")
    values = [
        _number_or_null(column, waveforms) if column in floats else sql.Identifier("r", column).as_string()
        for column in columns
    ]
    return sql.SQL(f'r := row (r.seq_no, r."time", {", ".join(values)})::{ring.as_string()};')


def _staged_without_nan(
    staged: sql.Identifier, floats: Collection[str], waveforms: Collection[str]
) -> sql.SQL:
    """The same statement for all rows to be imported; empty where there are no such columns."""
    if not floats:
        return sql.SQL("")
    names = {column: sql.Identifier(column).as_string() for column in floats}
    values = ", ".join(f"{name} = {_number_or_null(column, waveforms)}" for column, name in names.items())
    return sql.SQL(f"update {staged.as_string()} as r set {values};")


def _number_or_null(column: str, waveforms: Collection[str]) -> str:
    value = sql.Identifier("r", column)
    if column in waveforms:
        return sql.SQL(_read("rows/without_nan_points").strip()).format(value=value).as_string()
    # NaN is greater than infinity
    return sql.SQL("case when abs({0}) < 'infinity' then {0} end").format(value).as_string()


def _point_checks(
    file: str, procedure: str, table: str, waveforms: Mapping[str, int], staged: sql.Identifier | None = None
) -> sql.Composable:
    return sql.SQL("\n").join(
        sql.SQL(_read(f"rows/{file}")).format(
            name=sql.Literal(OF_A_TABLE[procedure].format(table)),
            value=sql.Identifier("r", column),
            points=sql.Literal(points),
            column=sql.Literal(column),
            staged=staged,
        )
        for column, points in waveforms.items()
    )


def _decimal_check(
    file: str, procedure: str, table: str, decimals: Sequence[str], staged: sql.Identifier | None = None
) -> sql.Composable:
    if not decimals:
        return sql.SQL("")
    values = [sql.Identifier("r", column) for column in decimals]
    named = [
        sql.SQL("({}, {})").format(sql.Literal(column), value)
        for column, value in zip(decimals, values, strict=True)
    ]
    return sql.SQL(_read(f"rows/{file}")).format(
        name=sql.Literal(OF_A_TABLE[procedure].format(table)),
        values=_list(values),
        named=_list(named),
        staged=staged,
    )


def online_view(table: str, columns: Sequence[str], waveforms: Collection[str], ring_schema: str) -> str:
    """The SQL of `online.<table>` over a ring that leaves its waveforms to the log."""
    return (
        sql.SQL(_read("rows/online"))
        .format(
            ring=sql.Identifier("online", table),
            stored=sql.Identifier(ring_schema, table),
            log=sql.Identifier("weeks", table),
            view_columns=_list(
                sql.Identifier("logged" if column in waveforms else "ring", column) for column in columns
            ),
        )
        .as_string()
    )


def shared_procedures() -> Iterator[Procedure]:
    """The procedures over all tables."""
    for name, file in OVER_ALL_TABLES.items():
        yield Procedure(name, _filled(file, _SHARED) if name in _WITH_SHARED else _read(file))


def superusers_procedure() -> Procedure:
    """The procedure that only a superuser can create; readers do without it otherwise."""
    return Procedure(_SUPERUSERS, _read(f"waveforms/{_SUPERUSERS}"))


def system_script() -> Procedure:
    """The SQL that makes the system schemas again: run as their owner, in one transaction."""
    return Procedure("sys", "\n".join(_read(f"system/{file}") for file in SYSTEM))


@cache
def _read(file: str) -> str:
    return files(__name__).joinpath(f"{file}.sql").read_text()


def _filled(file: str, written: Mapping[str, str]) -> str:
    """A template as psycopg.sql fills it, from values that are written already: each start makes thousands of
    texts."""
    return "".join(text if name is None else text + written[name] for text, name in _template(file))


@cache
def _template(file: str) -> list[tuple[str, str | None]]:
    """The pieces of a template, each with the name of the value behind it."""
    return [(text, name) for text, name, *_ in Formatter().parse(_read(file))]


@lru_cache(maxsize=4096)
def _quoted(name: str) -> str:
    """Quotes an identifier like the library, cached: quoting is slow, and a column is used in many
    procedures."""
    return sql.Identifier(name).as_string()


def _of(relation: str, quoted: Iterable[str]) -> str:
    """These columns, quoted already, as those of a relation."""
    prefix = f"{_quoted(relation)}."
    return ", ".join([prefix + column for column in quoted])


def _list(parts: Iterable[sql.Composable]) -> sql.SQL:
    # one text: a Composed of thousands of names would be rendered again wherever it is inserted
    return sql.SQL(", ".join(part.as_string() for part in parts))
