"""Two servers in parallel: clients receive the old one's bytes, the new one gets the same calls."""

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

import psycopg
import pymssql
import pytest
from mirrors import RunningMirror, mirroring
from psycopg import sql

from ringlog.gateway import Mirror
from servers import FACILITY, RunningServer, ringlog, serving
from tds_clients import Clients, Param, rows_of
from waiting import PATIENCE


@pytest.fixture(scope="module")
def new_server(temporary_directory: Path) -> Iterator[RunningServer]:
    """The server to which the site moves: the same facility, the same logins."""
    with serving(temporary_directory / "new", facility=FACILITY) as running:
        yield running


@pytest.fixture(autouse=True)
def empty_new_tables(new_server: RunningServer) -> None:
    """Like the old server's."""
    with psycopg.connect(new_server.dsn) as connection:
        for table in ("every_type", "sr_rf"):
            ring, log = (sql.Identifier(schema, table) for schema in ("online", "weeks"))
            connection.execute(sql.SQL("truncate {}; update {} set time = null").format(log, ring))


@pytest.fixture
def mirrored(server: RunningServer, new_server: RunningServer, tmp_path: Path) -> Iterator[RunningMirror]:
    with mirroring(
        tmp_path, f"{server.host}:{server.port}", f"{new_server.host}:{new_server.port}"
    ) as running:
        yield running


@pytest.fixture
def through(mirrored: RunningMirror, server: RunningServer, ct_program: Path, tmp_path: Path) -> Clients:
    """Clients that know only the mirror."""
    at_mirror = RunningServer(
        server.process,
        server.data,
        mirrored.host,
        mirrored.port,
        server.dsn,
        server.postgres_port,
        server.writer,
        server.reader,
    )
    return Clients.of(at_mirror, ct_program, tmp_path)


def rows(server: RunningServer) -> list[tuple[object, ...]]:
    return server.sql('select seq_no, "time", power from log.sr_rf order by 2, 1')


BEGIN = datetime(2026, 3, 4, 5, 0, 0)


@pytest.mark.parametrize("version", ["5.0", "7.1", "7.4"])
def test_calls_reach_both_and_agree(
    through: Clients, mirrored: RunningMirror, server: RunningServer, new_server: RunningServer, version: str
) -> None:
    begin = BEGIN + timedelta(days=["5.0", "7.1", "7.4"].index(version))
    with through.ct(server.writer, version) as writer:
        for number in range(1, 6):
            answer = writer.call(
                "put_sr_rf",
                [
                    Param("int", str(number), "@seq_no"),
                    Param("char", str(begin + timedelta(minutes=number)), "@time"),
                    Param("real", str(number / 2), "@power"),
                ],
            )
            assert answer.statuses == [0]
    # sessions are replayed independently: one's rows exist after its calls were compared
    mirrored.wait(lambda: mirrored.count("compared_total") >= 6)
    with through.ct(server.reader, version) as reader:
        read = reader.language("select seq_no, power from log..sr_rf order by time print 'seen'")
        assert len(read.rows) >= 5
    mirrored.wait(lambda: mirrored.count("compared_total") >= 8)
    assert mirrored.count("differing_total") == 0
    assert mirrored.lines() == []
    assert rows(server) == rows(new_server)


def test_differences_are_reported_and_no_client_sees_them(
    through: Clients, mirrored: RunningMirror, server: RunningServer, new_server: RunningServer
) -> None:
    new_server.sql(
        "create function ringlog.only_new(out v integer) language sql as 'select 7';"
        "grant execute on function ringlog.only_new to daq_reader;"
        "select ringlog.put_every_type("
        "row (1, '2026-02-02', 1.5, 2.5, 3, 4, 5, true, 'here only')::online.every_type);"
        "notify ringlog_catalogue"
    )
    with through.pymssql(server.reader) as client, client.cursor() as cursor:
        with pytest.raises(pymssql.Error, match="only_new"):
            cursor.callproc("only_new")
        assert rows_of(cursor, "select a_varchar from log..every_type where a_varchar = 'here only'") == []
    mirrored.wait(lambda: any(line["part"] == "rows" for line in mirrored.lines()))
    reported = {(line["request"].split(" from")[0], line["part"]): line for line in mirrored.lines()}
    missing = reported["exec only_new", "messages"]
    assert missing["old"].startswith("number 1 of 1: 2812")
    assert missing["new"] == "0 in all"
    assert missing["login"] == server.reader.user
    more = reported["select a_varchar", "rows"]
    assert (more["old"], more["new"]) == ("0 in all", "number 1 of 1: 'here only'")
    new_server.sql("drop function ringlog.only_new; notify ringlog_catalogue")


