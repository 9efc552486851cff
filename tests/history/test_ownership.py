"""One database writes an archive and deletes only its own files, in a folder and in an object store."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa
from kills import Deaths

from ringlog.history.archive import archiving, leaving, merging, ownership
from ringlog.history.archive import round as rounds
from ringlog.history.archive.archiving import archive
from ringlog.history.archive.folder import Folder
from ringlog.history.archive.manifest import damages, manifest
from ringlog.history.archive.ownership import (
    IDENTITY,
    NotOurs,
    adopt,
    claim,
    examine,
    unknown_files,
    weeks_in,
)
from ringlog.history.archive.round import Round
from ringlog.history.reading import read
from ringlog.schema.facility import Column, Facility, History, Retention, Table
from ringlog.schema.installing.install import install
from ringlog.schema.relations.partitions import maintain
from servers import ringlog

from .conftest import conninfo_of

pytestmark = pytest.mark.long

BEGIN = datetime(2026, 3, 2, tzinfo=UTC)
NOW = datetime(2026, 4, 1, tzinfo=UTC)
TABLE = Table("magnets", 10, 1.0, (Column("current", "m/current", "double"),))

Databases = Callable[[str], AbstractContextManager[sa.URL]]


@dataclass(frozen=True)
class Site:
    """A database, and the archive that its facility file names."""

    url: sa.URL
    where: str

    @property
    def conninfo(self) -> str:
        return conninfo_of(self.url)

    @contextmanager
    def engine(self) -> Iterator[sa.Engine]:
        """No connections remain, so that the database can be copied."""
        made = sa.create_engine(self.url)
        try:
            yield made
        finally:
            made.dispose()

    def run(self, *statements: str) -> None:
        with psycopg.connect(self.conninfo) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def archive(self) -> list[str]:
        return [*archive(self.conninfo, NOW, pauses=0)]

    def adopt(self) -> list[str]:
        return [*adopt(self.conninfo)]

    def unknown(self) -> list[str]:
        return unknown_files(self.conninfo)

    def late(self, minutes: int) -> None:
        moment = BEGIN + timedelta(minutes=minutes)
        self.run(f"select ringlog.put_magnets(row (2, '{moment}', {minutes})::online.magnets)")

    def rows(self) -> list[dict[str, object]]:
        batches = read(self.conninfo, "magnets", ["seq_no", "current"])
        return [row for batch in batches for row in batch.to_pylist()]

    def files(self) -> set[str]:
        return weeks_in(dict(Folder(self.where).names()))

    def intact(self) -> bool:
        with psycopg.connect(self.conninfo) as connection:
            return not [*damages(Folder(self.where), manifest(connection))]


@pytest.fixture(params=["folder", "object store"])
def site(request: pytest.FixtureRequest, database_url: sa.URL, tmp_path: Path) -> Site:
    """Three weeks in the archive, and one in PostgreSQL."""
    where = str(tmp_path / "archive")
    if request.param == "object store":
        where = request.getfixturevalue("bucket")
    made = Site(database_url, where)
    history = History(Retention(1, "week"), made.where)
    with made.engine() as engine:
        install(engine, replace(Facility("test", "UTC", (TABLE,)), history=history))
        made.run(
            f"insert into weeks.magnets select 1, '{BEGIN}'::timestamptz + n * interval '1 hour', sin(n)"
            " from generate_series(0, 600) n"
        )
        maintain(engine, NOW)
    assert len(made.archive()) == 3
    return made


@pytest.mark.parametrize("before", [True, False])
def test_a_check_while_a_round_claims_the_folder_succeeds(
    site: Site, monkeypatch: pytest.MonkeyPatch, before: bool
) -> None:
    """`ringlog archive status` and `ringlog doctor` may run at any moment."""
    read = ownership._Identity.of
    with psycopg.connect(site.conninfo) as connection, monkeypatch.context() as patched:

        def claimed_meanwhile(folder: Folder) -> object:
            patched.undo()
            found = None if before else read(folder)
            claim(site.conninfo, folder)
            return read(folder) if before else found

        patched.setattr(ownership._Identity, "of", claimed_meanwhile)
        examine(connection)
        assert ownership._Identity.of == read


def test_a_copy_writes_and_deletes_nothing(site: Site, copied_databases: Databases) -> None:
    assert site.url.database is not None
    site.run("update ringlog.archive_file set left_at = now() - interval '1 year'")
    with copied_databases(site.url.database) as url:
        copy = Site(url, site.where)
        site.late(1)
        copy.late(2)
        before = copy.files()
        for _ in range(2):
            with pytest.raises(NotOurs, match="this database is a copy of the one that writes it"):
                copy.archive()
            assert copy.files() == before
            assert copy.unknown() == ["magnets/2026w10-2.parquet"] * (before != copy.files())
        assert site.archive() == ["merged 1 late rows into magnets/2026w10-2.parquet, 0 were there already"]
        # the files of the copy's manifest still exist
        assert copy.intact()
        assert len(copy.rows()) == len(site.rows()) == 602
        assert copy.unknown() == ["magnets/2026w10-2.parquet"]
        assert site.unknown() == []


def test_a_copy_with_its_own_folder(
    site: Site, copied_databases: Databases, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if not site.where.startswith("/"):
        return  # it is copied as a folder here
    other = tmp_path / "copied"
    shutil.copytree(site.where, other)
    assert site.url.database is not None
    with copied_databases(site.url.database) as url:
        copy = Site(url, str(other))
        copy.run(f"update ringlog.history set archive = '{other}'")
        copy.late(2)
        with pytest.raises(NotOurs, match="is a copy"):
            copy.archive()
        assert copy.adopt() == [f"{other} is this database's now: 3 weeks"]
        assert copy.archive() == ["merged 1 late rows into magnets/2026w10-2.parquet, 0 were there already"]
        site.late(3)
        assert site.archive() == ["merged 1 late rows into magnets/2026w10-2.parquet, 0 were there already"]
        assert site.intact()
        assert copy.intact()


def test_a_copy_that_postgresql_cannot_distinguish(site: Site) -> None:
    """Of the whole cluster: the second of the two to write finds the other's token."""
    site.run("create table public.before as select * from ringlog.archive_owner")
    site.late(1)
    assert len(site.archive()) == 1
    site.run(
        "delete from ringlog.archive_owner", "insert into ringlog.archive_owner select * from public.before"
    )
    before = site.files()
    with pytest.raises(NotOurs, match="a copy of this database has written it since \\(database"):
        site.archive()
    assert site.files() == before
    site.run("update ringlog.archive_owner set token = null, previous = null")
    with pytest.raises(NotOurs, match="this database was restored from a backup"):
        site.archive()
    site.adopt()
    assert site.archive() == []


