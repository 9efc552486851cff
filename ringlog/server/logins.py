"""Logins: PostgreSQL roles that may write or read, and the gateway's own."""

import secrets
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum

import psycopg
from psycopg import errors, sql

from ringlog.errors import ServerError, UsageError
from ringlog.procedures.parameters import OF_A_PARAMETER, WRITING
from ringlog.schema import locks, session
from ringlog.schema.access import rights
from ringlog.schema.access.rights import Held
from ringlog.schema.sql_files import sql_file
from ringlog.server.guards import limits
from ringlog.server.guards.limits import Limits

GATEWAY = "ringlog_gateway"
READS_STANDBY = "tsql.reads_standby"
"""read by the gateway at each login"""
_NAME_LIMIT = 63  # bytes of a PostgreSQL name; it cuts longer ones silently
_PATIENCE = 10  # seconds in which each connection must end
_PAUSE = 0.02  # seconds between two looks at connections that begin
TDS5_LIMIT = 30  # bytes of the user and password fields of a TDS 5.0 login record


class Right(Enum):
    """A right of a login. The value is the group role that has it."""

    WRITER = "daq_writer"
    READER = "daq_reader"
    PARAMETER_WRITER = "parameter_writer"
    TABLE_WRITER = "daq_table_writer"
    TABLE_READER = "daq_table_reader"
    ARCHIVIST = "signal_archivist"
    RECORDER = "event_recorder"

    @property
    def shown(self) -> str:
        """As text for messages: writer, reader, parameter writer; of single tables as of all."""
        return self.value.removeprefix("daq_").removeprefix("table_").replace("_", " ")

    @property
    def of_tables(self) -> "Right":
        """The same for single tables. Raises KeyError for a right that is not given so."""
        return {Right.WRITER: Right.TABLE_WRITER, Right.READER: Right.TABLE_READER}[self]


_GROUPS = [right.value for right in Right]


def add_login(
    conninfo: str,
    name: str,
    given: Collection[Right],
    password: str,
    parameters: Collection[str] = (),
    most: Limits = limits.USUAL,
    tables: Held | None = None,
) -> None:
    """Makes a login that may write, read or both, and that the gateway may act for.

    `parameters` are parameter tables that it may change, where it may not change all of them; `tables` those
    that it may write and read, where these are not all. Only the
    password's SCRAM form leaves this process. Raises UsageError for a name or password that PostgreSQL or TDS
    cannot carry, ServerError when the login exists already.
    """
    if not name or "\0" in name or len(name.encode()) > _NAME_LIMIT:
        raise UsageError(f"the login name {name!r} must have 1 to {_NAME_LIMIT} bytes")
    _check_password(name, password)
    most.settings()
    login = sql.Identifier(name)
    with session.connect(conninfo) as connection:
        try:
            connection.execute(
                sql.SQL("create role {} login password {}").format(login, _scram(connection, name, password))
            )
        except errors.DuplicateObject:
            raise ServerError(
                f"the login {name!r} exists already and was not changed. For a new password: ringlog user "
                "passwd; for other tables to write or read: ringlog user change; for another right: ringlog "
                "user remove, then add it again"
            ) from None
        for right in given:
            if right in (Right.WRITER, Right.READER):
                _hold(connection, name, right, tables)
            else:
                connection.execute(sql.SQL("grant {} to {}").format(sql.Identifier(right.value), login))
        for table in parameters:
            _grant_parameter(connection, table, login)
        grant_to_gateway(connection, login)
        limits.set_limits(connection, login, most)


def tables_named(conninfo: str, names: Collection[str]) -> Held:
    """These tables and groups, of any server. Raises UsageError for one that the first server has not."""
    with session.connect(conninfo) as connection:
        try:
            return rights.split(connection, names)
        except LookupError as error:
            raise UsageError(
                f"there is no table and no group of tables {error.args[0]!r}: see the facility file"
            ) from None


