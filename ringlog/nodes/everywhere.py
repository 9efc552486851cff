"""Nodes: other servers with tables of their own. Installation on all of them, and their housekeeping."""

import logging
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TypeVar

import psycopg
import sqlalchemy
from psycopg import sql

from ringlog.errors import ServerError
from ringlog.gateway.tsql_schema import install as install_tsql
from ringlog.nodes.servers import nodes_of, reached
from ringlog.nodes.signals import signals_followed
from ringlog.schema import session
from ringlog.schema.access import rights as table_rights
from ringlog.schema.access.roles import become_owner
from ringlog.schema.change import CHANNEL, cause_of, change
from ringlog.schema.facility import Facility, Node, SampleTable, Table
from ringlog.schema.installing.install import (
    InstallRefused,
    InstallReport,
    bring_up_to_date,
    difference,
    install,
)
from ringlog.schema.installing.obstacles import Obstacle
from ringlog.schema.layout import TABLE_READER, TABLE_WRITER
from ringlog.schema.moving.nodes import (
    NodeTable,
    called_elsewhere,
    known_nodes,
    node_tables,
    numbers,
    placing,
    stored_elsewhere,
    tables_elsewhere,
)
from ringlog.schema.relations import sample_tables
from ringlog.schema.session import driver, engine
from ringlog.server.embedded.postgres import Stopped
from ringlog.server.logins import grant_to_gateway, set_gateway_password
from ringlog.server.processes.background import in_background

AnyTable = TypeVar("AnyTable", Table, SampleTable)

log = logging.getLogger(__name__)

_PAUSE = 10.0
"""seconds until a node that was away is tried again"""
_REST = 0.25
"""seconds after a look at the registry"""
_GROUPS = [
    *("daq_writer", "daq_reader", "daq_table_writer", "daq_table_reader"),
    *("parameter_writer", "signal_archivist", "event_recorder"),
]


def install_everywhere(first: sqlalchemy.Engine, facility: Facility, *, alone: bool = False) -> InstallReport:
    """Installs a facility: on each node its tables, then on the first server its own, and the way to the
    nodes.

    `alone`: a node that cannot be reached is logged and left unchanged; otherwise that is a ServerError, and
    the first server is not changed. Each server is changed as a whole or not at all. Raises InstallRefused.
    """
    if not facility.nodes:
        with first.connect() as connection:
            _demand_nodes(connection, facility)
        return install(first, facility, [install_tsql])
    with ExitStack() as stack:
        with first.connect() as connection:
            _demand_nodes(connection, facility)
            _refuse(stored_elsewhere(connection, facility, None))
            passwords = {name: password for name, (_, password) in known_nodes(connection).items()}
            numbered = numbers(connection)
            _refuse(sample_tables.taken(connection, facility))
        reachable: list[tuple[Node, sqlalchemy.Engine]] = []
        for node in facility.nodes:
            at = engine(reached(node.dsn))
            stack.callback(at.dispose)
            try:
                with at.connect() as connection:
                    _refuse(stored_elsewhere(connection, facility, node.name))
            except (psycopg.OperationalError, sqlalchemy.exc.OperationalError) as error:
                _away(node, error, alone)
                continue
            reachable.append((node, at))
        created: list[str] = []
        changed: list[str] = []
        tables: list[NodeTable] = []
        reports = []
        for node, at in reachable:
            own = facility.of(node.name)
            number = numbered.setdefault(node.name, max(numbered.values(), default=0) + 1)
            report = number_signals(at, number) if own.sample_tables else InstallReport((), ())
            report += install(at, own, [install_tsql])
            passwords.setdefault(node.name, secrets.token_urlsafe(32))
            set_gateway_password(reached(node.dsn), passwords[node.name])
            with at.begin() as connection:
                tables += node_tables(connection, node.name, [table.name for table in own.every_table])
            reports.append((node.name, report))
        nodes = [(node.name, node.dsn, passwords[node.name], numbered[node.name]) for node, _ in reachable]
        report = install(first, facility.of(None), [install_tsql, placing(nodes, tables)])
        for node, _ in reachable:
            changed += [f"login {name} on node {node.name}" for name in _copy_logins(first, node)]
        for name, each in reports:
            created += [f"{thing} on node {name}" for thing in each.created]
            changed += [f"{thing} on node {name}" for thing in each.changed]
        return InstallReport((*report.created, *created), (*report.changed, *changed))


