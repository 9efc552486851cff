"""A line to the server that is made again whenever it breaks."""

import pymssql

from ringlog.clients import Address, Answer, Refused, Unanswered, call, connect
from ringlog.clients.procedure import Argument
from ringlog.loader.leash import Leash
from ringlog.loader.schedule import growing_pauses
from ringlog.loader.statistics import State, Statistics

# Seconds without an answer after which a call is sent again on a new connection.
_PATIENCE = 20.0
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 10.0

# Errors that the arguments of a call earn: it would fail again, and the next one need not. Every other one
# (rights, a missing procedure, a full disk, a deadlock) is no fault of theirs, and passes or is repaired.
_ABOUT_THE_ARGUMENTS = frozenset({257, 515, 547, 2601, 8114})


class Line:
    """Calls procedures until they are answered: at least once, as the procedures are made for."""

    def __init__(self, address: Address, password: str, statistics: Statistics, leash: Leash) -> None:
        self._address = address
        self._password = password
        self._statistics = statistics
        self._leash = leash
        self._connection: pymssql.Connection | None = None

    def call(self, procedure: str, *arguments: Argument) -> Answer:
        """Repeats a call, with growing pauses, as long as no answer comes or the error is none of its own.

        Raises Refused for an error about its arguments, Released when told to end.
        """
        pauses = growing_pauses(_FIRST_PAUSE, _LONGEST_PAUSE)
        while True:
            try:
                if self._connection is None:
                    self._connection = connect(
                        self._address, self._password, login_timeout=_PATIENCE, timeout=_PATIENCE
                    )
                answer = call(self._connection, procedure, *arguments)
                self._statistics.state = State.RUNNING
                return answer
            except Refused as error:
                if error.number in _ABOUT_THE_ARGUMENTS:
                    raise
                self._statistics.state = State.HELD
                self._statistics.message = str(error)
            except Unanswered as error:
                self._statistics.state = State.RECONNECTING
                self._statistics.message = str(error)
                self._disconnect()
            self._leash.sleep(next(pauses))
            self._statistics.repeated += 1

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._statistics.reconnected += 1
            try:
                self._connection.close()
            finally:
                self._connection = None
