"""A connection to the server that reconnects whenever it breaks."""

from collections.abc import Callable
from contextlib import suppress
from itertools import cycle

from ringlog.clients.address import Address
from ringlog.clients.calling import call
from ringlog.clients.connection import connect
from ringlog.clients.figures import Figures, State
from ringlog.clients.pauses import growing_pauses
from ringlog.clients.procedure import Answer, Argument, Connection, Refused, Unanswered

# Seconds without an answer after which a call is sent again on a new connection.
_PATIENCE = 20.0
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 10.0
# With several hosts: a dead machine does not answer, and another one takes over soon.
_PATIENCE_OF_SEVERAL = 5.0
_LONGEST_PAUSE_OF_SEVERAL = 0.5

# Errors caused by the arguments of a call: conversion, range, length, constraints. The same call would fail
# again; others may succeed. Every other error (rights, a missing procedure, a full disk, a deadlock) is
# temporary, or can be repaired at the server.
_ABOUT_THE_ARGUMENTS = frozenset({233, 257, 515, 546, 547, 548, 2601, 2627, 8114, 8115, 8152})
# The class of SQLSTATEs of values that cannot be stored.
_DATA_EXCEPTION = "22"
# Errors of a login without rights or of another server's facility file: no such procedure, no permission, no
# such parameter. They are final if no call has ever succeeded.
_ABOUT_THE_SET_UP = frozenset({229, 2812, 8145})
# SQLSTATEs of claim_writer and put_claimed: the operator must decide which process writes.
_WRITTEN_BY_ANOTHER = frozenset({"RL001", "RL002"})
# SQLSTATEs of a damaged page or index.
_DAMAGED = frozenset({"XX001", "XX002"})


class Failed(Exception):
    """The work cannot continue, and would fail again."""


class WrittenByAnother(Failed):
    """Another process writes the table."""


class Released(Exception):
    """Raised in a waiting thread that must end."""


class Interrupted(Exception):
    """A call got no answer, or a temporary error: it must be repeated after a pause.

    `made`: whether it was sent at all. `unknown`: whether it may have taken effect.
    """

    def __init__(self, made: bool, unknown: bool) -> None:
        super().__init__()
        self.made = made
        self.unknown = unknown


class ReconnectingConnection:
    """Repeats calls of procedures until they are answered. The procedures allow repetitions.

    `sleep` waits for so many seconds, and raises Released when the process is to end.
    """

    def __init__(
        self, address: Address, password: str, figures: Figures, sleep: Callable[[float], object]
    ) -> None:
        self._address = address
        # the hosts in turn, and the current one: after a host without an answer the next is tried
        self._hosts = cycle(address.each)
        several = len(address.each) > 1
        self._patience = _PATIENCE_OF_SEVERAL if several else _PATIENCE
        self._longest_pause = _LONGEST_PAUSE_OF_SEVERAL if several else _LONGEST_PAUSE
        self._host = next(self._hosts)
        self._password = password
        self._figures = figures
        self._sleep = sleep
        self._connection: Connection | None = None
        # attempts since the last answer
        self._failed = 0
        self._pauses = growing_pauses(_FIRST_PAUSE, self._longest_pause)

    @property
    def over_tds(self) -> bool:
        """Whether the server is a gateway, which takes waveforms in the facility's byte order."""
        return self._address.driver != "psycopg"

    @property
    def gone(self) -> bool:
        """Whether the server cannot be reached or refuses calls at present: every host has failed since the
        connection broke."""
        return self._failed > len(self._address.each)

    def connect(self) -> None:
        """Connects now, so that the first call need not. Raises Released when the process is to end."""
        while self._connection is None:
            try:
                self._connected()
            except Unanswered as error:
                self._break(error)
                self.pause()

    def call(self, procedure: str, /, *arguments: Argument, **named: Argument) -> Answer:
        """Repeats a call, with growing pauses, until it is answered or fails by its own arguments.

        Raises Refused for an error about its arguments, Failed when the login or the facility file does not
        belong to this server, Released when the process is to end.
        """
        while True:
            try:
                return self.attempt(procedure, *arguments, **named)
            except Interrupted:
                self.pause()

    def attempt(self, procedure: str, /, *arguments: Argument, **named: Argument) -> Answer:
        """Makes a call once. Raises like `call`, and Interrupted if it should be repeated."""
        try:
            connection = self._connected()
        except Unanswered as error:
            self._break(error)
            raise Interrupted(made=False, unknown=False) from None
        try:
            answer = call(connection, procedure, *arguments, **named)
        except Refused as error:
            if error.sqlstate in _WRITTEN_BY_ANOTHER:
                raise WrittenByAnother(error.message) from None
            if error.number in _ABOUT_THE_ARGUMENTS or error.sqlstate[:2] == _DATA_EXCEPTION:
                self._failed = 0
                raise
            if error.number in _ABOUT_THE_SET_UP and not self._figures.acknowledged:
                raise Failed(str(error)) from None
            if error.sqlstate in _DAMAGED and not self.over_tds:
                # the gateway does this for its callers
                with suppress(Refused, Unanswered):
                    call(connection, "mend_ring", error.message)
            self._figures.state = State.HELD
            self._figures.message = str(error)
            self._failed += 1
            unknown = False
        except Unanswered as error:
            self._break(error)
            unknown = True
        else:
            self._figures.state = State.RUNNING
            self._failed = 0
            self._pauses = growing_pauses(_FIRST_PAUSE, self._longest_pause)
            return answer
        self._figures.repeated += 1
        raise Interrupted(made=True, unknown=unknown)

    def pause(self) -> None:
        """Waits before the next attempt. Raises Released when the process is to end."""
        self._sleep(next(self._pauses))

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connected(self) -> Connection:
        if self._connection is None:
            self._connection = connect(
                self._host, self._password, login_timeout=self._patience, timeout=self._patience
            )
            self._figures.state = State.RUNNING
        return self._connection

    def _break(self, error: Unanswered) -> None:
        self._figures.state = State.RECONNECTING
        self._figures.message = str(error)
        self._failed += 1
        if self._connection is not None:
            self._figures.reconnected += 1
        self._host = next(self._hosts)
        self.close()
