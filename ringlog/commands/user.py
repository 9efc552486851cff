"""The commands `ringlog user …`: logins."""

import getpass
import json
import sys
from dataclasses import asdict
from typing import Annotated

import typer

from ringlog.commands.options import Data, Dsn, Json
from ringlog.errors import ServerError, UsageError
from ringlog.loader.cli import option
from ringlog.nodes.servers import every_server, servers_there
from ringlog.schema.access.rights import Held
from ringlog.server import logins
from ringlog.server.database import facility_opened
from ringlog.server.guards import limits
from ringlog.server.guards.limits import Limits

user = typer.Typer(help="Logins.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the login.")]
PasswordStdin = Annotated[
    bool, typer.Option("--password-stdin", help="Read the password from standard input.")
]

StatementTimeout = Annotated[
    str | None,
    option(
        "--statement-timeout",
        metavar="TIME",
        help="Time limit of a statement, including the sending of its rows: 30s, 10min, 2h, or none.",
    ),
]
RowLimit = Annotated[
    str | None,
    option(
        "--row-limit",
        metavar="N",
        help="Maximum number of rows of a result set through the gateway, or none.",
    ),
]
SessionLimit = Annotated[
    str | None,
    option(
        "--sessions",
        metavar="N",
        help="Maximum number of sessions through the gateway at one time, or none: a login's usual share.",
    ),
]
_IDLE = (
    "Time limit of idling inside a transaction; then the transaction is rolled back and its locks are "
    "released: 30s, 10min, 2h, or none."
)
IdleTransaction = Annotated[str | None, option("--idle-transaction", metavar="TIME", help=_IDLE)]
TemporaryFiles = Annotated[
    str | None,
    option(
        "--temporary-files",
        metavar="SIZE",
        help="Size of all temporary files of a session, as of sorts and joins: 256MB, 2GB, or none.",
    ),
]
NewIdleTransaction = Annotated[str, typer.Option("--idle-transaction", metavar="TIME", help=_IDLE)]


@user.command("add")
def add(
    name: Name,
    writer: Annotated[bool, typer.Option("--writer", help="It may call put procedures.")] = False,
    reader: Annotated[bool, typer.Option("--reader", help="It may call get procedures and select.")] = False,
    parameter_writer: Annotated[
        bool, typer.Option("--parameter-writer", help="It may change all parameters, and read them.")
    ] = False,
    archivist: Annotated[
        bool, typer.Option("--archivist", help="It may add, rename and retire signals of tables of samples.")
    ] = False,
    recorder: Annotated[
        bool, typer.Option("--recorder", help="It may call capture_event and forget_capture.")
    ] = False,
    parameter: Annotated[
        list[str] | None,
        option(
            "--parameter",
            metavar="TABLE",
            help="It may change this parameter table, and read everything. May be repeated.",
        ),
    ] = None,
    tables: Annotated[
        str | None,
        option(
            "--tables",
            metavar="NAMES",
            help="With --writer and --reader: only these tables and groups of tables, separated by commas.",
        ),
    ] = None,
    statement_timeout: StatementTimeout = None,
    row_limit: RowLimit = None,
    idle_transaction: NewIdleTransaction = limits.USUAL.idle_transaction or limits.NONE,
    temporary_files: TemporaryFiles = None,
    sessions: SessionLimit = None,
    password_stdin: PasswordStdin = False,
    data: Data = None,
    dsn: Dsn = None,
) -> None:
    """Add a login that may write, read, or change parameters or signals. The server may be running."""
    given = {
        logins.Right.WRITER: writer,
        logins.Right.READER: reader or bool(parameter),
        logins.Right.PARAMETER_WRITER: parameter_writer,
        logins.Right.ARCHIVIST: archivist,
        logins.Right.RECORDER: recorder,
    }
    rights = [right for right, wanted in given.items() if wanted]
    if not rights:
        raise UsageError(
            "choose the rights of the login: --writer, --reader, --parameter-writer or --parameter TABLE,"
            " --archivist or --recorder"
        )
    if tables is not None and (tables.strip() == "none" or not (writer or reader)):
        raise UsageError("--tables names the tables of --writer and --reader")
    password = _password(name, password_stdin)
    most = Limits(statement_timeout, row_limit, idle_transaction, temporary_files, sessions)
    with facility_opened(data, dsn) as conninfo:
        some = _tables(conninfo, "--tables", tables) if tables is not None else None
        for server in every_server(conninfo):
            # the first server has the parameter tables
            parameters = parameter or () if server == conninfo else ()
            logins.add_login(server, name, rights, password, parameters, most, some)
    of_tables = f" of {some}" if some else ""
    of_tables += f", and of {', '.join(parameter)}" if parameter else ""
    print(f"login {name} added as a {' and '.join(right.shown for right in rights)}{of_tables}")
    _warn_of_length(name, password)