def number_signals(at: sqlalchemy.Engine, server: int) -> InstallReport:
    """Has signals of samples on a node get numbers that no other server gives."""
    with at.connect() as connection:
        if sample_tables.are_numbered(connection, server):
            return InstallReport((), ())

    def number(connection: sqlalchemy.Connection) -> None:
        become_owner(connection)
        sample_tables.number(connection, server)

    report = bring_up_to_date(at, [install_tsql])
    change(at, number)
    return report


def difference_everywhere(first: sqlalchemy.Engine, facility: Facility) -> InstallReport:
    """The changes that `install_everywhere` would make in tables and procedures: made and rolled back."""
    created: list[str] = []
    changed: list[str] = []
    tables: list[NodeTable] = []
    with first.connect() as connection:
        _demand_nodes(connection, facility)
        _refuse(stored_elsewhere(connection, facility, None))
        stored = tables_elsewhere(connection)
    for node in facility.nodes:
        at = engine(reached(node.dsn))
        try:
            with at.connect() as connection:
                _refuse(stored_elsewhere(connection, facility, node.name))
                known_there = sample_tables.names(connection)
            report = difference(at, facility.of(node.name), [install_tsql])
            created += [f"{thing} on node {node.name}" for thing in report.created]
            changed += [f"{thing} on node {node.name}" for thing in report.changed]
            with at.begin() as connection:
                own = facility.of(node.name)
                names = [table.name for table in own.every_table if table.name in known_there]
                tables += node_tables(connection, node.name, names)
        except (psycopg.OperationalError, sqlalchemy.exc.OperationalError) as error:
            _away(node, error, False)
        finally:
            at.dispose()
    changed += [
        f"table {table.name} to node {table.node}"
        for table in facility.every_table
        if table.node is not None and table.name not in stored
    ]
    report = difference(first, facility.of(None), [install_tsql])
    return InstallReport((*report.created, *created), (*report.changed, *changed))


def _refuse(obstacles: Iterator[Obstacle]) -> None:
    if found := list(obstacles):
        raise InstallRefused(found)


def _demand_nodes(connection: sqlalchemy.Connection, facility: Facility) -> None:
    """Refuses a file without a node that has tables, or with a table of a node's on another server."""
    named = {node.name for node in facility.nodes}
    lost: dict[str, list[str]] = {}
    for table, node in tables_elsewhere(connection).items():
        if node not in named:
            lost.setdefault(node, []).append(table)
    _refuse(
        Obstacle(
            f"node {node} is missing in the facility file, but has tables: {', '.join(sorted(tables))}",
            f"-- keep [[node]] with name = {node!r} in the file, or drop these tables first",
        )
        for node, tables in lost.items()
    )
    _refuse(called_elsewhere(connection, facility))


def _away(node: Node, error: Exception, alone: bool) -> None:
    why = " ".join(str(cause_of(error)).split())
    if not alone:
        raise ServerError(f"node {node.name} cannot be reached, and nothing was installed here: {why}")
    log.error("node %s cannot be reached, and its tables cannot be written or read: %s", node.name, why)


def _copy_logins(first: sqlalchemy.Engine, node: Node) -> list[str]:
    """Makes the logins that a node lacks, with their rights and, where we may read them, their passwords."""
    query = sqlalchemy.text(
        "select role.rolname, array_agg(granted.rolname order by granted.rolname) as rights, role.rolcanlogin"
        " from pg_roles as role join pg_auth_members as membership on membership.member = role.oid"
        " join pg_roles as granted on granted.oid = membership.roleid"
        " where granted.rolname = any(:groups) and not role.rolname = any(:groups)"
        " and role.rolname not like 'pg\\_%' and role.rolname <> 'ringlog_owner'"
        " group by role.oid, role.rolname, role.rolcanlogin order by role.rolname"
    )
    secret = sqlalchemy.text("select rolpassword from pg_authid where rolname = :name")
    made = []
    with first.connect() as here, session.connect(reached(node.dsn)) as there:
        held = table_rights.held(driver(here))
        known = {name for (name,) in there.execute("select rolname from pg_roles")}
        is_super = here.scalar(sqlalchemy.text("select rolsuper from pg_roles where rolname = current_user"))
        for name, rights, may_log_in in here.execute(query, {"groups": _GROUPS}).all():
            if name in known:
                continue
            login = sql.Identifier(name)
            password = here.scalar(secret, {"name": name}) if is_super else None
            there.execute(
                sql.SQL("create role {} {} password {}").format(
                    login, sql.SQL("login" if may_log_in else "nologin"), sql.Literal(password)
                )
            )
            for right in rights:
                there.execute(sql.SQL("grant {} to {}").format(sql.Identifier(right), login))
                if right in (TABLE_WRITER, TABLE_READER):
                    table_rights.hold(there, name, right, held.get((name, right), table_rights.Held()))
            grant_to_gateway(there, login)
            made.append(
                name
                if password
                else (
                    f"{name} (it can write there; to read there, set its password again "
                    "with ringlog user passwd)"
                )
            )
    return made


