"""The refusal of a request: an HTTP status and a text that says what to do."""

import logging
import re
from collections.abc import Mapping

from ringlog.history.connection import ReadError
from ringlog.history.folder import Damaged

log = logging.getLogger(__name__)


class Refused(Exception):
    """A request that is not served. `status` is HTTP's; the text is for the client."""

    def __init__(self, status: int, words: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(words)
        self.status = status
        self.headers = dict(headers or {})


# SQLSTATEs of PostgreSQL (its documentation, appendix A) and what they mean for a request
_STATES = {
    "28000": (401, "the login was refused"),
    "28P01": (401, "the login was refused"),
    "42501": (403, "this login has no right to do this"),
    "57014": (504, "the query took longer than this server allows: request a shorter time range, or a trend"),
    "53300": (503, "PostgreSQL has no free connection: try again later"),
    "55P03": (503, "others are changing what was asked for: try again later"),
    "57P01": (503, "PostgreSQL is stopping: try again later"),
    "57P03": (503, "PostgreSQL is starting: try again later"),
    "2201B": (400, "the pattern is not a regular expression"),
}
_DAMAGED = (
    "a part of this time is in the archive, and a file of it is missing or damaged: the server's log names it"
    ", and ringlog archive verify finds all such files"
)
# libpq's error when the role to act for does not exist
_NO_ROLE = re.compile(r'FATAL:  (role "[^"]*" does not exist)')
# the driver's text of an error that PostgreSQL has raised; there is no SQLSTATE in the middle of a result
_RAISED = re.compile(r"\[PGRES_FATAL_ERROR\]: (?!FATAL|PANIC)\w+:  ([^\n]{1,300})")
CHALLENGE = {"WWW-Authenticate": 'Basic realm="ringlog", charset="UTF-8"'}


def refused(error: ReadError | Damaged) -> Refused:
    """The answer to a request whose query failed so."""
    if isinstance(error, Damaged):
        log.error("a file of the archive is damaged: %s", error)
        return Refused(503, _DAMAGED)
    if no_role := _NO_ROLE.search(str(error)):
        words = "it is the login of --http-role: add it with ringlog user add NAME --reader"
        return Refused(503, f"{no_role[1]}: {words}")
    text = " ".join(str(error).split())
    state = error.sqlstate or ""
    if "authentication failed" in text or "no password supplied" in text:
        state = "28P01"
    elif "statement timeout" in text:  # the driver gives no SQLSTATE in the middle of a result
        state = "57014"
    elif "lock timeout" in text:
        state = "55P03"
    if state in _STATES:
        status, words = _STATES[state]
        return Refused(status, words, CHALLENGE if status == 401 else None)
    if state in ("", "00000") and (raised := _RAISED.search(str(error))) and "server closed" not in text:
        return Refused(500, f"PostgreSQL refused the query: {raised[1]}")
    if state in ("", "00000") or state.startswith("08"):
        return Refused(503, "PostgreSQL does not answer: try again later")
    return Refused(500, f"PostgreSQL refused the query ({state})")
