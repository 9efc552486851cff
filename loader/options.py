"""The source and the tables, from the options of `ringlog load`."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from zoneinfo import ZoneInfo

from ringlog.clients.listening import host_and_port
from ringlog.loader.sources import Source
from ringlog.loader.sources.csv_replay import CsvReplay
from ringlog.loader.sources.epics import Epics
from ringlog.loader.sources.lines import Lines
from ringlog.loader.sources.parquet_replay import ParquetReplay
from ringlog.loader.sources.python import Python
from ringlog.loader.sources.replay import Replay
from ringlog.loader.sources.simulator import Simulator
from ringlog.schema.facility import Facility, SampleTable, Table

_RECORDINGS: dict[str, type[Replay]] = {"csv": CsvReplay, "parquet": ParquetReplay}
_SOURCES = "simulator, csv:DIR, parquet:DIR, lines:HOST:PORT, ca, pva, python:MODULE:FUNCTION"


class LoadError(Exception):
    """The options cannot be applied; the message says how to change them."""


def chosen(
    facility: Facility, source: str, speed: float, seed: int, names: str | None
) -> tuple[Source, Sequence[Table], Sequence[SampleTable]]:
    """The source, and the tables to write, of rows and of samples: those in `names`, separated by commas, or
    all tables of the source.

    Raises LoadError and SourceError.
    """
    retired = {table.name for table in facility.tables if table.retired}
    facility = replace(
        facility, tables=tuple(table.written for table in facility.tables if not table.retired)
    )
    if not speed > 0:
        raise LoadError(f"--speed {speed:g} is not above 0")
    wanted = None if names is None else [name.strip() for name in names.split(",")]
    known = {table.name: table for table in facility.tables}
    sampled = [table for table in facility.sample_tables if wanted is None or table.name in wanted]
    if sampled and wanted is not None and source not in ("simulator", "ca", "pva"):
        raise LoadError(f"--tables: {sampled[0].name} has samples, whose sources are simulator, ca and pva")
    if wanted is not None:
        wanted = [name for name in wanted if all(table.name != name for table in sampled)]
    for name in wanted or ():
        if name in retired:
            raise LoadError(f"--tables: {name} is retired and cannot be written")
        if name not in known:
            raise LoadError(f"--tables: the facility has no table '{name}'")
    kind, _, folder = source.partition(":")
    if kind in _RECORDINGS and folder:
        replay = _RECORDINGS[kind](Path(folder), ZoneInfo(facility.timezone), speed)
        recorded = replay.tables(facility)
        for name in wanted or ():
            if known[name] not in recorded:
                raise LoadError(f"--tables: {folder} has no file {name}.{kind}")
        tables = [table for table in recorded if wanted is None or table.name in wanted]
        replay.check(tables)
        return replay, tables, ()
    everything = [table for table in facility.tables if wanted is None or table.name in wanted]
    if source == "simulator":
        if math.isinf(speed):
            raise LoadError("--speed inf is for recordings only")
        return Simulator(seed, speed), everything, sampled
    if speed != 1.0 and (source in ("ca", "pva") or kind in ("lines", "python")):
        raise LoadError("--speed is for the simulator and recordings")
    if source in ("ca", "pva"):
        epics = Epics(source)
        epics.check(everything)
        return epics, everything, sampled
    if kind == "python":
        module, _, function = folder.partition(":")
        if not module or not function.isidentifier():
            raise LoadError(f"--source '{source}': write python:MODULE:FUNCTION")
        own = Python(module, function)
        own.check()
        return own, everything, ()
    if kind == "lines":
        where = host_and_port(folder)
        if where is None:
            raise LoadError(f"--source '{source}': write lines:HOST:PORT")
        if len(wanted or ()) != 1:
            raise LoadError("--source lines is for one table: name it with --tables")
        return Lines(*where), [known[name] for name in wanted or ()], ()
    raise LoadError(f"--source '{source}' is not one of {_SOURCES}")
