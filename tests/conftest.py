"""Servers for the tests: real ones, started once per run, each in a directory of its own."""

import os
import random
import shutil
import signal
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import Any

import left_there
import leftovers
import prepared_python
import psycopg
import pytest
import sqlalchemy
import starlette
from hypothesis import settings
from places import new_folder
from psycopg import sql

import ringlog
from ringlog.schema.facility import Facility
from ringlog.schema.installing.install import Part, install
from ringlog.schema.relations.partitions import Week
from ringlog.server.embedded.account import system_account
from ringlog.server.embedded.postgres import Postgres
from servers import PREPARED, TEST_MEMORY, RunningServer, free_port, serving, set_path, sqlalchemy_url

# Folders with the longest files, or whose files belong together: with several workers they begin first, so
# that none remains for a single worker at the end.
LONG = ("batches", "loadtest", "loader", "machines", "plant", "releases", "demo", "compat")


# The environment variable with the seed of the tests' order and draws: `make nightly` has new ones.
SEED = "TEST_SEED"
USUAL_SEED = "1"

# The same examples at each run, without a time limit, which a busy machine exceeds; `make nightly` has more
# and new ones.
settings.register_profile("core", settings.get_profile("ci"), max_examples=40)
settings.register_profile("nightly", settings.get_profile("ci"), max_examples=150, derandomize=False)
settings.load_profile("core")

# The tests start hundreds of Python programs, each of which would compile ringlog's modules again, and each
# worker the tests: containers disable Python's cache, to remain small.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Programs that tests start inherit ignored signals: from nohup, or from a shell that runs the tests in the
# background.
for number, handler in ((signal.SIGHUP, signal.SIG_DFL), (signal.SIGINT, signal.default_int_handler)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)


_own_folders: list[str] = []


def pytest_configure() -> None:
    # workers inherit these: all have the same order of tests, and copy the same data
    os.environ.setdefault(SEED, USUAL_SEED)
    if PREPARED not in os.environ:
        os.environ[PREPARED] = str(new_folder("prepared"))
        _own_folders.append(os.environ[PREPARED])


def pytest_unconfigure() -> None:
    while _own_folders:
        shutil.rmtree(_own_folders.pop())


def pytest_report_header() -> str:
    return f"{SEED}={os.environ[SEED]} repeats the order of these tests, and what they draw"


