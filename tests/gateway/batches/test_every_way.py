"""Every text of the tables of cases, run in every way in which a text can be executed: all answers must be
equal.

Other tests compare the answers with the documentation; here the ways are compared with each other. The core
has texts of each table in each way; `make test-ways` has every text in every way.
"""

import itertools
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import pytest

from authors import author_with_schema
from servers import Login
from statement_table import cases
from tds_clients import Answer, Clients, CtClient, Message, Param

pytestmark = pytest.mark.usefixtures("functions")

LOGIN = Login("every_way", "every-way")
DATABASE = "cases"
"""the database of the sessions and procedures"""

_LEAVES_STATE = re.compile(r"#|@@identity|\bset\s+[a-z]|\btran|\buse\b|\bcursor\b", re.I)


# --- texts ---


class Text(NamedTuple):
    """A text of a table of cases."""

    name: str
    text: str
    setup: tuple[str, ...] = ()
    only: str | None = None
    fails: bool = False
    """An error is not caught."""

    @property
    def table(self) -> str:
        """The table of cases that contains it."""
        return self.name.rpartition("-")[0]

    @property
    def leaves_state(self) -> bool:
        """Whether this text may leave traces for the next one."""
        return any(_LEAVES_STATE.search(text) for text in (*self.setup, self.text))

    @property
    def is_elsewhere(self) -> bool:
        """Whether it runs in another database, where the login creates no procedure."""
        used = [text for text in self.setup if text.startswith("use ")]
        return bool(used) and used[-1] != f"use {DATABASE}"

    def is_for(self, version: str) -> bool:
        return self.only in (None, "sybase" if version == "5.0" else "microsoft")


def texts() -> list[Text]:
    found = []
    for case in cases():
        fails = any("error" in one for one in case.expect)
        found.append(Text(case.name, case.text, case.setup, case.only, fails))
    return found


TEXTS = texts()


# --- differences ---

PROCEDURES = ("compiled", "interpreted")
SETS_NULLS = re.compile(r"set (ansi_nulls|ansinull) ")
"""impossible in a procedure, which has the setting of its creation (the cases of nulls.toml have both)"""
CALLED_FIRST = "a procedure is called without EXECUTE at the beginning of a batch only"
REFUSED_IN_PROCEDURES = {
    111: re.compile(r"\b(create|alter) (or alter )?(default|function|procedure|rule|schema|trigger|view)\b"),
    154: re.compile(r"^use \w"),
}
"""statements that a procedure refuses, by the error: they are alone in their batch, or change the database"""
QUOTED = re.compile("'[^']*'")
COUNTS_TRANSACTIONS = (
    "the end of a procedure reports that it leaves another number of transactions than it has found (266)"
)
ENDS_ALL = "an error that ends the batch takes back what a compiled procedure has selected before it"
LOOKS_LATER = "a procedure looks for a table when it runs the statement"
CAUGHT_SELECT = "a select that fails in a TRY of a compiled procedure sends nothing"
DIFFERENCES: dict[str, tuple[tuple[str, ...], str]] = {
    # the end of a text: the ways with another answer, and the reason (docs/how-to/procedures.md)
    "insert #t exec p select @@trancount select a from #t commit": (PROCEDURES, COUNTS_TRANSACTIONS),
    "insert #r values (1) return 7": (PROCEDURES, "a procedure may return a status"),
    "selec 1": (PROCEDURES, CALLED_FIRST),
    "sp_configure 'show advanced options', 1": (PROCEDURES, CALLED_FIRST),
    "p as begin tran begin tran commit; exec p": (PROCEDURES, COUNTS_TRANSACTIONS),
    "insert @t values (1) exec ('rollback')": (PROCEDURES, COUNTS_TRANSACTIONS),
    "set @a = 'x' end try begin catch rollback tran s end catch": (PROCEDURES, COUNTS_TRANSACTIONS),
    "begin tran exec dooms commit": (("compiled",), ENDS_ALL),
    "begin tran exec calls rollback": (("compiled",), "its ROLLBACK would take back what dooms has selected"),
    "set @a = 'x' end try begin catch select 1 end catch select xact_state()": (
        PROCEDURES,
        COUNTS_TRANSACTIONS,
    ),
    "error_severity(), error_state(), @@error end catch print 'after'": (("compiled",), CAUGHT_SELECT),
    "error_state(), error_line() end catch select 'after'": (("compiled",), CAUGHT_SELECT),
    "('inner', 16, 1) end catch end try begin catch print error_message() end catch": (
        ("compiled",),
        CAUGHT_SELECT,
    ),
    "print 'ran' select * from no_such": (PROCEDURES, LOOKS_LATER),
    "if @n > 1\n    delete from no_such": (PROCEDURES, LOOKS_LATER),
    "from tempdb..#no_such) > 0 print 'again'": (PROCEDURES, LOOKS_LATER),
    "exec no_column 1, 2": (("compiled at 7.4",), "only the gateway compiles an outdated procedure again"),
}


