"""A load by native writers: run, measured and checked."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from ringlog.loadtest.experiment.facility import Tables
from ringlog.loadtest.spring8 import native
from ringlog.loadtest.spring8.native import Group, natives
from ringlog.loadtest.spring8.results import KILOBYTE, NATIVE, VALUE_BYTES, WIDE, Calls, Run, TableFigures
from ringlog.loadtest.spring8.sampling import Sampler
from ringlog.loadtest.spring8.scene import Experiment
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
        began, _ = experiment.watch(sampler, f"{number} native writers")
        if experiment.interrupted:
            return []
        groups = writers.groups()
    experiment.steps.say("Looking for every acknowledged row")
    acknowledged = {group.tables: group.acknowledged for group in groups}
    check = native.check(target.server, written, acknowledged)
    for tables, rows in acknowledged.items():
        written[tables] = written.get(tables, 0) + rows
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
    run = experiment.run(
        label,
        began,
        sampler.samples,
        clients=NATIVE,
        description=f"{number} native writers: ct-library (C), TDS 5.0, {processes}",
        users=number,
        logged_in=number,
        columns=sum(one.columns * one.count for one in connections) / sum(one.count for one in connections),
        seconds=groups[0].seconds,
        rows=sum(group.rows for group in groups),
        kilobytes=values * VALUE_BYTES / KILOBYTE,
        writes=_together(groups),
        wide=_together(wide),
        tables=figures,
        check=check,
        by_second=_by_second(groups),
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
