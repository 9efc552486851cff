"""The command `ringlog demo`: writers and readers for a minute, on a server of its own, and the results."""

import re
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from multiprocessing.sharedctypes import RawArray
from pathlib import Path
from typing import Annotated
from urllib.parse import quote
from zoneinfo import ZoneInfo

import psutil
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table as Grid

from ringlog.clients import Address, call, connect
from ringlog.clients.figures import State
from ringlog.clients.procedure import Argument
from ringlog.commands.screenshot import screenshot
from ringlog.errors import ServerError, UsageError
from ringlog.extras import demand
from ringlog.loader.display import milliseconds
from ringlog.loader.sources.simulator import Simulator
from ringlog.loader.statistics import Latencies, Statistics
from ringlog.loader.supervisor import Job, Supervisor
from ringlog.loader.writer import WriterProcess
from ringlog.loadtest.experiment.running import temporary_folder
from ringlog.loadtest.parameters import fill, of_a_reader
from ringlog.loadtest.reader import Reader
from ringlog.loadtest.trend import draw, example_signals, read_trends
from ringlog.loadtest.verification import Verified, verify
from ringlog.schema import session
from ringlog.schema.facility import Facility
from ringlog.schema.facility_files import spring8
from ringlog.schema.facility_files.facility_file import load_facility
from ringlog.schema.moments import microseconds
from ringlog.server.embedded.postgres import Postgres
from ringlog.server.logins import Right, add_login
from ringlog.server.processes.web import demand_parts, unprivileged

WRITER, READER, OPERATOR = "demo_writer", "demo_reader", "demo_operator"
# Seconds until a server takes calls, and until all processes are connected.
_STARTED, _CONNECTED = 120.0, 60.0
# papers/004 counts 4 bytes a value.
_VALUE_BYTES = 4


def demo(
    facility: Annotated[
        Path,
        typer.Option(
            "--facility",
            metavar="FILE",
            default_factory=spring8.file,
            show_default="SPring-8's",
            help="Facility file (TOML).",
        ),
    ],
    seconds: Annotated[
        float, typer.Option(metavar="S", min=1, help="Duration of writing and reading.")
    ] = 60.0,
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", show_default="temporary", help="A new data directory, which is kept."),
    ] = None,
    output: Annotated[Path, typer.Option(metavar="DIR", help="The folder for the picture.")] = Path(".demo"),
    keep: Annotated[
        bool | None,
        typer.Option(
            "--keep/--no-keep",
            show_default="at a terminal",
            help="Leave the server running afterwards, until Ctrl-C.",
        ),
    ] = None,
) -> None:
    """Run a server, and a writer and a reader per table, for a minute; then check every row."""
    demand("matplotlib", "pymssql")
    demand_parts()
    loaded = load_facility(facility)
    if data is not None and data.exists() and any(data.iterdir()):
        raise UsageError(f"{data} is not empty: the demo makes a data directory of its own")
    console = Console(highlight=False)
    try:
        with (
            temporary_folder("ringlog-demo-") as folder,
            _server(console, facility, data or folder / "data", folder) as server,
        ):
            good = _demonstrate(console, loaded, server, folder, seconds, output)
            if sys.stdin.isatty() if keep is None else keep:
                _invite(console, "The server runs until Ctrl-C", loaded, server, folder)
                with suppress(KeyboardInterrupt):
                    while server.process.is_running():
                        time.sleep(0.5)
            else:
                again = f"{Path(sys.argv[0])} demo --keep"
                console.print(f"\nThe server stops now. To leave it running: {again}", soft_wrap=True)
    except KeyboardInterrupt:
        console.print("interrupted")
        raise typer.Exit(130) from None
    if not good:
        raise typer.Exit(1)


@dataclass(frozen=True)
class Running:
    """A running `ringlog serve`, and its PostgreSQL."""

    process: psutil.Process
    host: str
    port: int
    postgres: Postgres
    page: str | None
    """the page's URL; None: HTTP cannot run here"""

    def address(self, user: str) -> Address:
        """The address for `user` to log in."""
        return Address(user, self.host, self.port)


@dataclass(frozen=True)
class Mark:
    """Figures at a moment: processor seconds of the three parts, values acknowledged."""

    moment: float
    postgres: float
    server: float
    clients: float
    values: int


