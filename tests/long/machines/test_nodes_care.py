"""The maintenance commands of a server include its nodes, and each server has its own archive."""

import json
import os
import time
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from object_stores import object_store
from pyiceberg.catalog.rest import RestCatalog

from servers import free_port, ringlog, serving_external
from sites import WHERE, Site, client, install, put

# servers of their own, on a machine that others may use too
pytestmark = pytest.mark.timeout(900)

BEGIN = datetime(2026, 8, 3, tzinfo=UTC)
WEEKS = 3
ROWS = WEEKS * 7 * 24
SPAN = {"from": "2026-08-01T00:00:00Z", "to": "2026-09-01T00:00:00Z"}


def done(site: Site, *words: str | Path, code: int = 0) -> str:
    ran = ringlog(*words, RINGLOG_DSN=site.dsn)
    assert ran.returncode == code, ran.stdout + ran.stderr
    return ran.stdout + (ran.stderr if code else "")


def test_commands_cover_all_servers(site: Site) -> None:
    with serving_external(site.dsn, site.folder / "serve.log") as address, client(address) as cursor:
        put(cursor, "vacuum", 1)
        put(cursor, "magnets", 1)
    found = json.loads(done(site, "status", "--json", code=1).partition("\n")[0])
    assert {each["table_name"]: each["node"] for each in found["tables"]} == WHERE
    assert found["away"] == {}
    shown = done(site, "status", code=1)
    order = ["the first server:", "magnets", "node b:", "cavities", "node c:", "vacuum"]
    places = [shown.index(word) for word in order]
    assert places == sorted(places)
    for node in ("b", "c"):
        with site.admin(node) as connection:
            connection.execute(
                "select ringlog.report_ledger(%s, 's', date_trunc('hour', now()), 7, 5, 0, 2, 0, 0)",
                ["cavities" if node == "b" else "vacuum"],
            )
    lost = done(site, "report", "losses", code=1)
    # two were refused, and the acknowledged ones are not in the log
    assert lost.count("7 rows produced, 7 lost") == 2
    lost = done(site, "report", "losses", "--table", "vacuum", code=1)
    assert "cavities" not in lost
    assert "7 rows produced, 7 lost" in lost
    # an error on a node is found
    assert done(site, "verify").endswith("no errors were found\n")
    with site.admin("c") as connection:
        connection.execute("delete from log.vacuum")
        connection.execute("insert into log.vacuum (seq_no, time) values (2, '2026-11-20 11:00Z')")
    wrong = done(site, "verify", code=1)
    assert "online.vacuum: 1 rows are missing in log.vacuum" in wrong
    assert "node c: fsync is off" in done(site, "doctor", code=1)
    assert done(site, "maintain").count("node ") == 2
    # an unreachable one is named, and does not hide the others
    site.servers["c"].die()
    for words in (("status",), ("report", "losses"), ("verify",), ("maintain",), ("doctor",)):
        assert "node c cannot be reached" in done(site, *words, code=1)
    found = json.loads(done(site, "status", "--json", code=1).partition("\n")[0])
    assert {each["table_name"] for each in found["tables"]} == {"magnets", "cavities"}
    assert list(found["away"]) == ["c"]


def with_history(site: Site, where: dict[str, str | None], archive: str | None = None) -> None:
    site.write_facility(where)
    history = f'[history]\nonline = "4 weeks"\narchive = "{archive or f"{site.folder}/archive"}"\n'
    site.facility.write_text(site.facility.read_text().replace("[[node]]", f"{history}[[node]]", 1))


def fill(site: Site) -> None:
    install(site)
    for table, node in WHERE.items():
        with site.admin(node) as connection:
            connection.execute(
                f"insert into log.{table} (seq_no, time, count)"
                " select 1, %s + n * interval '1 hour', n from generate_series(0, %s) as n".encode(),
                [BEGIN, ROWS - 1],
            )
    done(site, "maintain")


def test_tables_on_nodes_are_read_signed(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    with object_store() as store:
        for name, value in store.environment.items():
            monkeypatch.setenv(name, value)
        with_history(site, WHERE, store.archive)
        fill(site)
        done(site, "archive", "now")
        done(site, "archive", "publish")
        port = free_port()
        with serving_external(site.dsn, site.folder / "serve.log", "--http", f"127.0.0.1:{port}"):
            for name in store.environment:
                monkeypatch.delenv(name)
            store.check_keys()
            catalogue = RestCatalog(
                "ringlog",
                uri=f"http://127.0.0.1:{port}/iceberg",
                credential="reader:secret",
                **{"oauth2-server-uri": f"http://127.0.0.1:{port}/iceberg/v1/oauth/tokens"},
                **{"header.X-Iceberg-Access-Delegation": "remote-signing"},
            )
            for table in WHERE:
                rows = catalogue.load_table(f"log.{table}").scan().to_arrow()
                assert sorted(rows["count"].to_pylist()) == [*range(ROWS)]


def test_each_server_has_its_own_archive(site: Site) -> None:
    with_history(site, WHERE)
    fill(site)
    port = free_port()
    http = ("--http", f"127.0.0.1:{port}")

    def values() -> dict[str, list[int]]:
        parameters = {"signal": sorted(WHERE)} | SPAN
        answer = httpx.get(
            f"http://127.0.0.1:{port}/api/v1/data", params=parameters, auth=("reader", "secret"), timeout=60
        )
        assert answer.status_code == 200, answer.text
        return {each["signal"]: [value for _, value in each["samples"]] for each in answer.json()["signals"]}

    every = {table: list(range(ROWS)) for table in WHERE}
    printed = done(site, "archive", "now")
    with serving_external(site.dsn, site.folder / "serve.log", *http):
        folder = site.folder / "archive"
        names = ["2026w32.parquet", "2026w33.parquet", "2026w34.parquet"]
        places = {"magnets": folder, "cavities": folder / "nodes" / "b", "vacuum": folder / "nodes" / "c"}
        for table, place in places.items():
            assert f"archived log.{table}_" in printed
            assert sorted(path.name for path in (place / table).iterdir()) == names
        assert values() == every
        # the files of another server are none that nobody needs
        for path in folder.rglob("*.parquet"):
            os.utime(path, (time.time() - 200_000,) * 2)
        done(site, "archive", "now")
        assert values() == every
        assert done(site, "archive", "verify").count("3 files are intact, 0 are damaged") == 3
        assert f"vacuum: 3 weeks from 2026-08-03, {ROWS} rows" in done(site, "archive", "status")
        assert "recalled vacuum/2026w33.parquet" in done(site, "recall", "vacuum", "2026-08-10", "2026-08-17")
        assert values() == every
        # a table's files move with it
        with_history(site, WHERE | {"vacuum": "b"})
        moved = done(site, "node", "move", "--facility", site.facility)
        assert f"vacuum: {7 * 24} rows of archive vacuum/2026w32.parquet copied" in moved
        assert values() == every
        done(site, "archive", "now")
        assert sorted(path.name for path in (folder / "nodes" / "b" / "vacuum").iterdir()) == names
        assert values() == every
        damaged = folder / "nodes" / "b" / "cavities" / "2026w33.parquet"
        damaged.write_bytes(damaged.read_bytes()[:-100])
        assert "1 are damaged" in done(site, "archive", "verify", code=1)
