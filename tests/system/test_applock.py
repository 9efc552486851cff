"""sp_getapplock and sp_releaseapplock, between sessions of pymssql."""

import pymssql
import pytest

from servers import READER
from tds_clients import Clients


def lock(
    connection: pymssql.Connection, timeout: int, mode: str = "Exclusive", owner: str = "Session"
) -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "declare @r int exec @r = sp_getapplock @Resource = 'beam', @LockMode = %s, @LockOwner = %s,"
            " @LockTimeout = %s select @r",
            (mode, owner, timeout),
        )
        return cursor.fetchone()[0]


def release(connection: pymssql.Connection) -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "declare @r int exec @r = sp_releaseapplock @Resource = 'beam', @LockOwner = 'Session' select @r"
        )
        return cursor.fetchone()[0]


def test_a_lock_of_a_session(clients: Clients) -> None:
    with clients.pymssql(READER, autocommit=True) as one, clients.pymssql(READER, autocommit=True) as other:
        assert lock(one, 0) == 0
        assert lock(other, 0) == -1
        assert lock(other, 50) == -1
        assert release(one) == 0
        assert lock(other, -1) == 0
        assert release(other) == 0
        with pytest.raises(pymssql.Error, match="1223"):
            release(other)


def test_shared_locks(clients: Clients) -> None:
    with clients.pymssql(READER, autocommit=True) as one, clients.pymssql(READER, autocommit=True) as other:
        assert lock(one, 0, "Shared") == lock(other, 0, "Shared") == 0
        assert lock(other, 20) == -1
        assert release(one) == 0
        assert lock(other, 20) == 0


def test_a_lock_of_a_transaction_ends_with_it(clients: Clients) -> None:
    with clients.pymssql(READER, autocommit=True) as one, clients.pymssql(READER, autocommit=False) as other:
        assert lock(one, 0, owner="Transaction") == -999
        assert lock(other, 0, owner="Transaction") == 0
        assert lock(one, 0) == -1
        other.rollback()
        assert lock(one, 0) == 0


def test_invalid_locks_are_refused(clients: Clients) -> None:
    with clients.pymssql(READER, autocommit=True) as one:
        assert lock(one, 0, "Nosuch") == lock(one, 0, owner="Nosuch") == -999
        with pytest.raises(pymssql.Error, match="'@LockMode = Update' is not supported"):
            lock(one, 0, "Update")
        with pytest.raises(pymssql.Error, match="1227"):
            lock(one, -5)
