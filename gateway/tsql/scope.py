"""What a translation knows of its surroundings, and how it writes variables."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ringlog.gateway.tsql.errors import undeclared
from ringlog.gateway.tsql.session import FILLED, VARIABLES
from ringlog.gateway.tsql.types import Type


class Numbered:
    """Variables as $1, $2, …, in the order in which they are first used: for the statements of a batch."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def __call__(self, name: str) -> str:
        if name not in self.names:
            self.names.append(name)
        return f"${self.names.index(name) + 1}"

    @property
    def variables(self) -> tuple[str, ...]:
        return tuple(self.names)


@dataclass(frozen=True)
class Scope:
    """`variables`: those declared, with @ in lower case, and their types; None for a placeholder, whose type
    PostgreSQL infers. `sybase`: texts mean what ASE means by them."""

    variables: Mapping[str, Type | None] = field(default_factory=dict)
    sybase: bool = False
    definition: bool = False
    """the default or the check of a column is being written"""
    database: str = ""
    tables: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """tables that the batch has made with an identity column, as SQL names them, and their other columns"""

    def type_of(self, name: str, line: int) -> Type | None:
        """The type of a variable. Raises TsqlError 137 when there is none."""
        if name in self.variables:
            return self.variables[name]
        if name in VARIABLES:
            return VARIABLES[name]
        if name in FILLED:
            return FILLED[name]
        raise undeclared(name, line)


ParameterStyle = Callable[[str], str]
"""Writes a variable, by its name with @, into SQL: `$1`, or the name of a PL/pgSQL variable."""
