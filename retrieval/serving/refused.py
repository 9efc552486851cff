"""The refusal of a request: an HTTP status and a text with the remedy."""

import logging
import re
from collections.abc import Mapping

from ringlog.history.archive.folder import Damaged
from ringlog.history.connection import ReadError

log = logging.getLogger(__name__)


class Refused(Exception):
    """A refused request. `status` is the HTTP status; the text is for the client."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.headers = dict(headers or {})


# SQLSTATEs of PostgreSQL (its documentation, appendix A) and what they mean for a request
_STATES = {
    "28000": (401, "the login was refused"),
    "28P01": (401, "the login was refused"),
    "57014": (504, "the query took longer than this server allows: request a shorter time range, or a trend"),
    "53300": (503, "PostgreSQL has no free connection: try again later"),
    "55P03": (503, "others are changing the requested data: try again later"),
    "57P01": (503, "PostgreSQL is stopping: try again later"),
    "57P03": (503, "PostgreSQL is starting: try again later"),
    "2201B": (400, "the pattern is not a regular expression"),
}
_DAMAGED = (
    "a part of this time is in the archive, and a file of it is missing or damaged: the server's log names it"
    ", and ringlog archive verify finds all such files"
)
# PostgreSQL's messages for a refused or ended connection, for which libpq gives no SQLSTATE (its sources:
# utils/init/miscinit.c and postinit.c, libpq/auth.c, commands/variable.c), and their meaning for a request.
_REFUSED_LOGINS = (
    ("authentication failed", 401, "the login was refused"),
    ("no password supplied", 401, "the login was refused"),
    ("is not permitted to log in", 401, "this login is locked, or it is no login"),
    ("pg_hba.conf", 403, "PostgreSQL's pg_hba.conf does not admit this login from the server of HTTP"),
    ("permission denied for database", 403, "this login has no right to connect to the database"),
    ("too many connections for role", 503, "this login has as many connections as it may: try again later"),
    ("too many clients", *_STATES["53300"]),
    ("too many connections", *_STATES["53300"]),
    ("remaining connection slots are reserved", *_STATES["53300"]),
    ("is starting up", *_STATES["57P03"]),
    ("in recovery mode", *_STATES["57P03"]),
    ("not yet accepting connections", *_STATES["57P03"]),
    ("is shutting down", *_STATES["57P01"]),
    ("due to administrator command", *_STATES["57P01"]),
)
_FATAL = re.compile(r"FATAL:  ([^\n]{1,300})")
# the role of --http-role does not exist, or the gateway's login may not act as it
_NO_ROLE = re.compile(r'role "[^"]*" does not exist')
_NO_LOGIN = re.compile(r'permission denied to set role ("[^"]*")')
_DENIED = re.compile(r"permission denied for (?:function|schema|table|view) [^\s;,]{1,64}")
# the driver's text of an error of PostgreSQL; in the middle of a result it has no SQLSTATE
_RAISED = re.compile(r"\[PGRES_FATAL_ERROR\]: (?!FATAL|PANIC)\w+:  ([^\n]{1,300})")
CHALLENGE = {"WWW-Authenticate": 'Basic realm="ringlog", charset="UTF-8"'}


def refused(error: ReadError | Damaged, login: str | None = None) -> Refused:
    """The answer to a request of this login whose query failed with this error."""
    if isinstance(error, Damaged):
        log.error("a file of the archive is damaged: %s", error)
        return Refused(503, _DAMAGED)
    text = " ".join(str(error).split())
    state = error.sqlstate or ""
    if "no password supplied" in text:
        # libpq's own messages
        state = "28P01"
    elif "statement timeout" in text:  # the driver reports no SQLSTATE in the middle of a result
        state = "57014"
    elif "lock timeout" in text:
        state = "55P03"
    if state == "42501":
        who = "this login" if login is None else f"login {login}"
        denied = _DENIED.search(text)
        return Refused(403, f"{who} has no right to do this" + (f": {denied[0]}" if denied else ""))
    if state in _STATES:
        status, message = _STATES[state]
        return Refused(status, message, CHALLENGE if status == 401 else None)
    if fatal := _FATAL.search(str(error)):
        return _refused_login(fatal[1])
    if state in ("", "00000") and (raised := _RAISED.search(str(error))) and "server closed" not in text:
        return Refused(500, f"PostgreSQL refused the query: {raised[1]}")
    if state in ("", "00000") or state.startswith("08"):
        return Refused(503, "PostgreSQL does not answer: try again later")
    return Refused(500, f"PostgreSQL refused the query ({state})")


def _refused_login(message: str) -> Refused:
    """The answer if PostgreSQL has ended the connection with this message."""
    if no_role := _NO_ROLE.search(message):
        add = "it is the login of --http-role: add it with ringlog user add NAME --reader"
        return Refused(503, f"{no_role[0]}: {add}")
    if no_login := _NO_LOGIN.search(message):
        return Refused(
            503,
            f"role {no_login[1]} is locked, or it is no login: it is the login of --http-role, for requests "
            "that show none; ringlog user list shows it",
        )
    for part, status, meaning in _REFUSED_LOGINS:
        if part in message:
            return Refused(status, meaning, CHALLENGE if status == 401 else None)
    return Refused(503, f"PostgreSQL has ended the connection: {message}")