@contextmanager
def _server(console: Console, facility: Path, data: Path, folder: Path) -> Iterator[Running]:
    """`ringlog serve` in a process group of its own, out of reach of Ctrl-C."""
    console.print(f"Starting a server with {facility.name} on {data}")
    began = time.monotonic()
    log_file = folder / "serve.log"
    command = [sys.executable, "-P", "-m", "ringlog", "serve"]
    command += ["--facility", str(facility), "--data", str(data), "--listen", "127.0.0.1:0"]
    try:
        unprivileged(None)
        command += ["--http", "127.0.0.1:0", "--http-role", READER]
        http = r"HTTP on (http\S+)$"
    except ServerError as error:
        console.print(f"  without the page: {error}", soft_wrap=True, markup=False)
        http = "()"
    with log_file.open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, process_group=0)
    try:
        listening = re.compile(rf"^TDS on (.+):(\d+)\n(?:.*\n)*?{http}", re.MULTILINE)
        shown = 0
        while not (found := listening.search(text := log_file.read_text())):
            progress = re.findall("installing the facility: (.*)", text)
            for line in progress[shown:]:
                console.print(f"  {line} after {time.monotonic() - began:.0f} s")
            shown = len(progress)
            if server.poll() is not None or time.monotonic() - began > _STARTED:
                reason = log_file.read_text().strip().rpartition("\n")[2]
                raise ServerError(f"the demo's server did not start: {reason or 'it printed no reason'}")
            time.sleep(0.05)
        console.print(f"  PostgreSQL and the gateway are up after {time.monotonic() - began:.1f} s")
        page = f"{found[3]}/" if found[3] else None
        yield Running(psutil.Process(server.pid), found[1], int(found[2]), Postgres(data), page)
    finally:
        server.terminate()
        server.wait()


def _demonstrate(
    console: Console, facility: Facility, server: Running, folder: Path, seconds: float, output: Path
) -> bool:
    """Writes and reads for this long, checks, reports and draws. Returns whether all went well."""
    password = secrets.token_urlsafe(12)
    for login, *rights in (
        (WRITER, Right.WRITER),
        (READER, Right.READER),
        (OPERATOR, Right.READER, Right.RECORDER),
    ):
        add_login(server.postgres.conninfo(), login, rights, password)
    (folder / "password").touch(0o600)
    (folder / "password").write_text(f"{password}\n")
    acknowledgements = folder / "acknowledgements"
    acknowledgements.mkdir()
    trip = RawArray("q", 2)
    simulator = Simulator(trip=trip)
    zone = ZoneInfo(facility.timezone)
    writers = [
        WriterProcess(
            table,
            zone,
            server.address(WRITER),
            password,
            simulator,
            folder / "spool",
            acknowledgements=acknowledgements / table.name,
        )
        for table in facility.tables
    ]
    with session.connect(server.postgres.conninfo()) as administrator:
        fill(administrator, facility)
    readers = [
        Reader(table, server.address(READER), password, of_a_reader(facility, index))
        for index, table in enumerate(facility.tables)
    ]
    jobs = [Job(f"write {writer.table.name}", writer.run) for writer in writers]
    jobs += [Job(f"read {reader.table.name}", reader.run) for reader in readers]
    with Supervisor(jobs) as supervisor:
        writing, reading = (
            {table.name: supervisor.statistics[f"{verb} {table.name}"] for table in facility.tables}
            for verb in ("write", "read")
        )
        _connect(console, supervisor)
        _invite(console, "To look for yourself while it runs", facility, server, folder)
        # latencies while 120 processes log in at once are not those of normal operation
        for one in supervisor.statistics.values():
            one.forget_latencies()
        begin, before = datetime.now(UTC), _mark(server, supervisor, facility, writing)
        tripped: list[datetime] = []

        def halfway() -> None:
            tripped.append(datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=1))
            # the begin first: [0, end] would be a trip of all time
            trip[0] = microseconds(tripped[0])
            trip[1] = trip[0] + round(seconds / 6 * 1e6)
            _record_trip(facility, server.address(OPERATOR), password, tripped[0])

        _work(console, supervisor, writing, seconds, halfway)
        end, after = datetime.now(UTC), _mark(server, supervisor, facility, writing)
    console.print("Checking every acknowledged row")
    checks = verify(server.postgres.conninfo(), facility.tables, acknowledgements, simulator)
    console.print()
    _report(console, writing, reading, checks, before, after)
    picture = output / "trends.png"
    output.mkdir(parents=True, exist_ok=True)
    groups = example_signals(facility)
    trends = read_trends(server.address(READER), password, groups, begin, end)
    draw(trends, f"{facility.name}, {end.astimezone(zone):%Y-%m-%d} ({facility.timezone})", picture)
    signals = sum(len(group) for group in groups)
    console.print(f"Picture    {picture}: {signals} signals, read by get_signal over TDS", soft_wrap=True)
    if server.page and screenshot(shown(server.page, facility, (begin, end)), output / "page.png"):
        console.print(f"           {output / 'page.png'}: the same on the page, over HTTP", soft_wrap=True)
    console.print(
        f"Trip       of the beam at {tripped[0].astimezone(zone):%H:%M:%S}: on the page open Captures, "
        "find its mark, click on the gap",
        soft_wrap=True,
    )
    return _report_trouble(console, supervisor, checks)


