"""The four ways of asking why a reading is missing."""

import json
from datetime import datetime
from typing import Any

from webs import Web

from servers import ringlog

Spans = list[tuple[Any, ...]]
"""cause, since, until, rows, evidence"""


def by_postgres(web: Web, *values: Any) -> Spans:
    query = "select cause, since, until, rows, evidence from ringlog.why_missing(%s, %s, %s)"
    return web.server.sql(query, values, login=web.server.reader)


def by_tds(web: Web, name: str, start: datetime, end: datetime) -> Spans:
    with web.server.connect(web.server.reader.user, web.server.reader.password) as session:
        cursor = session.cursor()
        cursor.execute(
            "exec why_missing @signal = %s, @from_time = %s, @to_time = %s", (name, *map(str, (start, end)))
        )
        return [tuple(row) for row in cursor]


def by_http(web: Web, name: str, start: datetime, end: datetime) -> Spans:
    with web.client(web.server.reader) as client:
        asked = {"signal": name, "from": start.isoformat(), "to": end.isoformat()}
        answer = client.get("/api/v1/why", params=asked)
    assert answer.status_code == 200, answer.text
    return [_of_json(each) for each in answer.json()]


def by_command(web: Web, name: str, start: datetime, end: datetime) -> Spans:
    words = ("--from", start.isoformat(), "--to", end.isoformat(), "--json", "--data", web.server.data)
    done = ringlog("why", name, *words)
    assert done.returncode == 0, done.stderr
    return [_of_json(each) for each in json.loads(done.stdout)]


def _of_json(span: dict[str, Any]) -> tuple[Any, ...]:
    moments = [span[name] and datetime.fromisoformat(span[name]) for name in ("since", "until")]
    return span["cause"], *moments, span["rows"], span["evidence"]


WAYS = [by_postgres, by_tds, by_http, by_command]
