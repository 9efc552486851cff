"""A load by locust's users: run, measured and checked."""

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from statistics import fmean

from ringlog.loader.ack_log import Acknowledgement
from ringlog.loader.display import milliseconds
from ringlog.loader.schedule import SECOND, now
from ringlog.loadtest.calls import Kind
from ringlog.loadtest.experiment.errors import LoadTestError
from ringlog.loadtest.load import LocustLoad, Pace
from ringlog.loadtest.readings import readings
from ringlog.loadtest.spring8 import recorded
from ringlog.loadtest.spring8.recorded import Recorded
from ringlog.loadtest.spring8.results import KILOBYTE, PYTHON, VALUE_BYTES, WIDE, Check, Run
from ringlog.loadtest.spring8.sampling import Sampler
from ringlog.loadtest.spring8.scene import Experiment, Scene
from ringlog.loadtest.spring8.swarm import Swarm, swarm
from ringlog.loadtest.verification import verify_sets
from ringlog.schema.facility import Facility, Table

# Seconds from the last login to the beginning of the load.
_SETTLE = 1.0


def python_run(scene: Scene, label: str, number: int, pace: Pace, width: int | None = None) -> Run:
    """A load by so many users of locust, on tables of one width or on all."""
    experiment, target, facility = scene.experiment, scene.target, scene.facility
    file_of_calls = experiment.folder / f"{label}.calls"
    reader = str(target.reader) if pace is Pace.NORMAL else None
    load = LocustLoad(scene.file, str(target.writer), reader, pace, width, file_of_calls)
    folder = experiment.folder / label
    folder.mkdir()
    with ExitStack() as stack:
        crowd = stack.enter_context(
            swarm(load, target.password, number, experiment.workers, experiment.seconds, folder)
        )
        logged_in = _log_in(experiment, crowd, number)
        sampler = Sampler(target, [crowd.process])
        stack.callback(sampler.close)
        time.sleep(_SETTLE)
        if pace is Pace.NORMAL:
            # so that the measured I/O is exactly that of the load
            sampler.checkpoint()
        title = f"{number} Python users" + ("" if width is None else f", {width} columns")
        since = now()
        began, end = experiment.watch(sampler, title, lambda: _so_far(crowd, since))
        crowd.stop()
        closing = sampler.take() if pace is Pace.NORMAL and sampler.checkpoint() else None
    records = crowd.recorded.all
    experiment.steps.say("Looking for every acknowledged row")
    found = check(target.conninfo, facility, crowd.recorded)
    seconds = (end - began) / SECOND
    measured = recorded.within(records, began, end)
    writes = recorded.of_kind(measured, Kind.WRITE)
    reads = recorded.of_kind(measured, Kind.READ)
    written = recorded.well(writes)
    calls_file = f"{label}.calls.csv.gz"
    recorded.write_csv(records, facility, experiment.output / calls_file)
    return experiment.run(
        label,
        began,
        sampler.samples,
        calls_file,
        clients=PYTHON,
        description=f"{number} users in Python: pymssql, TDS 7.4, {experiment.workers}",
        users=number,
        logged_in=logged_in,
        columns=width or fmean(len(table.columns) for table in facility.tables),
        seconds=seconds,
        rows=len(written) / seconds,
        kilobytes=recorded.values(written, facility) * VALUE_BYTES / KILOBYTE / seconds,
        asked=None if pace is Pace.MAX else _normal_rate(facility, number),
        writes=recorded.calls(writes),
        wide=recorded.calls(recorded.of_columns(writes, facility, WIDE)),
        reads=recorded.calls(reads) if reader else None,
        logins=recorded.calls(recorded.of_kind(records, Kind.LOGIN)),
        tables=recorded.of_tables(written, facility, seconds),
        closing=closing,
        check=found,
        by_second=recorded.by_second(written, began, seconds),
        complaint=crowd.complaint,
    )


def _log_in(experiment: Experiment, crowd: Swarm, number: int) -> int:
    found = 0
    with experiment.steps.step(f"{number} users log in", number) as progress:
        for found in crowd.wait_for_logins(number):
            progress(found, f"{found} logged in")
    if not found:
        raise LoadTestError(f"no user could log in: {crowd.complaint or 'locust gives no reason'}")
    return found


def _so_far(crowd: Swarm, began: int) -> str:
    """The text for running users; raises LoadTestError if locust has ended."""
    crowd.check()
    new = crowd.recorded.catch_up()
    writes = recorded.well(recorded.of_kind(new, Kind.WRITE))
    count = int((recorded.of_kind(crowd.recorded.all, Kind.WRITE)["begun"] >= began).sum())
    longest = f", within {milliseconds(writes['latency'].max() / SECOND)}" if len(writes) else ""
    return f"{count:,} rows{longest}"


def check(conninfo: str, facility: Facility, records: Recorded) -> Check:
    """Looks for every acknowledged row in ring and log."""
    written = recorded.well(recorded.of_kind(records.all, Kind.WRITE))
    acknowledgements: Mapping[Table, Iterator[Acknowledgement]] = {
        table: recorded.acknowledgements(written[written["table"] == index])
        for index, table in enumerate(facility.tables)
    }
    checks = verify_sets(conninfo, acknowledgements, readings)
    return Check(
        acknowledged=sum(one.acknowledged for one in checks),
        in_rings=sum(one.in_ring for one in checks),
        in_logs=sum(one.in_log for one in checks),
        left_out=sum(one.left_out for one in checks),
        altered=sum(one.altered for one in checks),
        lost=sum(one.lost for one in checks),
    )


def _normal_rate(facility: Facility, number: int) -> float:
    """Rows a second of so many users at the normal rate, half of them writers."""
    return number / 2 / len(facility.tables) * sum(1 / table.cycle for table in facility.tables)