@user.command("list")
def show(machine: Json = False, data: Data = None, dsn: Dsn = None) -> None:
    """List the logins with their rights, whether they are locked, and their numbers of connections."""
    with facility_opened(data, dsn) as conninfo:
        found = logins.logins(conninfo)
    if machine:
        print(json.dumps([asdict(one) for one in found]))
        return
    for one in found:
        state = "locked" if one.locked else "open"
        until = f", password until {one.until}" if one.until else ""
        most = f"; at most: {one.limits}" if one.limits else ""
        print(f"{one.name}: {' and '.join(one.rights)}, {state}, {one.connections} connections{until}{most}")
    if not found:
        print("there are no logins: add one with ringlog user add")


@user.command("passwd")
def passwd(name: Name, password_stdin: PasswordStdin = False, data: Data = None, dsn: Dsn = None) -> None:
    """Change the password of a login. Its open sessions continue."""
    password = _password(name, password_stdin)
    with facility_opened(data, dsn) as conninfo:
        for server in every_server(conninfo):
            logins.change_password(server, name, password)
    print(f"login {name} has a new password")
    _warn_of_length(name, password)


@user.command("change")
def change(
    name: Name,
    writes: Annotated[
        str | None,
        option(
            "--writes",
            metavar="NAMES",
            help="The tables and groups of tables that it may write, separated by commas; all, or none.",
        ),
    ] = None,
    reads: Annotated[
        str | None,
        option(
            "--reads", metavar="NAMES", help="The tables and groups of tables that it may read, likewise."
        ),
    ] = None,
    data: Data = None,
    dsn: Dsn = None,
) -> None:
    """Set which tables a login may write and read. It applies at once, to open sessions too."""
    if writes is None and reads is None:
        raise UsageError("choose what to change: --writes or --reads")
    with facility_opened(data, dsn) as conninfo:
        wanted = _named(conninfo, writes, reads)
        for server in every_server(conninfo):
            logins.change_tables(server, name, wanted)
        print(_rights_of(conninfo, name))


@user.command("grant")
def grant(
    name: Name,
    writes: Annotated[
        str | None,
        option(
            "--writes",
            metavar="NAMES",
            help="Tables and groups of tables that it may write too, separated by commas; or all.",
        ),
    ] = None,
    reads: Annotated[
        str | None,
        option("--reads", metavar="NAMES", help="Tables and groups that it may read too, likewise."),
    ] = None,
    parameter: Annotated[
        list[str] | None,
        option(
            "--parameter", metavar="TABLE", help="A parameter table that it may change too. May be repeated."
        ),
    ] = None,
    data: Data = None,
    dsn: Dsn = None,
) -> None:
    """Let a login write and read further tables. It applies at once."""
    if writes is None and reads is None and not parameter:
        raise UsageError("choose what to grant: --writes, --reads or --parameter")
    if "none" in (writes, reads):
        raise UsageError("none takes rights away: ringlog user change")
    with facility_opened(data, dsn) as conninfo:
        wanted = logins.more_tables(conninfo, name, _named(conninfo, writes, reads))
        for server in every_server(conninfo):
            logins.change_tables(server, name, wanted)
        # the first server has the parameter tables
        for table in parameter or ():
            logins.grant_parameter(conninfo, name, table)
        print(_rights_of(conninfo, name))


