"""The experiments of papers/004, each with Python users and, where it is about speed, with writers in C."""

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from ringlog.loadtest.bench.facility import Tables, write_facility
from ringlog.loadtest.load import Pace
from ringlog.loadtest.paper import native
from ringlog.loadtest.paper.ctlib_run import ctlib_run
from ringlog.loadtest.paper.errors import LoadTestUsageError
from ringlog.loadtest.paper.laboratory import Laboratory, Scene
from ringlog.loadtest.paper.native_run import native_run
from ringlog.loadtest.paper.python_run import python_run
from ringlog.loadtest.paper.results import CTLIB, KILOBYTE, NATIVE, PYTHON, VALUE_BYTES, Result, Run
from ringlog.loadtest.paper.site import Site
from ringlog.schema.facility import Facility, load_facility

_WRITERS = 60
# The mean of SPring-8's tables, 9,152 columns in 60 tables, seq_no and time counted: 150.5.
_MEAN = 150


def normal(lab: Laboratory) -> Result:
    """120 users at the cycles of their tables: papers/004, section 6.1."""
    facility = load_facility(lab.facility_file)
    with lab.site(lab.facility_file) as site:
        run = python_run(
            Scene(lab, site, facility, lab.facility_file), "normal", 2 * len(facility.tables), Pace.NORMAL
        )
    return lab.result("normal", describe(facility), [run])


def highest(lab: Laboratory) -> Result:
    """A writer of each table, each sending the next row when the one before is acknowledged: section 6.2."""
    facility = load_facility(lab.facility_file)
    runs: list[Run] = []
    if PYTHON in lab.clients:
        with lab.site(lab.facility_file) as site:
            scene = Scene(lab, site, facility, lab.facility_file)
            runs.append(python_run(scene, "max", len(facility.tables), Pace.MAX))
    if {CTLIB, NATIVE} & {*lab.clients} and not lab.interrupted:
        tables = native.twins(facility)
        file = lab.folder / "twins.toml"
        write_facility(file, tables)
        programs = lab.programs()
        with lab.site(file) as site:
            runs += _in_c(lab, site, programs, "max", tables)
    return lab.result("max", describe(facility), runs)


def columns(lab: Laboratory, widths: Sequence[int]) -> Result:
    """60 writers at the highest rate, on tables of ever more columns: figure 4.

    A server that runs already has the widths of its own facility.
    """
    runs: list[Run] = []
    file = lab.facility_file
    groups = {width: [Tables(f"wide{width}_{n}_", 1, width) for n in range(_WRITERS)] for width in widths}
    if lab.given is None:
        file = lab.folder / "columns.toml"
        write_facility(file, chain.from_iterable(groups.values()))
    facility = load_facility(file)
    counts = sorted(Counter(len(table.columns) for table in facility.tables).items())
    programs = lab.programs() if {CTLIB, NATIVE} & {*lab.clients} else None
    with lab.site(file) as site:
        for width, number in counts:
            label = f"columns-{width}"
            if PYTHON in lab.clients and not lab.interrupted:
                runs.append(python_run(Scene(lab, site, facility, file), label, number, Pace.MAX, width))
            if programs is not None:
                runs += _in_c(lab, site, programs, label, groups[width])
    told = ", ".join(f"{number} of {width}" for width, number in counts)
    return lab.result("columns", f"Tables by their data columns: {told}", runs)


def _in_c(lab: Laboratory, site: Site, programs: Path, label: str, groups: Sequence[Tables]) -> list[Run]:
    """Writers in C at the highest rate, one for each table."""
    runs: list[Run] = []
    if CTLIB in lab.clients and not lab.interrupted:
        runs.append(ctlib_run(lab, site, programs / "writer", f"{label}-ctlib", groups))
    if NATIVE in lab.clients and not lab.interrupted:
        assert site.server is not None
        written = {tables: native.logged(site.server, tables) for tables in groups}
        runs += native_run(lab, site, programs, f"{label}-native", dict.fromkeys(groups, 1), written)
    return runs


def users(lab: Laboratory, numbers: Sequence[int]) -> Result:
    """Ever more users: at the normal rate in Python, at the highest with native writers."""
    if not {PYTHON, NATIVE} & {*lab.clients}:
        raise LoadTestUsageError(f"--clients: this experiment has {PYTHON} and {NATIVE}")
    facility = load_facility(lab.facility_file)
    runs: list[Run] = []
    if PYTHON in lab.clients:
        with lab.site(lab.facility_file, max(numbers)) as site:
            for number in numbers:
                if not lab.interrupted:
                    label = f"users-{number}"
                    scene = Scene(lab, site, facility, lab.facility_file)
                    runs.append(python_run(scene, label, number, Pace.NORMAL))
    if NATIVE in lab.clients and not lab.interrupted:
        tables = Tables("users_", _WRITERS, _MEAN)
        file = lab.folder / "users.toml"
        write_facility(file, [tables])
        programs = lab.programs()
        written: dict[Tables, int] = {}
        with lab.site(file, max(numbers)) as site:
            for number in numbers:
                if not lab.interrupted:
                    label = f"users-{number}-native"
                    runs += native_run(lab, site, programs, label, {tables: number}, written)
    return lab.result("users", describe(facility), runs)


def describe(facility: Facility) -> str:
    """A facility in the figures of papers/004."""
    count = sum(len(table.columns) + 2 for table in facility.tables)
    rate = sum(len(table.columns) * VALUE_BYTES / table.cycle for table in facility.tables) / KILOBYTE
    return (
        f"{facility.name}: {len(facility.tables)} tables, {count:,} columns with seq_no and time, "
        f"{rate:.1f} KB/s at the normal rate"
    )