def change_tables(conninfo: str, name: str, wanted: Mapping[Right, Held | None]) -> None:
    """Sets which tables a login may write and read (Right.WRITER, Right.READER); None: all, also those that
    come later. It applies to open sessions too. Raises UsageError, where nothing is changed."""
    with session.connect(conninfo) as connection:
        _demand(connection, name)
        for right, tables in wanted.items():
            _hold(connection, name, right, tables)
        if connection.execute(_KNOWN, [name, _GROUPS]).fetchone() is None:
            raise UsageError(
                f"the login {name!r} would have no right at all: ringlog user lock, or ringlog user remove"
            )
        # the gateway clears its cache of the login's rights
        connection.execute("notify ringlog_catalogue")


def more_tables(conninfo: str, name: str, more: Mapping[Right, Held | None]) -> dict[Right, Held | None]:
    """The tables that a login may write and read, in the form of `change_tables`, with these added to its
    present ones. Raises UsageError for a login that does not exist."""
    with session.connect(conninfo) as connection:
        _demand(connection, name)
        now = rights.held(connection)
        found: dict[Right, Held | None] = {}
        for right, tables in more.items():
            has_all = connection.execute(_MEMBER, [name, right.value]).fetchone() is not None
            own = now.get((name, right.of_tables.value), Held())
            found[right] = (
                None
                if has_all or tables is None
                else Held(
                    tuple(dict.fromkeys((*own.tables, *tables.tables))),
                    tuple(dict.fromkeys((*own.groups, *tables.groups))),
                )
            )
        return found


def grant_parameter(conninfo: str, name: str, table: str) -> None:
    """Lets a login change a parameter table. Raises UsageError for a login or a table that does not exist."""
    with session.connect(conninfo) as connection:
        _demand(connection, name)
        _grant_parameter(connection, table, sql.Identifier(name))
        connection.execute("notify ringlog_catalogue")


def _hold(connection: psycopg.Connection, name: str, right: Right, tables: Held | None) -> None:
    """Gives a login a right to these tables and no others; None: to all."""
    # installations wait; they grant missing rights themselves
    connection.execute(locks.statement(locks.CHANGES))
    login, some = sql.Identifier(name), right.of_tables
    wanted = tables or Held()
    for role, given in ((right, tables is None), (some, bool(wanted))):
        statement = sql.SQL("grant {} to {}") if given else sql.SQL("revoke {} from {}")
        is_member = connection.execute(_MEMBER, [name, role.value]).fetchone() is not None
        if given != is_member:
            connection.execute(statement.format(sql.Identifier(role.value), login))
    rights.hold(connection, name, some.value, wanted)


_MEMBER = "select from pg_auth_members where member = to_regrole(quote_ident(%s)) and roleid = to_regrole(%s)"


def _grant_parameter(connection: psycopg.Connection, table: str, login: sql.Identifier) -> None:
    known = connection.execute(
        "select 1 from ringlog.parameter_table where table_name = %s", [table]
    ).fetchone()
    if known is None:
        raise UsageError(f"there is no parameter table {table!r}: see the facility file")
    found = connection.execute(
        "select oid::regprocedure::text from pg_proc where pronamespace = 'ringlog'::regnamespace"
        " and proname = any(%s)",
        [[OF_A_PARAMETER[file].format(table) for file in WRITING] + ["save_snapshot", "restore_snapshot"]],
    ).fetchall()
    for (procedure,) in found:
        # regprocedure is quoted by PostgreSQL
        connection.execute(sql.SQL("grant execute on function {} to {}").format(sql.SQL(procedure), login))


@dataclass(frozen=True)
class Login:
    """A login as `ringlog user list` shows it."""

    name: str
    rights: tuple[str, ...]
    """as text for messages: writer, reader of a, group b"""
    locked: bool
    until: str | None
    """when its password ends, if it does"""
    connections: int
    """of its own to PostgreSQL; a client of the gateway has one while it needs it"""
    limits: str
    """its limits, as text for messages; empty: none"""


