"""Today's ringlog on the databases of released versions, as docs/how-to/upgrade.md promises."""

import json
import re
import shutil
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest
from places import new_folder

from releases.site import DEVELOPER, answers, new_site, put_rows, restored, structure
from ringlog.procedures import FORMER
from ringlog.schema.installing import versions
from servers import WRITER, RunningServer, ringlog, serving
from waiting import wait_until_reachable

SITES = sorted(Path(__file__).parent.glob("*.tar.xz"))
MINOR = version("ringlog").rsplit(".", 1)[0]


@pytest.fixture(scope="module")
def todays() -> list[str]:
    """The structure of ringlog's schemas in a site created today."""
    with new_site() as (server, folder, _):
        found = structure(server.dsn)
    shutil.rmtree(folder)
    return found


@pytest.fixture
def folder() -> Iterator[Path]:
    path = new_folder("release")
    yield path
    shutil.rmtree(path)


def test_each_minor_version_has_its_site() -> None:
    assert f"{MINOR}.0.tar.xz" in {site.name for site in SITES}, (
        "PYTHONPATH=tests:tests/harness python -m releases"
    )


@pytest.mark.parametrize("site", SITES, ids=lambda site: site.name.removesuffix(".tar.xz"))
def test_a_released_database_becomes_todays(site: Path, folder: Path, todays: list[str]) -> None:
    given, before, answered = restored(site, folder)
    if site.name.startswith(f"{MINOR}."):
        # the release can take this database back: it makes T-SQL's functions and views, and those of FORMER,
        # again, and does not know new tables and functions; the rest is the same but for texts of functions
        lacking = re.compile(rf"function ringlog\.({'|'.join(FORMER)})\b")
        kept = [line for line in before if not lacking.match(line)]
        assert {*without_t_sql(kept)} <= {*without_t_sql(todays)}
        assert versions.migrations() == ()
    with serving(folder / "data", facility=folder / "plant.toml") as server:
        # a restored copy does not write an archive until the operator permits it
        adopted = ringlog("archive", "adopt", "--data", server.data)
        assert adopted.returncode == 0, adopted.stderr
        wait_until_reachable(lambda: archived_rows(server))
        assert answers(server, given) == answered
        became = structure(server.dsn)
        # procedures that the release compiled may call its functions of schema tsql, which remain
        assert {*todays} <= {*became}
        assert without_t_sql(became) == without_t_sql(todays)
        # the calls of a writer without an acknowledgement before the upgrade
        put_rows(server, given["begin"], last=100)
        assert answers(server, given) == answered
        # its files in the present form
        rewritten, again = (ringlog("archive", "rewrite", "--data", server.data) for _ in range(2))
        assert (rewritten.returncode, again.returncode) == (0, 0), (rewritten, again)
        assert len(re.findall(r"^rewrote \S+ as ", rewritten.stdout, re.MULTILINE)) > 2
        assert "rewrote" not in again.stdout
        assert answers(server, given) == answered
        with server.connect(DEVELOPER.user, DEVELOPER.password, database="site") as session:
            cursor = session.cursor()
            cursor.execute("declare @id int exec add_device 'gauge', 'hall B', @id output select @id")
            assert cursor.fetchall() == [(3,)]
            cursor.execute(
                "alter procedure devices_of @place varchar(20) as select id from devices where place = @place"
            )
            cursor.execute("exec devices_of 'HALL B'")
            assert cursor.fetchall() == [(3,)]
        with server.connect(WRITER.user, WRITER.password) as session:
            session.cursor().callproc("put_magnets", (1, given["end"], 7.5, "new", None))
        for words in (("verify",), ("archive", "verify"), ("facility", "diff", folder / "plant.toml")):
            done = ringlog(*words, "--data", server.data)
            assert done.returncode == 0, (words, done.stdout, done.stderr)
        assert json.loads(ringlog("status", "--json", "--data", server.data).stdout)["tables"]


def without_t_sql(lines: list[str]) -> list[str]:
    return [line for line in lines if not re.match(r"\w+ sys\.|function tsql\.|\w+ tsql\.carried_", line)]


def archived_rows(server: RunningServer) -> bool:
    return server.sql("select count(*) > 0 from archive.magnets")[0] == (True,)
