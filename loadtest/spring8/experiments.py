"""The experiments of papers/004, each with Python users, and those about speed also with writers in C."""

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from ringlog.loadtest.experiment.errors import LoadTestUsageError
from ringlog.loadtest.experiment.facility import Tables, write_facility
from ringlog.loadtest.load import Pace
from ringlog.loadtest.spring8 import native
from ringlog.loadtest.spring8.ctlib_run import ctlib_run
from ringlog.loadtest.spring8.native_run import native_run
from ringlog.loadtest.spring8.python_run import python_run
from ringlog.loadtest.spring8.results import CTLIB, KILOBYTE, NATIVE, PYTHON, VALUE_BYTES, Result, Run
from ringlog.loadtest.spring8.scene import Experiment, Scene
from ringlog.loadtest.spring8.target import Target
from ringlog.schema.facility import Facility
from ringlog.schema.facility_files.facility_file import load_facility

_WRITERS = 60
# The mean of SPring-8's tables, 9,152 columns in 60 tables, seq_no and time counted: 150.5.
_MEAN = 150


def normal(experiment: Experiment) -> Result:
    """120 users at the cycles of their tables: papers/004, section 6.1."""
    facility = load_facility(experiment.facility_file)
    with experiment.target(experiment.facility_file) as target:
        run = python_run(
            Scene(experiment, target, facility, experiment.facility_file),
            "normal",
            2 * len(facility.tables),
            Pace.NORMAL,
        )
    return experiment.result("normal", describe(facility), [run])


def highest(experiment: Experiment) -> Result:
    """A writer for each table, which sends the next row after the acknowledgement of the previous one:
    section 6.2."""
    facility = load_facility(experiment.facility_file)
    runs: list[Run] = []
    if PYTHON in experiment.clients:
        with experiment.target(experiment.facility_file) as target:
            scene = Scene(experiment, target, facility, experiment.facility_file)
            runs.append(python_run(scene, "max", len(facility.tables), Pace.MAX))
    if {CTLIB, NATIVE} & {*experiment.clients} and not experiment.interrupted:
        tables = native.twins(facility)
        file = experiment.folder / "twins.toml"
        write_facility(file, tables)
        programs = experiment.programs()
        with experiment.target(file) as target:
            runs += _in_c(experiment, target, programs, "max", tables)
    return experiment.result("max", describe(facility), runs)


def columns(experiment: Experiment, widths: Sequence[int]) -> Result:
    """60 writers at the highest rate, on tables with increasing numbers of columns: figure 4. A running
    server has the widths of its own facility.
    """
    runs: list[Run] = []
    file = experiment.facility_file
    groups = {width: [Tables(f"wide{width}_{n}_", 1, width) for n in range(_WRITERS)] for width in widths}
    if experiment.given is None:
        file = experiment.folder / "columns.toml"
        write_facility(file, chain.from_iterable(groups.values()))
    facility = load_facility(file)
    counts = sorted(Counter(len(table.columns) for table in facility.tables).items())
    programs = experiment.programs() if {CTLIB, NATIVE} & {*experiment.clients} else None
    with experiment.target(file) as target:
        for width, number in counts:
            label = f"columns-{width}"
            if PYTHON in experiment.clients and not experiment.interrupted:
                runs.append(
                    python_run(Scene(experiment, target, facility, file), label, number, Pace.MAX, width)
                )
            if programs is not None:
                runs += _in_c(experiment, target, programs, label, groups[width])
    numbers = ", ".join(f"{number} of {width}" for width, number in counts)
    return experiment.result("columns", f"Tables by their data columns: {numbers}", runs)


def _in_c(
    experiment: Experiment, target: Target, programs: Path, label: str, groups: Sequence[Tables]
) -> list[Run]:
    """Writers in C at the highest rate, one for each table."""
    runs: list[Run] = []
    if CTLIB in experiment.clients and not experiment.interrupted:
        runs.append(ctlib_run(experiment, target, programs / "writer", f"{label}-ctlib", groups))
    if NATIVE in experiment.clients and not experiment.interrupted:
        assert target.server is not None
        written = {tables: native.logged(target.server, tables) for tables in groups}
        runs += native_run(experiment, target, programs, f"{label}-native", dict.fromkeys(groups, 1), written)
    return runs


def users(experiment: Experiment, numbers: Sequence[int]) -> Result:
    """Increasing numbers of users: at the normal rate in Python, at the highest with native writers."""
    if not {PYTHON, NATIVE} & {*experiment.clients}:
        raise LoadTestUsageError(f"--clients: this experiment has {PYTHON} and {NATIVE}")
    facility = load_facility(experiment.facility_file)
    runs: list[Run] = []
    if PYTHON in experiment.clients:
        with experiment.target(experiment.facility_file, max(numbers)) as target:
            for number in numbers:
                if not experiment.interrupted:
                    label = f"users-{number}"
                    scene = Scene(experiment, target, facility, experiment.facility_file)
                    runs.append(python_run(scene, label, number, Pace.NORMAL))
    if NATIVE in experiment.clients and not experiment.interrupted:
        tables = Tables("users_", _WRITERS, _MEAN)
        file = experiment.folder / "users.toml"
        write_facility(file, [tables])
        programs = experiment.programs()
        written: dict[Tables, int] = {}
        with experiment.target(file, max(numbers)) as target:
            for number in numbers:
                if not experiment.interrupted:
                    label = f"users-{number}-native"
                    runs += native_run(experiment, target, programs, label, {tables: number}, written)
    return experiment.result("users", describe(facility), runs)


def describe(facility: Facility) -> str:
    """A facility in the figures of papers/004."""
    count = sum(len(table.columns) + 2 for table in facility.tables)
    rate = sum(len(table.columns) * VALUE_BYTES / table.cycle for table in facility.tables) / KILOBYTE
    return (
        f"{facility.name}: {len(facility.tables)} tables, {count:,} columns with seq_no and time, "
        f"{rate:.1f} KB/s at the normal rate"
    )
