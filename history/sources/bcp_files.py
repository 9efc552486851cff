"""Data files of bcp, of SQL Server and ASE, native and in characters, with their format files.

The gateway decodes them (gateway/src/old_server/bcp.rs), by what this module reads in the format files.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from ringlog.gateway import BcpFile, OldServerError
from ringlog.history.incoming import Description, IncomingError, Source
from ringlog.history.sources.buffers import batch_of, format_of, schema_of
from ringlog.history.sources.folders import files_in

_BATCH_BYTES = 4 << 20
"""of a record batch in the file"""
_ESCAPES = {"\\t": "\t", "\\n": "\n", "\\r": "\r", "\\0": "\0", "\\\\": "\\"}


class Field(NamedTuple):
    """A field of each row of a data file."""

    name: str
    """of the column; empty: the field is skipped"""
    type: str
    """the host type without SQL or SYB, as FLT4"""
    is_sybase: bool
    prefix: int
    """bytes of its length"""
    length: int
    """bytes where it has no prefix and no terminator"""
    terminator: bytes


def fields_of(file: Path) -> list[Field]:
    """The fields of a format file that is not XML. Raises IncomingError."""
    lines = [line.strip() for line in file.read_text(errors="replace").splitlines() if line.strip()]
    try:
        count = int(lines[1])
        found = [_field(line) for line in lines[2 : 2 + count]]
    except (IndexError, ValueError) as error:
        raise IncomingError(f"{file} is no format file of bcp (XML is not read): {error}") from None
    if len(found) != count:
        raise IncomingError(f"{file} has {len(found)} fields, not {count}")
    return found


def _field(line: str) -> Field:
    parts = re.findall(r'"[^"]*"|\S+', line)
    _, host, prefix, length, terminator, order, name = parts[:7]
    for escape, character in _ESCAPES.items():
        terminator = terminator.replace(escape, character)
    return Field(
        "" if order == "0" else name.strip('"'),
        host.removeprefix("SQL").removeprefix("SYB"),
        host.startswith("SYB"),
        int(prefix),
        int(length),
        terminator.strip('"').encode("latin-1"),
    )


class BcpFiles(Source):
    """A data file, or the data files (*.bcp, *.dat, *.txt) of a folder in the order of their names. The
    format file is FILE.fmt beside each, or the folder's only one."""

    def __init__(self, path: Path, described: Description, charset: str = "utf-8") -> None:
        self._path = path.absolute()
        self._described = described
        self._charset = charset
        self._all = self._done = 0

    def __str__(self) -> str:
        return f"bcp:{self._path}"

    def fraction(self) -> float | None:
        return min(1.0, self._done / self._all) if self._all else None

    def batches(self, wanted: pa.Schema, start: datetime | None, end: datetime) -> Iterator[pa.RecordBatch]:
        """See Source. All rows are read, also those before `start`."""
        files = files_in(self._path, "bcp", "dat", "txt")
        self._all, self._done = sum(file.stat().st_size for file in files), 0
        for file in files:
            fields = fields_of(self._format_of(file))
            chosen = self._described.chosen((field.name for field in fields), wanted.names)
            if "time" not in chosen:
                raise IncomingError(f"{file} has no column {self._described.time!r}")
            types = {name: format_of(wanted.field(column).type) for column, name in chosen.items()}
            described = [(*field, types.get(field.name)) for field in fields]
            before = self._done
            try:
                rows = BcpFile(file, described, self._charset, self._described.scale)
                schema = schema_of(rows.columns)
                while (batch := rows.read(_BATCH_BYTES)) is not None:
                    self._done = before + rows.done
                    yield batch_of(schema, *batch)
                self._done = before + rows.done
            except OldServerError as error:
                raise IncomingError(f"{file}: {error}") from None

    def _format_of(self, file: Path) -> Path:
        beside = file.with_suffix(".fmt")
        if beside.exists():
            return beside
        folder = self._path if self._path.is_dir() else self._path.parent
        formats = sorted(folder.glob("*.fmt"))
        if len(formats) != 1:
            raise IncomingError(f"{file} has no format file {beside.name}, and {folder} not a single one")
        return formats[0]
