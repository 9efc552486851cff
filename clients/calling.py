"""Calls a stored procedure over a connection of any driver."""

from ringlog.clients.drivers import driver_of
from ringlog.clients.procedure import Answer, Argument, Connection
from ringlog.clients.waveforms import with_arrays


def call(connection: Connection, procedure: str, /, *arguments: Argument, **named: Argument) -> Answer:
    """Calls a procedure, with arguments by position, or all of them by name (without the @).

    `output(type)` stands for an output parameter. None is NULL. A datetime keeps its microseconds; without a
    zone it is in the facility's zone, like those returned over TDS.

    Raises TypeError or ValueError for an argument that cannot be sent exactly, before anything is sent;
    Refused for the server's error; Unanswered when the connection is unusable and must be closed.
    """
    if arguments and named:
        raise TypeError(f"{procedure}: give arguments by position or by name, not both")
    driver = driver_of(connection)
    return with_arrays(driver, connection, procedure, driver.call(connection, procedure, arguments, named))
