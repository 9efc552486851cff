"""The command `ringlog why`: why a signal has no reading."""

import json
from datetime import UTC, datetime
from typing import Annotated, Any

import psycopg
import typer

from ringlog.commands.lines import columns
from ringlog.commands.options import Data, Dsn, Json
from ringlog.commands.stored.report import moment_of
from ringlog.errors import UsageError
from ringlog.nodes.servers import nodes_of, reached
from ringlog.schema import session
from ringlog.server.database import facility_opened

_ELSEWHERE = "RL006"
_TIME = "an ISO time (2026-11-20T14:00:00Z; without a zone UTC), or so long ago: 90m, 24h, 7d, 2w."


def why(
    name: Annotated[str, typer.Argument(metavar="SIGNAL", help="Name of a signal.")],
    start: Annotated[str, typer.Option("--from", metavar="TIME", help=f"Begin: {_TIME}")] = "24h",
    end: Annotated[str | None, typer.Option("--to", metavar="TIME", help="End; default: now.")] = None,
    machine: Json = False,
    data: Data = None,
    dsn: Dsn = None,
) -> None:
    """Say why a signal has no reading: spans with a cause, and the record that shows it."""
    times = [_instant(start), None if end is None else _instant(end)]
    with facility_opened(data, dsn) as conninfo:
        found = _answer(conninfo, [name, *times])
    if machine:
        print(json.dumps(found, default=datetime.isoformat))
    elif not found:
        print("no reading is missing")
    else:
        lines = [
            [span["cause"], _shown(span["since"], "…"), _shown(span["until"], "now"), *_rest(span)]
            for span in found
        ]
        for line in columns([["cause", "since", "until", "rows", "evidence"], *lines], right=[3]):
            print(line)


def _answer(conninfo: str, values: list[Any]) -> list[dict[str, Any]]:
    """The spans, from the node that has the signal. Raises UsageError for what the procedure refuses."""
    query = b"select cause, since, until, rows, evidence from ringlog.why_missing(%s, %s, %s)"
    try:
        with session.connect(conninfo) as connection:
            cursor = connection.execute(query, values)
            names = [column.name for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor]
    except psycopg.DatabaseError as error:
        if error.sqlstate is None:
            raise
        if error.sqlstate != _ELSEWHERE:
            raise UsageError(error.diag.message_primary or str(error)) from None
        node = str(error.diag.message_detail)
    try:
        return _answer(reached(nodes_of(conninfo)[node][0]), values)
    except psycopg.OperationalError as error:
        evidence = f"node {node}: {' '.join(str(error).split())}"
        return [{"cause": "node", "since": None, "until": None, "rows": None, "evidence": evidence}]


def _instant(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return moment_of(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _shown(moment: datetime | None, otherwise: str) -> str:
    return otherwise if moment is None else f"{moment.astimezone():%Y-%m-%d %H:%M:%S}"


def _rest(span: dict[str, Any]) -> list[str]:
    return ["" if span["rows"] is None else str(span["rows"]), span["evidence"]]
