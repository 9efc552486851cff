"""Two archive servers on one folder: of a database, which writes the archive, and of its copy."""

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa

from ringlog.history.archive import archiving
from ringlog.history.archive.folder import Folder
from ringlog.history.archive.ownership import NotOurs
from waiting import wait_until

from ..conftest import conninfo_of, running
from .conftest import NOW, Databases, made, one

EVERY = "select count(*), sum(an_int), max(an_int) from log.every_type"
DIFFERENT = "select count(*) from (select * from log.every_type except select * from copied.every_type) as d"
ROWS = 3001


@contextmanager
def connected(url: sa.URL) -> Iterator[psycopg.Connection]:
    with psycopg.connect(conninfo_of(url), autocommit=True) as connection:
        yield connection


def test_both_read_while_one_writes(
    prepared_databases: Databases,
    copied_databases: Callable[[str], AbstractContextManager[sa.URL]],
    tmp_path: Path,
) -> None:
    with (
        made(prepared_databases, tmp_path / "archive") as url,
        copied_databases(str(url.database)) as copy,
        running(url) as servers,
        running(copy) as others,
        connected(url) as owner,
        connected(copy) as reader,
    ):
        assert servers.running is not None
        assert others.running is not None
        both = servers.running.pid, others.running.pid
        assert both[0] != both[1]
        before = one(owner, EVERY)
        assert before[0] == ROWS
        with ThreadPoolExecutor(4) as threads:
            queries = (EVERY, DIFFERENT)
            answers = [
                (query, threads.submit(one, connection, query))
                for connection in (owner, reader)
                for query in queries
            ]
            expected = {EVERY: before, DIFFERENT: (0,)}
            for query, answer in answers:
                assert answer.result() == expected[query]
        # the owner replaces a file: the copy still names the former one, which is set aside
        engine = sa.create_engine(url)
        owner.execute("insert into log.every_type (seq_no, time, an_int) values (9, '2026-05-01', 7000)")
        (line,) = archiving.archive(conninfo_of(url), NOW, pauses=0)
        engine.dispose()
        assert any("_replaced" in name for name, _ in Folder(str(tmp_path / "archive")).names()), line
        assert one(owner, EVERY) == (ROWS + 1, int(str(before[1])) + 7000, 7000)
        assert one(reader, EVERY) == before
        # and writes nothing there
        mirror = sa.create_engine(copy)
        with pytest.raises(NotOurs):
            [*archiving.archive(conninfo_of(copy), NOW, pauses=0)]
        mirror.dispose()
        # one that is killed leaves the other alone
        os.kill(both[0], signal.SIGKILL)
        assert one(reader, EVERY) == before
        again = partial(one, owner, EVERY)
        wait_until(lambda: answered(again) == (ROWS + 1, int(str(before[1])) + 7000, 7000))


def answered(query: Callable[[], tuple[object, ...]]) -> tuple[object, ...] | None:
    """None while the archive server is down."""
    try:
        return query()
    except psycopg.OperationalError:
        return None
