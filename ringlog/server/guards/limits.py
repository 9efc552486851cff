"""The limits of a login's use of the server. PostgreSQL keeps them as settings of the role."""

import re
from dataclasses import dataclass

import psycopg
from psycopg import errors, sql

from ringlog.errors import ServerError, UsageError
from ringlog.server.embedded.settings import MiB, parse_memory

STATEMENT = "statement_timeout"
IDLE_TRANSACTION = "idle_in_transaction_session_timeout"
ROWS = "tsql.row_limit"
SESSIONS = "tsql.session_limit"
"""both read by the gateway at each login"""
TEMPORARY = "temp_file_limit"

NONE = "none"


@dataclass(frozen=True)
class Limits:
    """The limits to set; None: unchanged, `none` removes a limit.

    Times as PostgreSQL writes them: 500ms, 30s, 10min, 2h, 1d.
    """

    statement: str | None = None
    """how long a statement may take, sending its rows included"""
    rows: str | None = None
    """how many rows a result set of the gateway may have"""
    idle_transaction: str | None = None
    """how long a session may be idle inside a transaction, which then ends with the session's connection"""
    temporary: str | None = None
    """how much the temporary files of a session may have together, as 256MB or 2GB"""
    sessions: str | None = None
    """how many sessions there may be at one time, through the gateway"""

    def settings(self) -> dict[str, str]:
        """PostgreSQL's settings and their values. Raises UsageError."""
        found = {}
        for name, value in ((STATEMENT, self.statement), (IDLE_TRANSACTION, self.idle_transaction)):
            if value is not None:
                if value != NONE and not re.fullmatch(r"[1-9]\d{0,6}(ms|s|min|h|d)", value, re.ASCII):
                    raise UsageError(f"{value!r} is not a duration: write 500ms, 30s, 10min, 2h, 1d or none")
                found[name] = "0" if value == NONE else value
        for name, value, of in ((ROWS, self.rows, "rows"), (SESSIONS, self.sessions, "sessions")):
            if value is not None:
                if value != NONE and not re.fullmatch(r"[1-9]\d{0,17}", value, re.ASCII):
                    raise UsageError(
                        f"{value!r} is not a number of {of}: write a whole number from 1 on, or none"
                    )
                found[name] = "0" if value == NONE else value
        if self.temporary is not None:
            found[TEMPORARY] = "-1" if self.temporary == NONE else f"{parse_memory(self.temporary) // MiB}MB"
        return found


NAMES = (STATEMENT, ROWS, IDLE_TRANSACTION, TEMPORARY, SESSIONS)
"""of the settings that limit a login"""

USUAL = Limits(idle_transaction="15min")
"""of new logins: the locks of a forgotten transaction delay housekeeping no longer than this"""


def set_limits(connection: psycopg.Connection, login: sql.Identifier, limits: Limits) -> None:
    """Sets the limits of the login's future sessions. Raises UsageError, ServerError."""
    for name, value in limits.settings().items():
        set_setting(connection, login, name, value)


def set_setting(connection: psycopg.Connection, login: sql.Identifier, name: str, value: str) -> None:
    """Sets a setting of the login's future sessions. Raises ServerError."""
    setting = sql.Identifier(*name.split("."))
    try:
        connection.execute(sql.SQL("alter role {} set {} = {}").format(login, setting, sql.Literal(value)))
    except errors.InsufficientPrivilege as error:
        raise ServerError(f"only a superuser of PostgreSQL may set {name}: {error}") from None


def shown(settings: list[str] | None) -> str:
    """The limits in a role's settings (`name=value`), as text for messages."""
    words = {
        STATEMENT: "statements {}",
        ROWS: "{} rows",
        IDLE_TRANSACTION: "idle in a transaction {}",
        TEMPORARY: "temporary files {}",
        SESSIONS: "{} sessions",
    }
    values = dict(setting.split("=", 1) for setting in settings or ())
    return ", ".join(
        words[name].format(values[name]) for name in words if values.get(name, "0") not in ("0", "-1")
    )