@user.command("limit")
def limit(
    name: Name,
    statement_timeout: StatementTimeout = None,
    row_limit: RowLimit = None,
    idle_transaction: IdleTransaction = None,
    temporary_files: TemporaryFiles = None,
    sessions: SessionLimit = None,
    data: Data = None,
    dsn: Dsn = None,
) -> None:
    """Set limits for the statements of a login. They apply to sessions that begin later."""
    most = Limits(statement_timeout, row_limit, idle_transaction, temporary_files, sessions)
    if not most.settings():
        raise UsageError(
            "choose what to limit: --statement-timeout, --row-limit, --idle-transaction, --temporary-files or"
            " --sessions"
        )
    with facility_opened(data, dsn) as conninfo:
        for server in every_server(conninfo):
            logins.limit(server, name, most)
    print(f"login {name} has these limits from its next session on")


@user.command("reads")
def reads(
    name: Name,
    where: Annotated[
        logins.Server, typer.Argument(help="The server that its sessions read from.", show_default=False)
    ],
    data: Data = None,
    dsn: Dsn = None,
) -> None:
    """Let a login read from a standby, if there is one. It applies to sessions that begin later.

    Calls of put procedures are always sent to the primary; a session that has made one also reads there.
    """
    with facility_opened(data, dsn) as conninfo:
        for server in every_server(conninfo):
            logins.read_from(server, name, where)
    print(f"login {name} reads from the {where.value} from its next session on")


@user.command("lock")
def lock(name: Name, data: Data = None, dsn: Dsn = None) -> None:
    """Lock a login: end its open sessions and refuse new ones."""
    with facility_opened(data, dsn) as conninfo:
        there, away = servers_there(conninfo)
        # an unreachable node does not delay the lock; sessions begin on the first server
        for server in reversed(there):
            logins.lock(server, name)
    print(f"login {name} is locked")
    if away:
        raise ServerError(
            "".join(f"node {node} cannot be reached: {why}. " for node, why in away.items())
            + f"When it is available again: ringlog user lock {name}"
        )


@user.command("unlock")
def unlock(name: Name, data: Data = None, dsn: Dsn = None) -> None:
    """Unlock a login. Its password is unchanged."""
    with facility_opened(data, dsn) as conninfo:
        for server in every_server(conninfo):
            logins.unlock(server, name)
    print(f"login {name} is unlocked")


@user.command("remove")
def remove(name: Name, data: Data = None, dsn: Dsn = None) -> None:
    """Drop a login and end its sessions. Rows that it has written remain."""
    with facility_opened(data, dsn) as conninfo:
        for server in every_server(conninfo):
            logins.remove_login(server, name)
    print(f"login {name} is removed")


def _named(conninfo: str, writes: str | None, reads: str | None) -> dict[logins.Right, Held | None]:
    """The tables of each right that is given."""
    given = {logins.Right.WRITER: ("--writes", writes), logins.Right.READER: ("--reads", reads)}
    return {
        right: _tables(conninfo, option, names)
        for right, (option, names) in given.items()
        if names is not None
    }


def _rights_of(conninfo: str, name: str) -> str:
    rights = next(each.rights for each in logins.logins(conninfo) if each.name == name)
    return f"login {name} is a {' and '.join(rights)}"


def _tables(conninfo: str, option: str, text: str) -> Held | None:
    """The tables that an option names; None: all."""
    names = [name.strip() for name in text.split(",")]
    if names == ["all"]:
        return None
    if names == ["none"]:
        return Held()
    if "" in names:
        raise UsageError(f"{option}: a name is missing in {text!r}")
    return logins.tables_named(conninfo, names)


def _password(name: str, from_stdin: bool) -> str:
    if from_stdin:
        return sys.stdin.readline().rstrip("\r\n")
    if not sys.stdin.isatty():
        raise UsageError("there is no terminal to enter the password: give it with --password-stdin")
    password = getpass.getpass(f"Password of {name}: ")
    if getpass.getpass("Once more: ") != password:
        raise UsageError("the two passwords differ; nothing was changed")
    return password


def _warn_of_length(name: str, password: str) -> None:
    limit = logins.TDS5_LIMIT
    if len(name.encode()) > limit or len(password.encode()) > limit:
        text = f"TDS 5.0 clients cannot log in as {name}: they send {limit} bytes of name and password"
        print(f"ringlog: {text}", file=sys.stderr, flush=True)
