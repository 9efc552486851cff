"""The maintenance commands of a server include its nodes, and each server has its own archive."""

import json
import os
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import httpx
import psycopg
import pytest
from object_stores import object_store
from pyiceberg.catalog.rest import RestCatalog

from clusters import Cluster, cluster_in
from servers import free_port, ringlog, serving_external
from sites import WHERE, Site, client, install, put, start

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
        for table, where in places.items():
            assert f"archived log.{table}_" in printed
            assert sorted(path.name for path in (where / table).iterdir()) == names
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


# --- old rows from files into tables of several servers ---

OLD = "2026-03-02T00:00"


def import_files(site: Site, folder: Path) -> tuple[int, str]:
    url = f"postgresql://writer@127.0.0.1:{site.servers[None].port}/plant"
    words = ("load", "--backfill", "--facility", site.facility, "--source", f"csv:{folder}", "--url", url)
    done = ringlog(*words, RINGLOG_PASSWORD="secret", timeout=200)
    return done.returncode, done.stdout + done.stderr


def test_each_table_gets_its_rows_on_its_server(site: Site) -> None:
    for name in ("b", "c"):
        # the installer is not a superuser, and cannot copy passwords to the nodes
        with site.admin(name) as connection:
            connection.execute("alter role writer password 'secret'")
    folder = site.folder / "old"
    folder.mkdir()
    for table in WHERE:
        lines = [f"{OLD}:{second:02}Z,{second}" for second in range(30)]
        (folder / f"{table}.csv").write_text("\n".join(["time,count", *lines, ""]))
    code, output = import_files(site, folder)
    assert code == 0, output
    for table, node in WHERE.items():
        assert f"{table}: 30 rows, 30 new, 0 already stored" in output
        assert site.rows(table, node) == Counter(range(30))

    # rows for a table whose copy would be replaced by a move are refused
    with site.admin("c") as connection:
        connection.execute("insert into ringlog.moved_part (table_name, part) values ('vacuum', '')")
    (folder / "vacuum.csv").write_text(f"time,count\n{OLD}:40Z,40\n")
    code, output = import_files(site, folder)
    assert code == 1
    assert "table 'vacuum' is moving to this server, nothing was imported" in output
    assert site.rows("vacuum", "c") == Counter(range(30))

    site.servers["b"].die()
    code, output = import_files(site, folder)
    assert code == 1
    assert "node b: " in output


# --- a backup of tables on several servers, and its restore ---

SERVERS = (None, "b", "c")


def rows_in(cluster: Cluster, table: str) -> Counter[int]:
    with psycopg.connect(cluster.conninfo("plant")) as connection:
        query = f'select count::int from log."{table}"'.encode()
        return Counter(number for (number,) in connection.execute(query).fetchall())


def copies(folder: Path, node: str | None) -> list[Path]:
    return sorted((folder / "nodes" / node if node else folder).glob("base/*"))


def test_all_servers_are_copied_and_restored(site: Site) -> None:
    folder = site.folder / "copies"
    refused = ringlog("backup", folder, RINGLOG_DSN=site.dsn)
    assert refused.returncode == 1
    assert "alter role … replication, and a line for replication in pg_hba.conf" in refused.stderr
    for name in SERVERS:
        with site.admin(name) as connection:
            connection.execute("alter role keeper replication")
    some = ("--writer", "--reader", "--tables", "cavities,vacuum")
    added = ringlog("user", "add", "some", *some, "--password-stdin", stdin="secret", RINGLOG_DSN=site.dsn)
    assert added.returncode == 0, added.stderr
    with serving_external(site.dsn, site.folder / "serve.log") as address, client(address) as cursor:
        for table in WHERE:
            put(cursor, table, 1)
        made = ringlog("backup", folder, RINGLOG_DSN=site.dsn, timeout=200)
        assert made.returncode == 0, made.stderr
        for table in WHERE:
            put(cursor, table, 2)
        site.servers["c"].die()
        partly = ringlog("backup", folder, "--keep", 1, RINGLOG_DSN=site.dsn, timeout=200)
        assert partly.returncode == 1
        assert "node c cannot be reached" in partly.stderr
        start(site.servers["c"])
    # a server that could not be copied now keeps its existing copy
    (first,), (of_b,), (of_c,) = (copies(folder, name) for name in SERVERS)
    sets = sorted((folder / "sets").iterdir())
    assert [[member["path"] for member in json.loads(file.read_text())] for file in sets] == [
        [str(first.relative_to(folder)), str(of_b.relative_to(folder))]
    ]
    checked = ringlog("verify", "--backup", folder, timeout=200)
    assert checked.stdout == f"{first}\n{of_b}\n{of_c}\nno errors were found\n"

    for (table, name), rows in zip(WHERE.items(), ([1, 2], [1, 2], [1]), strict=True):
        restored = cluster_in(site.folder / f"new_{name}")
        words = () if name is None else ("--node", name)
        made = ringlog("restore", folder, *words, "--data", restored.data, timeout=200)
        assert made.returncode == 0, made.stderr
        assert "start it with PostgreSQL 15" in made.stdout
        start(restored)
        try:
            assert rows_in(restored, table) == Counter(rows)
            with psycopg.connect(restored.conninfo("plant")) as connection:
                rights = connection.execute(
                    "select has_function_privilege('some', %s::regproc, 'execute'),"
                    " has_table_privilege('some', %s, 'select')",
                    [f"ringlog.put_{table}", f"log.{table}"],
                ).fetchone()
                assert rights == ((False, False) if name is None else (True, True))
        finally:
            restored.die()
    every = site.folder / "every"
    made = ringlog("restore", folder, "--all", "--data", every, timeout=200)
    assert made.returncode == 0, made.stderr
    assert all((every / name / "PG_VERSION").exists() for name in ("first", "nodes/b", "nodes/c"))
    again = ringlog("restore", folder, "--node", "c", "--data", every / "nodes" / "c")
    assert "exists already: restore makes a new data directory" in again.stderr
    for words, why in (
        (("--node", "d"), "has no copy of node d; it has copies of b, c"),
        (("--node", "c", "--to", "2026-11-20"), f"--to is the name of one of them, {of_c.name}"),
    ):
        refused = ringlog("restore", folder, *words, "--data", site.folder / "other")
        assert refused.returncode == 2
        assert why in refused.stderr

    (of_b / "PG_VERSION").write_text("16\n")
    checked = ringlog("verify", "--backup", folder, timeout=200)
    assert checked.returncode == 1
    assert f"{of_b / 'PG_VERSION'} differs from its checksum: this copy is damaged" in checked.stdout
    refused = ringlog("restore", folder, "--node", "b", "--data", site.folder / "other")
    assert "differs from its checksum: this copy is damaged" in refused.stderr
    assert not (site.folder / "other").exists()


def test_no_backup_is_made_of_a_table_half_way(site: Site) -> None:
    with site.admin(None) as connection:
        connection.execute(
            "insert into ringlog.move (table_name, source, target) values ('vacuum', 'c', 'b')"
        )
    refused = ringlog("backup", site.folder / "copies", RINGLOG_DSN=site.dsn)
    assert refused.returncode == 1
    assert "vacuum from node c to node b: unfinished, so its rows are on two servers" in refused.stderr
