"""Applies a changed facility file to running writers: their sampling policies change at once; changes that
need the database, or of columns, are reported."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from ringlog.loader.control.policy_channel import Policy
from ringlog.loader.samples import SampleProcess
from ringlog.loader.supervisor import Job, Supervisor
from ringlog.loader.writer import WriterProcess
from ringlog.schema.facility import Facility, Table
from ringlog.schema.facility_files.facility_file import FacilityError, load_facility

AnyWriter: TypeAlias = WriterProcess | SampleProcess


@dataclass(frozen=True)
class Reloaded:
    """The outcome, as lines for the operator. `whole`: the complete file is in effect."""

    whole: bool
    lines: tuple[str, ...]


class Reload:
    """Reads a facility file again, for the writers of a supervisor."""

    def __init__(
        self, file: Path, facility: Facility, writers: Sequence[AnyWriter], supervisor: Supervisor
    ) -> None:
        self._file = file
        self._facility = facility
        self._writers = {each.table.name: each for each in writers if isinstance(each, WriterProcess)}
        self._sampled = {each.table.name: each for each in writers if isinstance(each, SampleProcess)}
        self._supervisor = supervisor

    def __call__(self) -> Reloaded:
        """Sends each table's policy to its writer; a restarted writer has it, too."""
        try:
            new = load_facility(self._file)
        except FacilityError as error:
            return Reloaded(False, (*str(error).splitlines(), "nothing is changed"))
        install = f"run ringlog init --facility {self._file}"
        refused, accepted = [], []
        known = {table.name: table.written for table in self._facility.tables}
        tables = {table.name: table.written for table in new.tables if not table.retired}
        if new.timezone != self._facility.timezone:
            refused.append(f"timezone: {install}, then start ringlog load again")
        refused += [
            f"{name}: a new table: {install}, then start ringlog load again"
            for name in tables
            if name not in known
        ]
        for name, writer in self._writers.items():
            table = tables.get(name)
            if table is None:
                refused.append(f"{name}: missing in the file; its writer continues until ringlog load ends")
            elif _shape(table) != _shape(writer.table):
                refused.append(
                    f"{name}: other columns, signals, rows or collect: {install}, then start ringlog load "
                    "again"
                )
            else:
                if (policy := Policy.of(table)) != Policy.of(writer.table):
                    if writer.policies.give(policy):
                        accepted.append(f"{name}: {_difference(writer.table, table)}")
                        self._renew(replace(writer, table=policy.applied(writer.table)))
                    else:
                        refused.append(f"{name}: its writer does not respond; try again")
                if _registered(table) != _registered(known[name]):
                    accepted.append(
                        f"{name}: settings that are stored in the database have changed, too: {install}"
                    )
        sampled = {table.name: table for table in new.sample_tables}
        for name, process in self._sampled.items():
            if (table_now := sampled.get(name)) is None:
                refused.append(f"{name}: missing in the file; its writer continues until ringlog load ends")
            elif replace(table_now, signals=()) != replace(process.table, signals=()):
                refused.append(f"{name}: other settings: {install}, then start ringlog load again")
            else:
                if table_now != process.table:
                    accepted.append(f"{name}: other signals: {install}, and its writer takes them up")
                if new.policies != process.policies:
                    if process.channel.give(new.policies):
                        accepted.append(f"{name}: policies {_names(new)} instead of {_names(self._facility)}")
                        renewed = replace(process, policies=new.policies)
                        self._sampled[name] = renewed
                        self._supervisor.renew(Job(name, renewed.run))
                    else:
                        refused.append(f"{name}: its writer does not respond; try again")
        lines = (*accepted, *refused) or ("nothing has changed",)
        return Reloaded(not refused, lines)

    def _renew(self, writer: WriterProcess) -> None:
        self._writers[writer.table.name] = writer
        self._supervisor.renew(Job(writer.table.name, writer.run))


def _shape(table: Table) -> object:
    """The settings whose change needs a restart of the writer."""
    return table.rows, table.collect, [(column.name, column.type, column.signal) for column in table.columns]


def _names(facility: Facility) -> str:
    return ", ".join(policy.name for policy in facility.policies) or "none"


def _registered(table: Table) -> object:
    """The settings that `ringlog init` stores in the database, and that a writer does not need."""
    columns = [(column.unit, column.description, column.limits) for column in table.columns]
    return table.description, table.log, table.retention, columns


def _difference(old: Table, new: Table) -> str:
    parts = []
    if old.cycle != new.cycle:
        parts.append(f"cycle {new.cycle:g} s instead of {old.cycle:g} s")
    if old.sample != new.sample:
        periods = {"min_period": new.sample.min_period, "max_period": new.sample.max_period}
        given = "".join(f", {name} {value:g} s" for name, value in periods.items() if value is not None)
        parts.append(f"sampled by {new.sample.mode}{given}")
    if changed := sum(a.deadband != b.deadband for a, b in zip(old.columns, new.columns, strict=True)):
        parts.append(f"another deadband for {changed} columns")
    return "; ".join(parts)
