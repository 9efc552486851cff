"""T-SQL procedures as functions of PostgreSQL."""

from ringlog.gateway.tsql.errors import refused
from ringlog.gateway.tsql.scope import Scope
from ringlog.gateway.tsql.statements import CreateProcedure, DropProcedure


def create(statement: CreateProcedure, scope: Scope) -> list[str]:
    """The statements that make a procedure. Raises TsqlError for what is refused."""
    raise refused(f"{statement.kind} procedure", "procedures are written in PL/pgSQL", statement.line)


def drop(statement: DropProcedure, scope: Scope) -> list[str]:
    """The statements that drop procedures."""
    raise refused("drop procedure", "procedures are written in PL/pgSQL", statement.line)
