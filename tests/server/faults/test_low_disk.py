"""No login fills the disk: the last part of it is kept for writers."""

import os
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from ringlog.server.embedded.settings import GiB, MiB
from ringlog.server.guards.low_disk import reserve
from servers import RunningServer, serving
from small_disk import small_disk
from waiting import wait_until

pytestmark = pytest.mark.long

ROOM = 256 * MiB
"""that readers may fill"""
DIRECT = {
    "temporary table": "insert into t select repeat('x', 1000000) from generate_series(1, 10000)",
    # a constant is compressed
    "catalogue": """do $$ begin for n in 1..100000 loop
        execute format('create temporary view v%s as select %L', n,
          (select string_agg(md5((n * 40000 + m)::text), '') from generate_series(1, 40000) as m));
        commit; end loop; end $$""",
}
GLOBAL = 'insert into tsql_global."##filled" select random(), n from generate_series(1, 100000000) as n'


@pytest.fixture(scope="module")
def own(temporary_directory: Path) -> Iterator[RunningServer]:
    assert os.geteuid() == 0, "mounting a small disk takes root"
    disk = temporary_directory / "low_disk"
    with small_disk(disk, str(GiB + ROOM + 200 * MiB)), serving(disk / "data") as server:
        yield server


def is_free(server: RunningServer) -> bool:
    disk = psutil.disk_usage(str(server.data))
    return disk.free >= reserve(disk.total)


@pytest.mark.parametrize("kind", DIRECT)
def test_a_reader_over_postgresql(own: RunningServer, kind: str) -> None:
    with psycopg.connect(own.dsn_of(own.reader), autocommit=True) as reader:
        reader.execute("create temporary table t (text text storage external)")
        with pytest.raises(psycopg.OperationalError):
            reader.execute(DIRECT[kind])
    own.put(1)
    # rows of the catalogue remain until it is vacuumed
    assert kind == "catalogue" or wait_until(lambda: is_free(own))


def test_a_global_temporary_table(own: RunningServer) -> None:
    with (
        own.connect(own.reader.user, own.reader.password) as maker,
        psycopg.connect(own.dsn_of(own.reader), autocommit=True) as user,
    ):
        maker.cursor().execute("create table ##filled (a float, b int)")
        with pytest.raises(psycopg.OperationalError):
            user.execute(GLOBAL)
    wait_until(lambda: is_free(own))
    own.put(2)
