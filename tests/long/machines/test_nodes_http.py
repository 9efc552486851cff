"""Signals of tables on several servers, read over HTTP at one address."""

import io
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import httpx
import pyarrow as pa
import pymssql
import pytest
from psycopg.conninfo import make_conninfo

from ringlog.clients.reading import ReadRefused, read
from servers import RINGLOG, free_port, ringlog, serving_external
from sites import NOON, WHERE, Site, client, install, put, start
from waiting import wait_until

NAMES = sorted(WHERE)
SPAN = {"from": NOON.isoformat(), "to": (NOON + timedelta(minutes=1)).isoformat()}


@contextmanager
def web(site: Site, *options: str) -> Iterator[tuple[tuple[str, int], httpx.Client]]:
    """`ringlog serve --http` with five rows in each table: the gateway's address, and the reader's client."""
    port = free_port()
    options = ("--http", f"127.0.0.1:{port}", *options)
    with (
        serving_external(site.dsn, site.folder / "serve.log", *options) as address,
        httpx.Client(
            base_url=f"http://127.0.0.1:{port}", auth=("reader", "secret"), timeout=60, trust_env=False
        ) as reader,
    ):
        with client(address) as cursor:
            for number in range(1, 6):
                for index, table in enumerate(NAMES):
                    put(cursor, table, number + 10 * index)
        yield address, reader


def answered(reader: httpx.Client, path: str, **parameters: object):
    answer = reader.get(path, params=parameters)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_signals_of_all_servers_are_read_at_one_address(site: Site) -> None:
    with web(site, "--http-role", "reader") as (_, reader):
        found = answered(reader, "/api/v1/signals", search="")
        assert sorted(each["signal"] for each in found) == NAMES
        assert answered(reader, "/retrieval/bpl/getMatchingPVs", pv="*") == NAMES
        data = answered(reader, "/api/v1/data", signal=NAMES, **SPAN)["signals"]
        assert [(each["signal"], [value for _, value in each["samples"]]) for each in data] == [
            ("cavities", [1, 2, 3, 4, 5]),
            ("magnets", [11, 12, 13, 14, 15]),
            ("vacuum", [21, 22, 23, 24, 25]),
        ]
        trends = answered(reader, "/api/v1/trend", signal=NAMES, points=1, **SPAN)["signals"]
        assert [(each["signal"], each["n"], each["min"], each["max"], each["mean"]) for each in trends] == [
            ("cavities", [5], [1], [5], [3]),
            ("magnets", [5], [11], [15], [13]),
            ("vacuum", [5], [21], [25], [23]),
        ]
        latest = answered(reader, "/api/v1/latest", signal=NAMES)
        assert [each["value"] for each in latest] == [5, 15, 25]
        when = (NOON + timedelta(seconds=23)).isoformat()
        newest = answered(reader, "/api/v1/at", signal=NAMES, time=when)["signals"]
        assert [[value for _, value in each["samples"]] for each in newest] == [[5], [15], [23]]
        rows = reader.get("/api/v1/rows", params={"table": "vacuum", "format": "csv"} | SPAN)
        assert rows.text.splitlines()[:2] == ["time,seq_no,count", "2026-11-20T12:00:21.000000Z,21,21"]
        described = answered(reader, "/api/v1/signals/vacuum")
        assert [location["table"] for location in described["places"]] == ["vacuum"]
        # from the node: the first server lacks the cycle of its tables
        status = answered(reader, "/mgmt/bpl/getPVStatus", pv="vacuum")
        assert [(each["status"], each["samplingPeriod"]) for each in status] == [("Being archived", "0.1")]
        both = answered(reader, "/retrieval/data/getDataForPVs.json", pv=["vacuum", "magnets"], **SPAN)
        assert [[event["val"] for event in each["data"]] for each in both] == [
            [21, 22, 23, 24, 25],
            [11, 12, 13, 14, 15],
        ]
        tables = answered(reader, "/api/v1/tables")
        assert tables["away"] == {}
        assert [(each["table_name"], each["node"]) for each in tables["tables"]] == sorted(WHERE.items())
        newest = (NOON + timedelta(seconds=25)).strftime("%Y-%m-%dT%H:%M:%S+00:00")
        assert tables["tables"][2]["newest"] == newest
        logs = answered(reader, "/api/v1/disk")["logs"]
        assert sorted(log["table_name"] for log in logs) == NAMES
        # as read by programs, and without a login
        url = f"http://reader@{reader.base_url.host}:{reader.base_url.port}"
        table = read(NAMES, SPAN["from"], SPAN["to"], server=url, password="secret")
        assert table["value"].to_pylist() == [*range(1, 6), *range(11, 16), *range(21, 26)]
        open_to_all = httpx.get(
            f"{reader.base_url}/api/v1/data", params={"signal": NAMES, "format": "arrow"} | SPAN, timeout=60
        )
        assert pa.ipc.open_stream(io.BytesIO(open_to_all.content)).read_all().equals(table)
        refused = httpx.get(
            f"{reader.base_url}/api/v1/data",
            params={"signal": "vacuum"} | SPAN,
            auth=("reader", "wrong"),
            timeout=60,
        )
        assert refused.status_code == 401


