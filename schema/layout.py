"""The layout of stored rows, for all parts: names of roles and schemas, lengths of spans, the earliest time.

Readers over HTTP import this without SQLAlchemy, which takes a quarter of their memory and of their start.
"""

from datetime import UTC, datetime

OWNER = "ringlog_owner"
WRITER = "daq_writer"
READER = "daq_reader"
TABLE_WRITER = "daq_table_writer"
TABLE_READER = "daq_table_reader"
PARAMETER_WRITER = "parameter_writer"
ARCHIVIST = "signal_archivist"
"""adds, renames and retires signals of tables of samples"""
RECORDER = "event_recorder"
"""keeps the rows around an event"""
GATEWAY = "ringlog_gateway"

LOG = "log"
"""schema of the logs' views: of weeks here and in the archive"""
LOG_TABLES = "weeks"
"""schema of the logs' tables, whose partitions are in schema log"""

RECENT = "recent"
"""schema of the views of the latest weeks"""

SET_ASIDE = "set_aside"
"""schema of the weeks past retention that are not dropped yet"""

ARCHIVE = "archive"
"""schema of the logs' archived weeks, which the archive server reads"""
ARCHIVE_FILES = "archive_files"
"""schema of the foreign tables of these"""

ICEBERG = "iceberg"
"""schema of the catalogue of the archive's Iceberg tables, whose tables pyiceberg makes"""

CLOSED = "closed"
"""schema of closed rows as columns"""

CAPTURE = "capture"
"""schema of the rows kept around events"""

SUMMARIES = "summary"
"""schema of the summaries"""
SCHEMA_OF_LEVEL = {10: "ten_seconds", 60: "minute", 600: "ten_minutes", 3600: "hour", 86_400: "day"}
"""schemas of their views, by seconds of a span"""

ROWS = ("online", LOG, LOG_TABLES, RECENT, ARCHIVE)
"""schemas with a relation of each table that has its rows"""
OF_SUMMARIES = (SUMMARIES, *SCHEMA_OF_LEVEL.values())
"""schemas with a relation of each table that has its summaries"""
READABLE = (*ROWS, *OF_SUMMARIES)
"""schemas with the relations that readers of a table may read"""
NAMED_AFTER_TABLES = (*READABLE, "ring", ARCHIVE_FILES, CLOSED)
"""schemas with relations that are named after their table"""
SCHEMAS = (
    *("online", LOG, LOG_TABLES, "ring", "ringlog", "parameter", "parameter_history", "parameter_rows"),
    *(RECENT, SET_ASIDE, CLOSED, ARCHIVE, ARCHIVE_FILES, ICEBERG, SUMMARIES, CAPTURE),
    *SCHEMA_OF_LEVEL.values(),
)
"""the facility's; rights in them are granted one by one"""

SCALARS = ("min", "max", "mean", "rms", "length")
"""scalars of a waveform of numbers, each a signal of its own, such as `trace.rms`"""

EARLIEST = datetime(1970, 1, 5, tzinfo=UTC)
"""No week is made before this: clocks that were never set count from 1970 or, in Sybase, from 1900."""

_HOUR, _DAY = 3600, 86_400

BLOCK = (
    {10: 60, 60: 60, 600: 72, 1200: 72, 1800: 48, _HOUR: 48}
    | dict.fromkeys((hours * _HOUR for hours in (2, 3, 4, 6, 8, 12)), 48)
    | {_DAY: 56}
    | dict.fromkeys((days * _DAY for days in (2, 4, 8, 16, 32)), 48)
)
"""The levels that may be stored, shortest first, and how many spans a block of each has. Blocks are counted
from 1970-01-01 00:00 UTC. From 10 minutes on a level is at most twice the one before, so that a trend reads
hardly more spans than it has bins; together they take a fourth of the room of a minute's."""
