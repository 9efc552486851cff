"""Collations of an old server: which of them texts can have here."""

from functools import cache

from ringlog.gateway import TsqlError, translate

BINARY = "Latin1_General_BIN"
OF_ASE = "Latin1_General_CI_AS"
"""the collation in place of a sort order without case"""


@cache
def here(collation: str) -> str:
    """The collation that compares here as this one does there; empty where none does."""
    name = collation.upper()
    if "_BIN" in name or "_CS_AS" in name:
        return BINARY
    try:
        translate(f"create table t (a varchar(1) collate {collation})", database="dbo")
    except TsqlError:
        return ""
    return collation


def of_database(collation: str) -> str:
    """The default collation here of a database with this one."""
    return here(collation) or BINARY


def of_column(collation: str, database: str) -> str:
    """The COLLATE clause of a column; empty if the column has its database's collation."""
    if not collation or of_database(collation) == of_database(database):
        return ""
    return of_database(collation)
