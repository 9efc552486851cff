"""The commands `ringlog signal`: signals of tables of samples come and go while they are written."""

import csv
import json
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any

import psycopg
import typer

from ringlog.commands.lines import columns
from ringlog.commands.options import Data, Dsn
from ringlog.errors import ServerError, UsageError
from ringlog.nodes.servers import label, nodes_of, reached
from ringlog.nodes.signals import changing
from ringlog.schema import session
from ringlog.server.database import facility_opened

signal_app = typer.Typer(
    help="Signals of tables of samples: they come and go while their tables are written.",
    no_args_is_help=True,
)

# Characters of a value that are shown.
_LONGEST = 40

Names = Annotated[
    list[str], typer.Argument(metavar="SIGNAL…", help="Names of signals; * stands for any characters.")
]
SomeNames = Annotated[
    list[str] | None,
    typer.Argument(metavar="SIGNAL…", help="Names; * stands for any characters. Default: all."),
]
Table = Annotated[str, typer.Argument(metavar="TABLE", help="A table of samples.")]
OfTable = Annotated[str | None, typer.Option("--table", metavar="TABLE", help="Only this table's.")]


@signal_app.command("add")
def add(
    table: Table,
    names: Annotated[list[str], typer.Argument(metavar="SIGNAL…", help="Names of new signals.")],
    unit: Annotated[str, typer.Option(metavar="TEXT", help="Their unit.")] = "",
    description: Annotated[str, typer.Option(metavar="TEXT", help="Their description.")] = "",
    address: Annotated[
        str, typer.Option(metavar="NAME", help="The name of one signal at its source. Default: its own.")
    ] = "",
    deadband: Annotated[
        str, typer.Option(metavar="X", help='How far a value must move: a number, "0.5 %", ADEL or MDEL.')
    ] = "",
    policy: Annotated[
        str, typer.Option(metavar="NAME", help="Their policy. Default: the first that applies.")
    ] = "",
    data: Data = None,
    dsn: Dsn = None,
) -> None:
    """Add signals to a table of samples, all or none; retired ones are taken up again."""
    if address and len(names) > 1:
        raise UsageError("--address is for one signal")
    with _servers(data, dsn) as servers, servers.changing(servers.of(table)) as connection:
        for name in names:
            connection.execute(
                "select ringlog.add_signal(%s, %s, %s, %s, address => %s, deadband => %s, policy => %s)",
                [table, name, unit, description, address, deadband, policy],
            )
    print(_number(len(names), f"added to {table}"))


@signal_app.command("import")
def import_(
    table: Table,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Signals, a line for each: name, then unit and description, separated by commas (CSV). "
            "- is the standard input.",
        ),
    ],
    data: Data = None,
    dsn: Dsn = None,
) -> None:
    """Add the signals of a list that are not there yet, all or none."""
    lines = [*_read(file)]
    with _servers(data, dsn) as servers, servers.changing(servers.of(table)) as connection:
        query = "select signal from ringlog.sample_signal where table_name = %s and state <> 'retired'"
        there = {name for (name,) in connection.execute(query, [table])}
        new = {line[0]: line for line in lines if line[0] not in there}
        for name, unit, description in new.values():
            connection.execute("select ringlog.add_signal(%s, %s, %s, %s)", [table, name, unit, description])
    print(_number(len(new), f"added to {table}") + f", {len(lines) - len(new)} were there already")


@signal_app.command("list")
def show(names: SomeNames = None, table: OfTable = None, data: Data = None, dsn: Dsn = None) -> None:
    """List signals of tables of samples: state, table, type, unit and policy, and who changed each last.
    Code 1: there is none."""
    head = ["signal", "state", "table", "type", "unit", "policy", "changed", "by"]
    with _servers(data, dsn) as servers:
        found = {
            row[0]: [
                *row[:5],
                row[8] or "-",
                "-" if row[5] is None else f"{row[6]} {row[5].astimezone():%Y-%m-%d %H:%M %Z}",
                row[7] or "-",
            ]
            for row in servers.read(
                "select signal, state, table_name, type, unit, changed, change, changed_by, policy"
                " from ringlog.list_signals(%s) where %s::text is null or table_name = %s",
                names,
                [table, table],
            )
        }
    _print(head, found.values())


