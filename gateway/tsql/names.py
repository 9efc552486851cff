"""Names of T-SQL as PostgreSQL's: without case, in quotes, a database as a schema."""

from ringlog.gateway.tsql.errors import TsqlError, refused
from ringlog.gateway.tsql.keywords import words
from ringlog.gateway.tsql.statements import ObjectName

LONGEST = 63
"""Bytes of a name that PostgreSQL tells from others."""


def folded(name: str, line: int) -> str:
    """The name as PostgreSQL stores it: T-SQL's names differ by more than their case."""
    name = name.lower()
    if len(name.encode()) > LONGEST:
        raise TsqlError(
            103,
            f"The identifier that starts with '{name[:40]}' is too long: {LONGEST} bytes are the most.",
            line,
        )
    return name


def identifier(name: str, line: int) -> str:
    return '"' + folded(name, line).replace('"', '""') + '"'


SYSTEM_VIEWS = words(
    """
    syscolumns syscomments sysconstraints sysdatabases sysdepends sysforeignkeys sysindexes sysindexkeys
    sysobjects sysprocesses sysprotects sysreferences systypes sysusers
    """
)
"""Views of the system that are named without `sys.` before them."""

_SERVER_WIDE = words("databases sysdatabases")
"""Views that are the same in every database."""


def _of_system(name: ObjectName) -> str | None:
    """The schema of a view of the system; None for a name of any other kind."""
    own, owner, database = name.name.lower(), name.owner.lower(), name.database.lower()
    if owner == "information_schema":
        schema = "tsql_information_schema"
    elif owner == "sys" or (owner in ("", "dbo") and own in SYSTEM_VIEWS):
        schema = "sys"
    else:
        return None
    if database and not (database in ("master", "tempdb") and own in _SERVER_WIDE):
        raise refused(
            str(name), f"use {name.database} first: the catalogue is that of the current database", name.line
        )
    return schema


def table(name: ObjectName) -> str:
    """A table or view: `a..b` and `a.dbo.b` are b in the schema a, `#t` is a temporary table."""
    system = _of_system(name)
    if system is not None:
        return f"{system}.{identifier(name.name, name.line)}"
    if name.is_temporary:
        if name.name.startswith("##"):
            raise refused(name.name, "temporary tables are the session's own (#name)", name.line)
        return f"pg_temp.{identifier(name.name, name.line)}"
    schema = schema_of(name)
    own = identifier(name.name, name.line)
    return f"{identifier(schema, name.line)}.{own}" if schema else own


def schema_of(name: ObjectName) -> str:
    """The schema that a name with qualifiers says, or "": dbo is whoever owns a thing."""
    owner = "" if name.owner.lower() in ("", "dbo") else name.owner
    if name.database and owner:
        raise refused(str(name), "a database is a schema and has no schemas in it", name.line)
    return name.database or owner


def literal(text: str) -> str:
    """A text as PostgreSQL's SQL has it, whatever standard_conforming_strings is."""
    quoted = "'" + text.replace("'", "''") + "'"
    return "E" + quoted.replace("\\", "\\\\") if "\\" in text else quoted
