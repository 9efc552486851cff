"""The statements of tests/tsql/statements through the gateway: ct-library at TDS 5.0, pymssql at 7.4.

The core has those of both servers in turn with one of them, `make test-long` with each.
"""

import re
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, Generic, TypeVar

import psycopg
import pymssql
import pytest
from translated import shown

from statement_table import Case, cases
from tds_clients import Answer, Clients, CtClient, Message, errors_of

TERMINATED = 3621
"""the message that follows some errors"""
Outcome = dict[str, Any]
Client = TypeVar("Client")

_ASSIGNS = re.compile(r"@\w+[^@=]*=")
_USE = re.compile(r"use \w+")
_LEAVES_STATE = re.compile(r"#|\bset\s+[a-z]|\btran|\buse\b", re.I)


class Sessions(Generic[Client]):
    """Sessions for successive cases, one for those that begin with the same `use`; a new one after a case
    that may leave other state behind."""

    def __init__(self, log_in: Callable[[], Client], log_out: Callable[[Client], None]) -> None:
        self._log_in, self._log_out = log_in, log_out
        self._open: dict[str, Client] = {}

    @contextmanager
    def of(self, case: Case) -> Iterator[Client]:
        texts = [*case.setup, case.text]
        begin = texts.pop(0) if _USE.fullmatch(texts[0]) else ""
        client = self._open.pop(begin, None) or self._log_in()
        try:
            yield client
        except BaseException:
            self._log_out(client)
            raise
        if any(_LEAVES_STATE.search(text) for text in texts):
            self._log_out(client)
        else:
            self._open[begin] = client

    def close(self) -> None:
        for client in self._open.values():
            self._log_out(client)


@pytest.fixture(scope="module")
def schema(clients: Clients, functions: None) -> Iterator[None]:
    """`cases`, where the cases may make procedures."""
    with psycopg.connect(clients.server.dsn, autocommit=True) as admin:
        admin.execute(f"create schema cases authorization {clients.server.reader.user}")
        yield
        admin.execute("drop schema cases cascade")


@pytest.fixture(scope="module")
def at_5(clients: Clients, schema: None) -> Iterator[Sessions[CtClient]]:
    def log_in() -> CtClient:
        client = CtClient(clients.program, clients.configuration, "5.0", clients.server.reader)
        assert client.login.end == "login"
        return client

    sessions = Sessions(log_in, CtClient.close)
    yield sessions
    sessions.close()


@pytest.fixture(scope="module")
def at_7(clients: Clients, schema: None) -> Iterator[Sessions[pymssql.Connection]]:
    def log_in() -> pymssql.Connection:
        connection = clients.pymssql(clients.server.reader)
        with connection.cursor() as cursor:
            # as in the table: "x" is a text
            cursor.execute("set quoted_identifier off")
        return connection

    sessions = Sessions(log_in, pymssql.Connection.close)
    yield sessions
    sessions.close()


def of(sybase: bool) -> pytest.MarkDecorator:
    params = []
    for index, case in enumerate(cases()):
        if case.runs_in(sybase):
            other_turn = case.runs_in(not sybase) and bool(index % 2) == sybase
            # cases of a table replace procedures and tables of earlier cases
            marks = [pytest.mark.together(case.name.rpartition("-")[0])]
            marks += [pytest.mark.long] if other_turn else []
            params.append(pytest.param(case, id=case.name, marks=marks))
    return pytest.mark.parametrize("case", params)


# --- TDS 5.0: everything, in order ---


@of(sybase=True)
def test_at_5(at_5: Sessions[CtClient], case: Case) -> None:
    with at_5.of(case) as client:
        for text in case.setup:
            client.language(text)
        answer = client.language(case.text)
    compare(case, answer, sybase=True)


def compare(case: Case, answer: Answer, *, sybase: bool) -> None:
    """Compares everything that came with the case's list, in order."""
    outcomes = list(in_order(answer.events))
    # a batch has no status of its own
    expected = [one for one in case.expect if "status" not in one]
    if not sybase:
        # ct-library hides counts of statements of procedures at 7.4
        outcomes, expected = ([one for one in those if "count" not in one] for those in (outcomes, expected))
    if _ASSIGNS.search(case.text):
        outcomes = list(without_assignments(outcomes, expected))
    if any("error" in one for one in expected):
        # a query that fails may have sent its columns
        outcomes, expected = (
            [one for one in those if one.get("rows") != []] for those in (outcomes, expected)
        )
    assert len(outcomes) == len(expected), outcomes
    for outcome, one in zip(outcomes, expected, strict=True):
        if "rows" in one:
            rows = [[str(cell) for cell in row] for row in one["rows"]]
            assert [len(row) for row in outcome["rows"]] == [len(row) for row in rows], outcome
            for found, wanted in zip(outcome["rows"], rows, strict=True):
                assert all(map(is_same_text, found, wanted)), (found, wanted)
            assert outcome["columns"] == one.get("columns", outcome["columns"])
        for key in ("count", "message"):
            assert outcome.get(key) == one.get(key)
        assert outcome.get("error") == one.get("sybase" if sybase else "error", one.get("error"))
        assert one.get("says", "") in outcome.get("text", ""), outcome


def in_order(events: list[tuple[str, object]]) -> Iterator[Outcome]:
    rows: Outcome | None = None
    for kind, value in events:
        if kind == "columns":
            rows = {"columns": value, "rows": []}
            yield rows
        elif kind == "row" and rows is not None:
            rows["rows"].append(value)
        elif kind == "count" and rows is None and value != -1:
            yield {"count": value}
        elif isinstance(value, Message) and value.severity > 10:
            yield {"error": value.number, "text": value.text}
        elif isinstance(value, Message) and value.number != TERMINATED:
            yield {"message": value.text}
        if kind == "count":
            rows = None