def test_a_folder_of_another_database(site: Site, prepared_databases: Callable[[], Databases]) -> None:
    with prepared_databases() as url:  # type: ignore[attr-defined]
        other = Site(url, site.where)
        history = History(Retention(1, "week"), site.where)
        with other.engine() as engine:
            install(engine, replace(Facility("test", "UTC", (TABLE,)), history=history))
        with pytest.raises(NotOurs, match="it belongs to another database"):
            other.archive()
        Folder(site.where).delete(IDENTITY)
        with pytest.raises(NotOurs, match="it has 3 weeks that are not in this database's manifest"):
            other.archive()
    with pytest.raises(NotOurs, match=r"it has no file ringlog\.json"):
        site.archive()
    with Folder(site.where).created(IDENTITY) as stream:
        stream.write(b"{")
    with pytest.raises(NotOurs, match=r"its file ringlog\.json cannot be read"):
        site.archive()
    refused = ringlog("archive", "now", "--dsn", site.conninfo)
    assert refused.returncode == 1
    assert "ringlog archive adopt" in refused.stderr
    status = ringlog("archive", "status", "--dsn", site.conninfo)
    assert "cannot be read" in status.stdout
    assert site.adopt()[1:] == []
    assert site.archive() == []


def test_archives_without_an_owner(site: Site) -> None:
    Folder(site.where).delete(IDENTITY)
    site.run("delete from ringlog.archive_owner")
    site.late(1)
    assert len(site.archive()) == 1
    assert site.intact()


