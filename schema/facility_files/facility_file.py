"""Reads and checks a facility file (TOML).

docs/reference/facility-file.md is its reference.
"""

import re
import tomllib
from collections.abc import Collection, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from zoneinfo import ZoneInfo

from ringlog.procedures import OF_A_SAMPLE_TABLE, OF_A_TABLE, OVER_ALL_TABLES
from ringlog.procedures.parameters import OVER_ALL_PARAMETERS
from ringlog.schema.column_type import ColumnType, Kind
from ringlog.schema.facility import NANOSECONDS, Column, Facility, SampleTable, Table, nanoseconds_of
from ringlog.schema.facility_files.capture_entries import captures_of
from ringlog.schema.facility_files.column_entries import check_row_size, columns_of
from ringlog.schema.facility_files.entries import (
    IDENTIFIER,
    NAME_BYTES,
    Entry,
    check_identifier,
    count_of,
    repeated,
)
from ringlog.schema.facility_files.node_entries import nodes_of
from ringlog.schema.facility_files.parameters import parameters_of, procedures_of
from ringlog.schema.facility_files.policy_entries import (
    clock_tolerance_of,
    history_of,
    keep_dropped_of,
    log_policy_of,
    retention_of,
    sampling_of,
    seconds_of,
    summaries_of,
)
from ringlog.schema.facility_files.sample_entries import policies_of, sample_table_of
from ringlog.schema.facility_files.toml_lines import Known, Lines

_PARTITION = re.compile(r".+_(\d{4}([wm]\d{2}|y)|default)")
_TABLE_NAME_BYTES = NAME_BYTES - max(len(name.format("")) for name in OF_A_TABLE.values())


class FacilityError(ValueError):
    """A facility file breaks rules. `problems` has a line for each, naming table, column and rule."""

    def __init__(self, file: str, problems: Sequence[str]) -> None:
        self.file = file
        self.problems = tuple(problems)
        super().__init__("\n".join(f"{file}{_at(problem)}: {problem}" for problem in self.problems))

    def __reduce__(self) -> tuple[type["FacilityError"], tuple[str, tuple[str, ...]]]:
        """For pickle: it is passed from one process to another."""
        return FacilityError, (self.file, self.problems)


def _at(problem: str) -> str:
    """The line of a problem, where it is known, as compilers write it."""
    line = getattr(problem, "line", None)
    return "" if line is None else f":{line}"


