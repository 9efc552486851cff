"""Parameter tables over HTTP: the rows now and at a time, their history, snapshots."""

import csv
import io
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from servers import Login

TABLE = "/api/v1/parameters/sr_mag_set"


@pytest.fixture(scope="module")
def changed(web) -> list[datetime]:
    """b1 is set, then b2, then b1 again and named; the times of these changes."""
    calls = [
        "ringlog.set_sr_mag_set(row ('b1', 131.5, true)::parameter.sr_mag_set_row, comment => 'tune 40.15')",
        "ringlog.set_sr_mag_set(row ('b2', -7, null)::parameter.sr_mag_set_row)",
        "ringlog.set_sr_mag_set(row ('b1', 132, false)::parameter.sr_mag_set_row)",
    ]
    with psycopg.connect(web.server.dsn, autocommit=True) as connection:
        times = [
            connection.execute(f"select changed from {call}".encode()).fetchall()[0][0] for call in calls
        ]
        connection.execute("select ringlog.save_snapshot('golden', 'the best orbit')")
    return times


def rows(client: httpx.Client, path: str, **given: str) -> list[dict[str, Any]]:
    answer = client.get(path, params=given)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_tables_and_columns(anyone: httpx.Client) -> None:
    (table,) = rows(anyone, "/api/v1/parameters")
    assert table["table"] == "sr_mag_set"
    assert table["columns"][:2] == [
        {
            "column": "device",
            "key": True,
            "type": "varchar(20)",
            "unit": "",
            "description": "power supply",
            "limits": None,
        },
        {
            "column": "current",
            "key": False,
            "type": "double",
            "unit": "A",
            "description": "",
            "limits": [-500, 500],
        },
    ]


def test_present_rows(anyone: httpx.Client, changed: list[datetime]) -> None:
    first, second = rows(anyone, TABLE)
    assert (first["device"], first["current"], first["ramps"], first["version"]) == ("b1", 132, False, 2)
    assert datetime.fromisoformat(first["changed"]) == changed[2]
    assert (second["device"], second["current"], second["ramps"]) == ("b2", -7, None)


def test_rows_at_a_time(anyone: httpx.Client, changed: list[datetime]) -> None:
    then = changed[1] - timedelta(microseconds=1)
    (only,) = rows(anyone, TABLE, time=then.astimezone(UTC).isoformat())
    assert (only["device"], only["current"], only["ramps"], only["version"]) == ("b1", 131.5, True, 1)
    assert rows(anyone, TABLE, time="2020-01-01") == []
    assert [row["current"] for row in rows(anyone, TABLE, time="now")] == [132, -7]


def test_every_version(anyone: httpx.Client, changed: list[datetime]) -> None:
    versions = rows(anyone, f"{TABLE}/history")
    assert [(row["device"], row["current"]) for row in versions] == [("b1", 131.5), ("b2", -7), ("b1", 132)]
    assert versions[0]["comment"] == "tune 40.15"
    assert datetime.fromisoformat(versions[0]["valid_to"]) == changed[2]
    assert versions[2]["valid_to"] is None
    early = rows(anyone, f"{TABLE}/history", to=changed[1].astimezone(UTC).isoformat())
    assert [row["current"] for row in early] == [131.5]


@pytest.mark.usefixtures("changed")
def test_as_tables(anyone: httpx.Client) -> None:
    expected = [row["current"] for row in rows(anyone, f"{TABLE}/history")]
    given = {"format": "arrow"}
    arrow = pa.ipc.open_stream(anyone.get(f"{TABLE}/history", params=given).content).read_all()
    assert arrow["current"].to_pylist() == expected
    given = {"format": "parquet"}
    assert pq.read_table(io.BytesIO(anyone.get(TABLE, params=given).content))["device"].to_pylist() == [
        "b1",
        "b2",
    ]
    given = {"format": "csv"}
    lines = [*csv.DictReader(io.StringIO(anyone.get(f"{TABLE}/history", params=given).text))]
    assert [float(line["current"]) for line in lines] == expected
    # a version that is valid still has no end
    assert [bool(line["valid_to"]) for line in lines] == [True, False, False]


@pytest.mark.usefixtures("changed")
def test_snapshots(anyone: httpx.Client) -> None:
    (snapshot,) = rows(anyone, "/api/v1/snapshots")
    assert (snapshot["name"], snapshot["comment"]) == ("golden", "the best orbit")


def test_missing_objects(anyone: httpx.Client) -> None:
    for path in ("/api/v1/parameters/sr_rf", "/api/v1/parameters/sr_rf/history", "/api/v1/parameters/%00"):
        assert anyone.get(path).status_code == 404, path
    assert anyone.get(TABLE, params={"time": "soon"}).status_code == 400
    assert anyone.get(TABLE, params={"format": "xml"}).status_code == 400


def test_a_login_without_the_right_is_refused(web) -> None:
    with psycopg.connect(web.server.dsn, autocommit=True) as connection:
        connection.execute("create role stranger login password 'strange'")
        try:
            with web.client(Login("stranger", "strange")) as client:
                assert client.get(TABLE).status_code == 403
        finally:
            connection.execute("drop role stranger")