def _record_trip(facility: Facility, address: Address, password: str, time: datetime) -> None:
    """Keeps the rows around a trip of the beam, and writes it down."""
    shown = {column for group in example_signals(facility) for column in group}
    tables = [each.name for each in facility.tables if shown & {*each.columns}]
    connection = connect(address, password)
    try:
        event: dict[str, Argument] = {
            "name": "beam trip",
            "at": time,
            "note": "simulated",
            "tables": ", ".join(tables),
        }
        call(connection, "capture_event", before=10.0, after=10.0, **event)
        call(connection, "add_mark", time=time, text="the beam is lost")
    finally:
        connection.close()


def _connect(console: Console, supervisor: Supervisor) -> None:
    began = time.monotonic()
    supervisor.start()
    statistics = supervisor.statistics.values()
    while not all(one.state == State.RUNNING for one in statistics):
        supervisor.tend(0.1)
        if time.monotonic() - began > _CONNECTED:
            reason = next((one.message for one in statistics if one.message), "no reason was reported")
            raise ServerError(f"not all processes could connect in {_CONNECTED:.0f} s: {reason}")
    console.print(f"  {len(statistics)} processes are connected after {time.monotonic() - began:.1f} s")


def _work(
    console: Console,
    supervisor: Supervisor,
    writing: Mapping[str, Statistics],
    seconds: float,
    halfway: Callable[[], None],
) -> None:
    """Lets the processes work, with a progress bar; `halfway` is called once. It has no thread: restarted
    processes are forked."""
    columns = TextColumn("Writing and reading"), BarColumn(), TextColumn("{task.percentage:.0f} %")
    until = time.monotonic() + seconds
    with Progress(
        *columns, TextColumn("{task.description}"), console=console, auto_refresh=False
    ) as progress:
        task = progress.add_task("", total=seconds)
        half: float | None = until - seconds / 2
        while (left := until - time.monotonic()) > 0:
            if half is not None and time.monotonic() > half:
                halfway()
                half = None
            supervisor.tend(min(0.5, left))
            acknowledged = sum(one.acknowledged for one in writing.values())
            p99 = milliseconds(Latencies(writing.values()).quantile(0.99))
            progress.update(
                task,
                completed=min(seconds, seconds - until + time.monotonic()),
                description=f"{acknowledged} rows acknowledged, 99 % within {p99}",
            )
            progress.refresh()


def _mark(
    server: Running, supervisor: Supervisor, facility: Facility, writing: Mapping[str, Statistics]
) -> Mark:
    postmaster = server.postgres.postmaster()
    assert postmaster is not None
    own = psutil.Process().cpu_times()
    serving = server.process.cpu_times()
    return Mark(
        time.monotonic(),
        postgres=_tree(postmaster),
        server=serving.user + serving.system,
        clients=sum(one.cpu for one in supervisor.statistics.values()) + own.user + own.system,
        values=sum(writing[table.name].acknowledged * len(table.columns) for table in facility.tables),
    )


def _tree(process: psutil.Process) -> float:
    """Processor seconds of a process, of its children, and of those that have ended."""
    times = process.cpu_times()
    spent = times.user + times.system + times.children_user + times.children_system
    for child in process.children():
        with suppress(psutil.NoSuchProcess):
            spent += sum(child.cpu_times()[:2])
    return float(spent)


