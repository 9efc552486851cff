"""The server's rounds by the simulated clock."""

from datetime import datetime

from ringlog.history.archive.archiving import archive
from ringlog.history.closing import close
from ringlog.history.summaries.summarising import summarise
from ringlog.loadtest.experiment.server import Server
from ringlog.schema.relations.partitions import maintain
from ringlog.schema.session import engine
from ringlog.schema.trusted_clock import JUMP


def believe(server: Server, moment: datetime) -> None:
    """Lets the server's own rounds take this as the time: they follow the last trusted round by JUMP, as
    the machine's clock is far ahead of the rows (ringlog.schema.clock)."""
    server.administrator.execute("update ringlog.housekeeping set trusted = %s", [moment - JUMP])


def hour(server: Server, moment: datetime) -> list[str]:
    """The summaries of a simulated hour. The server makes them each minute of the machine's clock, in which
    hours of the rows' time pass."""
    summarise(server.administrator_conninfo, now=moment, enough=1)
    return []


def midnight(server: Server, moment: datetime) -> list[str]:
    """The server's rounds of weeks, summaries, closed rows and archive, as of a simulated time. Returns the
    steps of the archive."""
    conninfo = server.administrator_conninfo
    administrator = engine(conninfo)
    try:
        maintain(administrator, now=moment)
        summarise(conninfo, now=moment, enough=1)
        close(conninfo, pauses=0)
        return [*archive(conninfo, now=moment, pauses=0)]
    finally:
        administrator.dispose()
