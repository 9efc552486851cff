"""Consoles.

Runs a script of batches and compares the console's output. Times have the console's own form.
"""

import re
from collections.abc import Callable
from datetime import datetime

from client_compat import Clients, FreetdsProgram, stored
from servers import Login, RunningServer
from tds_clients import Admin

PROMPT = re.compile(r"^(\d+> )+", re.MULTILINE)


class Console(FreetdsProgram):
    """One of FreeTDS's consoles."""

    def run(self, clients: Clients, login: Login, *batches: str) -> str:
        """Runs a script of batches to its end. Returns the output without prompts."""
        done = self.run_as(clients, login, script="".join(f"{batch}\ngo\n" for batch in batches))
        return PROMPT.sub("", done.stdout) + done.stderr


CLIENTS = [Console(name, protocol) for name in ("tsql", "fisql", "bsqldb") for protocol in ("5.0", "7.4")]

VALUES = "'2026-01-02 03:04:05.500', 1.5, -0.25, -7, 300, 9007199254740993, 1, 'häuser Ω'"
ROW = (datetime(2026, 1, 2, 3, 4, 5, 500_000), 1.5, -0.25, -7, 300, 9007199254740993, True, "häuser Ω")


def words(printed: str) -> list[list[str]]:
    return [line.split() for line in printed.splitlines()]


def test_login(client: Console, clients: Clients, server: RunningServer) -> None:
    assert ["1"] in words(client.run(clients, server.reader, "select 1 as one"))


def test_wrong_password(client: Console, clients: Clients, server: RunningServer) -> None:
    printed = client.run(clients, Login(server.reader.user, "wrong"), "select 1 as one")
    number = 4002 if client.protocol == "5.0" else 18456
    assert re.search(rf"Msg {number}\b", printed), printed
    assert ["1"] not in words(printed)


def test_put_by_position(client: Console, clients: Clients, server: RunningServer, admin: Admin) -> None:
    client.run(clients, server.writer, f"exec put_every_type 3, {VALUES}")
    assert stored(admin) == [(3, *ROW)]


def test_put_by_name(client: Console, clients: Clients, server: RunningServer, admin: Admin) -> None:
    put = "exec put_every_type @a_varchar = 'häuser Ω', @time = '2026-01-02 03:04:05.500', @seq_no = 4"
    client.run(clients, server.writer, f"{put}, @a_real = NULL")
    assert stored(admin) == [(4, ROW[0], *[None] * 6, ROW[-1])]


def test_rows(
    client: Console, clients: Clients, server: RunningServer, not_served: Callable[[str, str], None]
) -> None:
    client.run(clients, server.writer, f"exec put_every_type 3, {VALUES}")
    printed = client.run(clients, server.reader, "exec get_every_type 2")
    if client.name == "bsqldb":
        refusal = f"type {187 if client.protocol == '5.0' else 42} not supported, sorry"
        assert refusal in printed
        not_served("it does not know bigdatetime and datetime2; a query may convert times to text", refusal)
        return
    time = ["Jan", "2", "2026", "03:04AM"]
    assert ["3", *time, "1.5", "-0.25", "-7", "300", "9007199254740993", "1", "häuser", "Ω"] in words(printed)


def test_status(client: Console, clients: Clients, server: RunningServer) -> None:
    printed = client.run(clients, server.writer, f"exec put_every_type 3, {VALUES}")
    assert re.search(r"return status = 0|Procedure returned 0", printed), printed


def test_procedure_error(client: Console, clients: Clients, server: RunningServer, admin: Admin) -> None:
    printed = client.run(clients, server.writer, f"exec put_every_type 11, {VALUES}")
    assert re.search(r"Msg 547\b.*16", printed), printed
    assert "seq_no 11 is outside 1 to 10" in printed
    assert stored(admin) == []


def test_query(client: Console, clients: Clients, server: RunningServer) -> None:
    printed = client.run(clients, server.reader, "select i, i * 2 as j from generate_series(1, 500) as i")
    rows = words(printed)
    assert all([str(i), str(i * 2)] in rows for i in range(1, 501))


def test_several_results(client: Console, clients: Clients, server: RunningServer) -> None:
    rows = words(client.run(clients, server.reader, "select 11 as a select 22 as b", "select 33 as c"))
    assert [row for row in rows if row in (["11"], ["22"], ["33"])] == [["11"], ["22"], ["33"]]


def test_messages(client: Console, clients: Clients, server: RunningServer) -> None:
    assert ["said"] in words(client.run(clients, server.reader, "print 'said'"))


def test_outputs_in_text(client: Console, clients: Clients, server: RunningServer) -> None:
    printed = client.run(
        clients,
        server.writer,
        f"exec put_every_type 8, {VALUES}",
        "declare @s int, @t datetime, @r int exec @r = last_every_type @s output, @t output select @s, @r",
    )
    assert ["8", "0"] in words(printed)


def test_transaction(client: Console, clients: Clients, server: RunningServer, admin: Admin) -> None:
    put = "exec put_every_type {}, " + VALUES
    client.run(
        clients,
        server.writer,
        "begin tran",
        put.format(3),
        "rollback tran",
        "begin tran",
        put.format(4),
        "select @@trancount",
        "commit tran",
        "begin tran",
        put.format(5),
    )
    assert stored(admin) == [(4, *ROW)]