@contextmanager
def housekeeping_of(name: str, dsn: str) -> Iterator[None]:
    """Maintains a node, as `housekeeping` does, from when it can be reached until the end."""
    # imports numpy, which only a server needs
    from ringlog.server.housekeeping import housekeeping

    end = threading.Event()

    def look_after() -> None:
        logged = False
        while not end.is_set():
            at = engine(reached(dsn))
            try:
                with housekeeping(at, reached(dsn)) as begin:
                    begin(end)
                    end.wait()
            except Stopped:
                return
            except (psycopg.Error, sqlalchemy.exc.SQLAlchemyError) as error:
                if not logged:  # once is enough while the reason lasts
                    log.warning(
                        "housekeeping of node %s is not possible: %s", name, " ".join(str(error).split())
                    )
                logged = True
                end.wait(_PAUSE)
            finally:
                at.dispose()

    with in_background(f"housekeeping of {name}", look_after, end):
        yield


@contextmanager
def nodes_followed(
    conninfo: str,
    known: Mapping[str, tuple[str, str]],
    report: Callable[[Mapping[str, tuple[str, str]]], None],
    *,
    looked_after: bool = True,
) -> Iterator[None]:
    """Reports nodes that are added until the end, beside those that are `known`. `looked_after`: with the
    housekeeping of `housekeeping_of` for all of them."""
    end = threading.Event()

    def follow() -> None:
        followed = dict(known)
        warned = ""
        with ExitStack() as every:
            after: dict[str, ExitStack] = {}

            def look_after(name: str, dsn: str) -> None:
                if name in after:
                    after[name].close()
                after[name] = every.enter_context(ExitStack())
                if looked_after:
                    after[name].enter_context(housekeeping_of(name, dsn))
                    after[name].enter_context(signals_followed(conninfo, name, dsn))

            for name, (dsn, _) in followed.items():
                look_after(name, dsn)
            while not end.is_set():
                try:
                    for now in _changes_of_nodes(conninfo, end):
                        new = {name: each for name, each in now.items() if followed.get(name) != each}
                        if new:
                            report(new)
                            followed |= new
                        for name, (dsn, _) in new.items():
                            log.info("node %s is known from now on", name)
                            look_after(name, dsn)
                except (psycopg.Error, sqlalchemy.exc.SQLAlchemyError, ValueError) as error:
                    reason = " ".join(str(error).split())
                    if reason != warned:  # once is enough while the reason lasts
                        log.warning("nodes cannot be read: %s", reason)
                    warned = reason
                    end.wait(_PAUSE)

    with in_background("nodes", follow, end):
        yield


def _changes_of_nodes(conninfo: str, end: threading.Event) -> Iterator[dict[str, tuple[str, str]]]:
    """The nodes in the first server's registry, again each time that its tables have changed."""
    with session.connect(conninfo, autocommit=True) as connection:
        connection.execute(sql.SQL("listen {}").format(sql.Identifier(CHANNEL)))
        yield nodes_of(conninfo)
        while not end.is_set():
            # several notifications count as one, and any login can send them
            if list(connection.notifies(timeout=0.5, stop_after=1)):
                yield nodes_of(conninfo)
                end.wait(_REST)


def as_it_is(facility: Facility, now: Mapping[str, str | None]) -> Facility:
    """All changes of the file except moves, `now` being where tables are."""

    def kept(table: AnyTable) -> AnyTable:
        return replace(table, node=now.get(table.name, table.node))

    return replace(
        facility,
        tables=tuple(map(kept, facility.tables)),
        sample_tables=tuple(map(kept, facility.sample_tables)),
    )
