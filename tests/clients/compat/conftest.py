"""The clients: real clients of every kind against one server, and a record of their results."""

import sys
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import matrix
from client_compat import CLIENTS, PREPARED, Client, Clients, Conversation, Programs
from servers import Login, RunningServer
from tds_clients import Admin

HERE = Path(__file__).parent
RECORD = pytest.StashKey[list[matrix.Entry]]()

Talk = Callable[[Login], Conversation]
"""returns the client's session of a login, which is kept for the client's next test"""


def pytest_configure(config: pytest.Config) -> None:
    config.stash[RECORD] = []


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Orders the tests: client after client, and the page that lists all of them last."""

    def position(item: pytest.Item) -> tuple[bool, str, int]:
        client = item.callspec.params.get("client") if hasattr(item, "callspec") else None
        return (
            item.path.name == "test_page.py",
            item.path.name,
            CLIENTS.index(client) if client in CLIENTS else 0,
        )

    here = [item for item in items if item.path.parent == HERE]
    items[:] = [item for item in items if item.path.parent != HERE] + sorted(here, key=position)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test with a `client` is made for each client with the feature; for the others this is recorded."""
    clients = getattr(metafunc.module, "CLIENTS", ())
    if "client" not in metafunc.fixturenames:
        return
    feature = _feature(metafunc.function)
    params = []
    for client in clients:
        if feature in client.missing:
            entry = replace(_entry(metafunc.function, client, "-"), why=client.missing[feature])
            metafunc.config.stash[RECORD].append(entry)
            continue
        why = client.not_yet.get(feature)
        marks = [] if why is None else [pytest.mark.xfail(strict=True, reason=why)]
        params.append(pytest.param(client, id=client.id, marks=marks))
    metafunc.parametrize("client", params)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if "client" in item.fixturenames and (report.when == "call" or not report.passed):
        client = item.callspec.params["client"]
        found = dict(item.user_properties)
        if report.skipped:
            served, found = "not yet", {"why": report.wasxfail}
        else:
            served = "failed" if report.failed else "no" if "received" in found else "yes"
            if served == "yes" and (why := client.remarks.get(_feature(item.function))):
                found = {"why": why}
        entry = replace(_entry(item.function, client, served), version=client.version(), **found)
        item.config.stash[RECORD].append(entry)
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    if session.config.stash[RECORD]:
        matrix.save(session.config.stash[RECORD])


def _feature(test: Callable[..., object]) -> str:
    return test.__name__.removeprefix("test_")


def _entry(test: Callable[..., object], client: Client, served: str) -> matrix.Entry:
    module = sys.modules[test.__module__]
    return matrix.Entry(
        section=str(module.__doc__).split("\n")[0].rstrip("."),
        position=list(vars(module)).index(test.__name__),
        feature=_feature(test).replace("_", " "),
        client=client.name,
        protocol=client.protocol,
        served=served,
    )


@pytest.fixture
def not_served(record_property: Callable[[str, object], None]) -> Callable[[str, str], None]:
    """Records the reason why a feature is not supported, and the client's message, which the test has
    asserted."""

    def note(why: str, received: str) -> None:
        record_property("why", why)
        record_property("received", received)

    return note


@pytest.fixture
def remark(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Records a remark on a supported feature."""
    return lambda why: record_property("why", why)


# --- the clients ---


@pytest.fixture(scope="session")
def programs(temporary_directory: Path) -> Programs:
    assert PREPARED.is_dir(), f"{PREPARED} is missing: make test"
    return Programs(temporary_directory / "client-compat-programs")


@pytest.fixture(scope="session")
def clients(server: RunningServer, programs: Programs, temporary_directory: Path) -> Clients:
    return Clients(server, programs, temporary_directory / "client-compat")


@pytest.fixture(scope="session")
def record(request: pytest.FixtureRequest) -> list[matrix.Entry]:
    """The results of the earlier tests."""
    return request.config.stash[RECORD]


@pytest.fixture(scope="session")
def functions(admin: Admin) -> Iterator[None]:
    """The functions of functions.sql, in schema client_compat."""
    admin.execute((HERE / "functions.sql").read_bytes())
    yield
    admin.execute("drop schema client_compat cascade; notify ringlog_catalogue")


@pytest.fixture(scope="session")
def sessions(clients: Clients) -> Iterator[dict[tuple[str, str], Conversation]]:
    """The sessions of the tested client, by its id and the login's user."""
    kept: dict[tuple[str, str], Conversation] = {}
    yield kept
    for session in kept.values():
        session.close()


@pytest.fixture
def talk(
    functions: None, clients: Clients, client: Client, sessions: dict[tuple[str, str], Conversation]
) -> Talk:
    """The client's session of a login, reused for its next test while it is usable. The functions are created
    before: a session keeps the search path that it began with.
    """
    for key in [key for key in sessions if key[0] != client.id]:
        sessions.pop(key).close()

    def session(login: Login) -> Conversation:
        key = client.id, login.user
        if key in sessions and sessions[key].broken:
            sessions.pop(key).close()
        if key not in sessions:
            sessions[key] = client.start(clients, login)
            sessions[key].login.good()
        return sessions[key]

    return session


@pytest.fixture
def writer(talk: Talk, server: RunningServer) -> Conversation:
    return talk(server.writer)


@pytest.fixture
def reader(talk: Talk, server: RunningServer) -> Conversation:
    return talk(server.reader)


@pytest.fixture(autouse=True)
def empty_ring(admin: Admin) -> None:
    """Empties the ring of every_type and its log."""
    admin.execute(
        "update online.every_type set time = null, a_real = null, a_double = null, an_int = null,"
        " a_smallint = null, a_bigint = null, a_bit = null, a_varchar = null"
    )
    admin.execute("delete from log.every_type")
