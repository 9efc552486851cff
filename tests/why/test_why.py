"""Why a reading is missing: causes injected on a running server, and the answers by all ways."""

import json
import os
import random
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from webs import Web

from ringlog.clients import call, connect
from servers import Login, RunningServer, free_port, ringlog, serving

FACILITY = Path(__file__).with_name("why.toml")
BEGIN = datetime(2026, 3, 2, tzinfo=UTC)
"""the injected past; each mix has two hours of its own"""
SLOT, CYCLE = timedelta(minutes=1), timedelta(seconds=10)
SLOTS, MIXES = 12, 100


@pytest.fixture(scope="module")
def own(temporary_directory: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    port = free_port()
    with serving(
        temporary_directory / "why", "--http", f"127.0.0.1:{port}", facility=FACILITY
    ) as running:
        # the settings and the writers of the past
        running.sql("update ringlog.how_taken set valid_from = %s", [BEGIN - timedelta(days=1)])
        yield Web(running, f"http://127.0.0.1:{port}", "")


def by_postgres(web: Web, *values: Any) -> list[tuple[Any, ...]]:
    query = "select cause, since, until, rows, evidence from ringlog.why_missing(%s, %s, %s)"
    return web.server.sql(query, values, login=web.server.reader)


def by_tds(web: Web, name: str, start: datetime, end: datetime) -> list[tuple[Any, ...]]:
    with web.server.connect(web.server.reader.user, web.server.reader.password) as session:
        cursor = session.cursor()
        cursor.execute("exec why_missing @signal = %s, @from_time = %s, @to_time = %s", (name, *map(str, (start, end))))
        return [tuple(row) for row in cursor]


def by_http(web: Web, name: str, start: datetime, end: datetime) -> list[tuple[Any, ...]]:
    with web.client(web.server.reader) as client:
        asked = {"signal": name, "from": start.isoformat(), "to": end.isoformat()}
        answer = client.get("/api/v1/why", params=asked)
    assert answer.status_code == 200, answer.text
    return [_of_json(each) for each in answer.json()]


def by_command(web: Web, name: str, start: datetime, end: datetime) -> list[tuple[Any, ...]]:
    words = ("--from", start.isoformat(), "--to", end.isoformat(), "--json", "--data", web.server.data)
    done = ringlog("why", name, *words)
    found = [_of_json(each) for each in json.loads(done.stdout)]
    assert done.returncode == any(span[0] == "unknown" for span in found), done.stderr
    return found


def _of_json(span: dict[str, Any]) -> tuple[Any, ...]:
    moments = [span[name] and datetime.fromisoformat(span[name]) for name in ("since", "until")]
    return span["cause"], *moments, span["rows"], span["evidence"]


WAYS = [by_postgres, by_tds, by_http, by_command]


def test_x(own):
    print(by_postgres(own, "mag/current", BEGIN, BEGIN + SLOT))
    print(by_tds(own, "mag/current", BEGIN, BEGIN + SLOT))
    print(by_http(own, "mag/current", BEGIN, BEGIN + SLOT))
    print(by_command(own, "mag/current", BEGIN, BEGIN + SLOT))
    assert 0
