"""The users of a load: a writer and a reader of each table, which call through pymssql."""

import time
from collections.abc import Mapping, Sequence
from functools import cache
from random import randrange
from typing import ClassVar

import gevent.event
import gevent.socket
import pymssql
from locust import User, task
from locust.env import Environment
from locust.exception import StopUser

from ringlog.clients import Address, Answer, Refused, Unanswered, call, connect, find_password
from ringlog.clients.drivers import driver
from ringlog.clients.pauses import growing_pauses
from ringlog.clients.procedure import Argument, Connection
from ringlog.loader.schedule import SECOND, Schedule, now
from ringlog.loader.sources import Reading
from ringlog.loadtest.calls import Call, Calls, Kind
from ringlog.loadtest.load import LocustLoad, Pace
from ringlog.loadtest.parameters import of_a_reader
from ringlog.loadtest.reader import question
from ringlog.loadtest.readings import chosen, readings
from ringlog.schema.facility import Table
from ringlog.schema.facility_files.facility_file import load_facility
from ringlog.schema.moments import moment_of

# Seconds without an answer after which a user gives up a connection.
_PATIENCE = 60.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 10.0


def let_others_run() -> None:
    """Makes pymssql yield to other users while it waits for an answer: FreeTDS itself blocks."""
    # Loaded here, not by the threads of the first logins: in locust Python's import locks are gevent's,
    # and a thread that waits for one may wait for ever, for the event loop of another thread is to wake it.
    driver("pymssql")
    pymssql.set_wait_callback(_wait)


def _wait(descriptor: int) -> None:
    error = TimeoutError(f"no answer for {_PATIENCE:g} s")
    gevent.socket.wait_read(descriptor, timeout=_PATIENCE, timeout_exc=error)


class Counter:
    """The shared state of the users of one process: their records, and whether they may begin a call."""

    def __init__(self) -> None:
        self.calls = Calls()
        self._open = True
        self._running = 0
        self._still = gevent.event.Event()
        self._still.set()

    def __enter__(self) -> None:
        """A call begins. Ends the user instead when none may."""
        if not self._open:
            raise StopUser
        self._running += 1
        self._still.clear()

    def __exit__(self, *_: object) -> None:
        self._running -= 1
        if not self._running:
            self._still.set()

    def open(self) -> None:
        """Calls may begin."""
        self._open = True

    def close(self) -> None:
        """Lets no call begin any more and waits for those that run."""
        self._open = False
        self._still.wait(_PATIENCE)


class OnlineUser(User):
    """A user that is logged in and calls procedures of one table."""

    abstract = True
    load: ClassVar[LocustLoad]
    counter: ClassVar[Counter]
    address: ClassVar[Address]
    table: ClassVar[Table]
    index: ClassVar[int]
    """of the table in the facility file"""
    parameters: ClassVar[tuple[str, ...]]
    """parameter tables that readers request"""

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._connection: Connection | None = None
        self._logins = 0
        # several users of a table spread over its cycle
        self._schedule = Schedule.of(f"{type(self).__name__} {randrange(SECOND)}", self.table.cycle)

    def wait_time(self) -> float:
        """Seconds until the next call; called by locust after each."""
        if self.load.pace == Pace.MAX:
            return 0.0
        moment = now()
        return (self._schedule.after(moment) - moment) / SECOND

    def on_start(self) -> None:
        """Logs in, repeatedly until it succeeds."""
        pauses = growing_pauses(_FIRST_PAUSE, _LONGEST_PAUSE)
        while self._connection is None:
            begun, start = now(), time.perf_counter()
            try:
                # a login blocks, and has no callback: another thread does it
                self._connection = gevent.get_hub().threadpool.apply(
                    connect, (self.address, find_password(self.address)), {"timeout": _PATIENCE}
                )
                error: Exception | None = None
            except (Unanswered, TimeoutError) as failure:
                error = failure
            self._record(Kind.LOGIN, "log in", self._logins, begun, time.perf_counter() - start, error)
            if error is not None:
                gevent.sleep(next(pauses))
        self._logins += 1

    def on_stop(self) -> None:
        self._hang_up()

    def ask(
        self, kind: Kind, number: int, begun: int, procedure: str, *arguments: Argument, **named: Argument
    ) -> Answer | None:
        """Calls a procedure once and records the outcome. Returns None when it failed."""
        if self._connection is None:
            self.on_start()
        assert self._connection is not None
        with self.counter:
            start = time.perf_counter()
            answer: Answer | None = None
            error: Exception | None = None
            try:
                answer = call(self._connection, procedure, *arguments, **named)
            except Refused as failure:
                error = failure
            except (Unanswered, TimeoutError) as failure:
                error = failure
                self._hang_up()
            if answer is not None and kind is Kind.READ:
                number = len(answer.rows)
            self._record(kind, procedure, number, begun, time.perf_counter() - start, error)
        return answer

    def _record(
        self, kind: Kind, name: str, number: int, begun: int, seconds: float, error: Exception | None
    ) -> None:
        self.counter.calls.add(Call(kind, error is None, self.index, number, begun, round(seconds * SECOND)))
        self.environment.events.request.fire(
            request_type=kind.name.lower(),
            name=name,
            response_time=seconds * 1000,
            response_length=0,
            exception=error,
            context={},
        )

    def _hang_up(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            connection.close()


class OnlineWriter(OnlineUser):
    """Writes one row after the other into the table's ring."""

    abstract = True

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        # at a random row: several writers of a table seldom write the same row, and may do so
        self._seq_no = randrange(self.table.rows)

    @task
    def write(self) -> None:
        """The next row of the ring."""
        self._seq_no = self._seq_no % self.table.rows + 1
        begun = now()
        self.ask(
            Kind.WRITE,
            self._seq_no,
            begun,
            f"put_{self.table.name}",
            seq_no=self._seq_no,
            time=moment_of(begun),
            **_readings(self.table)[chosen(begun)],
        )


class OnlineReader(OnlineUser):
    """Reads the table's latest row, the last of its history, or parameters."""

    abstract = True

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._questions = randrange(SECOND)

    @task
    def read(self) -> None:
        """The next request."""
        procedure, arguments = question(self.table, self._questions, self.parameters)
        self._questions += 1
        self.ask(Kind.READ, 0, now(), procedure, *arguments)


@cache
def _readings(table: Table) -> Sequence[Mapping[str, Reading]]:
    return readings(table)


def users(load: LocustLoad, counter: Counter) -> list[type[OnlineUser]]:
    """A class of writers for each table of the load, and one of readers where the load has readers.

    With as many users as classes, locust makes one of each.
    """
    kinds: list[tuple[type[OnlineUser], str]] = [(OnlineWriter, load.writer)]
    if load.reader is not None:
        kinds.append((OnlineReader, load.reader))
    users = []
    facility = load_facility(load.facility)
    for kind, url in kinds:
        for index, table in enumerate(facility.tables):
            if load.columns not in (None, len(table.columns)):
                continue
            attributes = {
                "abstract": False,
                "load": load,
                "counter": counter,
                "address": Address.parse(url),
                "table": table,
                "index": index,
                "parameters": of_a_reader(facility, index),
                "host": url,
            }
            users.append(type(f"{kind.__name__}_{table.name}", (kind,), attributes))
    return users
