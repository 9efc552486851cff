"""The command `ringlog report losses`: accounts for all rows."""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from ringlog.commands.options import Data, Dsn
from ringlog.errors import UsageError
from ringlog.loader.cli import option
from ringlog.nodes.servers import Everywhere, server_of
from ringlog.schema import session
from ringlog.schema.sql_files import sql_file
from ringlog.server.database import facility_opened

if TYPE_CHECKING:
    from rich.console import Console

# Events that the report shows at most.
_MOST_EVENTS = 1000
_CHOSEN = """
  from ringlog.event
  where coalesce(until, "time") >= %s and (%s::text is null or table_name = %s)
"""
# Events of one kind and message that follow each other are one. A spool that is thinned further and further
# has another message each time.
_EVENTS = sql_file(__file__, "report_events").format(chosen=_CHOSEN, most=_MOST_EVENTS + 1)
_GAPS = f"select coalesce(sum(rows), 0)::bigint {_CHOSEN} and kind = 'gap'"

report_app = typer.Typer(help="Reports about rows.", no_args_is_help=True)

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_LOSSES = (
    "produced",
    "acknowledged",
    "in_log",
    "thinned",
    "refused",
    "waiting",
    "late",
    "repeated",
    "missing",
)


@report_app.command("losses")
def losses(
    since: Annotated[
        str, typer.Option(metavar="TIME", help=("Start of the report, this long ago: 90m, 24h, 7d, 2w."))
    ] = "24h",
    table: Annotated[str | None, option(metavar="TABLE", help="This table only.")] = None,
    hourly: Annotated[bool, typer.Option("--hourly", help="Report each hour separately.")] = False,
    data: Data = None,
    dsn: Dsn = None,
) -> None:
    """Account for all rows of each table, and list the events that explain losses. Code 1: some are lost."""
    begin = moment_of(since)
    with facility_opened(data, dsn) as conninfo:
        servers = (
            [server_of(conninfo, table)]
            if table
            else (each for _, each in Everywhere(conninfo).with_headlines())
        )
        # the losses of all servers are printed
        none_lost = [print_losses(server, begin, table, hourly) for server in servers]
        if not all(none_lost):
            raise typer.Exit(1)


def moment_of(text: str) -> datetime:
    """A time so long ago: 90m, 24h, 7d, 2w. Raises UsageError."""
    found = re.fullmatch(r"(\d{1,5})([mhdw])", text, re.ASCII)
    if found is None:
        raise UsageError(f"'{text}' is not a duration: write 90m, 24h, 7d or 2w")
    return datetime.now(UTC) - timedelta(**{_UNITS[found[2]]: int(found[1])})


def print_losses(conninfo: str, begin: datetime, table: str | None, hourly: bool) -> bool:
    """Prints the account of the rows since `begin`. Returns whether none are missing, thinned, refused or
    not taken.

    Raises UsageError for a table that is not there.
    """
    columns = ", ".join(
        f"sum({name})::bigint" if name == "missing" else f"coalesce(sum({name}), 0)::bigint"
        for name in _LOSSES
    )
    keys = "table_name, hour" if hourly else "table_name"
    query = f"select {keys}, {columns} from ringlog.losses(%s, null, %s) group by {keys} order by {keys}"
    with session.connect(conninfo) as connection:
        known = [name for (name,) in connection.execute("select table_name from ringlog.logged_table")]
        if table is not None and table not in known:
            raise UsageError(f"there is no table '{table}': ringlog status lists them")
        books = connection.execute(query.encode(), [begin, table]).fetchall()
        silent = connection.execute("select * from ringlog.silences(%s, %s)", [begin, table]).fetchall()
        happened = connection.execute(_EVENTS.encode(), [begin, table, table]).fetchall()
        (untaken,) = connection.execute(_GAPS.encode(), [begin, table, table]).fetchone() or (0,)
    console = _console()
    if not books:
        console.print("no writer has reported rows in this time")
    else:
        headings = [*keys.split(", "), *_LOSSES]
        titles = [name.replace("_", " ") for name in headings]
        _print(
            console, titles, ([_cell(value) for value in row] for row in books), len(headings) - len(_LOSSES)
        )
    if happened:
        console.print()
        _print(
            console,
            ["table", "from", "to", "what", "rows", "message"],
            ([_cell(value) for value in row] for row in happened[:_MOST_EVENTS]),
            6,
        )
        if len(happened) > _MOST_EVENTS:
            console.print(
                f"only the first {_MOST_EVENTS} are shown: name a --table, or a later --since", style="bold"
            )
    thinned, refused, missing = (
        _LOSSES.index(name) - len(_LOSSES) for name in ("thinned", "refused", "missing")
    )
    lost = sum(row[thinned] + row[refused] + (row[missing] or 0) for row in books)
    for name, last, cycles in silent:
        since = "never" if last is None else f"not since {_cell(last)}"
        console.print(f"{name}: no row, {since}: about {cycles} cycles")
    gaps = sum(cycles for *_, cycles in silent)
    gaps += untaken
    produced = sum(row[-len(_LOSSES)] for row in books)
    console.print(f"\n{produced} rows produced, {lost} lost, {gaps} not taken")
    return not lost and not gaps


def _console() -> "Console":
    from rich.console import Console

    console = Console(highlight=False)
    # lines to a file or a pipe are not cut
    return console if console.is_terminal else Console(highlight=False, width=250)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, datetime):
        return f"{value.astimezone():%Y-%m-%d %H:%M:%S}"
    if isinstance(value, float):
        return f"{value * 1000:.1f} ms"
    return str(value)


def _print(console: "Console", headings: Sequence[str], rows: Iterable[Sequence[str]], left: int) -> None:
    from rich import box
    from rich.table import Table as Grid
    from rich.text import Text

    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False)
    for index, heading in enumerate(headings):
        wraps = heading in ("message", "trouble")
        grid.add_column(heading, justify="left" if index < left or wraps else "right", no_wrap=not wraps)
    for row in rows:
        # plain text: no markup, no control characters
        grid.add_row(*(Text("".join(each if each.isprintable() else "?" for each in cell)) for cell in row))
    console.print(grid)
