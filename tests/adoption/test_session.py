"""A server that stops answering ends the command with an error, without a long wait."""

import socket
import sys
import threading
from collections.abc import Iterator
from typing import Any, Self

import pymssql
import pytest

from ringlog.adoption.server.catalogue import read
from servers import RunningServer, run

_BATCH = 1  # type of a packet with a text


@pytest.fixture
def silent(server: RunningServer) -> Iterator[str]:
    """Forwards the login to a server, and no text."""

    def passing(client: socket.socket, there: socket.socket) -> None:
        while packet := client.recv(65536):
            if packet[0] != _BATCH:
                there.sendall(packet)

    def answering(client: socket.socket, there: socket.socket) -> None:
        while packet := there.recv(65536):
            client.sendall(packet)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"tds://{server.reader.user}@127.0.0.1:{listener.getsockname()[1]}/log"

        def accept() -> None:
            client, _ = listener.accept()
            with client, socket.create_connection((server.host, server.port)) as there:
                back = threading.Thread(target=answering, args=(client, there), daemon=True)
                back.start()
                passing(client, there)
                there.shutdown(socket.SHUT_RDWR)
                back.join()

        accepting = threading.Thread(target=accept, daemon=True)
        accepting.start()
        yield address
        accepting.join()


SESSION = """
import sys
import pymssql
from ringlog.adoption.server.session import connected, number, message_of
from ringlog.clients import Address
try:
    with connected(Address.parse(sys.argv[1]), sys.argv[2], "7.4", timeout=1):
        print("connected")
except pymssql.Error as error:
    print(number(error), message_of(error))
"""


def test_a_server_that_does_not_answer_use(silent: str, server: RunningServer) -> None:
    # in a separate process: the limit applies to all sessions of a process
    done = run(sys.executable, "-c", SESSION, silent, server.reader.password)
    assert done.stdout == "20003 no answer within 1 s to the login or to 'use log'\n", done.stderr


# --- old servers that resemble SQL Server, with other error numbers for missing features (Babelfish ---

LACKING = b'relation "sys.security_policies" does not exist'


class Resembling:
    """A session whose server refuses one view of the catalogue, with this number."""

    def __init__(self, session: pymssql.Connection, number: int) -> None:
        self.session, self.number = session, number

    def cursor(self) -> Self:
        self.there = self.session.cursor()
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.there.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.there, name)

    def execute(self, text: str) -> None:
        if "sys.security_policies" in text:
            raise pymssql.OperationalError(self.number, LACKING)
        self.there.execute(text)


@pytest.fixture
def session(server: RunningServer) -> Iterator[pymssql.Connection]:
    with server.connect(server.reader.user, server.reader.password, database="log") as connection:
        yield connection


def read_with(session: pymssql.Connection, number: int) -> tuple[str, ...]:
    return read(Resembling(session, number), "log").unread  # type: ignore[arg-type]


def test_missing_views_are_reported_and_the_rest_is_read(session: pymssql.Connection) -> None:
    (line,) = set(read_with(session, 33557097)) - set(read_with(session, 208))
    assert line == f"left_policies: {LACKING.decode()}"


def test_a_session_that_ends_is_an_error(session: pymssql.Connection) -> None:
    # DB-Library's own: no answer in time
    with pytest.raises(pymssql.OperationalError):
        read_with(session, 20003)
