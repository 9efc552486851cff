"""The commands `ringlog signals` and `ringlog latest`: which signals there are, and their newest values."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Annotated, Any

import psycopg
import typer
from psycopg import sql
from psycopg.rows import dict_row

from ringlog.commands.lines import age_text, columns
from ringlog.commands.options import Data, Dsn, Json
from ringlog.errors import UsageError
from ringlog.nodes.servers import nodes_of, reached
from ringlog.retrieval.words import search_query
from ringlog.schema import catalogue, session
from ringlog.server.database import facility_opened

_MOST = 100_000

Machine = Json
_WORDS = (
    "Words in any order, of names, tables, columns, descriptions and units. * stands for any characters, "
    "/…/ is a regular expression; unit:A, table:…, device:…, column:… search there only."
)


def signals(
    words: Annotated[list[str] | None, typer.Argument(metavar="WORDS", help=_WORDS)] = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=_MOST, help="Maximum number.")] = 100,
    machine: Machine = False,
    data: Data = None,
    dsn: Dsn = None,
) -> None:
    """Find signals by words, in any order. Code 1: no signal matches."""
    with facility_opened(data, dsn) as conninfo:
        rows = found(conninfo, " ".join(words or ()), limit + 1)
    shown = rows[:limit]
    if machine:
        print(json.dumps([_described(row) for row in shown]))
    else:
        for line in columns([[name_of(row), row["type"], row["unit"], row["description"]] for row in shown]):
            print(line)
        if len(rows) > limit:
            print(f"the first {limit}: more with --limit, fewer with more words", file=sys.stderr)
        if not rows:
            print("no signal matches these words", file=sys.stderr)
    if not rows:
        raise typer.Exit(1)


def latest(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="SIGNAL…", help="Names of signals, or parts of names with *, as 'sr_vac*pressure'."
        ),
    ],
    machine: Machine = False,
    data: Data = None,
    dsn: Dsn = None,
) -> None:
    """Print the newest value of each signal, its age and its time. Code 1: one has never been written."""
    with facility_opened(data, dsn) as conninfo:
        chosen = [row for name in names for row in _named(conninfo, name)]
        values = _values(conninfo, chosen)
    chosen = [row | value.then for row, value in zip(chosen, values, strict=True)]
    now = datetime.now(UTC)
    if machine:
        print(
            json.dumps(
                [
                    _described(row)
                    | {"time": None if value.time is None else value.time.isoformat(), "value": value.value}
                    for row, value in zip(chosen, values, strict=True)
                ],
                default=str,
            )
        )
    else:
        lines = [
            [
                name_of(row),
                _shown(value, row),
                "never" if value.time is None else f"{age_text((now - value.time).total_seconds())} ago",
                "" if value.time is None else f"{value.time.astimezone():%Y-%m-%d %H:%M:%S %Z}",
            ]
            for row, value in zip(chosen, values, strict=True)
        ]
        for line in columns(lines):
            print(line)
    if any(value.time is None for value in values):
        raise typer.Exit(1)


@dataclass(frozen=True)
class _Value:
    time: datetime | None
    """None: never written"""
    value: Any
    then: dict[str, Any] = field(default_factory=dict)
    """unit and states of that time"""


def found(conninfo: str, text: str, limit: int) -> list[dict[str, Any]]:
    """Rows of the signals that have these words. Raises UsageError for a wrong regular expression."""
    with session.connect(conninfo) as connection, connection.cursor(row_factory=dict_row) as cursor:
        try:
            return cursor.execute(search_query(text, limit)).fetchall()
        except psycopg.errors.InvalidRegularExpression as error:
            raise UsageError(str(error).splitlines()[0]) from None


def _named(conninfo: str, name: str) -> list[dict[str, Any]]:
    """The signals of a name, or of a part of one with *. Raises UsageError for none."""
    rows = found(conninfo, f"signal:{name}", _MOST)
    exact = [row for row in rows if name_of(row) == name]
    if not exact and ("*" not in name or not rows):
        near = f"; did you mean {name_of(rows[0])}?" if rows else ": ringlog signals WORDS finds signals"
        raise UsageError(f"there is no signal {name}{near}")
    return exact or rows


def _values(conninfo: str, rows: Sequence[dict[str, Any]]) -> list[_Value]:
    """The newest value of each, a table at a time, on the server that has it."""
    found: dict[str, _Value] = {}
    nodes = nodes_of(conninfo)
    for node in sorted({row["node"] for row in rows}, key=lambda node: node or ""):
        server = conninfo if node is None else reached(nodes[node][0])
        with session.connect(server) as connection:
            for table in sorted({row["table_name"] for row in rows if row["node"] == node}):
                own = [row for row in rows if row["table_name"] == table]
                if catalogue.is_of_samples(connection, table):
                    values = [_newest_sample(connection, row) for row in own]
                elif (newest := _newest(connection, table, own)) is None:
                    values = [_Value(None, None)] * len(own)
                else:
                    values = [_Value(newest[0], value) for value in newest[1:]]
                for row, value in zip(own, values, strict=True):
                    found[name_of(row)] = replace(value, then=_then(connection, row, value))
    return [found[name_of(row)] for row in rows]


def _newest(
    connection: psycopg.Connection, table: str, rows: Sequence[dict[str, Any]]
) -> tuple[Any, ...] | None:
    columns = [_column(row) for row in rows]
    query = sql.SQL(
        'select "time", {} from {} where "time" is not null order by "time" desc, seq_no desc limit 1'
    ).format(sql.SQL(", ").join(columns), sql.Identifier("online", table))
    return connection.execute(query).fetchone()


def _newest_sample(connection: psycopg.Connection, row: dict[str, Any]) -> _Value:
    query = sql.SQL("select \"time\", value from {}('infinity', %s)").format(
        sql.Identifier("ringlog", f"get_{row['table_name']}_at")
    )
    newest = connection.execute(query, [int(row["column_name"])]).fetchone()
    return _Value(None, None) if newest is None else _Value(*newest)


def _then(connection: psycopg.Connection, row: dict[str, Any], value: _Value) -> dict[str, Any]:
    """Unit and states that a signal had at the time of its value."""
    if value.time is None or row["scalar"] is not None:
        return {}
    with connection.cursor(row_factory=dict_row) as cursor:
        query = "select unit, states from ringlog.describe_signal(%s, %s)"
        return cursor.execute(query, [row["signal"], value.time]).fetchone() or {}


def _column(row: dict[str, Any]) -> sql.Composable:
    column = sql.Identifier(row["column_name"])
    if row["scalar"] is None:
        return column
    integer = "::integer[]" if row["type"] == "bit[]" else ""
    return sql.SQL("(ringlog.waveform_scalars({}{}::double precision[])).{}").format(
        column, sql.SQL(integer), sql.Identifier(row["scalar"])
    )


def _shown(value: _Value, row: dict[str, Any]) -> str:
    if value.value is None:
        return "no reading" if value.time else "-"
    name = (
        json.loads(row["states"] or "{}").get(str(int(value.value))) if isinstance(value.value, int) else None
    )
    if name is not None:
        return f"{name} ({int(value.value)})"
    if isinstance(value.value, bool):
        return "on" if value.value else "off"
    if isinstance(value.value, bytes | list):
        return f"a waveform of {row['type']}"
    text = f"{value.value:.7g}" if isinstance(value.value, float) else str(value.value)
    return f"{text} {row['unit'] or ''}".strip()


def name_of(row: dict[str, Any]) -> str:
    return str(row["signal"]) if row["scalar"] is None else f"{row['signal']}.{row['scalar']}"


def _described(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "signal": name_of(row),
        "table": row["table_name"],
        "column": row["column_name"],
        "type": row["type"],
        "unit": row["unit"],
        "description": row["description"],
        "states": json.loads(row["states"] or "null"),
    }
