"""The archive in an object store: S3 as implemented by moto."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
import sqlalchemy as sa
from object_stores import ObjectStore

from ringlog.history.archive.archiving import archive
from ringlog.history.archive.folder import Damaged, Folder, Unreadable
from ringlog.history.archive.manifest import manifest, verify
from ringlog.history.archive.recall import recall
from ringlog.history.reading import read
from ringlog.schema.facility import Column, Facility, History, Retention, Table
from ringlog.schema.installing.install import install
from ringlog.schema.relations.partitions import maintain

BEGIN = datetime(2026, 3, 2, tzinfo=UTC)
NOW = datetime(2026, 4, 1, tzinfo=UTC)


def test_weeks_in_an_object_store(
    engine: sa.Engine, conninfo: str, store: ObjectStore, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Table("magnets", 10, 1.0, (Column("current", "m/current", "double"),))
    install(engine, replace(Facility("test", "UTC", (table,)), history=History(Retention(1, "week"), bucket)))

    def all_rows() -> list[dict[str, object]]:
        return [
            row for batch in read(conninfo, "magnets", ["seq_no", "current"]) for row in batch.to_pylist()
        ]

    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute(
            "insert into weeks.magnets"
            " select 1, %s + n * interval '1 hour', sin(n) from generate_series(0, 600) n",
            [BEGIN],
        )
        maintain(engine, NOW)
        before = all_rows()
        assert len([*archive(conninfo, NOW, pauses=0)]) == 3
        assert all_rows() == before
        assert connection.execute("select count(*) < 200 from weeks.magnets").fetchone() == (True,)
        # a late row causes another object
        late = BEGIN + timedelta(minutes=1)
        connection.execute("select ringlog.put_magnets(row (2, %s, 7)::online.magnets)", [late])
        assert len([*archive(conninfo, NOW, pauses=0)]) == 1
        assert len(all_rows()) == len(before) + 1
        folder = Folder(bucket)
        assert sorted(name for name, _ in folder.names()) == [
            "magnets/2026w10-2.parquet",
            "magnets/2026w11.parquet",
            "magnets/2026w12.parquet",
            "magnets/_replaced/2026w10.parquet",
            "manifest.json",
            "ringlog.json",
        ]
        assert len([*recall(conninfo, "magnets", BEGIN, NOW, timedelta(days=1))]) == 3
        assert connection.execute("select count(*) from weeks.magnets").fetchone() == (len(before) + 1,)
    with psycopg.connect(conninfo) as connection:
        weeks = manifest(connection)
    for week in weeks:
        verify(folder, week)
    store.check_keys()
    verify(folder, weeks[0])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    with pytest.raises(Unreadable, match=r"cannot be read: .*AWS_ACCESS_KEY_ID"):
        verify(Folder(bucket), weeks[0])
    store.check_keys(False)
    folder.delete(weeks[0].file)
    with pytest.raises(Damaged, match="2026w10-2"):
        verify(folder, weeks[0])
