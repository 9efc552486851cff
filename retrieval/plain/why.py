"""Why a signal has no reading: the answers of the servers that have its rows."""

from datetime import datetime
from typing import Any

from psycopg import sql

from ringlog.history.connection import ReadError, records, time_literal
from ringlog.retrieval.servers import Servers
from ringlog.retrieval.serving.refused import Refused
from ringlog.retrieval.texts import query

_UNKNOWN = "42704"


def why(servers: Servers, name: str, start: datetime, end: datetime) -> list[dict[str, Any]]:
    """The spans without a reading, each with cause, since, until, rows and evidence. Raises Refused for a
    signal that never existed."""
    times = {"start": time_literal(start), "end": time_literal(end)}
    text = query("plain/why", signal=sql.Literal(name), **times)
    nodes = query("plain/nodes_of_signal", signal=sql.Literal(name))
    causes: list[dict[str, Any]] = []
    for row in records(servers.first, nodes):
        node = row["node"]
        try:
            connection = servers.of(node)
        except Refused as error:
            if error.status != 503:
                raise
            causes.append(
                {"cause": "node", "since": None, "until": None, "rows": None, "evidence": str(error)}
            )
            continue
        try:
            causes += records(connection, text)
        except ReadError as error:
            if error.sqlstate == _UNKNOWN:
                raise Refused(404, f"there is no signal {name[:60]!r}") from error
            raise
    return causes
