"""A cluster of PostgreSQL 16 is upgraded to 18 with every row; the old one remains until it is dropped."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import psycopg
import pytest
import sqlalchemy as sa
from psycopg import sql
from psycopg.conninfo import make_conninfo

from ringlog.schema.facility import Column, Facility, Table
from ringlog.schema.installing.install import install
from ringlog.server.embedded import settings
from ringlog.server.embedded.account import account_for
from ringlog.server.embedded.postgres import Postgres
from ringlog.server.embedded.programs import programs_for
from servers import RINGLOG, free_port, ringlog, serving, sqlalchemy_url
from waiting import PATIENCE, is_alive, once, wait_until

pytestmark = pytest.mark.long


class OldCluster:
    """The data directory of a ringlog with PostgreSQL 16."""

    def __init__(self, data: Path) -> None:
        self.postgres = Postgres(data)
        self.postgres.prepare()
        self.account = account_for(data)
        self.programs = programs_for(self.account, 16)
        self.folder = data / "postgresql-16"
        command = [str(self.programs / "initdb"), "--pgdata", str(self.folder), "--username", "postgres"]
        command += ["--auth-local=peer", "--encoding=UTF8", "--locale=C", "--data-checksums"]
        self.account.run(command, cwd=data)
        text = settings.settings_text(
            memory=512 * settings.MiB, disk=settings.GiB, port=free_port(), socket=self.postgres.socket
        )
        with self.account.acting():
            self.postgres.socket.mkdir(mode=0o700)
            (self.folder / "pg_hba.conf").write_text(settings.HBA_TEXT)
            (self.folder / "pg_ident.conf").write_text(settings.ident_text(self.account.name))
            (self.folder / "conf.d").mkdir()
            (self.folder / "conf.d" / settings.GENERATED).write_text(text)
            (self.folder / "conf.d" / settings.OPERATOR).write_text("work_mem = '7MB'\n")
            with (self.folder / "postgresql.conf").open("a") as file:
                file.write("\ninclude_dir = 'conf.d'\n")

    @contextmanager
    def running(self, *, stop: str = "fast") -> Iterator[str]:
        """Its server; yields the connection string of the database `postgres`."""
        control = [str(self.programs / "pg_ctl"), "-D", str(self.folder), "-w", "-t", f"{PATIENCE:.0f}"]
        self.account.run([*control, "-l", str(self.folder / "start.log"), "start"], cwd=self.folder)
        port = (self.folder / "postmaster.pid").read_text().splitlines()[3]
        try:
            yield make_conninfo(host=str(self.postgres.socket), port=port, dbname="postgres", user="postgres")
        finally:
            self.account.run([*control, "-m", stop, "stop"], cwd=self.folder)


def counts(conninfo: str) -> dict[str, int]:
    """The rows of each table, a partitioned one as a whole, of every schema except the system's."""
    with psycopg.connect(conninfo) as connection:
        names = connection.execute(
            "select relnamespace::regnamespace::text, relname from pg_class where relkind in ('r', 'p')"
            " and not relispartition"
            " and relnamespace::regnamespace::text not in ('pg_catalog', 'information_schema')"
        ).fetchall()
        found = {}
        for schema, name in names:
            query = sql.SQL("select count(*) from {}").format(sql.Identifier(schema, name))
            ((found[f"{schema}.{name}"],),) = connection.execute(query).fetchall()
        return found


@contextmanager
def upgrading(data: Path) -> Iterator[psutil.Popen]:
    """A `ringlog upgrade` with exclusive use of the directory."""
    with psutil.Popen([RINGLOG, "upgrade", "--data", str(data)], stdout=subprocess.DEVNULL) as command:
        wait_until(lambda: f'"pid": {command.pid},' in (data / "serving").read_text())
        yield command


def kill_at(program: str, data: Path) -> None:
    """Kills a `ringlog upgrade` while it runs this program, which continues."""
    with upgrading(data) as command:

        def runs() -> bool:
            assert command.poll() is None, f"it has ended without {program}"
            with suppress(psutil.NoSuchProcess):
                return any(child.name() == program for child in command.children(recursive=True))
            return False

        wait_until(runs)
        command.kill()


def kill_while_initdb_writes(data: Path) -> psutil.Process:
    """Kills a `ringlog upgrade`, and stops the program that its initdb is running; returns that."""
    with upgrading(data) as command:

        def writing() -> psutil.Process | None:
            assert command.poll() is None, "it has ended without initdb"
            with suppress(psutil.NoSuchProcess):
                for child in command.children(recursive=True):
                    if child.name() == "postgres" and {"--boot", "--single"} & {*child.cmdline()}:
                        child.suspend()
                        return child
            return None

        process = wait_until(writing)
        assert process is not None
        command.kill()
        return process


SR_RF = Table("sr_rf", 10, 1.0, (Column("power", "sr_rf/power", "real"), Column("arcs", "sr_rf/arcs", "int")))


@pytest.fixture
def old(data: Path) -> OldCluster:
    return OldCluster(data)