def logins(conninfo: str) -> list[Login]:
    """The logins that may write or read, by name."""
    with session.connect(conninfo) as connection:
        held = rights.held(connection)
        return [
            Login(
                name,
                _rights({Right(right): held.get((name, right)) for right in granted}),
                locked,
                until,
                sessions,
                limits.shown(own),
            )
            for name, granted, locked, until, sessions, own in connection.execute(
                sql_file(__file__, "logins"), {"groups": _GROUPS}
            )
        ]


def _rights(held: Mapping[Right, Held | None]) -> tuple[str, ...]:
    """The rights with their tables. A right to all tables says so beside one to some."""
    rest = " of all tables" if any(held.values()) else ""
    of_tables = (Right.READER, Right.WRITER)
    return tuple(
        right.shown + (f" of {some}" if some else rest if right in of_tables else "")
        for right, some in held.items()
    )


def change_password(conninfo: str, name: str, password: str) -> None:
    """Gives a login another password; open sessions continue."""
    _check_password(name, password)
    with session.connect(conninfo) as connection:
        login = _demand(connection, name)
        connection.execute(
            sql.SQL("alter role {} password {}").format(login, _scram(connection, name, password))
        )


def limit(conninfo: str, name: str, most: Limits) -> None:
    """Sets the limits of a login's future sessions."""
    with session.connect(conninfo) as connection:
        limits.set_limits(connection, _demand(connection, name), most)


class Server(Enum):
    """The server from which a login reads."""

    STANDBY = "standby"
    PRIMARY = "primary"


def read_from(conninfo: str, name: str, where: Server) -> None:
    """Sets where sessions of a login that begin from now on read. Raises ServerError."""
    with session.connect(conninfo) as connection:
        value = "on" if where is Server.STANDBY else "off"
        limits.set_setting(connection, _demand(connection, name), READS_STANDBY, value)


def lock(conninfo: str, name: str) -> None:
    """Locks a login: it cannot log in, and its open sessions can make no further calls."""
    with session.connect(conninfo) as connection:
        _lock(connection, name, _demand(connection, name))


def _lock(connection: psycopg.Connection, name: str, login: sql.Identifier) -> None:
    connection.execute(sql.SQL("alter role {} nologin").format(login))
    _revoke_from_gateway(connection, login)
    # sessions that begin while others are ended are refused
    connection.commit()
    _await_logins(connection)
    _end_connections(connection, name)


def _await_logins(connection: psycopg.Connection) -> None:
    """Waits for connections that are being authenticated: PostgreSQL does not show their login yet. One that
    still waits for its password after _PATIENCE is refused by PostgreSQL itself."""
    beginning = _beginning(connection)
    until = time.monotonic() + _PATIENCE
    while beginning & _beginning(connection) and time.monotonic() < until:
        time.sleep(_PAUSE)


def _beginning(connection: psycopg.Connection) -> set[str]:
    """The transactions of PostgreSQL's processes that are authenticating a login."""
    connection.execute("select pg_stat_clear_snapshot()")
    found = connection.execute(
        "select virtualtransaction from pg_locks left join pg_stat_activity using (pid)"
        " where locktype = 'virtualxid' and mode = 'ExclusiveLock' and pid is not null"
        " and usesysid is null and coalesce(backend_type, 'client backend') = 'client backend'"
    )
    return {transaction for (transaction,) in found}


def unlock(conninfo: str, name: str) -> None:
    """Lets a locked login in again, with the password it had."""
    with session.connect(conninfo) as connection:
        _unlock(connection, _demand(connection, name))


def _unlock(connection: psycopg.Connection, login: sql.Identifier) -> None:
    connection.execute(sql.SQL("alter role {} login").format(login))
    grant_to_gateway(connection, login)