def whole(text: Text) -> str:
    return "; ".join((*text.setup, text.text))


def may_differ(text: Text, version: str, way: str) -> bool:
    return any(
        whole(text).endswith(end) and (way in ways or f"{way} at {version}" in ways)
        for end, (ways, _) in DIFFERENCES.items()
    )


def refusal(text: Text, way: str) -> int | None:
    """The error by which a procedure refuses the text."""
    if way not in PROCEDURES:
        return None
    own = QUOTED.sub("", text.text)
    return next((number for number, refused in REFUSED_IN_PROCEDURES.items() if refused.search(own)), None)


# --- ways ---


def by_batch(client: CtClient, text: Text) -> Answer:
    return client.language(text.text)


def by_exec(client: CtClient, text: Text) -> Answer:
    return client.language("exec ('" + text.text.replace("'", "''") + "')")


def by_executesql(client: CtClient, text: Text) -> Answer:
    return client.call("sp_executesql", [Param("text", text.text)])


def by_prepare(client: CtClient, text: Text) -> Answer:
    prepared = client.call(
        "sp_prepare",
        [
            Param("int", None, "@handle", out=True),
            Param("char", None, "@params"),
            Param("text", text.text, "@stmt"),
        ],
    )
    if prepared.errors:
        return prepared
    (handle,) = prepared.outputs.values()
    return client.call("sp_execute", [Param("int", handle)])


DYNAMIC_NAMES = (f"every_way_{number}" for number in itertools.count())
"""a text may come twice in a session, and a name is prepared once"""


def by_dynamic(client: CtClient, text: Text) -> Answer:
    name = next(DYNAMIC_NAMES)
    prepared = client.prepare(name, text.text)
    return prepared if prepared.errors else client.execute(name)


PROCEDURE = "every_way_p"


def called(client: CtClient, body: str) -> Answer:
    created = client.language(f"create or alter procedure {PROCEDURE} as{body}")
    return created if created.errors else client.language(f"exec {PROCEDURE}")


def by_compiled(client: CtClient, text: Text) -> Answer:
    # otherwise a procedure of one statement ends at its error (docs/how-to/procedures.md)
    return called(client, f"{' set xact_abort off;' if text.fails else ''} {text.text}")


def by_interpreted(client: CtClient, text: Text) -> Answer:
    """PL/pgSQL has no GOTO to a label before it."""
    return called(client, f" begins_here: if 1 = 2 goto begins_here; {text.text}")


Ask = Callable[[CtClient, Text], Answer]
WAYS: dict[str, dict[str, Ask]] = {
    "7.4": {
        "batch": by_batch,
        "exec": by_exec,
        "sp_executesql": by_executesql,
        "sp_prepare": by_prepare,
        "compiled": by_compiled,
        "interpreted": by_interpreted,
    },
    "5.0": {
        "batch": by_batch,
        "exec": by_exec,
        "dynamic": by_dynamic,
        "compiled": by_compiled,
        "interpreted": by_interpreted,
    },
}


BY_PARAMETER = ("sp_executesql", "sp_prepare")
Way = tuple[str, str]
"""a version and the name of one of its ways"""


def is_of_code_page(text: str) -> bool:
    """Whether ct-library can send a parameter's characters: at 7.4 it sends them in the server's code
    page."""
    return text.encode("cp1252", "ignore").decode("cp1252") == text


def compared(text: Text) -> list[Way]:
    """The ways whose answer is compared with that of a batch."""
    return [
        (version, way)
        for version, ways in WAYS.items()
        for way in ways
        if text.is_for(version)
        and way != "batch"
        and not (way in PROCEDURES and (SETS_NULLS.search(text.text) or text.is_elsewhere))
        and not (way in BY_PARAMETER and not is_of_code_page(text.text))
    ]


def sample(texts: Sequence[Text]) -> dict[str, list[Way]]:
    """Texts and their ways: the texts of each table have every way. Other tests run each text once."""
    chosen: dict[str, list[Way]] = defaultdict(list)
    tables: dict[str, dict[str | None, list[Text]]] = defaultdict(lambda: defaultdict(list))
    for text in texts:
        tables[text.table][text.only].append(text)
    for kinds in tables.values():
        # texts of both servers and of each one in turn; first those that make nothing, at a tenth of the CPU
        table = [text for turn in itertools.zip_longest(*kinds.values()) for text in turn if text]
        table.sort(key=lambda text: bool(text.setup))
        missing = dict.fromkeys(way for text in table for way in compared(text))
        # two texts of one table have different ways, if there are enough texts
        for text in table:
            if way := next((way for way in missing if way in compared(text)), None):
                chosen[text.name].append(way)
                del missing[way]
        for way in missing:
            chosen[next(text.name for text in table if way in compared(text))].append(way)
    return chosen


