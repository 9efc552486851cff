"""The command `ringlog load --backfill`: its options and its progress display."""

import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import psutil
import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from ringlog.clients import Address, Unanswered, connect
from ringlog.loader.options import LoadError
from ringlog.loader.sources.replay import files_of
from ringlog.schema import session
from ringlog.schema.facility import Facility, Table

if TYPE_CHECKING:
    from ringlog.loader.imports import Imports, Progress

_TURN = 0.25  # seconds
_LINE_EVERY = 10.0  # seconds
_KINDS = ("csv", "parquet")
_OF_A_LOGIN = ("user", "password", "passfile", "sslcert", "sslkey", "sslpassword", "target_session_attrs")


def backfill(
    facility: Facility, source: str, names: str | None, address: Address, password: str, at_a_time: int | None
) -> bool:
    """Imports the files of a folder, and shows the progress. Returns whether all rows are in the log.

    Raises LoadError, SourceError, LoginRefused, Unanswered.
    """
    # imported here: only this option needs Arrow
    from ringlog.loader.imports import Imports

    if address.driver != "psycopg":
        raise LoadError(
            "--backfill connects to PostgreSQL directly: --url postgresql://NAME@HOST:PORT/ringlog "
            "(ringlog dsn shows the port)"
        )
    files, tables = _files(facility, source, names)
    connect(address, password).close()
    own = {
        # of several machines the one that accepts writes
        "target_session_attrs": "read-write",
        "user": address.user,
        "password": password,
        "application_name": "ringlog backfill",
    }
    first = make_conninfo(
        host=",".join(one.host for one in address.each),
        port=",".join(str(one.port) for one in address.each),
        dbname=address.database,
        **own,
    )
    nodes = {node.name: make_conninfo(**_without_login(node.dsn), **own) for node in facility.nodes}
    servers = {table.name: nodes[table.node] if table.node else first for table in tables}
    for name in sorted({table.node for table in tables if table.node}):
        _try(name, nodes[name])
    imports = Imports(files, tables, ZoneInfo(facility.timezone), servers)
    with _stopping(imports):
        _show(imports, at_a_time or psutil.cpu_count() or 1)
    for one in imports.progress.values():
        print(one if one.ended else f"{one}: not complete; the same command continues from there", flush=True)
        if one.failure:
            print(f"ringlog: {one.failure}", flush=True)
    return all(one.ended and not one.refused for one in imports.progress.values())


def _without_login(dsn: str) -> dict[str, Any]:
    """A node's connection string, without the administrator's login."""
    return {name: value for name, value in conninfo_to_dict(dsn).items() if name not in _OF_A_LOGIN}


def _try(node: str, conninfo: str) -> None:
    try:
        session.connect(conninfo).close()
    except psycopg.OperationalError as error:
        raise Unanswered(f"node {node}: {' '.join(str(error).split())}") from None


def _files(
    facility: Facility, source: str, names: str | None
) -> tuple[dict[str, Sequence[Path]], Sequence[Table]]:
    """The files of each table that has some, or of the named tables."""
    kind, _, folder = source.partition(":")
    if kind not in _KINDS or not folder:
        raise LoadError("--backfill imports files: --source csv:DIR or parquet:DIR")
    if not Path(folder).is_dir():
        raise LoadError(f"{folder} is not a folder of files")
    known = {table.name: table.written for table in facility.tables if not table.retired}
    wanted = [*known] if names is None else [name.strip() for name in names.split(",")]
    for name in wanted:
        if name not in known:
            raise LoadError(f"--tables: the facility has no table '{name}', or it is retired")
    found = {name: files_of(Path(folder), name, kind) for name in wanted}
    missing = [name for name in wanted if not found[name]]
    if missing and (names is not None or len(missing) == len(wanted)):
        raise LoadError(f"{folder} has neither {missing[0]}.{kind} nor {missing[0]}/*.{kind}")
    strangers = {
        path.stem if path.suffix else path.name
        for path in Path(folder).iterdir()
        if path.suffix == f".{kind}" or any(path.glob(f"*.{kind}"))
    }
    for name in sorted(strangers.difference(known)):
        raise LoadError(f"{folder}/{name}: the facility has no table '{name}', or it is retired")
    return found, [known[name] for name in wanted if found[name]]


@contextmanager
def _stopping(imports: "Imports") -> Iterator[None]:
    """Makes SIGINT and SIGTERM end the imports after their current blocks."""

    def stop(_signal: int, _frame: FrameType | None) -> None:
        imports.stop()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _show(imports: "Imports", at_a_time: int) -> None:
    console = Console()
    if console.is_terminal:
        with Bars(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[message]}"),
            TimeRemainingColumn(),
            console=console,
        ) as bars:
            tasks = {
                name: bars.add_task(name, total=1.0, message="", start=False) for name in imports.progress
            }
            began = time.monotonic()
            for _ in imports.running(at_a_time, _TURN):
                for name, one in imports.progress.items():
                    if one.rows or one.ended:
                        bars.start_task(tasks[name])
                    message = _description(one, time.monotonic() - began)
                    bars.update(tasks[name], completed=1.0 if one.ended else one.part, message=message)
        return
    began = shown = time.monotonic()
    for _ in imports.running(at_a_time, _TURN):
        now = time.monotonic()
        if now - shown >= _LINE_EVERY:
            shown = now
            for one in imports.progress.values():
                if (one.rows or one.trouble) and not one.ended:
                    print(
                        f"{one.table}: {100 * one.part:.0f} %, {_description(one, now - began)}", flush=True
                    )


def _description(one: "Progress", seconds: float) -> str:
    rate = one.rows / seconds if seconds else 0.0
    return one.trouble or f"{one.rows} rows, {rate:.0f} rows/s"