def seeded(name: object) -> random.Random:
    """What is drawn for this name, the same for each run with this seed."""
    return random.Random(f"{os.environ[SEED]} {name}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files in an order that is drawn, those of the longest folders first, and so are the tests of each: none
    depends on another. A new test does not change the order of the others."""

    def position(item: pytest.Item) -> tuple[bool, float, float]:
        file, folder = item.nodeid.partition("::")[0], item.path.parent.name
        together = item.get_closest_marker("together")
        # sessions that run several texts need their order
        block = (file, together.args) if together else item.nodeid
        # the page of tested clients lists them in their order, and is compared at the end
        if folder == "compat":
            file, block = folder, folder
        return folder not in LONG, seeded(file).random(), seeded(block).random()

    items.sort(key=position)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    from by_file import ByFile

    config.option.loadscopereorder = False
    return ByFile(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that does not run is a failure: a missing tool must not look like success."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"this test was skipped, and tests here must run: {report.longrepr}"
    return report


@pytest.fixture(scope="session", autouse=True)
def nothing_left() -> Iterator[None]:
    """No process survives the tests. This fixture comes first, so that it ends after all servers."""
    leftovers.mark()
    yield
    prepared_python.end()
    left = leftovers.leftovers()
    assert not left, "\n".join(left)


@pytest.fixture(scope="session", autouse=True)
def _reachable_python() -> None:
    """HTTP does not run as root, so tests run by root let its account enter the folders above Python."""
    if os.geteuid() != 0:
        return
    account = system_account()
    for needed in (os.__file__, ringlog.__file__, starlette.__file__):
        for folder in reversed(Path(needed).parents):
            if not account.can("x", folder):
                folder.chmod(folder.stat().st_mode | 0o001)


@pytest.fixture(autouse=True)
def drawn_by_seed(request: pytest.FixtureRequest) -> None:
    """What tests draw without a generator of their own."""
    random.setstate(seeded(request.node.nodeid).getstate())


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    """The commands of ringlog set it, also if a test runs one in its own process."""
    usual = os.umask(0)
    os.umask(usual)
    yield
    os.umask(usual)


@pytest.fixture(scope="session")
def temporary_directory() -> Iterator[Path]:
    """An empty directory, reachable for every account, with a path short enough for sockets."""
    path = new_folder()
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="session")
def scratch_postgres(temporary_directory: Path) -> Iterator[Postgres]:
    """A PostgreSQL without any object of ringlog."""
    postgres = Postgres(temporary_directory / "scratch")
    with postgres.running(memory=TEST_MEMORY, port=free_port()):
        with psycopg.connect(postgres.conninfo("postgres"), autocommit=True) as administrator:
            administrator.execute("alter system set fsync = off")
            # its many databases would have a process of it every few seconds
            administrator.execute("alter system set autovacuum = off")
            administrator.execute("select pg_reload_conf()")
        yield postgres


@pytest.fixture(scope="session")
def postgres_url(scratch_postgres: Postgres) -> sqlalchemy.URL:
    """The superuser's URL of the scratch PostgreSQL's own database `postgres`."""
    return sqlalchemy_url(scratch_postgres.conninfo("postgres"))


_numbers = count(1)


def _copy(postgres: Postgres, template: str) -> str:
    """The name of a copy of a database; roles are shared by all of them."""
    name = f"scratch_{next(_numbers)}"
    with psycopg.connect(postgres.conninfo("postgres"), autocommit=True) as connection:
        connection.execute(
            sql.SQL("create database {} template {} strategy file_copy").format(
                sql.Identifier(name), sql.Identifier(template)
            )
        )
    return name


def _copy_settings(postgres: Postgres, source: str, copy: str) -> None:
    """Gives a copy the settings of its source for all roles, which PostgreSQL does not copy."""
    with psycopg.connect(postgres.conninfo("postgres"), autocommit=True) as connection:
        query = (
            "select split_part(setting, '=', 1), substring(setting from '=(.*)')"
            " from pg_db_role_setting join pg_database on pg_database.oid = setdatabase"
            " cross join unnest(setconfig) as setting where datname = %s and setrole = 0"
        )
        for name, value in connection.execute(query, [source]).fetchall():
            connection.execute("select set_config(%s, %s, false)", [name, value])
            connection.execute(
                sql.SQL("alter database {} set {} from current").format(
                    sql.Identifier(copy), sql.Identifier(name)
                )
            )


@contextmanager
def _database(postgres: Postgres, template: str) -> Iterator[sqlalchemy.URL]:
    name = _copy(postgres, template)
    yield sqlalchemy_url(postgres.conninfo(name))
    with psycopg.connect(postgres.conninfo("postgres"), autocommit=True) as connection:
        connection.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


@pytest.fixture(scope="session")
def copied_databases(
    scratch_postgres: Postgres,
) -> Callable[[str], AbstractContextManager[sqlalchemy.URL]]:
    """Makes copies of the database of this name, which must not be in use meanwhile: the superuser's URLs."""
    return partial(_database, scratch_postgres)


@pytest.fixture(scope="session")
def _prepared_database(scratch_postgres: Postgres) -> str:
    """The name of a database with ringlog's objects for every facility, the template of copies."""
    name = _copy(scratch_postgres, "template1")
    administrator = sqlalchemy.create_engine(sqlalchemy_url(scratch_postgres.conninfo(name)))
    install(administrator, Facility("none", "UTC", ()))
    administrator.dispose()
    return name


@pytest.fixture(scope="session")
def prepared_databases(
    scratch_postgres: Postgres, _prepared_database: str
) -> Callable[[], AbstractContextManager[sqlalchemy.URL]]:
    """Makes databases with ringlog's objects for every facility: the superuser's URLs."""
    return lambda: _database(scratch_postgres, _prepared_database)


@pytest.fixture(scope="session")
def kept_databases(scratch_postgres: Postgres, _prepared_database: str) -> Callable[[], sqlalchemy.URL]:
    """Creates such databases, which last as long as their server: dropping them one by one at the end would
    require a response of all sessions.
    """
    return lambda: sqlalchemy_url(scratch_postgres.conninfo(_copy(scratch_postgres, _prepared_database)))


@pytest.fixture(scope="session")
def facility_databases(
    scratch_postgres: Postgres, _prepared_database: str
) -> Callable[..., AbstractContextManager[sqlalchemy.URL]]:
    """Makes databases with a facility's tables and further parts of an installation: the superuser's URLs.
    They are copies of one that is installed once a week.
    """

    @cache
    def template(_first: Week, facility: Facility, *parts: Part) -> str:
        """Its logs have the weeks from the first one on."""
        name = _copy(scratch_postgres, _prepared_database)
        administrator = sqlalchemy.create_engine(sqlalchemy_url(scratch_postgres.conninfo(name)))
        install(administrator, facility, parts)
        administrator.dispose()
        return name

    @contextmanager
    def made(facility: Facility, *parts: Part) -> Iterator[sqlalchemy.URL]:
        source = template(Week.of(datetime.now(UTC)), facility, *parts)
        with _database(scratch_postgres, source) as url:
            assert url.database is not None
            _copy_settings(scratch_postgres, source, url.database)
            yield url

    return made


@pytest.fixture
def database_url(
    prepared_databases: Callable[[], AbstractContextManager[sqlalchemy.URL]],
) -> Iterator[sqlalchemy.URL]:
    """The superuser's URL of a database created for this test alone, with ringlog's objects for every
    facility: a copy takes a fifth of the time of an installation.
    """
    with prepared_databases() as url:
        yield url


@pytest.fixture
def engine(database_url: sqlalchemy.URL) -> Iterator[sqlalchemy.Engine]:
    """The superuser's engine of that database."""
    engine = sqlalchemy.create_engine(database_url)
    yield engine
    engine.dispose()


@pytest.fixture
def empty_database_url(scratch_postgres: Postgres) -> Iterator[sqlalchemy.URL]:
    """The superuser's URL of an empty database created for this test alone."""
    with _database(scratch_postgres, "template1") as url:
        yield url


@pytest.fixture(scope="session")
def server(temporary_directory: Path) -> Iterator[RunningServer]:
    """`ringlog serve` with the facility tests/harness/facility.toml and the logins `writer` and `reader`."""
    with serving(temporary_directory / "served") as running:
        set_path(running.dsn)
        yield running


@pytest.fixture(scope="module", autouse=True)
def others_find_nothing(request: pytest.FixtureRequest) -> Iterator[None]:
    """The tests of a file leave nothing behind on the shared server."""
    fixtures = {
        name
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.path == request.path
        for name in item.fixturenames
    }
    shared = request.getfixturevalue("server") if "server" in fixtures else None
    if not isinstance(shared, RunningServer):  # or a server of this file alone
        yield
        return
    if "functions" in fixtures:
        # they exist for the whole run
        request.getfixturevalue("functions")
    with left_there.nothing(shared.dsn):
        yield


@pytest.fixture(scope="session")
def admin(server: RunningServer) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    """The administrator's own connection to PostgreSQL, in autocommit."""
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        yield connection