def without_assignments(outcomes: list[Outcome], expected: list[Outcome]) -> Iterator[Outcome]:
    """Without row counts of assignments to variables, which the table does not list."""
    index = 0
    for one in outcomes:
        listed = expected[index] if index < len(expected) else {}
        if "count" not in one or one["count"] == listed.get("count"):
            index += 1
            yield one


def is_same_text(found: str | None, wanted: str) -> bool:
    """Whether ct-library's text of a value is that of the table's."""
    if found is None or wanted == "NULL":
        return (found is None) == (wanted == "NULL")
    if found == wanted or f"0x{found.upper()}" == wanted or found.upper() == wanted:
        return True
    if wanted == "":
        # Sybase has no empty text
        return found == " "
    if raw := re.fullmatch(r"(\d+) (\d+)", found):
        # a datetime in its wire format: days, and 1/300 s, or minutes of a smalldatetime
        day, part = datetime(1900, 1, 1) + timedelta(days=int(raw[1])), int(raw[2])
        seconds = timedelta(milliseconds=round(part * 10 / 3))
        return wanted in (shown(day + seconds), shown(day + timedelta(minutes=part)))
    if re.fullmatch(r"-?\d+\.\d{4}", wanted) and re.fullmatch(r"-?\d+", found):
        # money in its 1/10000
        return Decimal(found).scaleb(-4) == Decimal(wanted)
    if (moment := a_moment(found)) is not None:
        return shown(moment) == wanted
    if re.fullmatch(r"\d{4}-\d\d-\d\d", wanted):
        return found.isdigit() and shown(date(1900, 1, 1) + timedelta(days=int(found))) == wanted
    if re.fullmatch(r"\d\d:\d\d:\d\d(\.\d+)?", wanted):
        return found.isdigit() and shown((datetime.min + timedelta(microseconds=int(found))).time()) == wanted
    try:
        number, expected = Decimal(found), Decimal(wanted)
    except InvalidOperation:
        return False
    return number == expected or is_same_float(float(number), float(expected))


def a_moment(text: str) -> datetime | None:
    """A datetime, which ct_client.c writes in words, or a bigdatetime, which it writes as a number."""
    if text.isdigit() and len(text) > 15:
        # microseconds since the year 0, which had 366 days and which Python does not know
        return datetime.min + (timedelta(microseconds=int(text)) - timedelta(days=366))
    text = " ".join(text.split())
    for form in ("%b %d %Y %I:%M:%S:%f%p", "%b %d %Y %I:%M:%S.%f%p", "%b %d %Y %I:%M%p", "%b %d %Y"):
        try:
            return datetime.strptime(text, form)
        except ValueError:
            continue
    return None


def is_same_float(found: float, wanted: float) -> bool:
    """Equal, or equal as reals of four bytes."""

    def real(value: float) -> bytes:
        try:
            return struct.pack("f", value)
        except OverflowError:
            return b""

    return found == wanted or real(found) == real(wanted) != b""


# --- TDS 7.4: the values in their types, and the first error ---


@of(sybase=False)
def test_at_7(at_7: Sessions[pymssql.Connection], case: Case) -> None:
    results: list[list[list[Any]]] = []
    error: Message | None = None
    with at_7.of(case) as connection, connection.cursor() as cursor:
        for text in case.setup:
            cursor.execute(text)
        try:
            cursor.execute(case.text)
            while True:
                if cursor.description is not None:
                    results.append([list(row) for row in cursor.fetchall()])
                if not cursor.nextset():
                    break
        except pymssql.Error as raised:
            error = errors_of(raised)
    # after an error pymssql reads the rest only to discard it
    first = next((at for at, one in enumerate(case.expect) if "error" in one), len(case.expect))
    wanted = [one["rows"] for one in case.expect[:first] if "rows" in one]
    assert (error is None) == (first == len(case.expect)), error
    if error is not None:
        # of several errors that come before the next rows pymssql keeps the last
        messages = [one["says"] for one in case.expect if one.get("error") == error.number and "says" in one]
        assert error.number in [one.get("error") for one in case.expect], error
        assert all(text in error.text for text in messages)
        wanted = wanted[: len(results)]
    assert len(results) == len(wanted), results
    for rows, expected in zip(results, wanted, strict=True):
        assert [len(row) for row in rows] == [len(row) for row in expected], rows
        for row, cells in zip(rows, expected, strict=True):
            assert all(map(is_same, row, map(str, cells))), (row, cells)


def is_same(found: Any, wanted: str) -> bool:
    if isinstance(found, float) and wanted != "NULL":
        return is_same_float(found, float(wanted))
    if isinstance(found, Decimal) and wanted != "NULL":
        # a value without declared digits has the maximum number
        return found == Decimal(wanted)
    return shown(found) == wanted


# --- TDS 7.4 by ct-library: the order of everything, where only SQL Server's answer is listed ---


@pytest.fixture(scope="module")
def in_order_at_7(clients: Clients, schema: None) -> Iterator[Sessions[CtClient]]:
    def log_in() -> CtClient:
        client = CtClient(clients.program, clients.configuration, "7.4", clients.server.reader)
        client.language("set quoted_identifier off")
        return client

    sessions = Sessions(log_in, CtClient.close)
    yield sessions
    sessions.close()


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.name, marks=pytest.mark.together(case.name.rpartition("-")[0]))
        for case in cases()
        if case.only == "microsoft" and any("message" in one for one in case.expect)
    ],
)
def test_order_at_7(in_order_at_7: Sessions[CtClient], case: Case) -> None:
    with in_order_at_7.of(case) as client:
        for text in case.setup:
            client.language(text)
        answer = client.language(case.text)
    compare(case, answer, sybase=False)
