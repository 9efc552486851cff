"""Old rows from files into tables of several servers."""

from collections import Counter
from pathlib import Path

from servers import ringlog
from sites import WHERE, Site

BEGIN = "2026-03-02T00:00"


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
        lines = [f"{BEGIN}:{second:02}Z,{second}" for second in range(30)]
        (folder / f"{table}.csv").write_text("\n".join(["time,count", *lines, ""]))
    code, said = import_files(site, folder)
    assert code == 0, said
    for table, node in WHERE.items():
        assert f"{table}: 30 rows, 30 new, 0 already stored" in said
        assert site.rows(table, node) == Counter(range(30))

    # rows for a table whose copy would be replaced by a move are refused
    with site.admin("c") as connection:
        connection.execute("insert into ringlog.moved_part (table_name, part) values ('vacuum', '')")
    (folder / "vacuum.csv").write_text(f"time,count\n{BEGIN}:40Z,40\n")
    code, said = import_files(site, folder)
    assert code == 1
    assert "table 'vacuum' is moving to this server, nothing was imported" in said
    assert site.rows("vacuum", "c") == Counter(range(30))

    site.servers["b"].die()
    code, said = import_files(site, folder)
    assert code == 1
    assert "node b: " in said