class FacilityFile:
    """A facility file that has been read. Raises FacilityError where it is no TOML."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        try:
            self._read = self._path.read_bytes()
            # editors of Windows begin a file with a byte order mark
            text = self._read.decode("utf-8-sig")
            self._content = tomllib.loads(text)
        except OSError as error:
            raise FacilityError(str(path), [f"cannot be read: {error.strerror}"]) from error
        except ValueError as error:
            raise FacilityError(str(path), [f"is not TOML: {error}"]) from error

    @property
    def tables(self) -> int:
        """The number of its tables, before any check."""
        tables = self._content.get("table")
        return len(tables) if isinstance(tables, list) else 0

    def facility(self) -> Facility:
        """The facility that the file describes. Raises FacilityError with every rule it breaks."""
        problems: list[str] = []
        known = Known(Lines(self._read.decode("utf-8-sig")))
        facility = _facility(Entry(self._content, "", problems, known), self._path.stem)
        if problems:
            raise FacilityError(str(self._path), problems)
        digest = sha256(f"{self._path.stem}\n".encode() + self._read)
        return facility.as_file_says(digest.hexdigest())


def load_facility(path: str | Path) -> Facility:
    """Reads and checks a facility file. Raises FacilityError with every rule it breaks."""
    return FacilityFile(path).facility()


def _facility(entry: Entry, stem: str) -> Facility:
    name = entry.text("name", stem)
    timezone = entry.text("timezone", "UTC")
    try:
        ZoneInfo(timezone)
    except (LookupError, ValueError, OSError):
        entry.refuse(f"timezone '{timezone}' is no name of the IANA time zone database")
    byte_order = entry.text("byte_order", "little")
    if byte_order not in ("little", "big"):
        entry.refuse(f"byte_order '{byte_order}' is neither little nor big")
    clock_tolerance = clock_tolerance_of(entry)
    history = history_of(entry)
    keep_dropped = keep_dropped_of(entry)
    nodes = tuple(nodes_of(entry))
    tables: list[Table] = []
    sample_tables: list[SampleTable] = []
    for table_entry in entry.entries("table"):
        kind = table_entry.text("kind", "rows")
        if kind not in ("rows", "samples"):
            table_entry.refuse(f"kind '{kind}' is neither rows nor samples")
        table_name = _table_name(table_entry)
        if kind == "samples":
            sample_tables.append(sample_table_of(table_entry, table_name))
        else:
            tables.append(_table(table_entry, table_name, byte_order))
    parameters = tuple(parameters_of(entry))
    groups = _groups(entry, {*(table.name for table in tables), *(table.name for table in sample_tables)})
    policies = tuple(policies_of(entry))
    captures = tuple(captures_of(entry, (*tables, *sample_tables), dict(groups)))
    entry.end("facility")
    facility = Facility(
        name=name,
        timezone=timezone,
        tables=tuple(tables),
        clock_tolerance=clock_tolerance,
        history=history,
        parameters=parameters,
        byte_order=byte_order,
        nodes=nodes,
        keep_dropped=keep_dropped,
        groups=groups,
        sample_tables=tuple(sample_tables),
        policies=policies,
        captures=captures,
    )
    _check_names(entry, facility)
    return facility


def _check_names(entry: Entry, facility: Facility) -> None:
    """Refuses names that two objects have, and those of objects that the file does not have."""
    tables, sample_tables = facility.tables, facility.sample_tables
    every_table: tuple[Table | SampleTable, ...] = (*tables, *sample_tables)
    nodes, policies = [each.name for each in facility.nodes], [each.name for each in facility.policies]
    for kind, names in (
        ("tables", [each.name for each in every_table]),
        ("parameters", [each.name for each in facility.parameters]),
        ("nodes", nodes),
        ("policies", policies),
        ("captures", [each.name for each in facility.captures]),
    ):
        for twice in repeated(iter(names)):
            entry.refuse(f"two {kind} are named {twice}")
    for table in every_table:
        if table.node is not None and table.node not in nodes:
            entry.refuse(f"table {table.name}: there is no [[node]] of name '{table.node}'")
    _check_former_names(entry, "table", tables)
    owners: dict[str, str] = dict.fromkeys((*OVER_ALL_TABLES, *OVER_ALL_PARAMETERS), "ringlog")
    for owner, procedure in _procedures(facility):
        if owners.setdefault(procedure, owner) != owner:
            entry.refuse(f"{owner}: choose another name, for {owners[procedure]} has a procedure {procedure}")
    locations: dict[str, str] = {}
    for logged in tables:
        for column in logged.columns:
            location = f"{logged.name}.{column.name}"
            if locations.setdefault(column.signal, location) != location:
                entry.refuse(
                    f"table {logged.name}, column {column.name}: "
                    f"signal '{column.signal}' is the one of {locations[column.signal]} already"
                )
    for sample_table in sample_tables:
        for signal in sample_table.signals:
            if signal.policy and signal.policy not in policies:
                entry.refuse(
                    f"table {sample_table.name}: there is no [[policy]] of name '{signal.policy}', "
                    f"which signal '{signal.name}' has"
                )
            if locations.setdefault(signal.name, sample_table.name) != sample_table.name:
                entry.refuse(
                    f"table {sample_table.name}: signal '{signal.name}' is the one of "
                    f"{locations[signal.name]} already"
                )


def _procedures(facility: Facility) -> Iterator[tuple[str, str]]:
    """The procedures of each object of a facility: the object's kind and name, and the procedure's name."""
    for table in facility.tables:
        for name in (table.name, *([table.renamed_from] if table.renamed_from else [])):
            yield from ((f"table {table.name}", pattern.format(name)) for pattern in OF_A_TABLE.values())
    for sampled in facility.sample_tables:
        patterns = OF_A_SAMPLE_TABLE.values()
        yield from ((f"table {sampled.name}", pattern.format(sampled.name)) for pattern in patterns)
    for parameter in facility.parameters:
        yield from ((f"parameter {parameter.name}", name) for name in procedures_of(parameter).values())


def _table_name(entry: Entry) -> str:
    name = entry.text("name", None)
    check_identifier(entry, name, _TABLE_NAME_BYTES, "the longest name of its procedures")
    if _PARTITION.fullmatch(name):
        entry.refuse("name must not end like a log's partition (_2024w07, _2024y, _default)")
    return name


def _table(entry: Entry, name: str, byte_order: str) -> Table:
    description = entry.text("description")
    rows = count_of(entry, "rows", entry.demand("rows"))
    cycle = seconds_of(entry, "cycle", entry.demand("cycle"))
    log = log_policy_of(entry, rows)
    retention = retention_of(entry)
    sample = sampling_of(entry)
    collect = entry.take("collect")
    seconds = 0.0 if collect is None else seconds_of(entry, "collect", collect)
    nan = entry.text("nan", "keep")
    if nan not in ("keep", "null"):
        entry.refuse(f"nan '{nan}' is neither keep nor null")
        nan = "keep"
    summaries = summaries_of(entry, cycle, log)
    renamed_from = _former_name(entry, _TABLE_NAME_BYTES)
    retired = entry.flag("retired")
    node = entry.text("node") or None
    columns: list[Column] = []
    for column_entry in entry.entries("column", "table"):
        columns.extend(columns_of(column_entry, name, byte_order))
    nanoseconds = entry.take("nanoseconds")
    if nanoseconds not in (None, True, False):
        entry.refuse("nanoseconds must be true or false")
    for column in columns:
        if column.signal == nanoseconds_of(name):
            entry.refuse(f"column {column.name}: write nanoseconds = true in the table instead")
    if nanoseconds is True:
        description = "nanoseconds of the row's time below a microsecond"
        columns.append(
            Column(
                NANOSECONDS, nanoseconds_of(name), ColumnType(Kind.SMALLINT), "ns", description, (0.0, 999.0)
            )
        )
    entry.end("table")
    for twice in repeated(column.name for column in columns):
        entry.refuse(f"two columns are named {twice}")
    _check_former_names(entry, "column", columns)
    check_row_size(entry, columns)
    return Table(
        name=name,
        rows=rows,
        cycle=cycle,
        columns=tuple(columns),
        description=description,
        log=log,
        retention=retention,
        sample=sample,
        nan=nan,
        summaries=summaries,
        renamed_from=renamed_from,
        retired=retired,
        node=node,
        collect=seconds,
    )


def _groups(entry: Entry, tables: Collection[str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The groups of tables, from the table `groups`: a list of tables for each name."""
    content = entry.take("groups")
    if content is None:
        return ()
    if not isinstance(content, dict):
        entry.refuse('groups must be a table, as in [groups] vacuum = ["sr_vac", "bo_vac"]')
        return ()
    groups: dict[str, tuple[str, ...]] = {}
    for name, members in content.items():
        if not IDENTIFIER.fullmatch(name) or len(name) > NAME_BYTES or name in ("all", "none"):
            entry.refuse(
                f"group '{name}': a name is a lower-case letter, then letters, digits and _; not all or none"
            )
        if name in tables:
            entry.refuse(f"group '{name}': a table has this name")
        if not isinstance(members, list) or not all(isinstance(member, str) for member in members):
            entry.refuse(f"group '{name}' must be a list of tables")
            continue
        for member in members:
            if member not in tables:
                entry.refuse(f"group '{name}': there is no table '{member}'")
        groups[name] = tuple(dict.fromkeys(members))
    return tuple(groups.items())


def _check_former_names(entry: Entry, kind: str, named: Sequence[Table] | Sequence[Column]) -> None:
    """`kind` is table or column."""
    names = {one.name for one in named}
    for former in [one.renamed_from for one in named if one.renamed_from in names]:
        entry.refuse(f"renamed_from '{former}': another {kind} has this name now")
    for twice in repeated(one.renamed_from or "" for one in named):
        entry.refuse(f"two {kind}s are renamed from {twice}")


def _former_name(entry: Entry, longest: int) -> str | None:
    name = entry.text("renamed_from")
    if name and (not IDENTIFIER.fullmatch(name) or len(name) > longest):
        entry.refuse(f"renamed_from '{name}' is no name")
        return None
    return name or None
