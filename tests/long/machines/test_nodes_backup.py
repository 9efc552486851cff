"""A backup of tables on several servers, and its restore."""

import json
from collections import Counter
from pathlib import Path

import psycopg

from clusters import Cluster, cluster_in
from servers import ringlog, serving_external
from sites import WHERE, Site, client, put, start

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
