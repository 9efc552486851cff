"""A load by native writers: run, measured and checked."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from ringlog.loader.schedule import SECOND, now
from ringlog.loadtest.experiment.facility import Tables
from ringlog.loadtest.experiment.machine import this_machine
from ringlog.loadtest.spring8 import native, sampling
from ringlog.loadtest.spring8.native import Group, natives
from ringlog.loadtest.spring8.results import KILOBYTE, NATIVE, VALUE_BYTES, WIDE, Calls, Run, TableFigures
from ringlog.loadtest.spring8.sampling import Sampler
from ringlog.loadtest.spring8.scene import Experiment, utc
from ringlog.loadtest.spring8.target import Target


def native_run(
    experiment: Experiment,
    target: Target,
    programs: Path,
    label: str,
    connections: Mapping[Tables, int],
    written: dict[Tables, int],
) -> list[Run]:
    """A load by native writers; records in `written` the number of rows of their tables. Native writers
    cannot be ended early and report at their end: after Ctrl-C there is no run.
    """
    assert target.server is not None
    number = sum(connections.values())
    with ExitStack() as stack:
        experiment.steps.say(f"{number} native writers log in")
        writers = stack.enter_context(
            natives(programs, target.server, connections, experiment.seconds, written)
        )
        sampler = Sampler(target, writers.processes)
        stack.callback(sampler.close)
        writers.wait_for_begin(60.0 + 0.1 * number)
        began = now()
        sampler.begin()
        with experiment.steps.step(f"{number} native writers", experiment.seconds) as progress:
            experiment.watch(sampler, progress, lambda: "")
        if experiment.interrupted:
            return []
        groups = writers.groups()
    experiment.steps.say("Looking for every acknowledged row")
    acknowledged = {group.tables: group.acknowledged for group in groups}
    check = native.check(target.server, written, acknowledged)
    for tables, rows in acknowledged.items():
        written[tables] = written.get(tables, 0) + rows
    samples_file = f"{label}.samples.csv"
    sampling.write_csv(sampler.samples, experiment.output / samples_file)
    wide = [group for group in groups if group.tables.columns == WIDE]
    figures = [
        TableFigures(
            group.tables.prefix,
            group.tables.columns,
            group.rows / group.tables.count,
            group.mean,
            group.longest,
        )
        for group in groups
    ]
    values = sum(group.rows * group.tables.columns for group in groups)
    processes = f"{len(groups)} processes" if len(groups) > 1 else "1 process"
    run = Run(
        clients=NATIVE,
        description=f"{number} native writers: ct-library (C), TDS 5.0, {processes}",
        users=number,
        logged_in=number,
        columns=sum(one.columns * one.count for one in connections) / sum(one.count for one in connections),
        began=utc(datetime.fromtimestamp(began / SECOND, UTC)),
        seconds=groups[0].seconds,
        load_before=experiment.load_before,
        cores=this_machine(None).cores,
        rows=sum(group.rows for group in groups),
        kilobytes=values * VALUE_BYTES / KILOBYTE,
        asked=None,
        writes=_together(groups),
        wide=_together(wide),
        reads=None,
        logins=None,
        tables=figures,
        samples=sampler.samples,
        closing=None,
        check=check,
        by_second=_by_second(groups),
        files=[samples_file],
    )
    return [run]


def _together(groups: Sequence[Group]) -> Calls:
    """Figures of several groups; quantiles only of a single one."""
    if not groups:
        return Calls(0, 0, None, None, None, None)
    calls = sum(group.calls for group in groups)
    alone = groups[0] if len(groups) == 1 else None
    return Calls(
        answered=calls,
        failed=0,
        mean=sum(group.mean * group.calls for group in groups) / calls,
        p50=alone.p50 if alone else None,
        p99=alone.p99 if alone else None,
        longest=max(group.longest for group in groups),
    )


def _by_second(groups: Sequence[Group]) -> list[tuple[int, float]]:
    seconds = zip(*(group.by_second for group in groups), strict=False)
    return [
        (int(sum(count for count, _ in second)), max(longest for _, longest in second)) for second in seconds
    ]
