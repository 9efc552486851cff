"""A line to the server that is made again whenever it breaks."""

import pymssql

from ringlog.clients import Address, Answer, Refused, Unanswered, call, connect
from ringlog.clients.procedure import Argument
from ringlog.loader.leash import Leash
from ringlog.loader.schedule import growing_pauses
from ringlog.loader.statistics import State, Statistics
from ringlog.loader.supervisor import Failed

# Seconds without an answer after which a call is sent again on a new connection.
_PATIENCE = 20.0
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 10.0

# Errors that a call earns by its arguments: conversion, range, length, constraints. It would fail again, and
# the next one need not. Every other error (rights, a missing procedure, a full disk, a deadlock) is no fault
# of the arguments: it passes, or somebody repairs it.
_ABOUT_THE_ARGUMENTS = frozenset({257, 515, 547, 2601, 8114, 8115, 8152})
# Of the others, what a login without rights or the facility file of another server earns: no permission, no
# such procedure, no such parameter. Where no call ever worked, nobody is about to repair it.
_ABOUT_THE_SET_UP = frozenset({229, 2812, 8145})


class Line:
    """Calls procedures until they are answered: at least once, as the procedures are made for."""

    def __init__(self, address: Address, password: str, statistics: Statistics, leash: Leash) -> None:
        self._address = address
        self._password = password
        self._statistics = statistics
        self._leash = leash
        self._connection: pymssql.Connection | None = None

    def connect(self) -> None:
        """Connects now, so that the first call need not. Raises Released when told to end."""
        pauses = growing_pauses(_FIRST_PAUSE, _LONGEST_PAUSE)
        while True:
            try:
                self._connected()
                return
            except Unanswered as error:
                self._break(error)
            self._leash.sleep(next(pauses))

    def call(self, procedure: str, /, *arguments: Argument, **named: Argument) -> Answer:
        """Repeats a call, with growing pauses, as long as no answer comes or the error is none of its own.

        Raises Refused for an error about its arguments, Failed when the login or the facility file cannot be
        meant for this server, Released when told to end.
        """
        pauses = growing_pauses(_FIRST_PAUSE, _LONGEST_PAUSE)
        while True:
            try:
                answer = call(self._connected(), procedure, *arguments, **named)
                self._statistics.state = State.RUNNING
                return answer
            except Refused as error:
                if error.number in _ABOUT_THE_ARGUMENTS:
                    raise
                if error.number in _ABOUT_THE_SET_UP and not self._statistics.acknowledged:
                    raise Failed(str(error)) from None
                self._statistics.state = State.HELD
                self._statistics.message = str(error)
            except Unanswered as error:
                self._break(error)
            self._leash.sleep(next(pauses))
            self._statistics.repeated += 1

    def _connected(self) -> pymssql.Connection:
        if self._connection is None:
            self._connection = connect(
                self._address, self._password, login_timeout=_PATIENCE, timeout=_PATIENCE
            )
            self._statistics.state = State.RUNNING
        return self._connection

    def _break(self, error: Unanswered) -> None:
        self._statistics.state = State.RECONNECTING
        self._statistics.message = str(error)
        if self._connection is not None:
            self._statistics.reconnected += 1
            connection, self._connection = self._connection, None
            connection.close()