def _report(
    console: Console,
    writing: Mapping[str, Statistics],
    reading: Mapping[str, Statistics],
    found: Sequence[Verified],
    before: Mark,
    after: Mark,
) -> None:
    sent = sum(one.sent for one in writing.values())
    acknowledged, lost = sum(one.acknowledged for one in found), sum(one.lost for one in found)
    elapsed = after.moment - before.moment
    rate = (after.values - before.values) * _VALUE_BYTES / elapsed / 1000

    facts = Grid(box=None, show_header=False, pad_edge=False)
    in_log, left_out = sum(one.in_log for one in found), sum(one.left_out for one in found)
    altered = sum(one.altered for one in found)
    facts.add_row("Rows", f"{sent} sent, {acknowledged} acknowledged")
    facts.add_row("", f"{sum(one.in_ring for one in found)} found in the rings")
    facts.add_row("", f"{in_log} found in the logs, {left_out} left out by log policies")
    facts.add_row("", f"{altered} with other values than were sent")
    facts.add_row("", f"[bold {'red' if lost else 'green'}]{lost} lost")
    facts.add_row("Data", f"{rate:.2f} kB/s in {len(found)} tables, counting 4 bytes a value")
    console.print(facts, "")

    latencies = Grid(box=None, pad_edge=False)
    for heading in ("Latency", "calls", "p50", "p99", "max"):
        latencies.add_column(heading, justify="left" if heading == "Latency" else "right")
    for name, statistics in (("writes", writing), ("reads", reading)):
        all_of_them = Latencies(statistics.values())
        figures = all_of_them.quantile(0.5), all_of_them.quantile(0.99), all_of_them.longest
        latencies.add_row(name, f"{all_of_them.count}", *(milliseconds(figure) for figure in figures))
    console.print(latencies, "")

    processor = Grid(box=None, pad_edge=False)
    for heading in ("Processor", "seconds", "of one core"):
        processor.add_column(heading, justify="left" if heading == "Processor" else "right")
    for name, used in (
        ("PostgreSQL", after.postgres - before.postgres),
        ("gateway and server", after.server - before.server),
        (f"{len(writing) + len(reading)} clients", after.clients - before.clients),
    ):
        processor.add_row(name, f"{used:.1f}", f"{100 * used / elapsed:.1f} %")
    console.print(processor, "")


def _report_trouble(console: Console, supervisor: Supervisor, found: Sequence[Verified]) -> bool:
    """Prints the problems. Returns whether there are none."""
    good = True
    for one in found:
        if one.lost or one.altered:
            console.print(f"[red]{one.table.name}: {one.lost} rows lost, {one.altered} with other values")
            good = False
    for name, statistics in supervisor.statistics.items():
        if statistics.refused:
            console.print(f"[red]{name}: {statistics.refused} calls refused: {statistics.message}")
            good = False
        elif statistics.message:
            console.print(f"[yellow]{name}: {statistics.message}")
    return good


def shown(page: str, facility: Facility, span: tuple[datetime, datetime] | None = None) -> str:
    """The page's address with a chart for each of the groups of example signals, live or of a span."""
    charts = []
    for group in example_signals(facility):
        parts = (quote(part, safe="") for part in ("trend", *(each.signal for each in group)))
        charts.append("c=" + quote(",".join(parts), safe=""))
    if span is None:
        return f"{page}#{'&'.join(charts)}&last=120"
    begin, end = (f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}" for moment in span)
    return f"{page}#{'&'.join(charts)}&from={begin}&to={end}"


def _invite(console: Console, when: str, facility: Facility, server: Running, folder: Path) -> None:
    """Three lines with the addresses to look at."""
    signal = example_signals(facility)[0][0].signal
    password = folder / "password"
    url = server.address(READER)
    if server.page:
        console.print(f"\n{when}: {shown(server.page, facility)}", soft_wrap=True, markup=False)
    console.print(f"{'or, in' if server.page else 'In'} another terminal:", soft_wrap=True)
    for line in (
        f"printf \"exec get_latest '{signal}'\\ngo\\n\" | "
        f'tsql -H {server.host} -p {server.port} -U {READER} -P "$(cat {password})"',
        f'psql "{server.postgres.conninfo()}" -c "select * from ringlog.get_latest(\'{signal}\')"',
        f'{sys.executable} -c "from ringlog.clients import call, connect; '
        f"print(call(connect('{url}', password_file='{password}'), 'get_latest', '{signal}').rows)\"",
    ):
        console.print(f"  {line}", soft_wrap=True, markup=False)
    console.print()
