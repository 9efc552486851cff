"""Records what real clients send, for the tests that damage it: `python tests/gateway/record.py`.

Each file in tests/gateway/captures holds the bytes of one connection from the client to the server, from its
first one on. gateway/tests/captured.rs reads them.
"""

import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import psycopg

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from places import ROOT  # noqa: E402

from servers import RunningServer, serving  # noqa: E402
from tds_clients import Clients, CtClient, Param, odbc, pytds_of  # noqa: E402

CAPTURES = HERE / "captures"
MOST = 24_000
"""maximum bytes kept of a capture"""


class Tap:
    """A proxy to the server that records the client's bytes, separately for each connection."""

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.recordings: list[bytearray] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            client, _ = self._listener.accept()
            server = socket.create_connection(self._server)
            recording = bytearray()
            self.recordings.append(recording)
            threading.Thread(target=_pass_on, args=(client, server, recording), daemon=True).start()
            threading.Thread(target=_pass_on, args=(server, client, bytearray()), daemon=True).start()


def _pass_on(source: socket.socket, target: socket.socket, recording: bytearray) -> None:
    with suppress(OSError):
        while part := source.recv(65536):
            recording += part
            target.sendall(part)
        target.shutdown(socket.SHUT_WR)


MOMENT = datetime(2024, 2, 29, 12, 34, 56, 123_000)


def through_ct_library(client: CtClient, version: str) -> None:
    client.call("echo", [Param("int", "5", "@an_int", True), Param("char", "häuser", "@a_varchar", True)])
    client.call("echo_rows", [Param("float", "1.5", "@a_float"), Param("bigint", "-12", "@a_bigint")])
    client.call("echo", [Param("datetime", "45350 13600000", "@a_timestamp"), Param("char", None, "@a_text")])
    if version.startswith("5.0"):
        client.prepare("one", "select an_int, a_varchar from gateway_test..types where an_int = ?")
        client.describe("in", "one")
        client.execute("one", [Param("int", "-2147483648")])
        client.close_dynamic("one")
    client.language("declare @a int exec echo 1, @an_int = 2, @a_text = 'it''s' select @a, @@trancount")
    client.cancelled("select pg_sleep(5)", after=0.1)
    client.language("begin tran save tran s rollback tran s commit")


def through_pymssql(clients: Clients, version: str) -> None:
    with clients.pymssql(clients.server.writer, version=version, autocommit=False) as connection:
        cursor = connection.cursor()
        cursor.execute("select an_int from gateway_test..types where a_varchar = %s", ("häuser",))
        cursor.callproc("echo_rows", (True, 1, 2, 3, 0.5, 0.25, Decimal("1.10"), "häuser", "Ω", b"\0\1"))
        cursor.callproc("enter", (f"captured {version}",))
        connection.commit()


def through_odbc(clients: Clients, version: str) -> None:
    with closing(odbc(clients.server, clients.server.writer, version, autocommit=False)) as connection:
        cursor = connection.cursor()
        query = "select an_int from gateway_test..types where an_int = ? and a_varchar <> ?"
        cursor.execute(query, -5, "häuser").fetchall()
        cursor.execute("{call echo_rows(?, ?, ?)}", True, 1, 70_000).fetchall()
        connection.commit()


def through_python_tds(clients: Clients) -> None:
    server = clients.server
    with pytds_of(server, server.writer, autocommit=False) as connection:
        cursor = connection.cursor()
        cursor.execute("select an_int from gateway_test..types where a_timestamp < %s", (MOMENT,))
        cursor.callproc("echo_rows", (None, 1, 2, 3, 0.5, 0.25, Decimal("1.10"), "häuser", "Ω" * 50))
        connection.commit()


def through_freebcp(clients: Clients, version: str, rows: Path) -> None:
    login = clients.server.writer
    subprocess.run(
        [
            *("freebcp", "gateway_test..captured", "in", rows, "-c", "-t|"),
            *("-S", version, "-U", login.user, "-P", login.password),
        ],
        env={"FREETDSCONF": str(clients.configuration), "LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"},
        check=True,
        capture_output=True,
    )


@contextmanager
def tapped(server: RunningServer, program: Path, directory: Path) -> Iterator[tuple[Clients, Tap]]:
    """The clients of a server, connected through a tap."""
    tap = Tap(server.host, server.port)
    through = RunningServer(**{**vars(server), "host": "127.0.0.1", "port": tap.port})
    directory.mkdir()
    yield Clients.of(through, program, directory), tap


def record(server: RunningServer, directory: Path) -> None:
    program = directory / "ct_client"
    source = HERE / "programs" / "ct_client.c"
    subprocess.run(["cc", "-std=gnu11", "-O1", "-o", program, source, "-lct"], check=True)
    with psycopg.connect(server.dsn, autocommit=True) as admin:
        admin.execute((HERE / "functions.sql").read_bytes())
        admin.execute(
            "create table gateway_test.captured (id integer, name varchar(20), size real, at timestamp, "
            "price numeric(10, 2), words text); grant insert, select on gateway_test.captured to writer; "
            "grant select on gateway_test.types to writer"
        )
    rows = directory / "rows"
    rows.write_text(
        "1|häuser|0.5|2024-02-29 12:34:56.123|12.34|" + "w" * 600 + "\n2|||||\n3|x||||y\n" + "4|b|1|||\n" * 20
    )

    def keep(name: str, use: Callable[[Clients], object]) -> None:
        with tapped(server, program, directory / name) as (clients, tap):
            use(clients)
            longest = max(tap.recordings, key=len)
            (CAPTURES / f"{name}.bin").write_bytes(longest[:MOST])
            print(name, len(longest))

    def ct(version: str) -> Callable[[Clients], None]:
        def use(clients: Clients) -> None:
            with clients.ct(clients.server.writer, version) as client:
                through_ct_library(client, version)

        return use

    for version in ("5.0", "7.1", "7.4"):
        keep(f"ct-library-{version}", ct(version))
        keep(f"tsql-{version}", lambda c, v=version: c.tsql(c.server.writer, "exec echo 5", section=v))
        keep(f"freebcp-{version}", lambda c, v=version: through_freebcp(c, v, rows))
    for charset in ("5.0 sjis", "5.0 512"):
        keep(f"ct-library-{charset.replace(' ', '-')}", ct(charset))
    for version in ("7.1", "7.3", "7.4"):
        keep(f"pymssql-{version}", lambda c, v=version: through_pymssql(c, v))
    for version in ("5.0", "7.4"):
        keep(f"odbc-{version}", lambda c, v=version: through_odbc(c, v))
    keep("python-tds-7.4", through_python_tds)


def main() -> None:
    CAPTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="ringlog-", dir=ROOT) as name:
        directory = Path(name)
        directory.chmod(0o755)
        with serving(directory / "served") as server:
            record(server, directory)


if __name__ == "__main__":
    main()
