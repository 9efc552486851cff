"""The command `ringlog bench`."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from ringlog.loader.cli import option
from ringlog.loadtest.experiment.errors import LoadTestUsageError
from ringlog.loadtest.experiment.facility import write_facility
from ringlog.loadtest.experiment.running import interrupt_once, interruptible, temporary_folder
from ringlog.loadtest.experiment.server import serving
from ringlog.loadtest.experiment.verification import verify
from ringlog_lab.bench.parts import PARTS, USUAL, Plan, measure
from ringlog_lab.bench.reports.comparison import compare as compare_results
from ringlog_lab.bench.reports.report import heading, markdown, tables
from ringlog_lab.bench.reports.results import Results, new_results
from ringlog_lab.native_load import Stand
from ringlog_lab.programs import build

# PostgreSQL's rows are at most a page: 1,000 reals are half of one.
_MOST_COLUMNS = 1590


def bench(
    seconds: Annotated[
        float, typer.Option(metavar="S", min=0.2, help="How long each contender is measured in each round.")
    ] = 2.5,
    rounds: Annotated[int, typer.Option(metavar="N", min=1, help="Rounds, of which medians are taken.")] = 5,
    columns: Annotated[
        int, typer.Option(metavar="N", min=1, max=_MOST_COLUMNS, help="Real columns of the tables written.")
    ] = 200,
    connections: Annotated[int, typer.Option(metavar="N", min=1, max=240, help="Callers at once.")] = 60,
    only: Annotated[
        str | None,
        option(
            metavar="A,B,...", help=f"These parts only: {', '.join(PARTS)}. Without it {', '.join(USUAL)}."
        ),
    ] = None,
    rows: Annotated[
        int, typer.Option(metavar="N", min=1, help="Rows of the log that part read reads.")
    ] = 100_000,
    minutes: Annotated[
        int, typer.Option(metavar="N", min=1, max=60, help="Minutes of HALF's load in part history.")
    ] = 5,
    weeks: Annotated[
        int, typer.Option(metavar="N", min=1, max=1000, help="Archived weeks in part archive.")
    ] = 520,
    stall: Annotated[
        float | None,
        option(
            metavar="S",
            help="Measure the longest wait of a call in this many seconds at full rate, alternating with "
            "direct calls; 600 for the target. Without --only nothing else is measured.",
            min=1,
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", show_default="temporary", help="A new data directory, to be kept."),
    ] = None,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where the report goes.")] = Path(
        ".bench"
    ),
    compare: Annotated[
        Path | None, option(metavar="FILE", help="bench.json of an earlier run to compare with.")
    ] = None,
) -> None:
    """Compare the gateway with direct calls of PostgreSQL, alternately, on a server of its own."""
    console = Console(highlight=False)
    with interruptible():
        parts = _parts(only, stall)
        plan = Plan(parts, seconds, rounds, columns, connections, stall, rows, minutes, weeks)
        if data is not None and data.exists():
            raise LoadTestUsageError(f"{data} exists: the benchmark makes a data directory of its own")
        earlier = None if compare is None else Results.read(compare)
        out.mkdir(parents=True, exist_ok=True)
        results = _run(console, plan, data)
    _report(console, results, earlier, out)


def _parts(only: str | None, stall: float | None) -> tuple[str, ...]:
    if only is None:
        return USUAL if stall is None else ()
    wanted = [name.strip() for name in only.split(",")]
    for name in wanted:
        if name not in PARTS:
            raise LoadTestUsageError(f"--only: there is no part '{name}', only {', '.join(PARTS)}")
    return tuple(part for part in PARTS if part in wanted)


def _run(console: Console, plan: Plan, data: Path | None) -> Results:
    interrupt_once()
    with temporary_folder("ringlog-bench-") as folder, _progress(console, plan) as doing:
        (folder / "programs").mkdir()
        results = new_results(
            {
                "parts": [*plan.parts],
                "seconds": plan.seconds,
                "rounds": plan.rounds,
                "columns": plan.columns,
                "connections": plan.connections,
                "stall": plan.stall,
                "rows": plan.rows,
                "minutes": plan.minutes,
                "weeks": plan.weeks,
            },
            data or folder,
        )
        doing("starting", "building the C clients")
        programs = build(folder / "programs")
        doing("starting", "the server and its tables")
        facility = folder / "facility.toml"
        write_facility(facility, plan.tables())
        with serving(facility, data or folder / "data", keep=data is not None) as server:
            results.settings = server.settings()
            stand = Stand(programs, server)
            measure(plan, stand, results, doing)
            doing("counting", "the rows of all logs")
            results.check = verify(server, stand.acknowledged)
    return results


class _Steps:
    """The progress of a plan: its parts, each as long as it is expected to take."""

    def __init__(self, progress: Progress, plan: Plan) -> None:
        self._progress = progress
        self._ends: dict[str, tuple[float, float]] = {"starting": (0.0, 15.0)}
        end = 15.0
        for part, length in plan.steps():
            self._ends[part] = (end, end + length)
            end += length
        self._ends["counting"] = (end, end + 5.0)
        self._task: TaskID = progress.add_task("", total=end + 5.0, doing="")
        self._part = ""
        self._began = 0.0

    def __call__(self, part: str, what: str) -> None:
        if part != self._part:
            self._part, self._began = part, time.monotonic()
        start, end = self._ends[part]
        done = min(end, start + time.monotonic() - self._began)
        self._progress.update(self._task, completed=done, doing=f"{part}: {what}" if what else part)


@contextmanager
def _progress(console: Console, plan: Plan) -> Iterator[_Steps]:
    bar = BarColumn(), TextColumn("{task.percentage:.0f} %"), TimeRemainingColumn()
    with Progress(*bar, TextColumn("{task.fields[doing]}"), console=console, transient=True) as progress:
        yield _Steps(progress, plan)


def _report(console: Console, results: Results, earlier: Results | None, out: Path) -> None:
    results.write(out / "bench.json")
    (out / "bench.md").write_text(markdown(results))
    for line in heading(results):
        console.print(line, soft_wrap=True)
    shown = [*tables(results)]
    if earlier is not None:
        shown.append(compare_results(earlier, results))
    for table in shown:
        console.print("", table.grid())
    console.print(f"\nWritten to {out}: bench.md, bench.json", soft_wrap=True)
