"""Archived weeks over HTTP."""

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import psycopg
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa
from psycopg.conninfo import make_conninfo

from ringlog.history.archive.archiving import archive
from ringlog.history.summaries.summarising import summarise
from ringlog.schema.facility import Column, Facility, History, Retention, Table
from ringlog.schema.installing.install import install
from ringlog.schema.relations.partitions import maintain
from ringlog.server.processes.web import Web, settings
from servers import free_port

NOW = datetime(2026, 6, 10, tzinfo=UTC)
WEEK = datetime(2026, 5, 4, tzinfo=UTC)
"""a Monday: the begin of week 19"""
ROWS = 7 * 72  # one each 20 minutes, a week
FORMS = {
    "/api/v1/data": {"signal": "t/double"},
    "/retrieval/data/getData.json": {"pv": "t/double"},
    "/retrieval/data/getData.raw": {"pv": "t/double"},
}


def conninfo_of(url: sa.URL) -> str:
    return make_conninfo(user=url.username, dbname=url.database, **dict(url.query))


@pytest.fixture
def archived(database_url: sa.URL, temporary_directory: Path) -> Iterator[tuple[httpx.Client, Path]]:
    """A client of four weeks, of which the first three are files, and the archive's folder."""
    conninfo = conninfo_of(database_url)
    folder, engine = temporary_directory / f"archive-{database_url.database}", sa.create_engine(database_url)
    table = Table("slow", 10, 1200.0, (Column("a_double", "t/double", "double"),))
    history = History(Retention(2, "week"), str(folder))
    install(engine, Facility("test", "UTC", (table,), history=history))
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute(
            "insert into weeks.slow select 1, %s + n * interval '20 minutes', sin(n)"
            " from generate_series(0, %s) as n",
            [WEEK, 4 * ROWS - 1],
        )
        maintain(engine, NOW)
    assert len([*archive(engine, conninfo, NOW, pauses=0)]) == 3
    engine.dispose()
    served = settings("127.0.0.1", free_port(), conninfo, role="daq_reader")
    with (
        Web(served).running() as web,
        httpx.Client(base_url=f"http://{web.address}", timeout=60, trust_env=False) as client,
    ):
        yield client, folder


def week(number: int) -> dict[str, str]:
    begin = WEEK + number * timedelta(weeks=1)
    return {"from": begin.isoformat(), "to": (begin + timedelta(weeks=1)).isoformat()}


@pytest.mark.long
def test_a_trend_of_files_has_the_requested_number_of_points(archived: tuple[httpx.Client, Path]) -> None:
    client, _ = archived

    def trend(points: int, span: dict[str, str]) -> dict[str, list[float]]:
        asked = {"signal": "t/double", "points": str(points)} | span
        answer = client.get("/api/v1/trend", params=asked)
        assert answer.status_code == 200, answer.text
        found: dict[str, list[float]] = answer.json()["signals"][0]
        return found

    # the rows are sin(0), sin(1), ...: 72 a day
    days = trend(7, week(0))
    assert days["n"] == [72] * 7
    assert days["max"] == [max(math.sin(72 * day + n) for n in range(72)) for day in range(7)]
    part = {"from": (WEEK + timedelta(days=1)).isoformat(), "to": (WEEK + timedelta(days=2)).isoformat()}
    assert sum(trend(24, part)["n"]) == 72
    assert len(trend(24, part)["n"]) == 24
    assert trend(100, part)["mean"] == [math.sin(72 + n) for n in range(72)]


@pytest.mark.long
def test_the_width_of_points_is_that_of_the_bins(database_url: sa.URL) -> None:
    """If most bins have no rows it is less than the distance between any two points."""
    table = Table("sparse", 10, 60.0, (Column("a_double", "t/sparse", "double"),), summaries=(600, 3600))
    conninfo, engine = conninfo_of(database_url), sa.create_engine(database_url)
    install(engine, Facility("test", "UTC", (table,)))
    engine.dispose()
    with psycopg.connect(conninfo, autocommit=True) as connection:
        # ten rows in one of every three spans of ten minutes
        connection.execute(
            "insert into weeks.sparse"
            " select 1, %s + n / 10 * interval '30 minutes' + n %% 10 * interval '1 minute', n"
            " from generate_series(0, 479) as n",
            [WEEK],
        )
        maintain(engine, NOW)
    summarise(conninfo, NOW, enough=1)
    served = settings("127.0.0.1", free_port(), conninfo, role="daq_reader")
    with (
        Web(served).running() as web,
        httpx.Client(base_url=f"http://{web.address}", timeout=60, trust_env=False) as client,
    ):
        day = {"from": WEEK.isoformat(), "to": (WEEK + timedelta(days=1)).isoformat()}
        for points, width in ((150, 600), (50, 1800), (1, 86_400)):
            asked = {"signal": "t/sparse", "points": str(points)} | day
            [found] = client.get("/api/v1/trend", params=asked).json()["signals"]
            assert found["width"] == width
            assert sum(found["n"]) == 480
            assert len(found["n"]) == (1 if points == 1 else 48)


def test_a_damaged_file_is_reported(archived: tuple[httpx.Client, Path]) -> None:
    client, folder = archived
    whole = client.get("/api/v1/data", params=FORMS["/api/v1/data"] | week(0)).json()["signals"][0]["samples"]
    assert len(whole) == ROWS
    path = folder / "slow/2026w19.parquet"
    content = path.read_bytes()
    column = pq.ParquetFile(path).metadata.row_group(0).column(2)
    flipped = bytearray(content)
    flipped[column.data_page_offset + column.total_compressed_size - 9] ^= 1
    for damaged in (content[:-1000], bytes(flipped), b""):
        path.write_bytes(damaged)
        for form, signal in FORMS.items():
            answer = client.get(form, params=signal | week(0))
            assert answer.status_code == 503, answer.text
            assert "ringlog archive verify" in answer.text
    # the other weeks can be read, and with its file so can this one
    for number in (1, 3):
        answer = client.get("/api/v1/data", params=FORMS["/api/v1/data"] | week(number))
        assert len(answer.json()["signals"][0]["samples"]) == ROWS
    path.write_bytes(content)
    again = client.get("/api/v1/data", params=FORMS["/api/v1/data"] | week(0))
    assert again.json()["signals"][0]["samples"] == whole