def test_events_and_losses_are_of_all_servers(site: Site) -> None:
    with web(site) as (_, reader):
        for node in (None, "c"):
            with site.admin(node) as connection:
                connection.execute(
                    "insert into ringlog.event (table_name, spool, number, time, kind, message)"
                    " values (%s, 's', 1, now(), 'gap', '')",
                    ["vacuum" if node else "magnets"],
                )
                connection.execute(
                    "select ringlog.report_ledger(%s, 's', date_trunc('hour', now()), 7, 7, 0, 0, 0, 0)",
                    ["vacuum" if node else "magnets"],
                )
        found = answered(reader, "/api/v1/events")
        assert [event["table_name"] for event in found] == ["vacuum", "magnets"]
        assert [event["table_name"] for event in answered(reader, "/api/v1/events", limit=1)] == ["vacuum"]
        assert [event["table_name"] for event in answered(reader, "/api/v1/events", table="magnets")] == [
            "magnets"
        ]
        books = answered(reader, "/api/v1/losses")
        assert [(book["table_name"], book["produced"]) for book in books] == [("magnets", 7), ("vacuum", 7)]
        site.servers["c"].die()
        answer = reader.get("/api/v1/losses")
        assert (answer.status_code, answer.json()["error"]) == (
            503,
            "node c: PostgreSQL does not answer: try again later",
        )
        assert len(answered(reader, "/api/v1/losses", table="magnets")) == 1


def test_an_unreachable_node_is_named_and_others_are_read(site: Site) -> None:
    with web(site) as (_, reader):
        site.servers["c"].die()
        answer = reader.get("/api/v1/data", params={"signal": NAMES} | SPAN)
        words = "node c: PostgreSQL does not answer: try again later"
        assert (answer.status_code, answer.json()["error"]) == (503, words)
        data = answered(reader, "/api/v1/data", signal=["magnets", "cavities"], **SPAN)["signals"]
        assert [len(each["samples"]) for each in data] == [5, 5]
        tables = answered(reader, "/api/v1/tables")
        assert tables["away"] == {"c": words}
        assert [each["table_name"] for each in tables["tables"]] == ["cavities", "magnets"]
        url = f"http://reader@{reader.base_url.host}:{reader.base_url.port}"
        with pytest.raises(ReadRefused, match="node c: PostgreSQL does not answer"):
            read("vacuum", SPAN["from"], SPAN["to"], server=url, password="secret")
        start(site.servers["c"])
        data = answered(reader, "/api/v1/data", signal=NAMES, **SPAN)["signals"]
        assert [len(each["samples"]) for each in data] == [5, 5, 5]