def test_a_restored_database(site: Site, copied_databases: Databases) -> None:
    """A backup from before weeks were replaced takes the place of the database that has replaced them."""
    assert site.url.database is not None
    with copied_databases(site.url.database) as url:
        restored = Site(url, site.where)
        site.late(1)
        assert site.archive() == ["merged 1 late rows into magnets/2026w10-2.parquet, 0 were there already"]
        # weeks 10 and 11 are past retention then
        site.run("update ringlog.logged_table set retention = '16 days'")
        assert site.archive() == [
            "set aside magnets/2026w10-2.parquet: past retention",
            "set aside magnets/2026w11.parquet: past retention",
        ]
        restored.late(2)
        assert len(restored.rows()) == 602
        assert restored.intact()
        with pytest.raises(NotOurs):
            restored.archive()
        assert restored.adopt() == [
            f"{site.where} is this database's now: 3 weeks",
            "put back magnets/2026w10.parquet",
            "put back magnets/2026w11.parquet",
        ]
        assert restored.unknown() == ["magnets/_replaced/2026w10-2.parquet"]
        # the former name is not used again
        assert restored.archive() == [
            "merged 1 late rows into magnets/2026w10-3.parquet, 0 were there already"
        ]
        with pytest.raises(NotOurs):
            site.archive()
        restored.run("update ringlog.archive_file set left_at = timestamptz '2020-01-01'")
        assert restored.archive() == ["deleted magnets/2026w10.parquet, which left the manifest long ago"]
        assert restored.files() == {
            "magnets/2026w10-3.parquet",
            "magnets/2026w11.parquet",
            "magnets/2026w12.parquet",
            "magnets/_replaced/2026w10-2.parquet",
        }
        verified = ringlog("archive", "verify", "--dsn", restored.conninfo)
        assert verified.returncode == 0, verified.stdout
        assert "magnets/_replaced/2026w10-2.parquet was not written by this database" in verified.stdout
        assert len(restored.rows()) == 602
        # and back: replaced files are put back
        assert "put back magnets/2026w10-2.parquet" not in site.adopt()


def test_adopting_sets_unknown_files_aside(site: Site, copied_databases: Databases) -> None:
    """Files that tools would read in addition to the manifest's; the other database still reads them."""
    assert site.url.database is not None
    with copied_databases(site.url.database) as url:
        other = Site(url, site.where)
        site.late(1)
        assert len(site.archive()) == 1
        assert other.adopt() == [
            f"{site.where} is this database's now: 3 weeks",
            "put back magnets/2026w10.parquet",
            "set aside magnets/2026w10-2.parquet, which this database does not know:"
            " it is magnets/_replaced/2026w10-2.parquet now",
        ]
        assert len(site.rows()) == 602
        assert len(other.rows()) == 601
        assert "put back magnets/2026w10-2.parquet" in site.adopt()
        assert site.intact()
        assert other.intact()


def test_nothing_named_is_ever_deleted(site: Site) -> None:
    """For any content of the records."""
    site.run(
        "insert into ringlog.archive_file (file, begun, left_at)"
        " select file, '2020-01-01', '2020-01-01' from ringlog.cold_week"
        " on conflict (file) do update set left_at = excluded.left_at"
    )
    assert site.archive() == []
    assert site.intact()
    assert len(site.rows()) == 601


@pytest.mark.long
def test_killed_between_any_two_steps(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A round with late rows and files past retention, killed before each of its steps in turn."""
    steps = [(Folder, name) for name in ("created", "set_aside", "put_back", "delete", "digest", "size")]
    steps += [(leaving, "_watch"), (leaving, "_put_away"), (merging, "_take_late")]
    steps += [(Round, "_write"), (rounds, "new_file")]
    steps += [(archiving.ownership, "demand"), (archiving.ownership, "_database")]
    deaths = Deaths(monkeypatch, steps)
    number = 0
    while deaths.left <= 0:
        number += 1
        assert number < 60
        deaths.left = 0
        site.late(number)
        if number % 3 == 0:
            site.run("update ringlog.archive_file set left_at = left_at - interval '31 days'")
        deaths.left = number
        try:
            site.archive()
        except KeyboardInterrupt:
            deaths.left = 0
        rows = site.rows()
        assert len(rows) == 601 + number
        assert [row["current"] for row in rows if row["seq_no"] == 2] == [*range(1, number + 1)]
        deaths.left = max(deaths.left, 0)
    assert number > 10
    deaths.left = 0
    site.archive()
    assert site.intact()
    assert site.unknown() == []
    with psycopg.connect(site.conninfo) as connection:
        named = {file for (file,) in connection.execute("select file from ringlog.cold_week")}
    assert {file for file in site.files() if "_replaced" not in file} == named
