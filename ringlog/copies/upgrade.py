"""Upgrades the cluster of an older PostgreSQL to this version, by pg_upgrade.

The old cluster stays as it is, in `postgresql-<old>` of the data directory, until `ringlog upgrade
--delete-old`. The new one is made beside it, as `upgraded`, and takes its name only when all is done: a run
that fails or is killed at any moment has changed nothing, and can be repeated from the start.
"""

import re
import shlex
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import psycopg
from psycopg.conninfo import make_conninfo

from ringlog.errors import ServerError, UsageError
from ringlog.schema import catalogue, session
from ringlog.server.embedded.cluster import ADMINISTRATOR, postmaster_of
from ringlog.server.embedded.postgres import Postgres
from ringlog.server.embedded.programs import WHEELS, named_programs, programs_for, version_of
from ringlog.server.embedded.settings import GENERATED, GiB, settings_text
from ringlog.server.embedded.shutdown import stop_server

# Bytes for the new cluster's catalogues and log, besides the size of the old cluster.
_ROOM = GiB
_PORT = 50432  # of servers that only this process reaches, through the socket
_OURS = re.compile(r"archive_|recovery_|restore_command|primary_")
"""Settings of `alter system` that were for the old cluster only."""


# A dump would revoke them by the arguments that they have in the old version. Each start revokes them again.
_REVOKED = """
select pg_proc.oid::regprocedure::text from pg_proc
where proname = 'pg_logical_emit_message' and pronamespace = 'pg_catalog'::regnamespace
"""

_UNCHANGED = "nothing is changed: the old cluster still works with its version of ringlog"


def _refusal(output: str) -> str:
    """The error in the output of pg_restore, and the statement, in a line."""
    error = re.search(r"\berror: (?:could not execute query: )?(.*)$", output, re.MULTILINE)
    statement = re.search(r"^Command was: (.*)$", output, re.MULTILINE)
    line = " ".join(output.split()) if error is None else error[1]
    return f"{line} ({statement[1]} …)" if statement else line


def older_cluster(postgres: Postgres) -> Path | None:
    """The cluster of the newest older version."""
    found = []
    for folder in postgres.data.glob("postgresql-*"):
        if (named := re.fullmatch(r"postgresql-(\d+)", folder.name)) and int(named[1]) < postgres.version:
            found.append((int(named[1]), folder))
    return max(found)[1] if found else None


def delete_cluster(postgres: Postgres, old: Path | None) -> None:
    if old is None:
        raise UsageError(f"there is no older cluster in {postgres.data}")
    if not postgres.exists:
        raise UsageError(f"{old} is the only cluster in {postgres.data}: run ringlog upgrade first")
    with postgres.account.acting():
        shutil.rmtree(old)
        # left by a run that was killed after its work
        shutil.rmtree(postgres.data / "upgrading", ignore_errors=True)
    print(f"deleted {old}")


