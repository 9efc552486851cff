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

SYSTEM_ROWS = words(
    """
    sp_column_privileges sp_columns sp_columns_100 sp_databases sp_fkeys sp_helpindex sp_helptext sp_lock
    sp_pkeys sp_server_info sp_special_columns sp_special_columns_100 sp_sproc_columns sp_sproc_columns_100
    sp_statistics sp_statistics_100 sp_stored_procedures sp_table_privileges sp_tables sp_who
    """
)
"""System procedures that give the rows of one result and nothing else."""

OF_SYBASE = words("sp_columns")
"""Those that clients of TDS 5.0 have in another form."""

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
    if database == "tempdb" and own not in _SERVER_WIDE:
        raise refused(str(name), "temporary tables are not in the catalogue", name.line)
    return schema


def _is_elsewhere(name: ObjectName) -> bool:
    return bool(name.database) and name.name.lower() not in _SERVER_WIDE


def qualifier(name: ObjectName) -> str:
    """What stands before a column of a table or view."""
    if _of_system(name) is not None and _is_elsewhere(name):
        return identifier(name.name, name.line)
    return table(name)


def table(name: ObjectName) -> str:
    """A table or view: `a..b` and `a.dbo.b` are b in the schema a, `#t` is a temporary table."""
    system = _of_system(name)
    if system is not None:
        view = f"{system}.{identifier(name.name, name.line)}"
        # a function of the view's name and columns looks into another database
        return f"{view}({literal(folded(name.database, name.line))})" if _is_elsewhere(name) else view
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
