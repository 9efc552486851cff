"""The memory of a session is bounded, and so is that of all sessions together."""

import psutil
import pymssql
import pytest
from hostile_sessions import BIG, attack, put_row

from servers import Login, RunningServer, ringlog
from tds_clients import Clients

MiB = 2**20
NO_MEMORY = 701
VERSIONS = pytest.mark.parametrize("version", ["5.0", "7.4"])


@VERSIONS
@pytest.mark.parametrize(
    "text",
    [
        f"declare @a varchar(max) set @a = {BIG.format(1000)} while 1 = 1 set @a = @a + @a",
        f"declare @a varchar(max) set @a = {BIG.format(20 * MiB)} declare @b varchar(max) select @b = @a",
        f"declare @a varchar(max) set @a = {BIG.format(700 * MiB)}",
        f"select len({BIG.format(700 * MiB)})",
        f"select {BIG.format(100 * MiB)}",
    ],
    ids=["a loop", "two variables", "a long value", "a value of PostgreSQL's", "a row"],
)
def test_a_batch_that_needs_more_is_ended(clients: Clients, version: str, text: str) -> None:
    with clients.ct(clients.server.reader, version) as client:
        answer = client.language(f"{text} print 'not reached'")
        assert [error.number for error in answer.errors] == [NO_MEMORY], answer.messages
        assert "memory" in answer.error.text
        assert client.language("select 1").rows == [["1"]], "the session goes on"


@pytest.mark.long
def test_variables_of_ended_batches_do_not_count(clients: Clients) -> None:
    with clients.pymssql(clients.server.reader) as connection, connection.cursor() as cursor:
        for _ in range(8):
            cursor.execute(f"declare @a varchar(max) = {BIG.format(25 * MiB)} select len(@a)")
            assert cursor.fetchall() == [(25 * MiB,)]


def test_a_login_has_a_limit_of_temporary_files(
    clients: Clients, server: RunningServer, own_login: Login
) -> None:
    def sort() -> object:
        with clients.pymssql(own_login) as connection, connection.cursor() as cursor:
            cursor.execute("select count(*) from (select distinct i from generate_series(1, 500000) i) as d")
            return cursor.fetchone()

    def limit(size: str) -> None:
        done = ringlog("user", "limit", own_login.user, "--temporary-files", size, "--data", server.data)
        assert done.returncode == 0, done.stderr

    limit("1MB")
    assert "temporary files 1MB" in ringlog("user", "list", "--data", server.data).stdout
    with pytest.raises(pymssql.Error, match="temp_file_limit"):
        sort()
    limit("none")
    assert sort() == (500000,)


@pytest.mark.long
def test_hostile_sessions_take_no_more(clients: Clients, server: RunningServer) -> None:
    """A short run of tests/long/gateway/test_hostile_memory.py."""
    seen = attack(server, sessions=12, seconds=20, put=put_row)
    assert seen.failed == []
    assert len(seen.latencies) > 20  # if calls waited for a hostile session there would be few
    assert seen.numbers[NO_MEMORY] > 3
    assert seen.most_of_gateway < 600 * MiB
    assert seen.most_of_a_backend < 700 * MiB
    assert psutil.pid_exists(server.process.pid)