def remove_login(conninfo: str, name: str) -> None:
    """Drops a login and ends its sessions, with large objects, default privileges and temporary objects that
    it owns, and with the rights that other logins have granted it. Raises ServerError when it owns something
    in a schema or another database."""
    with session.connect(conninfo) as connection:
        login = _demand(connection, name)
        (was_locked,) = connection.execute(
            "select not rolcanlogin from pg_roles where rolname = %s", [name]
        ).fetchone() or (True,)
        try:
            # first, and committed: otherwise clients could reconnect at once
            _lock(connection, name, login)
            with connection.transaction():
                rights.forget(connection, name)
                if connection.execute(_ONLY_LEFT_OVERS, [name]).fetchone() == (True,):
                    connection.execute(sql.SQL("drop owned by {}").format(login))
                connection.execute(sql.SQL("drop role {}").format(login))
        except BaseException as error:
            connection.rollback()
            if not was_locked:
                _unlock(connection, login)
                connection.commit()
            if not isinstance(error, errors.DependentObjectsStillExist):
                raise
            raise ServerError(
                f"the login {name!r} was not changed, because it owns objects: "
                f"{error.diag.message_detail}. Give them to another role first (reassign owned by), or "
                "lock the login: ringlog user lock"
            ) from None


_ONLY_LEFT_OVERS = sql_file(__file__, "logins_left_overs")
"""Whether a login owns something or others have granted it rights, and it owns nothing in a schema of a site
or in another database."""


def _demand(connection: psycopg.Connection, name: str) -> sql.Identifier:
    """The login, which must be one that ringlog may change: neither its own nor the administrator's."""
    if connection.execute(_KNOWN, [name, _GROUPS]).fetchone() is None:
        raise UsageError(
            f"there is no login {name!r} with the right to write or read: ringlog user list shows all logins"
        )
    return sql.Identifier(name)


_KNOWN = (
    "select 1 from pg_roles where rolname = %s and not rolsuper and exists ("
    " select from pg_auth_members join pg_roles as granted on granted.oid = roleid"
    " where member = pg_roles.oid and granted.rolname = any(%s))"
)


def grant_to_gateway(connection: psycopg.Connection, login: sql.Identifier) -> None:
    """Lets the gateway act for a login."""
    # PostgreSQL 15 has no options of a membership, but the gateway's role itself inherits nothing
    modern = connection.info.server_version >= 160000
    options = sql.SQL(" with inherit false, set true" if modern else "")
    connection.execute(sql.SQL("grant {} to {}{}").format(login, sql.Identifier(GATEWAY), options))


def _revoke_from_gateway(connection: psycopg.Connection, login: sql.Identifier) -> None:
    """Ends the gateway's right to act for a login: PostgreSQL refuses each call that commits later."""
    connection.execute(sql.SQL("revoke {} from {}").format(login, sql.Identifier(GATEWAY)))
    # the gateway resets its shared connections and clears its cache of the login's rights
    connection.execute("notify ringlog_catalogue")


def _end_connections(connection: psycopg.Connection, name: str) -> None:
    """Ends the login's own connections and waits until they have ended. Raises ServerError."""
    connection.execute("select pg_stat_clear_snapshot()")
    connection.execute(
        "select pg_terminate_backend(pid, %s) from pg_stat_activity where usename = %s",
        [_PATIENCE * 1000, name],
    )
    connection.execute("select pg_stat_clear_snapshot()")
    left = connection.execute("select pid from pg_stat_activity where usename = %s", [name]).fetchall()
    if left:
        processes = ", ".join(str(pid) for (pid,) in left)
        raise ServerError(
            f"the login {name!r} still has connections to PostgreSQL, which were terminated {_PATIENCE} "
            f"seconds ago (processes {processes}): run the command again"
        )


def _check_password(name: str, password: str) -> None:
    if not password or "\0" in password:
        raise UsageError(f"the password of {name!r} must not be empty or contain a NUL")


def set_gateway_password(conninfo: str, password: str | None = None) -> str:
    """Gives the gateway's role this password, else a random one that is not stored; returns it."""
    password = password or secrets.token_urlsafe(32)
    with session.connect(conninfo) as connection:
        connection.execute(
            sql.SQL("alter role {} password {}").format(
                sql.Identifier(GATEWAY), _scram(connection, GATEWAY, password)
            )
        )
    return password


def _scram(connection: psycopg.Connection, name: str, password: str) -> sql.Literal:
    secret = connection.pgconn.encrypt_password(password.encode(), name.encode(), b"scram-sha-256")
    return sql.Literal(secret.decode())