SAMPLE = sample(TEXTS)


# --- answers ---


class Outcome(NamedTuple):
    events: list[tuple[str, Any]]
    """descriptions of columns, rows, messages and errors, in order"""
    left: list[list[str | None]]
    """@@rowcount, @@error and @@trancount after it"""


def events(answer: Answer) -> Iterator[tuple[str, Any]]:
    assert answer.end == "results", answer
    formats = iter(answer.formats)
    columns = None
    for kind, value in answer.events:
        match kind, value:
            case "columns", _:
                columns = next(formats)
                # a query that fails may have sent its columns
                if not answer.errors:
                    yield kind, columns
            case "row", _:
                yield kind, (value if not answer.errors else (columns, value))
            case "message", Message(number, severity, text):
                yield ("error", number) if severity > 10 else ("message", text)


# --- the sessions ---


class Session:
    """A session for the texts of a table, reset for each. One for all would have so much memory that the
    server ends it."""

    def __init__(self, clients: Clients, version: str) -> None:
        self._clients, self._version = clients, version
        self._table = ""
        self._log_in()

    def _log_in(self) -> None:
        self._client = CtClient(self._clients.program, self._clients.configuration, self._version, LOGIN)
        assert self._client.login.end == "login", self._client.login
        # FreeTDS sets a text size at login, which a reset after a text with state removes
        self._client.call("sp_reset_connection")
        self._begin()

    def _begin(self) -> None:
        if self._client.version != "5.0":
            self._client.language("set quoted_identifier on")

    def outcome(self, ask: Ask, text: Text) -> Outcome:
        if text.table != self._table:
            self._table = text.table
            self.close()
            self._log_in()
        for setup in text.setup:
            self._client.language(setup)
        answer = list(events(ask(self._client, text)))
        # and @@error and @@rowcount of the next text start at 0
        left = self._client.language("select @@rowcount, @@error, @@trancount print ''").rows
        if text.leaves_state:
            self._client.call("sp_reset_connection")
            self._begin()
        return Outcome(answer, left)

    def close(self) -> None:
        self._client.close()


Sessions = dict[tuple[str, str], Session]


@pytest.fixture(scope="module")
def sessions(clients: Clients, functions: None) -> Iterator[Sessions]:
    with author_with_schema(clients.server, LOGIN, DATABASE, writes=True) as admin:
        path = f"{DATABASE}, online, log, ringlog, gateway_test"
        admin.execute(f"alter role {LOGIN.user} set search_path = {path}")
        sessions = {
            (version, way): Session(clients, version) for version, ways in WAYS.items() for way in ways
        }
        yield sessions
        for session in sessions.values():
            session.close()


# --- the comparison ---


def of_texts(ways: Callable[[Text], list[Way]], *marks: pytest.MarkDecorator) -> pytest.MarkDecorator:
    """The texts of a table follow each other in one process."""
    texts = [
        pytest.param(text, found, id=text.name, marks=[pytest.mark.together(text.table), *marks])
        for text in TEXTS
        if (found := ways(text))
    ]
    return pytest.mark.parametrize(("text", "ways"), texts)


@of_texts(lambda text: SAMPLE.get(text.name, []))
def test_a_way(sessions: Sessions, text: Text, ways: list[Way]) -> None:
    compare(sessions, text, ways)


@of_texts(compared, pytest.mark.long)
def test_every_way(sessions: Sessions, text: Text, ways: list[Way]) -> None:
    compare(sessions, text, ways)


def compare(sessions: Sessions, text: Text, ways: list[Way]) -> None:
    wanted = {
        version: sessions[version, "batch"].outcome(by_batch, text)
        for version in dict.fromkeys(version for version, _ in ways)
    }
    for version, way in ways:
        found = sessions[version, way].outcome(WAYS[version][way], text)
        if error := refusal(text, way):
            assert found.events == [("error", error)], f"{way} at {version}: {text.text}"
        elif may_differ(text, version, way):
            assert found != wanted[version], (
                f"{way} at {version} differs no longer: take it out of DIFFERENCES"
            )
        else:
            assert found == wanted[version], f"{way} at {version}: {text.text}"


def test_the_sample_has_each_way_for_each_table() -> None:
    every, chosen = defaultdict(set), defaultdict(set)
    for text in TEXTS:
        every[text.table].update(compared(text))
        chosen[text.table].update(SAMPLE.get(text.name, []))
    assert chosen == every


def test_differences_name_existing_texts() -> None:
    assert [end for end in DIFFERENCES if not any(whole(text).endswith(end) for text in TEXTS)] == []
