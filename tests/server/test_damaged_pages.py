"""A damaged page stops the work on its own week only, which is named."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
from psycopg import sql

from ringlog.schema.partitions import Week
from servers import RunningServer, add_logins, ringlog, serving

TABLES = ("damaged", "sound")
COLUMNS = 'column = [{ name = "value", type = "double" }]'
WEEK = timedelta(weeks=1)


def facility(folder: Path) -> str:
    tables = (f'[[table]]\nname = "{name}"\nrows = 10\ncycle = 1.0\n{COLUMNS}\n' for name in TABLES)
    history = f'[history]\nonline = "3 weeks"\narchive = "{folder}"\n'
    return "\n".join(['timezone = "UTC"', *tables, history])


def fill(server: RunningServer, mondays: list[datetime]) -> None:
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        for table in TABLES:
            for monday in mondays:
                connection.execute(
                    sql.SQL(
                        'insert into log.{} (seq_no, "time", value)'
                        " select 1, %s + n * interval '1 minute', n from generate_series(1, 2000) as n"
                    ).format(sql.Identifier(table)),
                    [monday],
                )
                connection.execute("select ringlog.make_week(%s, %s)", [table, monday])


def damage(data: Path, file: str) -> None:
    """Overwrites bytes of the second page."""
    with (data / "postgresql-18" / file).open("r+b") as stream:
        stream.seek(8192 + 4000)
        stream.write(b"\xa5" * 64)


def test_a_damaged_week_stops_no_other(temporary_directory: Path, tmp_path: Path) -> None:
    data = temporary_directory / "damagedpage"
    archive = temporary_directory / "damagedpage-archive"
    archive.mkdir()
    archive.chmod(0o777)
    file = tmp_path / "facility.toml"
    file.write_text(facility(archive).replace("3 weeks", "99 weeks"))
    this = Week.of(datetime.now(UTC)).start
    mondays = [this - 6 * WEEK, this - 5 * WEEK]
    with serving(data, facility=file) as server:
        add_logins(server)
        fill(server, mondays)
        assert ringlog("maintain", "--data", data).returncode == 0
        place = f"log.{Week(mondays[0]).partition('damaged')}"
        with psycopg.connect(server.dsn) as connection:
            found = connection.execute("select pg_relation_filepath(%s::regclass)", [place]).fetchone()
            assert found is not None
            connection.execute("checkpoint")
    damage(data, found[0])
    file.write_text(facility(archive))
    with serving(data, facility=file) as server:
        said = ringlog("archive", "now", "--data", data)
        assert f"archive of damaged failed at {place}: " in said.stdout
        with psycopg.connect(server.dsn) as connection:
            query = "select table_name, begins, rows from ringlog.cold_week order by 1, 2"
            assert connection.execute(query).fetchall() == [
                ("damaged", mondays[1], 2000),
                ("sound", mondays[0], 2000),
                ("sound", mondays[1], 2000),
            ]
        # a late row of the damaged week, and one of the sound table
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            for table in TABLES:
                connection.execute(
                    sql.SQL("select ringlog.{}(row (2, %s, 1)::online.{})").format(
                        sql.Identifier(f"put_{table}"), sql.Identifier(table)
                    ),
                    [mondays[0] + timedelta(minutes=200, seconds=1)],
                )
        maintained = ringlog("maintain", "--data", data)
        assert "summarised" in maintained.stdout
        status = ringlog("status", "--data", data)
        assert status.returncode == 1
        assert f"archive of damaged failed at {place}: " in status.stdout
        machine = json.loads(ringlog("status", "--json", "--data", data).stdout)
        assert {(each["work"], each["table"]) for each in machine["failed"]} == {
            ("archive", "damaged"),
            ("summaries", "damaged"),
        }
        verified = ringlog("verify", "--data", data)
        assert verified.returncode == 1
        assert f"{place}: invalid page in block 1" in verified.stdout
        assert "summaries and archive" in verified.stdout
        assert "log.sound" not in verified.stdout