def test_a_signal_that_has_been_on_two_servers_is_read_from_both(site: Site) -> None:
    def with_pressure(signal_of: dict[str, str]) -> None:
        site.write_facility(WHERE)
        text = site.facility.read_text()
        for table, signal in signal_of.items():
            before = f'signal = "{table}"\ntype = "int"\n'
            column = f'[[table.column]]\nname = "pressure"\nsignal = "{signal}"\ntype = "int"\n'
            text = text.replace(before, before + column)
        site.facility.write_text(text)
        install(site)

    with_pressure({"magnets": "pressure"})
    with web(site) as (address, reader), client(address) as cursor:

        def store(table: str, number: int) -> None:
            cursor.callproc(f"put_{table}", (number, NOON + timedelta(seconds=number), number, number))

        store("magnets", 31)
        with_pressure({"magnets": "pressure_before", "vacuum": "pressure"})

        def is_taken() -> bool:
            try:
                store("vacuum", 32)
            except pymssql.Error:
                return False
            return True

        wait_until(is_taken)
        data = answered(reader, "/api/v1/data", signal="pressure", **SPAN)["signals"]
        assert [value for _, value in data[0]["samples"] if value] == [31, 32]
        trends = answered(reader, "/api/v1/trend", signal="pressure", points=1, **SPAN)["signals"]
        assert (trends[0]["n"], trends[0]["min"], trends[0]["max"]) == ([2], [31], [32])
        (newest,) = answered(reader, "/api/v1/at", signal="pressure")["signals"]
        assert newest["samples"][0][1] == 32
        # rows 21 to 25 of vacuum have no reading of it, nor have 11 to 15 of magnets
        for seconds, values in (31.5, [31]), (30.5, [None]), (-30, []):
            when = (NOON + timedelta(seconds=seconds)).isoformat()
            (newest,) = answered(reader, "/api/v1/at", signal="pressure", time=when)["signals"]
            assert [value for _, value in newest["samples"]] == values
        places = answered(reader, "/api/v1/signals/pressure")["places"]
        assert [location["table"] for location in places] == ["magnets", "vacuum"]


def test_a_moving_table_is_read_continuously(site: Site) -> None:
    with web(site) as (_, reader):
        expected = answered(reader, "/api/v1/data", signal=NAMES, **SPAN)
        # a node that the server learns of while it runs
        site.add("d")
        site.write_facility({"magnets": "d", "cavities": "d", "vacuum": "c"})
        moved = ringlog("node", "move", "--facility", site.facility, RINGLOG_DSN=site.dsn)
        assert moved.returncode == 0, moved.stderr

        def status_of_data() -> int:
            return reader.get("/api/v1/data", params={"signal": NAMES} | SPAN).status_code

        # the installer is not a superuser, and cannot read passwords; until then the server may not know the
        # node
        wait_until(lambda: status_of_data() == 403)
        known = ringlog("user", "passwd", "reader", "--password-stdin", stdin="secret", RINGLOG_DSN=site.dsn)
        assert known.returncode == 0, known.stderr
        assert status_of_data() == 200
        places = {each["table_name"]: each["node"] for each in answered(reader, "/api/v1/tables")["tables"]}
        assert places == {"magnets": "d", "cavities": "d", "vacuum": "c"}
        found = answered(reader, "/api/v1/data", signal=NAMES, **SPAN)
        samples = [[each["signal"], each["samples"]] for each in found["signals"]]
        assert samples == [[each["signal"], each["samples"]] for each in expected["signals"]]


@contextmanager
def web_alone(dsn: str) -> Iterator[httpx.Client]:
    """`ringlog web` with this connection string: the reader's client."""
    command = [RINGLOG, "web", "--http", "127.0.0.1:0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=os.environ | {"RINGLOG_DSN": dsn}
    ) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip().removeprefix("HTTP on ")
            with httpx.Client(base_url=url, auth=("reader", "secret"), timeout=60, trust_env=False) as reader:
                yield reader
        finally:
            process.terminate()


def test_a_separate_web_server_reads_nodes_by_the_administrators_connection_string(site: Site) -> None:
    with (site.folder / "passwords").open("a") as file:
        file.write("*:*:*:reader:secret\n")
    with web_alone(site.dsn) as reader:
        answered(reader, "/api/v1/latest", signal=NAMES)
    with web_alone(make_conninfo(site.dsn, user="reader")) as reader:
        answered(reader, "/api/v1/latest", signal="magnets")
        answer = reader.get("/api/v1/latest", params={"signal": "vacuum"})
        assert answer.status_code == 503
        assert "node c is not known here" in answer.json()["error"]
