"""What writers tell of themselves, for a person: `ringlog status` and `ringlog report losses`."""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

import psycopg
from rich import box
from rich.console import Console
from rich.table import Table as Grid

from ringlog.errors import UsageError

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


def since(text: str) -> datetime:
    """A time so long ago: 90m, 24h, 7d, 2w. Raises UsageError."""
    found = re.fullmatch(r"(\d{1,5})([mhdw])", text, re.ASCII)
    if found is None:
        raise UsageError(f"'{text}' is no length of time: write 90m, 24h, 7d or 2w")
    return datetime.now(UTC) - timedelta(**{_UNITS[found[2]]: int(found[1])})


def losses(conninfo: str, begin: datetime, table: str | None, hourly: bool) -> bool:
    """Prints what became of the rows since `begin`; whether none are missing, thinned or refused."""
    columns = ", ".join(
        f"sum({name})::bigint" if name == "missing" else f"coalesce(sum({name}), 0)::bigint"
        for name in _LOSSES
    )
    keys = "table_name, hour" if hourly else "table_name"
    query = f"select {keys}, {columns} from ringlog.losses(%s, null, %s) group by {keys} order by {keys}"
    events = (
        'select table_name, "time", until, kind, rows, words from ringlog.event'
        ' where coalesce(until, "time") >= %s and (%s::text is null or table_name = %s)'
        ' order by "time", table_name limit 1000'
    )
    with psycopg.connect(conninfo) as connection:
        books = connection.execute(query.encode(), [begin, table]).fetchall()
        happened = connection.execute(events.encode(), [begin, table, table]).fetchall()
    console = _console()
    if not books:
        console.print("no writer has told of rows in this time")
    else:
        headings = [*keys.split(", "), *_LOSSES]
        words = [name.replace("_", " ") for name in headings]
        _print(
            console, words, ([_cell(value) for value in row] for row in books), len(headings) - len(_LOSSES)
        )
    if happened:
        console.print()
        _print(
            console,
            ["table", "from", "to", "what", "rows", "words"],
            ([_cell(value) for value in row] for row in happened),
            6,
        )
    thinned, refused, missing = (
        _LOSSES.index(name) - len(_LOSSES) for name in ("thinned", "refused", "missing")
    )
    lost = sum(row[thinned] + row[refused] + (row[missing] or 0) for row in books)
    console.print(f"\n{sum(row[-len(_LOSSES)] for row in books)} rows produced, {lost} lost")
    return not lost


def status(conninfo: str) -> None:
    """Prints who writes each table, and how it goes."""
    query = (
        "select table_name, case when released is not null then 'ended' when reported is null then 'claimed'"
        " when reported < now() - interval '2 minutes' then 'silent' else state end, name, epoch,"
        " acknowledged, waiting, oldest, late, refused, repeated, reconnected, latency, reported, trouble"
        " from ringlog.writer order by table_name"
    )
    with psycopg.connect(conninfo) as connection:
        writers = connection.execute(query).fetchall()
    console = _console()
    if not writers:
        console.print("no writer has claimed a table")
        return
    headings = ["table", "state", "writer", "claim", "written", "waiting", "oldest", "late", "refused"]
    headings += ["repeated", "reconnected", "latency", "reported", "trouble"]
    _print(console, headings, ([_cell(value) for value in row] for row in writers), 3)


def _console() -> Console:
    console = Console(highlight=False)
    # a file or a pipe takes every line whole
    return console if console.is_terminal else Console(highlight=False, width=250)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, datetime):
        return f"{value.astimezone():%Y-%m-%d %H:%M:%S}"
    if isinstance(value, float):
        return f"{value * 1000:.1f} ms"
    return str(value)


def _print(console: Console, headings: Sequence[str], rows: Iterable[Sequence[str]], left: int) -> None:
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False)
    for place, heading in enumerate(headings):
        words = heading in ("words", "trouble")
        grid.add_column(heading, justify="left" if place < left or words else "right", no_wrap=not words)
    for row in rows:
        grid.add_row(*row)
    console.print(grid)