CAPTURES = sorted((Path(__file__).parents[1] / "captures").glob("*.bin"))


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.stem)
def test_bytes_pass_unchanged(capture: Path, tmp_path: Path) -> None:
    """Captured bytes of real clients arrive at the old server unchanged, and its answers at the client."""
    sent = capture.read_bytes()
    content = b"".join(bytes([4, number % 2, 1, 0, 0, 0, number, 0]) + bytes(248) for number in range(200))
    received = bytearray()

    def serve(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.sendall(content)
            connection.shutdown(socket.SHUT_WR)
            while part := connection.recv(65536):
                received.extend(part)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        old = threading.Thread(target=serve, args=[listener])
        old.start()
        mirror = Mirror(
            "127.0.0.1", 0, f"127.0.0.1:{listener.getsockname()[1]}", "127.0.0.1:1", tmp_path / "r"
        )
        try:
            with socket.create_connection(mirror.address, timeout=PATIENCE) as client:
                client.sendall(sent)
                client.shutdown(socket.SHUT_WR)
                heard = b"".join(iter(lambda: client.recv(65536), b""))
            old.join()
        finally:
            mirror.stop()
    assert heard == content
    assert bytes(received) == sent


def test_a_new_server_that_never_answers_delays_no_client(
    server: RunningServer, ct_program: Path, tmp_path: Path
) -> None:
    """It accepts connections and does not answer; later it accepts none."""
    silent = socket.create_server(("127.0.0.1", 0), backlog=100)
    with mirroring(
        tmp_path, f"{server.host}:{server.port}", f"127.0.0.1:{silent.getsockname()[1]}"
    ) as mirrored:
        for state in ("silent", "dead"):
            if state == "dead":
                silent.close()
            with pymssql.connect(
                server=mirrored.host,
                port=str(mirrored.port),
                user=server.reader.user,
                password=server.reader.password,
                autocommit=True,
                login_timeout=100,
                timeout=100,
            ) as client:
                for _ in range(50):
                    with client.cursor() as cursor:
                        cursor.execute("select replicate('x', 4000), 1")
                        assert cursor.fetchone() == ("x" * 4000, 1)
        mirrored.wait(lambda: any(line.get("not_compared") == "unreachable" for line in mirrored.lines()))


def test_switched_over_and_back(
    mirrored: RunningMirror, through: Clients, server: RunningServer, new_server: RunningServer
) -> None:
    def which(client: pymssql.Connection) -> str:
        with client.cursor() as cursor:
            cursor.execute("select count(*) from log..sr_vac")
            row = cursor.fetchone()
            assert row is not None
            return "new" if row[0] else "old"

    new_server.sql("select ringlog.put_sr_vac(row (1, '2026-02-02', 1, 1, 1, true)::online.sr_vac)")
    with through.pymssql(server.reader) as before:
        assert which(before) == "old"
        content = ringlog("mirror-switch", "new", "--control", mirrored.control)
        assert content.stdout == "the new server answers new sessions from now on\n"
        assert which(before) == "old"
        with through.pymssql(server.reader) as after:
            assert which(after) == "new"
        assert ringlog("mirror-switch", "old", "--close", "--control", mirrored.control).returncode == 0
        with suppress(pymssql.Error):
            while which(before):
                pass
    with through.pymssql(server.reader) as back:
        assert which(back) == "old"
    unknown = ringlog("mirror-switch", "sideways", "--control", mirrored.control)
    assert (unknown.returncode, "not one of: old, new, status" in unknown.stderr) == (2, True)


def test_an_encrypted_session_passes_and_is_not_compared(
    new_server: RunningServer, temporary_directory: Path, tmp_path: Path
) -> None:
    """TLS passes from the client to the old server unchanged: the mirror has no key, and reports that."""
    assert ringlog("cert", tmp_path / "tls", "--host", "127.0.0.1").returncode == 0
    options = ("--tls-cert", "ringlog.crt", "--tls-key", "ringlog.key")
    files = [str(tmp_path / "tls" / word) if word.startswith("ringlog.") else word for word in options]
    with (
        serving(temporary_directory / "old-tls", *files, "--tls", "required") as old,
        mirroring(tmp_path, f"{old.host}:{old.port}", f"{new_server.host}:{new_server.port}") as mirrored,
    ):
        with (
            pymssql.connect(
                server=mirrored.host,
                port=str(mirrored.port),
                user=old.reader.user,
                password=old.reader.password,
                tds_version="7.4",
                encryption="require",
            ) as session,
            session.cursor() as cursor,
        ):
            assert rows_of(cursor, "select 42, 'Grüße'") == [(42, "Grüße")]
        mirrored.wait(lambda: mirrored.count('not_compared_total{reason="encrypted"}') == 1)
        assert any("encrypted" in str(line) for line in mirrored.lines())