# three clusters are started, dumped and restored
@pytest.mark.long
@pytest.mark.timeout(900)
def test_every_row_is_present_afterwards(old: OldCluster, data: Path) -> None:
    with old.running(stop="immediate") as conninfo:  # the state after a crash
        with psycopg.connect(conninfo, autocommit=True) as connection:
            connection.execute("create database ringlog")
            connection.execute("alter system set archive_command = 'false'")
            connection.execute("alter system set work_mem = '9MB'")
        database = make_conninfo(conninfo, dbname="ringlog")
        engine = sa.create_engine(sqlalchemy_url(database))
        # objects that an older ringlog may lack: the start creates them
        install(engine, Facility("small", "UTC", (SR_RF,)))
        engine.dispose()
        with psycopg.connect(database) as connection:
            connection.execute(
                "select ringlog.put_sr_rf("
                "row ((n - 1) % 10 + 1, now() - n * interval '1 hour', n, n)::online.sr_rf)"
                " from generate_series(1, 2000) as n"
            )
            connection.execute(
                "insert into ringlog.archive_owner select 'a', 'token', null, system_identifier::text, oid"
                " from pg_control_system(), pg_database where datname = current_database()"
            )
        before = counts(database)
    assert before["weeks.sr_rf"] == 2000
    early = ringlog("upgrade", "--delete-old", "--data", data)
    assert early.returncode == 2
    assert "is the only cluster" in early.stderr
    writing = kill_while_initdb_writes(data)
    for program in ("pg_ctl", "initdb", "pg_restore", "vacuumdb"):
        kill_at(program, data)
    assert not is_alive(writing.pid)
    log = data.with_name("data.stderr")
    with upgrading(data) as command:
        command.suspend()
        with (
            once(lambda: log.exists() and "Waiting until it ends" in log.read_text(), command.resume),
            serving(data, "--pg-port", str(free_port()), facility=None) as server,
        ):
            after = counts(server.dsn)
            assert command.wait() == 0
    assert f"process {command.pid} (ringlog upgrade --data {data}, since " in log.read_text()
    assert sorted(entry.name for entry in data.glob("*upgrad*")) == []
    assert (data / "postgresql-16" / "PG_VERSION").read_text() == "16\n"
    again = ringlog("upgrade", "--data", data)
    assert again.returncode == 2
    assert "exists already" in again.stderr
    with serving(data, facility=None) as server:
        assert {name: rows for name, rows in after.items() if name in before} == before | {
            # created anew at the start
            "ringlog.procedure": after["ringlog.procedure"]
        }
        with psycopg.connect(server.dsn) as connection:
            assert connection.info.server_version // 10000 == 18
            settled = "select current_setting('work_mem'), current_setting('archive_command')"
            assert connection.execute(settled).fetchone() == ("9MB", "/bin/true")
            ours = (
                "select o.system_identifier = c.system_identifier::text and o.database = d.oid::bigint"
                " from ringlog.archive_owner o, pg_control_system() c, pg_database d"
                " where datname = current_database()"
            )
            assert connection.execute(ours).fetchone() == (True,)
            connection.execute("select ringlog.put_sr_rf(row (1, now(), 1, 1)::online.sr_rf)")
        checked = ringlog("verify", "--data", data)
        assert checked.returncode == 0, checked.stdout
    gone = ringlog("upgrade", "--delete-old", "--data", data)
    assert gone.returncode == 0, gone.stderr
    assert not (data / "postgresql-16").exists()


def test_an_obstacle_is_named_and_nothing_changed(old: OldCluster, data: Path) -> None:
    with old.running() as conninfo, psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute("create database closed with allow_connections false")
    served = ringlog("serve", "--data", data)
    assert served.returncode == 1
    assert "upgrade it with ringlog upgrade" in served.stderr
    refused = ringlog("upgrade", "--check", "--data", data, timeout=300)
    assert refused.returncode == 1
    assert "closed" in refused.stderr, refused.stderr
    assert "nothing is changed" in refused.stderr
    assert sorted(entry.name for entry in data.glob("*")) == ["postgresql-16", "served", "serving", "socket"]
    with old.running() as conninfo, psycopg.connect(conninfo) as connection:
        assert connection.info.server_version // 10000 == 16
    wrong = ringlog("upgrade", "--data", data, "--old-programs", programs_for(old.account))
    assert wrong.returncode == 1
    assert "has PostgreSQL 18" in wrong.stderr
    # a distribution's PostgreSQL is used as the new one, too
    needless = ringlog("upgrade", "--check", "--data", data, "--postgres", str(old.programs))
    assert needless.returncode == 2
    assert "needs no upgrade; --postgres packaged is PostgreSQL 18" in needless.stderr


def test_a_served_directory_is_left_alone(data: Path) -> None:
    with serving(data):
        refused = ringlog("upgrade", "--data", data)
    assert refused.returncode == 1
    assert "serves" in refused.stderr
    needless = ringlog("upgrade", "--data", data)
    assert needless.returncode == 2
    assert "needs no upgrade" in needless.stderr
    assert (data / "postgresql-18").exists()


@pytest.mark.timeout(900)
def test_the_check_tries_the_schema_in_the_new_version(old: OldCluster, data: Path) -> None:
    """pg_stat_bgwriter has no buffers_backend from PostgreSQL 17 on (its release notes)."""
    with old.running() as conninfo:
        with psycopg.connect(conninfo, autocommit=True) as connection:
            connection.execute("create role operator nologin")
            connection.execute("create database ringlog owner operator")
        with psycopg.connect(make_conninfo(conninfo, dbname="ringlog")) as connection:
            connection.execute("create view written as select buffers_backend from pg_stat_bgwriter")
    for words in (("--check",), ()):
        refused = ringlog("upgrade", *words, "--data", data, timeout=300)
        assert refused.returncode == 1
        assert "no obstacle" not in refused.stdout
        line, unchanged = refused.stderr.splitlines()
        assert "PostgreSQL 18 refuses the schema of database ringlog: ERROR:  column " in line
        assert '"buffers_backend" does not exist (CREATE VIEW public.written AS …)' in line
        assert unchanged.startswith("nothing is changed")
    assert not (data / "postgresql-18").exists()
