"""The reserved words of T-SQL, and those that begin statements."""


def words(text: str) -> frozenset[str]:
    """The words of a text, for tables that are read."""
    return frozenset(text.split())


RESERVED = words(
    """
    add all alter and any as asc authorization begin between break by case checkpoint collate column
    commit compute constraint continue convert create cross current_date current_time current_timestamp
    current_user cursor dbcc deallocate declare default delete desc distinct drop else end escape except
    exec execute exists exit for foreign from full function goto grant group having holdlock identity
    identity_insert if in index inner insert intersect into is join key kill left like nocheck not null
    nullif of off on open option or order outer over pivot plan primary print proc procedure public
    raiserror readtext reconfigure references restrict return revoke right rollback rowcount save schema
    select session_user set setuser shutdown some statistics system_user table then to top tran
    transaction trigger truncate union unique unpivot update updatetext use user values varying view
    waitfor when where while with writetext
    """
)
"""Those words that are no names without brackets. Words that T-SQL reserves too and that a facility may have
named a column by (open, close, load, file, percent, read, …) stay names where one can stand."""

STATEMENTS = words(
    """
    alter begin break checkpoint commit continue create dbcc deallocate declare delete deny drop dump
    exec execute goto grant if insert kill print raiserror readtext reconfigure return revoke rollback
    save select set setuser shutdown truncate update updatetext use waitfor while writetext
    """
)
"""Words that begin a statement, and so end the one before."""

STATEMENTS_OR_NAMES = words(
    """
    backup bulk close disable enable fetch load merge open restore throw
    """
)
"""Words that begin a statement except where an operand must follow: there they are names."""

BEFORE_OPERANDS = words(
    """
    all and any as asc between by case delete desc distinct else escape except exists from having if in
    insert intersect into is join like not nullif on or over print return select set some table then top
    union update values when where while with
    """
)
"""Words after which an operand follows."""
