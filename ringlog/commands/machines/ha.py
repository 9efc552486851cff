"""The commands `ringlog ha …`: several machines with automatic failover."""

import json
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import psutil
import typer
from rich.console import Console
from rich.table import Table as Grid

from ringlog.commands.options import Json, logging_command
from ringlog.errors import ServerError, UsageError
from ringlog.extras import demand
from ringlog.loader.cli import option
from ringlog.machines.guard import guard as guard_until
from ringlog.machines.site import Layout, Machine, Site
from ringlog.machines.state import Access, Member, SiteState, cluster, is_primary, request_switchover, state
from ringlog.server.embedded.account import SYSTEM_ACCOUNT
from ringlog.server.embedded.programs import MAJOR_VERSION, packaged_programs
from ringlog.server.embedded.settings import machine_memory, parse_memory, sized
from ringlog.server.processes.stopping import stop_at_signals

ha_app = typer.Typer(help="High availability: several machines, of which one may fail.", no_args_is_help=True)

# Seconds between two queries for the primary.
_LOOK = 0.02

Config = Annotated[
    Path,
    typer.Option(
        "--config",
        metavar="FILE",
        help=("A machine's patroni.yml, with the address of Patroni and the password."),
    ),
]
_CONFIG = Path("/etc/ringlog/patroni.yml")


@ha_app.command("init")
def init(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder for the files; it is created.")],
    machine: Annotated[
        list[str], typer.Argument(metavar="NAME=ADDRESS...", help="Machines with the data, as db1=10.0.0.1.")
    ],
    witness: Annotated[
        list[str] | None,
        option(metavar="NAME=ADDRESS", help="A machine that only votes and has no data. May be repeated."),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help=(
                "While there is no standby, rows wait in the writers' spools. Default: the remaining "
                "machine continues alone."
            ),
        ),
    ] = False,
    memory: Annotated[
        str | None,
        option(metavar="SIZE", help="Memory of a machine, as 8GB. Default: as much as this one has."),
    ] = None,
    postgresql: Annotated[
        Path | None,
        option(
            metavar="DIR",
            help=f"PostgreSQL's programs, as /usr/lib/postgresql/15/bin. Default: PostgreSQL {MAJOR_VERSION} "
            "of ringlog's own wheel.",
        ),
    ] = None,
    account: Annotated[
        str, typer.Option(metavar="NAME", help="Account that all programs run under.")
    ] = SYSTEM_ACCOUNT,
) -> None:
    """Write the files of etcd, Patroni and systemd for each machine: a primary with a synchronous standby."""
    demand("patroni")
    from ringlog.machines.files import write

    size = machine_memory() if memory is None else parse_memory(memory)
    machines = [Machine.parse(text) for text in machine]
    machines += [Machine.parse(text, witness=True) for text in witness or ()]
    site = Site.of(machines)
    layout = Layout(account, postgresql or packaged_programs(), Path(sys.prefix))
    write(folder, site, layout, sized(size, psutil.disk_usage("/").total), strict=strict)
    for one in site.machines:
        what = "etcd" if one.witness else "etcd, Patroni, gateway"
        print(f"{folder / one.name}: {what} for {one.address}")
    print("They hold passwords. How to install them: docs/how-to/two-machines.md")


@ha_app.command("status")
def status(config: Config = _CONFIG, machine: Json = False) -> None:
    """Show the primary, the lag of the others, and the PostgreSQL that each gateway uses. Code 1: there is a
    problem."""
    now = state(_access(config))
    if machine:
        print(json.dumps(asdict(now) | {"troubles": now.troubles}))
    else:
        _show(now)
    if now.troubles:
        raise typer.Exit(1)


@ha_app.command("switchover")
def switchover(
    to: Annotated[
        str | None, option(metavar="NAME", help="The next primary. Default: a synchronous standby.")
    ] = None,
    config: Config = _CONFIG,
) -> None:
    """Make a standby the primary, for example before maintenance. Code 1: the primary is unchanged."""
    access = _access(config)
    found = cluster(access, access.machines)
    known, leader = found.members, found.leader
    if leader is None:
        raise ServerError("no machine is the primary: a switchover is not possible")
    if to is not None and to not in {one.name for one in known}:
        raise UsageError(f"there is no machine {to}: {', '.join(one.name for one in known)}")
    print(f"{leader.name} is the primary; requesting a switchover from its Patroni", flush=True)
    with ThreadPoolExecutor(1) as thread:
        request = thread.submit(request_switchover, access, leader, to)
        for line in _watched(known, request):
            print(line, flush=True)
        code, answer = request.result()
    if code != 200:
        raise ServerError(f"Patroni: {answer.strip()}")
    print(answer.strip())


@ha_app.command("guard")
@logging_command
def guard(config: Config = _CONFIG) -> None:
    """Watch the primary from a standby's machine, and let the standby take over when the primary does not
    answer for three seconds. The unit ringlog-guard runs it."""
    stop = stop_at_signals()
    guard_until(_access(config), stop)


def _watched(known: tuple[Member, ...], request: Future[tuple[int, str]]) -> Iterator[str]:
    """Yields a line whenever another machine becomes the primary, until Patroni has answered."""
    begun = last = time.monotonic()
    primary: str | None = next(one.name for one in known if one.role == "leader")
    with ThreadPoolExecutor(len(known)) as threads:
        while not request.done():
            time.sleep(_LOOK)
            now = time.monotonic()
            found = [
                one.name for one, is_it in zip(known, threads.map(is_primary, known), strict=True) if is_it
            ]
            if found == ([primary] if primary else []):
                if primary:
                    last = now
                continue
            at = f"{now - begun:6.2f} s"
            if found:
                yield f"{at}  {' and '.join(found)} is the primary, after {now - last:.2f} s without one"
                last = now
            else:
                yield f"{at}  no machine is the primary"
            primary = found[0] if found else None


def _show(now: SiteState) -> None:
    console = Console(width=None if sys.stdout.isatty() else 120, highlight=False)
    grid = Grid(box=None, pad_edge=False)
    for heading in (
        "machine",
        "role",
        "state",
        "timeline",
        "not received",
        "not replayed",
        "etcd",
        "gateway reaches",
    ):
        grid.add_column(heading, no_wrap=True)
    etcd = {address: "well" if well else "not well" for address, well in now.etcd.items()}
    names = {one.address: one.name for one in now.members}
    for one in now.members:
        reached = now.reaches[one.name]
        grid.add_row(
            one.name,
            one.role.replace("_", " "),
            one.state,
            _cell(one.timeline),
            _bytes(one.receive_lag),
            _bytes(one.replay_lag),
            etcd.pop(one.address, "-"),
            names.get(reached, reached) if reached else "nothing",
        )
    for address, health in etcd.items():
        # Patroni forgets a machine that is lost: it is a witness only if it answers
        row = ("witness", "-") if now.etcd[address] else ("-", "does not answer")
        grid.add_row(address, *row, "-", "-", "-", health, "-")
    console.print(grid)
    for trouble in now.troubles:
        console.print(trouble)


def _cell(value: object) -> str:
    return "-" if value is None else str(value)


def _bytes(lag: int | None) -> str:
    return "-" if lag is None else f"{lag:,} bytes"


def _access(config: Path) -> Access:
    demand("patroni")
    from ringlog.machines.access import read_access

    return read_access(config)