class Upgrade:
    def __init__(self, postgres: Postgres, old: Path, old_programs: Path | None) -> None:
        self.postgres = postgres
        self.old = old
        self.account = postgres.account
        self.version = int(old.name.removeprefix("postgresql-"))
        self.programs = postgres.programs
        self.old_programs = self._programs(old_programs)
        self.new = postgres.data / "upgraded"
        self.work = postgres.data / "upgrading"

    def _programs(self, given: Path | None) -> Path:
        if given is not None:
            folder = named_programs(given)
        elif self.version in WHEELS:
            folder = programs_for(self.account, self.version)
        else:
            raise ServerError(
                f"the programs of PostgreSQL {self.version} were not found: name their folder with "
                "--old-programs, as /usr/lib/postgresql/15"
            )
        major, minor = version_of(self.account, folder)
        if major != self.version:
            raise ServerError(f"{folder} has PostgreSQL {major}.{minor}, and {self.old} is of {self.version}")
        return folder

    def run(self, *, check: bool) -> None:
        state = self._control()
        size = sum(file.stat().st_size for file in self.old.rglob("*") if file.is_file())
        free = psutil.disk_usage(str(self.postgres.data)).free
        versions = f"PostgreSQL {self.version} to {self.postgres.version}"
        print(f"{versions}: {size / 1e9:.2f} GB, {free / 1e9:.2f} GB free")
        if free < size + _ROOM:
            raise ServerError(
                f"{self.postgres.data} needs {(size + _ROOM) / 1000000000.0:.1f} GB for the new cluster "
                f"beside the old one, and {free / 1000000000.0:.1f} GB are free: free disk space, or move "
                "the data to a larger disk first"
            )
        with self._begun_anew():
            if state["Database cluster state"] != "shut down":
                # after a crash or kill -9 its log must be replayed first
                print(f"the old cluster was not shut down ({state['Database cluster state']}): recovering it")
                self._recover()
                state = self._control()
            self._make(state)
            self._pg_upgrade("--check")
            self._try_schema()
            print(f"no obstacle: PostgreSQL {self.postgres.version} takes the schema")
            if check:
                return
            with self.account.acting():
                shutil.rmtree(self.new)
            self._make(state)
            before = self._relations(self.old_programs, self.old)
            self._pg_upgrade()
            with self.account.acting():
                self._settle()
            self._renew_ownership(state["Database system identifier"])
            after = self._relations(self.programs, self.new, analyze=True)
            if before != after:
                missing = ", ".join(sorted(before - after)[:5])
                raise ServerError(f"the new cluster lacks {missing}: the old one is unchanged")
            with self.account.acting():
                self.new.rename(self.postgres.cluster)
            self.postgres.remember_programs()
        print(
            f"done: {self.postgres.cluster} with {len(after)} tables and indexes.\n  start ringlog serve, "
            "check the data (ringlog verify), then\n  ringlog upgrade --delete-old    deletes "
            f"{self.old}\n  ringlog backup DIR              begins a new backup folder: the old one is of "
            "the old version"
        )

    def _control(self) -> Mapping[str, str]:
        output = self.account.run([str(self.old_programs / "pg_controldata"), str(self.old)])
        pairs = (line.partition(":") for line in output.splitlines())
        return {name.strip(): value.strip() for name, _, value in pairs}

    @contextmanager
    def _begun_anew(self) -> Iterator[None]:
        """Removes the remains of an earlier run before, and its own at the end."""

        def clear() -> None:
            for folder in (self.new, self.work):
                shutil.rmtree(folder, ignore_errors=True)

        self._end_leftovers()
        with self.account.acting():
            clear()
            self.work.mkdir()
            self.postgres.socket.mkdir(mode=0o700, exist_ok=True)
        try:
            yield
        finally:
            with self.account.acting():
                clear()

    def _end_leftovers(self) -> None:
        """Ends the programs that a killed run has left behind."""
        while programs := [process for process in psutil.process_iter() if self._is_ours(process)]:
            for process in programs:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            psutil.wait_procs(programs, timeout=1)
        for cluster in (self.new, self.old):
            if server := postmaster_of(cluster):
                print(f"an earlier run has left a server of {cluster}: stopping it")
                stop_server(server)

    def _is_ours(self, process: psutil.Process) -> bool:
        """Whether it is a program of PostgreSQL, other than its server, that works on this directory."""
        with suppress(psutil.Error):
            words = process.cmdline()
            if words and process.status() != psutil.STATUS_ZOMBIE:
                program, line = Path(words[0]), " ".join(words)
                if program.name == "postgres" or words[:2] == ["sh", "-c"]:
                    # the server that initdb starts outlives it, and writes files of the new cluster
                    is_of_initdb = re.search(rf"{re.escape(str(self.programs))}/postgres\b.* --\w", line)
                    return bool(is_of_initdb) and Path(process.cwd()) in (self.work, self.new)
                return (
                    program.parent in (self.programs, self.old_programs) and str(self.postgres.data) in line
                )
        return False

    def _recover(self) -> None:
        with self._started(self.old_programs, self.old):
            pass

    def _make(self, state: Mapping[str, str]) -> None:
        """Makes the new, empty cluster for pg_upgrade, with the unchangeable settings of the old one."""
        command = [str(self.programs / "initdb"), "--pgdata", str(self.new), "--username", ADMINISTRATOR]
        command += ["--auth-local=peer", "--auth-host=scram-sha-256", "--encoding=UTF8", "--locale=C"]
        checksums = state.get("Data page checksum version", "0") != "0"
        command.append("--data-checksums" if checksums else "--no-data-checksums")
        segment = int(state["Bytes per WAL segment"]) // 2**20
        command.append(f"--wal-segsize={segment}")
        self.account.run(command, cwd=self.work)
        with self.account.acting():
            for name in ("pg_hba.conf", "pg_ident.conf"):
                shutil.copy(self.old / name, self.new / name)
            shutil.copytree(self.old / "conf.d", self.new / "conf.d")
            with (self.new / "postgresql.conf").open("a") as file:
                file.write("\ninclude_dir = 'conf.d'\n")
            port = re.search(r"^port = (\d+)$", (self.old / "conf.d" / GENERATED).read_text(), re.MULTILINE)
            text = settings_text(
                memory=GiB,
                disk=psutil.disk_usage(str(self.postgres.data)).total,
                port=int(port[1]) if port else 5433,
                socket=self.postgres.socket,
            )
            (self.new / "conf.d" / GENERATED).write_text(text)

    def _try_schema(self) -> None:
        """Restores the schema of each database into the new, empty cluster: pg_upgrade's own check reads no
        definition. Raises ServerError with the first statement that is refused."""
        dumps: list[tuple[str, Path]] = []
        with self._started(self.old_programs, self.old) as conninfo:
            command = [str(self.programs / "pg_dumpall"), "--roles-only", f"--dbname={conninfo}"]
            output = self.account.run(command, cwd=self.work)
            roles = re.findall(r"^(?:CREATE|ALTER|GRANT) .*;$", output, re.MULTILINE)
            for connection in session.databases(conninfo):
                name = connection.info.dbname
                for (function,) in connection.execute(_REVOKED).fetchall():
                    connection.execute(f"grant execute on function {function} to public")
                file = self.work / f"{len(dumps)}.dump"
                command = [str(self.programs / "pg_dump"), "--schema-only", "--no-tablespaces"]
                command += ["--format=custom", f"--file={file}", make_conninfo(conninfo, dbname=name)]
                self.account.run(command, cwd=self.work)
                dumps.append((name, file))
        with self._started(self.programs, self.new) as conninfo:
            with session.connect(conninfo, autocommit=True) as connection:
                for statement in roles:
                    if statement != f"CREATE ROLE {ADMINISTRATOR};":
                        self._try_role(connection, statement)
            for name, file in dumps:
                exists = name in ("postgres", "template1")
                into = make_conninfo(conninfo, dbname=name if exists else "postgres")
                command = [str(self.programs / "pg_restore"), "--exit-on-error", f"--dbname={into}"]
                try:
                    self.account.run([*command, *([] if exists else ["--create"]), str(file)], cwd=self.work)
                except ServerError as error:
                    raise ServerError(
                        f"PostgreSQL {self.postgres.version} refuses the schema of database {name}: "
                        f"{_refusal(str(error))}\n{_UNCHANGED}"
                    ) from None

    def _try_role(self, connection: psycopg.Connection, statement: str) -> None:
        try:
            connection.execute(statement.encode())
        except psycopg.Error as error:
            words = str(error).splitlines()[0]
            raise ServerError(
                f"PostgreSQL {self.postgres.version} refuses a role: {words} "
                f"({statement.partition(' PASSWORD ')[0]} …)\n{_UNCHANGED}"
            ) from None

    def _pg_upgrade(self, *more: str) -> None:
        command = [str(self.programs / "pg_upgrade"), *more, "--username", ADMINISTRATOR]
        command += ["--old-bindir", str(self.old_programs), "--new-bindir", str(self.programs)]
        command += ["--old-datadir", str(self.old), "--new-datadir", str(self.new)]
        command += ["--socketdir", str(self.postgres.socket), "--jobs", str(psutil.cpu_count() or 1)]
        try:
            self.account.run(command, cwd=self.work)
        except ServerError as error:
            raise ServerError(f"{error}\n{self._details()}\n{_UNCHANGED}") from None

    def _details(self) -> str:
        """The lists that pg_upgrade names, and the errors in its logs."""
        output = []
        with suppress(OSError):
            for file in sorted((self.new / "pg_upgrade_output.d").rglob("*")):
                if file.is_file() and file.suffix in (".txt", ".log"):
                    text = file.read_text(errors="replace")
                    if file.suffix == ".txt":
                        output.append(f"{file.name}: {text.strip()[-2000:]}")
                    elif " error: " in text:
                        output.append(f"{file.name}: {_refusal(text)}")
        return "\n".join(output)

    def _settle(self) -> None:
        """Keeps the settings of `alter system`, without those of the old cluster's own log."""
        kept = [
            line
            for line in (self.old / "postgresql.auto.conf").read_text().splitlines(keepends=True)
            if not _OURS.match(line)
        ]
        (self.new / "postgresql.auto.conf").write_text("".join(kept))
        for left in (*self.new.glob("delete_old_cluster.*"), *self.work.glob("delete_old_cluster.*")):
            left.unlink()

    def _renew_ownership(self, old: str) -> None:
        """The archive of old weeks remains that of the database, which is in another cluster now."""
        with self._started(self.programs, self.new) as conninfo:
            for connection in session.databases(conninfo):
                if catalogue.exists(connection, "ringlog", "archive_owner"):
                    connection.execute(
                        "update ringlog.archive_owner set system_identifier ="
                        " (select system_identifier::text from pg_control_system())"
                        " where system_identifier = %s",
                        [old],
                    )

    def _relations(self, programs: Path, cluster: Path, *, analyze: bool = False) -> set[str]:
        """Names of all tables and indexes of all databases; with `analyze`, their statistics are made."""
        query = (
            "select current_database() || ' ' || relkind::text || ' ' || oid::regclass::text from pg_class"
            " where relkind in ('r', 'p', 'i', 'I', 'S', 'v', 'm') and relnamespace::regnamespace::text"
            " not in ('pg_catalog', 'pg_toast', 'information_schema')"
        )
        found: set[str] = set()
        with self._started(programs, cluster) as conninfo:
            for connection in session.databases(conninfo):
                connection.execute("set search_path = pg_catalog")
                found |= {str(row[0]) for row in connection.execute(query)}
            if analyze:
                # pg_upgrade brings most statistics along
                command = [str(programs / "vacuumdb"), "--all", "--analyze-in-stages", "--missing-stats-only"]
                self.account.run([*command, f"--maintenance-db={conninfo}"], cwd=self.work)
        return found

    @contextmanager
    def _started(self, programs: Path, cluster: Path) -> Iterator[str]:
        """A temporary server that only this process can reach."""
        command = [str(programs / "pg_ctl"), "-D", str(cluster), "-w", "-t", "86400", "-l"]
        log = self.work / "server.log"
        socket = self.postgres.socket
        options = (
            f"-c listen_addresses= -c unix_socket_directories={shlex.quote(str(socket))} -c port={_PORT}"
        )
        options += " -c logging_collector=off -c archive_mode=off"
        try:
            self.account.run([*command, str(log), "-o", options, "start"], cwd=self.work)
        except ServerError as error:
            words = log.read_text(errors="replace")[-2000:] if log.exists() else ""
            raise ServerError(f"{error}\n{words}") from None
        try:
            yield make_conninfo(host=str(socket), port=str(_PORT), dbname="postgres", user=ADMINISTRATOR)
        finally:
            stop = [str(programs / "pg_ctl"), "-D", str(cluster), "-w", "-m", "fast", "-t", "86400", "stop"]
            self.account.run(stop, cwd=self.work)
