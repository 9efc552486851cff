"""`select … for browse`: the client gets the tables of the columns, and the keys of the rows.

TABNAME and COLINFO: MS-TDS 2.2.7.3 and 2.2.7.23; at TDS 5.0 FreeTDS, src/tds/token.c, tds_process_tabname
and tds_process_colinfo, and jTDS, TdsCore.tdsTableNameToken and tdsColumnInfoToken: 0x04 is an expression,
0x08 a part of the key, 0x10 hidden, 0x20 is followed by the column's own name. TDS_ROW_HIDDEN is 1 and
TDS_ROW_KEY 2 (FreeTDS, the same).
"""

from collections.abc import Iterator

import pytest

import raw_tds
from raw_tds import RawClient
from servers import RunningServer
from tds_clients import Clients

TABLE = (
    "create table #t (Id int not null, b varchar(10), n int not null, primary key (Id, n)) "
    "insert #t values (1, 'x', 5)"
)
SELECT = "select b as B2, n, n * 2 as twice from #t for browse"
# the columns: b under another name, a part of the key, an expression, and the hidden other part of the key
ORIGINS = [(1, 1, 0x20, "b"), (2, 1, 0x08, ""), (3, 0, 0x04, ""), (4, 1, 0x18, "")]


@pytest.fixture
def raw(server: RunningServer) -> Iterator[RawClient]:
    with RawClient(server.host, server.port) as client:
        yield client


def test_tokens_of_sql_server(server: RunningServer, raw: RawClient) -> None:
    raw.log_in7(server.reader)
    raw.send(raw_tds.BATCH7, raw_tds.batch7(TABLE))
    raw.receive()
    raw.send(raw_tds.BATCH7, raw_tds.batch7(SELECT))
    reply = raw.receive()
    wide = {name: len(name).to_bytes(1) + name.encode("utf-16-le") for name in ("b", "#t")}
    tables = b"\x01" + len("#t").to_bytes(2, "little") + wide["#t"][1:]
    columns = b"".join(bytes([n, t, status]) + wide.get(name, b"") for n, t, status, name in ORIGINS)
    expected = b"".join(
        token + len(body).to_bytes(2, "little") + body
        for token, body in ((b"\xa4", tables), (b"\xa5", columns))
    )
    assert expected in reply
    # the key follows the list
    assert reply[reply.index(expected) + len(expected) :].startswith(
        b"\xd1\x01\x00x\x04\x05\x00\x00\x00\x04\x0a\x00\x00\x00\x04\x01\x00\x00\x00"
    )


def test_tokens_of_ase(server: RunningServer, raw: RawClient) -> None:
    raw.log_in5(server.reader)
    raw.language(TABLE)
    raw.send(raw_tds.NORMAL, raw_tds.language(SELECT))
    reply = raw.receive()
    columns = b"".join(
        bytes([n, t, status]) + (bytes([len(name)]) + name.encode() if name else b"")
        for n, t, status, name in ORIGINS
    )
    expected = b"\xa4\x03\x00\x02#t\xa5" + len(columns).to_bytes(2, "little") + columns
    assert expected in reply
    # ROWFMT2: catalogue, schema and table, which are empty, then the column's own name and its status
    for name, status in (("B2", 0), ("n", 2), ("twice", 0), ("Id", 3)):
        own = b"\x00\x00\x00" + len(name).to_bytes(1) + name.encode()
        assert reply[reply.index(own) + len(own)] & 3 == status, name


@pytest.mark.parametrize("section", ["5.0", "7.4"])
def test_rows_and_tables_without_a_key(clients: Clients, section: str) -> None:
    with clients.ct(clients.server.reader, section) as client:
        client.language(TABLE)
        assert client.language("select b, n, Id from #t where Id = 1 for browse").rows == [["x", "5", "1"]]
        client.language("create table #u (a int) insert #u values (7)")
        assert client.language("select a from #u for browse").rows == [["7"]]
        assert client.language("select count(*) from #u for browse").rows == [["1"]]
        for text in (
            "select a from #u union select a from #u for browse",
            "select a into #v from #u for browse",
            "declare @a int select @a = a from #u for browse",
            "select a from (select a from #u for browse) as d",
        ):
            assert [error.number for error in client.language(text).errors] == [102], text
