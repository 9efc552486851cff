"""Comments in PostgreSQL's catalogue: those of schemas, relations and columns of a facility.

`\\d+` and clients such as DBeaver show them. Those of signals have unit, description and name; the others are
in comments.toml.
"""

import json
import tomllib
from pathlib import Path

import sqlalchemy as sa
from psycopg import sql

from ringlog.schema.change import run
from ringlog.schema.layout import (
    ARCHIVE_FILES,
    CLOSED,
    ICEBERG,
    OF_SUMMARIES,
    ROWS,
    SCHEMA_OF_LEVEL,
    SCHEMAS,
    SET_ASIDE,
)
from ringlog.schema.sql_files import sql_file


def texts() -> dict[str, dict[str, str]]:
    """The comments of comments.toml by its tables, and those of summaries by the lengths of their spans."""
    found: dict[str, dict[str, str]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
    for name in SCHEMA_OF_LEVEL.values():
        spans = name.replace("_", " ")
        found["of_schemas"][name] = f"summaries of the logs by {spans}"
        found["of_relations"][name] = f"%s: summaries of the log by {spans}"
    return found


def bring_up_to_date(connection: sa.Connection) -> None:
    """Makes the comments that are missing or of an earlier facility file, as ringlog_owner."""
    # the names of weeks and closed rows come and go by themselves
    schemas = [schema for schema in SCHEMAS if schema not in (SET_ASIDE, CLOSED, ICEBERG)]
    values = {
        "schemas": schemas,
        "rows": [*ROWS, "ring", ARCHIVE_FILES],
        "summaries": [*OF_SUMMARIES],
    }
    literals = {name: sql.Literal(value) for name, value in values.items()}
    literals |= {name: sql.Literal(json.dumps(value)) for name, value in texts().items()}
    run(connection, sql.SQL(sql_file(__file__, "comments")).format(**literals))
