"""Installs schema `tsql` in a database: the semantics of T-SQL as functions, operators and types."""

from hashlib import sha256
from importlib.resources import files

import sqlalchemy as sa
from psycopg import sql

from ringlog.gateway._core import fill_facts
from ringlog.schema.change import run

ORDER = (
    "types/collations",
    "types/families",
    "types/domains",
    "texts/units",
    "times/clock",
    "times/date_texts",
    "times/times",
    "conversions/chart",
    "conversions/reading",
    "conversions/texts",
    "conversions/numbers",
    "conversions/bytes",
    "conversions/binary_times",
    "conversions/times",
    "types/datetimeoffset",
    "texts/texts",
    "numbers/numbers",
    "types/sql_variant",
    "operators/operators",
    "operators/alternatives",
    "operators/order",
    "operators/datetimeoffset",
    "operators/sql_variant",
    "numbers/aggregates",
    "conversions/columns",
    "errors/messages",
    "conversions/tried",
    "ddl/blanks",
    "ddl/declarations",
    "ddl/tables",
    "ddl/views",
    "ddl/alterations",
    "ddl/rowversions",
    "errors/errors",
    "catalogue/procedures",
    "ddl/procedures",
    "run/columns",
    "errors/raising",
    "run/sessions",
    "run/temporary_tables",
    "run/transactions",
    "errors/violations",
    "run/calls",
    "ddl/functions",
    "texts/hashes",
    "texts/hexadecimal",
    "times/moments",
    "ddl/databases",
    "texts/json",
    "texts/json_rows",
    "ddl/sequences",
    "ddl/user_types",
    "texts/words",
    "ddl/rights",
    "ddl/harmless",
    "ddl/globals",
    "numbers/format_numbers",
    "times/format_times",
    "texts/pointers",
    "operators/collations",
    "run/former",
)
"""Files in sql/, each after those that it needs."""

_COMMENT = "The meaning of T-SQL, which translated queries name; made of "


def install(connection: sa.Connection) -> list[str]:
    """Updates the existing schema, which the role owns, to the sources. Returns the changes.

    Tables and views may use its types and functions: only those that run/former.sql names are dropped.
    """
    scripts = _scripts()
    made_of = _COMMENT + sha256("".join(scripts).encode()).hexdigest()
    there = connection.scalar(sa.text("select obj_description('tsql'::regnamespace, 'pg_namespace')"))
    if there == made_of:
        return []
    for script in scripts:
        run(connection, script)
    run(connection, sql.SQL("comment on schema tsql is {}").format(sql.Literal(made_of)))
    return ["schema tsql"]


def _scripts() -> list[str]:
    folder = files(__name__.rpartition(".")[0]).joinpath("sql")
    return [fill_facts(folder.joinpath(f"{file}.sql").read_text()) for file in ORDER]
