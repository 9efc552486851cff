"""Programs cache answers for closed time, confirmed by ETag and 304; progress of long answers."""

import io
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import psycopg
import pyarrow as pa
import pytest
import sqlalchemy as sa
from known_rows import BEGIN, ROWS, row, time_of
from webs import fill

from ringlog.clients import ReadRefused, answers, progress, read, reading
from ringlog.clients.answers import Answers
from ringlog.history import closing
from ringlog.history.summaries.summarising import summarise
from ringlog.schema.relations.partitions import maintain
from servers import FACILITY, free_port, serving, sqlalchemy_url

SIGNAL = "every_type/a_double"
START, END = BEGIN + timedelta(seconds=60), BEGIN + timedelta(seconds=140)
VALUES = [row(number)["a_double"] for number in range(60, 140)]


@dataclass
class Closed:
    """A server whose known rows are closed, and the statuses of its answers."""

    url: str
    dsn: str
    statuses: list[int]

    def read(self, **options: Any) -> pa.Table:
        return read(SIGNAL, START, END, server=self.url, password="read-Ω-2", **options)


@pytest.fixture(scope="module")
def server(temporary_directory: Path) -> Iterator[Closed]:
    at = f"127.0.0.1:{free_port()}"
    with (
        serving(temporary_directory / "kept", "--http", at, facility=FACILITY) as running,
        pytest.MonkeyPatch.context() as patch,
    ):
        fill(running)
        # creates a partition for the rows' week
        engine = sa.create_engine(sqlalchemy_url(running.dsn))
        maintain(engine, BEGIN + timedelta(hours=1))
        engine.dispose()
        patch.setattr(closing, "BLOCK", 50)
        summarise(running.dsn, BEGIN + timedelta(days=1), enough=1)
        assert closing.close(running.dsn, pauses=0).complete
        yield Closed(f"http://{running.reader.user}@{at}", running.dsn, [])


@pytest.fixture
def closed(server: Closed, monkeypatch: pytest.MonkeyPatch) -> Closed:
    opened = reading.opened
    server.statuses.clear()

    def noted(*words: Any) -> Any:
        try:
            answer = opened(*words)
        except ReadRefused as error:
            server.statuses.append(error.status)
            raise
        server.statuses.append(answer.status)
        return answer

    monkeypatch.setattr(reading, "opened", noted)
    monkeypatch.setattr(reading, "_IN_MEMORY", Answers())
    return server


def test_an_answer_is_cached_until_a_late_row(closed: Closed, tmp_path: Path) -> None:
    for options in ({}, {"cache": tmp_path / "kept"}):
        tables = [closed.read(**options) for _ in range(2)]
        assert closed.statuses == [200, 304]
        assert [table["value"].to_pylist() for table in tables] == [VALUES] * 2
        assert tables[0].schema.equals(tables[1].schema, check_metadata=True)
        closed.statuses.clear()
    (file,) = (tmp_path / "kept").iterdir()
    file.write_bytes(file.read_bytes()[:100])
    assert closed.read(cache=tmp_path / "kept").equals(tables[0])
    assert closed.statuses == [200]
    # time that is not closed
    for _ in range(2):
        read(SIGNAL, time_of(ROWS - 3), "now", server=closed.url, password="read-Ω-2")
    assert closed.statuses == [200] * 3
    with psycopg.connect(closed.dsn) as connection:
        row = "jsonb_build_object('seq_no', 1, 'time', %s::timestamptz, 'a_double', 7)"
        put = f"select ringlog.put_every_type(jsonb_populate_record(null::online.every_type, {row}))"
        connection.execute(put, [START + timedelta(seconds=1.5)])
    assert closed.read()["value"].to_pylist().count(7) == 1


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"value": pa.array(range(1000), pa.int64())})
    monkeypatch.setattr(answers, "MOST_BYTES", 2 * table.nbytes)
    kept = Answers()
    for name in "abc":
        kept.keep(name, f"tag of {name}", table)
    assert kept.find("a") is None
    found = kept.find("c")
    assert found is not None
    assert found[0] == "tag of c"
    assert found[1].equals(table, check_metadata=True)


def test_progress(web, monkeypatch: pytest.MonkeyPatch) -> None:
    """A function receives the bytes of each part; a line is shown only on a terminal, and removed."""
    parts: list[int] = []
    read(SIGNAL, BEGIN, END, server=web.url, progress=parts.append)
    assert sum(parts) > 8 * len(VALUES)

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return terminal

    monkeypatch.setattr(progress, "_QUIET", 0.0)
    monkeypatch.setattr(progress, "_PAUSE", 0.0)
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    shown = {}
    for kind in ("terminal", "file", "notebook"):
        terminal = kind == "terminal"
        if kind == "notebook":
            monkeypatch.setitem(sys.modules, "ipykernel", ModuleType("ipykernel"))
        stderr = Terminal()
        monkeypatch.setattr(sys, "stderr", stderr)
        read(SIGNAL, BEGIN, END, server=web.url)
        shown[kind] = stderr.getvalue()
    assert shown["file"] == ""
    for kind in ("terminal", "notebook"):
        first, *_, last, end = shown[kind].split("\r")[1:]
        assert first == "ringlog: 0.0 MB"
        assert last.isspace()
        assert end == ""