@signal_app.command("status")
def status(
    names: SomeNames = None,
    table: OfTable = None,
    silent: Annotated[bool, typer.Option("--silent", help="Only those with a reason to be silent.")] = False,
    data: Data = None,
    dsn: Dsn = None,
) -> None:
    """Show the state of signals of tables of samples: connected, newest value, samples a second, samples that
    the writer has dropped, and the reason why one is silent. Code 1: there is none."""
    head = ["signal", "connected", "newest", "value", "per second", "dropped", "silent"]
    with _servers(data, dsn) as servers:
        found = {
            row[0]: [
                row[0],
                {True: "yes", False: "no", None: "-"}[row[1]],
                "-" if row[2] is None else f"{row[2].astimezone():%Y-%m-%d %H:%M:%S}",
                "-" if row[3] is None else row[3][:_LONGEST],
                f"{row[4]:.2f}",
                str(row[5]),
                row[6] or "-",
            ]
            for row in servers.read(
                "select signal, connected, newest, value, rate, dropped, silent"
                " from ringlog.signal_states(%s) where (%s::text is null or table_name = %s)"
                " and (silent is not null or not %s) order by signal",
                names,
                [table, table, silent],
            )
        }
    _print(head, found.values())


def _print(head: list[str], signals: Collection[list[str]]) -> None:
    """Ends the command where there is none."""
    if not signals:
        print("there is no such signal of a table of samples", file=sys.stderr)
        raise typer.Exit(1)
    for line in columns([head, *signals]):
        print(line)


@signal_app.command("pause")
def pause(names: Names, data: Data = None, dsn: Dsn = None) -> None:
    """Do not store samples of signals until `ringlog signal resume`; their writers get a message."""
    print(_number(_changed("pause_signal", names, data, dsn), "paused"))


@signal_app.command("resume")
def resume(names: Names, data: Data = None, dsn: Dsn = None) -> None:
    """Store the samples of paused signals again."""
    print(_number(_changed("resume_signal", names, data, dsn), "written again"))


@signal_app.command("retire")
def retire(names: Names, data: Data = None, dsn: Dsn = None) -> None:
    """End signals: they are not written any more, and their samples can be read."""
    print(_number(_changed("retire_signal", names, data, dsn), "retired"))


@signal_app.command("change")
def change(
    names: Names,
    unit: Annotated[str | None, typer.Option(metavar="TEXT", help="Their unit.")] = None,
    description: Annotated[str | None, typer.Option(metavar="TEXT", help="Their description.")] = None,
    limits: Annotated[
        str | None, typer.Option(metavar="LOW,HIGH", help='Limits in the unit; "" removes them.')
    ] = None,
    alarm_limits: Annotated[
        str | None,
        typer.Option("--alarm-limits", metavar="LOW,HIGH", help="Wider limits, around the others."),
    ] = None,
    states: Annotated[
        str | None, typer.Option(metavar="N=NAME,…", help='Names of whole numbers, as "0=off,1=on".')
    ] = None,
    held: Annotated[
        bool | None, typer.Option("--held/--not-held", help="Whether each value holds until the next.")
    ] = None,
    address: Annotated[
        str | None, typer.Option(metavar="NAME", help="The name of one signal at its source.")
    ] = None,
    deadband: Annotated[
        str | None,
        typer.Option(metavar="X", help='How far a value must move: a number, "0.5 %", ADEL or MDEL.'),
    ] = None,
    policy: Annotated[
        str | None, typer.Option(metavar="NAME", help="Their policy of the facility file.")
    ] = None,
    data: Data = None,
    dsn: Dsn = None,
) -> None:
    """Change unit, limits and others of signals, all or none; the former ones are kept. An empty text
    removes."""
    given: dict[str, object] = {
        "unit": unit,
        "description": description,
        "limits": _limits("--limits", limits),
        "alarm_limits": _limits("--alarm-limits", alarm_limits),
        "states": _states(states),
        "held": held,
        "address": address,
        "deadband": deadband,
        "policy": policy,
    }
    changes = {name: value or None for name, value in given.items() if value is not None}
    if held is False:
        changes["held"] = False
    if not changes:
        raise UsageError("nothing to change: give at least one option")
    if address and len(names) > 1:
        raise UsageError("--address is for one signal")
    text = json.dumps(changes, ensure_ascii=False)
    print(_number(_changed("change_signal", names, data, dsn, text), "changed"))


def _limits(option: str, text: str | None) -> Sequence[float] | None:
    """Empty for an empty text. Raises UsageError."""
    if not text:
        return None if text is None else ()
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise UsageError(f"{option} {text}: give two numbers, as 0,1.5") from None
    return low, high


def _states(text: str | None) -> Mapping[str, str] | None:
    """Empty for an empty text. Raises UsageError."""
    if not text:
        return None if text is None else {}
    parts = [part.strip().partition("=") for part in text.split(",")]
    if not all(number.strip() and name.strip() for number, _, name in parts):
        raise UsageError(f"--states {text}: give numbers and names, as 0=off,1=on")
    return {number.strip(): name.strip() for number, _, name in parts}


@signal_app.command("rename")
def rename(
    name: Annotated[str, typer.Argument(metavar="SIGNAL", help="Its name now.")],
    new_name: Annotated[str, typer.Argument(metavar="NEW", help="Its new name.")],
    data: Data = None,
    dsn: Dsn = None,
) -> None:
    """Give a signal another name; it can be read and written by both."""
    _changed("rename_signal", [name], data, dsn, new_name, is_pattern=False)
    print(f"{name} is {new_name} now, and is read and written by both names")


