"""A damaged page stops work only on its own week, which is named."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from ringlog.clients.address import Address
from ringlog.clients.figures import Counts
from ringlog.clients.reconnecting import Interrupted, ReconnectingConnection
from ringlog.schema.access.rights import Held
from ringlog.schema.relations.partitions import Week
from ringlog.server.logins import Right, add_login
from servers import RunningServer, ringlog, serving
from waiting import wait_until

TABLES = ("damaged", "sound")
COLUMNS = 'column = [{ name = "value", type = "double" }]'
WEEK = timedelta(weeks=1)
HOUR = timedelta(hours=1)


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


def damage(data: Path, file: str, page: int = 1) -> None:
    """Overwrites bytes of a page."""
    with (data / "postgresql-18" / file).open("r+b") as stream:
        stream.seek(page * 8192 + 4000, os.SEEK_SET if page >= 0 else os.SEEK_END)
        stream.write(b"\xa5" * 64)


@pytest.mark.long
def test_a_damaged_week_affects_no_other(temporary_directory: Path, tmp_path: Path) -> None:
    data = temporary_directory / "damagedpage"
    archive = temporary_directory / "damagedpage-archive"
    archive.mkdir()
    archive.chmod(0o777)
    file = tmp_path / "facility.toml"
    file.write_text(facility(archive).replace("3 weeks", "99 weeks"))
    this = Week.of(datetime.now(UTC)).start
    mondays = [this - 6 * WEEK, this - 5 * WEEK]
    with serving(data, facility=file) as server:
        fill(server, mondays)
        assert ringlog("maintain", "--data", data).returncode == 0
        partition = f"log.{Week(mondays[0]).partition('damaged')}"
        with psycopg.connect(server.dsn) as connection:
            found = connection.execute("select pg_relation_filepath(%s::regclass)", [partition]).fetchone()
            assert found is not None
            connection.execute("checkpoint")
    damage(data, found[0])
    file.write_text(facility(archive))
    with serving(data, facility=file) as server:
        output = ringlog("archive", "now", "--data", data)
        assert f"archive of damaged failed at {partition}: " in output.stdout
        with psycopg.connect(server.dsn) as connection:
            query = "select table_name, begins, rows from ringlog.cold_week order by 1, 2"
            assert connection.execute(query).fetchall() == [
                ("damaged", mondays[1], 2000),
                ("sound", mondays[0], 2000),
                ("sound", mondays[1], 2000),
            ]
            # only the closed rows of the damaged week remain
            blocks = "select begins, rows from closed.damaged where column_name = 'time' and begins < %s"
            packed = connection.execute(blocks, [mondays[1]]).fetchall()
            assert sum(rows for _, rows in packed) == 2000
            assert "closed.damaged" not in ringlog("verify", "--data", data).stdout
            assert connection.execute(blocks, [mondays[1]]).fetchall() == packed
        # a late row of the damaged week and one of another week, and the same of the sound table
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            for table in TABLES:
                for time in (mondays[0] + timedelta(minutes=200, seconds=1), datetime.now(UTC) - 2 * HOUR):
                    connection.execute(
                        sql.SQL("select ringlog.{}(row (2, %s, 1)::online.{})").format(
                            sql.Identifier(f"put_{table}"), sql.Identifier(table)
                        ),
                        [time],
                    )
        ringlog("maintain", "--data", data)
        # by this or by the server's own round; a later week of the damaged table too
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            marks = "select distinct table_name, time < %s from ringlog.summary_mark"
            wait_until(lambda: connection.execute(marks, [mondays[1]]).fetchall() == [("damaged", True)])
        status = ringlog("status", "--data", data)
        assert status.returncode == 1
        assert f"archive of damaged failed at {partition}: " in status.stdout
        machine = json.loads(ringlog("status", "--json", "--data", data).stdout)
        assert {(each["work"], each["table"]) for each in machine["failed"]} == {
            ("archive", "damaged"),
            ("summaries", "damaged"),
        }
        verified = ringlog("verify", "--data", data)
        assert verified.returncode == 1
        assert f"{partition}: invalid page in block 1" in verified.stdout
        assert "summaries and archive" in verified.stdout
        assert "log.sound" not in verified.stdout


RING = 600
RINGS = ("rung", "direct")
START = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=1)


def damage_rings(folder: Path, tmp_path: Path, part: str) -> tuple[Path, Path]:
    """The data and the facility file of a server whose two rings, or their indexes of this name, have a
    damaged page; the log has all rows."""
    file = tmp_path / "rings.toml"
    tables = (f'[[table]]\nname = "{name}"\nrows = {RING}\ncycle = 1.0\n{COLUMNS}\n' for name in RINGS)
    file.write_text("\n".join(['timezone = "UTC"', *tables]))
    data = folder / tmp_path.name
    files = []
    with serving(data, facility=file) as server, psycopg.connect(server.dsn, autocommit=True) as connection:
        for name in RINGS:
            connection.execute(
                sql.SQL(
                    "select ringlog.{}(row (n, %s + n * interval '1 second', n)::online.{})"
                    " from generate_series(1, %s) as n"
                ).format(sql.Identifier(f"put_{name}"), sql.Identifier(name)),
                [START, RING],
            )
            files += connection.execute(
                "select pg_relation_filepath(%s::regclass)", [f"online.{name}{part}"]
            ).fetchall()
        connection.execute("checkpoint")
    for (path,) in files:
        # the first page of an index is read by all; the last ones of a ring have its rows
        damage(data, path, 0 if part else -2)
    return data, file


@contextmanager
def damaged_rings(folder: Path, tmp_path: Path, part: str) -> Iterator[RunningServer]:
    """A server with such data."""
    data, file = damage_rings(folder, tmp_path, part)
    with serving(data, facility=file) as server:
        yield server


def files_of_indexes(server: RunningServer) -> set[str]:
    with psycopg.connect(server.dsn) as connection:
        query = (
            "select pg_relation_filepath(indexrelid) from pg_index where indrelid::regclass::text = any(%s)"
        )
        return {path for (path,) in connection.execute(query, [[f"online.{name}" for name in RINGS]])}


def damages(server: RunningServer) -> list[tuple[str, str]]:
    with psycopg.connect(server.dsn) as connection:
        query = "select table_name, message from ringlog.event where kind = 'damaged'"
        return connection.execute(query).fetchall()


def ring_of(server: RunningServer, name: str) -> list[tuple[int, datetime, float]]:
    with psycopg.connect(server.dsn) as connection:
        query = sql.SQL("select seq_no, time, value from online.{} order by 1").format(sql.Identifier(name))
        return connection.execute(query).fetchall()


@pytest.mark.long
def test_a_damaged_ring_stops_no_writer(temporary_directory: Path, tmp_path: Path) -> None:
    # an index, which housekeeping does not look at
    with damaged_rings(temporary_directory, tmp_path, "_time_idx") as server:
        later = START + timedelta(seconds=RING)
        rows = [(seq_no, later + timedelta(seconds=seq_no), float(-seq_no)) for seq_no in range(1, RING + 1)]
        # by the gateway, which knows the call by its second row on, with a login of some tables
        add_login(server.dsn, "some", [Right.WRITER], "secret", tables=Held(("rung",)))
        with server.connect("some", "secret") as client, client.cursor() as cursor:
            for seq_no, at, value in rows:
                cursor.callproc("put_rung", (seq_no, f"{at:%Y-%m-%d %H:%M:%S}", value))
        # by a writer without one
        address = Address.parse(f"postgresql://{server.writer.user}@127.0.0.1:{server.postgres_port}/ringlog")
        connection = ReconnectingConnection(address, server.writer.password, Counts(), lambda _: None)
        repeated = 0
        for row in rows:
            try:
                connection.attempt("put_direct", *row)
            except Interrupted:
                repeated += 1
                connection.attempt("put_direct", *row)
        connection.close()
        # or the readers of the newest rows after a start have found the damage before
        assert repeated <= 1
        for name in RINGS:
            assert ring_of(server, name) == rows
        assert {name for name, *_ in damages(server)} == {*RINGS}
        output = [words for _, words in damages(server)]
        assert all("has new files without 0 of its rows" in words for words in output), output
        # pages of other tables, and undamaged ones, are left unchanged
        with psycopg.connect(server.dsn_of(server.writer)) as writer:
            for words in ("invalid page in block 1 of relation base/1/1259", "anything"):
                assert writer.execute("select ringlog.mend_ring(%s)", [words]).fetchone() == (False,)


@pytest.mark.long
def test_a_ring_gets_its_rows_back(temporary_directory: Path, tmp_path: Path) -> None:
    with damaged_rings(temporary_directory, tmp_path, "") as server:
        # by housekeeping
        wait_until(lambda: len(damages(server)) == len(RINGS))
        status = ringlog("status", "--data", server.data)
        assert status.returncode == 1
        for name in RINGS:
            assert f"online.{name} was damaged (" in status.stdout
            assert f"`ringlog refill {name}` makes them again from the log" in status.stdout
        whole = [(seq_no, START + timedelta(seconds=seq_no), seq_no) for seq_no in range(1, RING + 1)]
        empty = [seq_no for seq_no, at, _ in ring_of(server, "rung") if at is None]
        assert 10 < len(empty) < RING
        assert [row for row in ring_of(server, "rung") if row[1]] == [
            row for row in whole if row[0] not in empty
        ]
        # a row stored since is newer
        newer = (empty[0], START + timedelta(seconds=RING + 1), -1.0)
        server.sql("select ringlog.put_rung(row (%s, %s, %s)::online.rung)", newer, login=server.writer)
        whole[newer[0] - 1] = newer
        before = files_of_indexes(server)
        for name, made in (("rung", len(empty) - 1), ("direct", len(empty))):
            output = ringlog("refill", name, "--data", server.data)
            assert output.stdout == f"ring {name}: {made} rows from the log, 0 are empty\n", output
        assert ring_of(server, "rung") == whole
        # their pages may be damaged where no call has looked yet
        assert not before & files_of_indexes(server)
        assert "was damaged" not in ringlog("status", "--data", server.data).stdout
        assert "online." not in ringlog("verify", "--data", server.data).stdout
        refused = ringlog("refill", "nothing", "--data", server.data)
        assert refused.returncode == 2
        assert "there is no table 'nothing'" in refused.stderr


@pytest.mark.long
def test_tables_with_a_damaged_ring_can_be_changed(temporary_directory: Path, tmp_path: Path) -> None:
    """No call has found the damage before."""
    data, file = damage_rings(temporary_directory, tmp_path, "")
    more = COLUMNS.replace("]", ', { name = "more", type = "real" }]')
    file.write_text(file.read_text().replace(COLUMNS, more))
    changed = ringlog("init", "--facility", file, "--data", data)
    assert changed.returncode == 0, changed.stderr
    with serving(data, facility=file) as server:
        assert {name for name, _ in damages(server)} == {*RINGS}