def _changed(
    procedure: str,
    names: Sequence[str],
    data: Path | None,
    dsn: str | None,
    *values: str,
    is_pattern: bool = True,
) -> int:
    """Calls a procedure for each of these signals, on each server all or none; their number. Raises
    UsageError for a name that fits none."""
    with _servers(data, dsn) as servers:
        chosen: dict[str | None, dict[str, None]] = {}
        for name in names:
            query = "select signal from ringlog.list_signals(%s) where state <> 'retired'"
            pattern = _pattern(name) if is_pattern else _escaped(name)
            matches = 0
            for node in servers.nodes:
                fitting = [signal for (signal,) in servers.connection(node).execute(query, [pattern])]
                chosen[node] = chosen.get(node, {}) | dict.fromkeys(fitting)
                matches += len(fitting)
            if not matches:
                raise UsageError(f"no table of samples has a signal {name}: ringlog signal list")
        for node, signals in chosen.items():
            if signals:
                with servers.changing(node) as connection:
                    for signal in signals:
                        placeholders = ", ".join(["%s"] * (1 + len(values)))
                        call = f"select ringlog.{procedure}({placeholders})".encode()
                        connection.execute(call, [signal, *values])
    return sum(map(len, chosen.values()))


class _Servers:
    """The first server and its nodes."""

    def __init__(self, conninfo: str, stack: ExitStack) -> None:
        self._stack = stack
        self._conninfo = conninfo
        first = stack.enter_context(session.connect(conninfo, autocommit=True))
        self._connections: dict[str | None, psycopg.Connection] = {None: first}
        # an archivist of the first server alone does not see its nodes
        query = "select has_table_privilege(to_regclass('ringlog.node'), 'select')"
        knows_nodes = first.execute(query).fetchone() == (True,)
        self.nodes: dict[str | None, str] = {None: conninfo}
        if knows_nodes:
            self.nodes |= {name: reached(dsn) for name, (dsn, _) in nodes_of(conninfo).items()}

    def connection(self, node: str | None) -> psycopg.Connection:
        """One to read on. Raises ServerError for a node that cannot be reached."""
        if node not in self._connections:
            try:
                opened = session.connect(self.nodes[node], autocommit=True)
            except psycopg.OperationalError as error:
                why = " ".join(str(error).split())
                raise ServerError(f"{label(node)} cannot be reached: {why}") from None
            self._connections[node] = self._stack.enter_context(opened)
        return self._connections[node]

    def of(self, table: str) -> str | None:
        """The node that has a table, or None."""
        row = self._connections[None].execute("select ringlog.node_of_table(%s)", [table]).fetchone()
        assert row is not None
        return None if row[0] is None else str(row[0])

    def changing(self, node: str | None) -> AbstractContextManager[psycopg.Connection]:
        return changing(self._conninfo, node, self.nodes[node])

    def read(
        self, query: str, names: Sequence[str] | None, values: Sequence[object]
    ) -> Iterator[tuple[Any, ...]]:
        """The rows of a query with a pattern of names, of all servers."""
        for name in names or ["*"]:
            for node in self.nodes:
                yield from self.connection(node).execute(query.encode(), [_pattern(name), *values])


@contextmanager
def _servers(data: Path | None, dsn: str | None) -> Iterator[_Servers]:
    """Raises UsageError for what the procedures refuse."""
    with facility_opened(data, dsn) as conninfo, ExitStack() as stack:
        try:
            yield _Servers(conninfo, stack)
        except psycopg.DatabaseError as error:
            if error.sqlstate is None or error.diag.message_primary is None:
                raise
            raise UsageError(error.diag.message_primary) from None


def _pattern(name: str) -> str:
    """A name with * as a pattern of LIKE."""
    return _escaped(name).replace("*", "%")


def _escaped(name: str) -> str:
    """The pattern of one name."""
    return name.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_")


def _read(file: Path) -> Iterator[tuple[str, str, str]]:
    """Name, unit and description of each line. Raises UsageError."""
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read: {error}") from None
    yield from _lines(csv.reader(text.splitlines()), file)


def _lines(rows: Iterable[list[str]], file: Path) -> Iterator[tuple[str, str, str]]:
    for number, row in enumerate(rows, 1):
        cells = [cell.strip() for cell in row]
        if not any(cells) or cells[0].startswith("#"):
            continue
        if len(cells) > 3 or not cells[0]:
            raise UsageError(f"{file}:{number}: a line must be: name, unit, description")
        name, unit, description = [*cells, "", ""][:3]
        yield name, unit, description


def _number(count: int, verb: str) -> str:
    return f"{count} signal{'' if count == 1 else 's'} {verb}"
