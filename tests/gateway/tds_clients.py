"""Real TDS clients, driven by tests: pymssql (7.x), ct-library and tsql (5.0 and 7.x) of FreeTDS."""

import json
import re
import subprocess
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import ctds
import psycopg
import pymssql
import pyodbc
import pytds
import pytest
from pymssql import _mssql

from ringlog.clients.drivers.freetds import tds_version
from servers import Login, RunningServer
from waiting import PATIENCE, wait_until

TDSODBC = f"/usr/lib/{sysconfig.get_config_var('MULTIARCH')}/odbc/libtdsodbc.so"
"""FreeTDS's ODBC driver"""

SEVENS = ("7.1", "7.2", "7.3", "7.4")
VERSIONS = ("5.0", *SEVENS)
PACKET_SIZES = (512, 513, 1024, 4096, 32768)

PLAIN = Login("plain", "plain")
"""a reader whose password exists in every character set"""

Admin = psycopg.Connection[tuple[object, ...]]
"""the administrator's own connection to PostgreSQL"""


class Message(NamedTuple):
    """A message or error of the server."""

    number: int
    severity: int
    text: str


@dataclass
class Answer:
    """The server's answer to one request."""

    rows: list[list[str | None]] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    """names of the columns of the last result set"""
    types: list[int] = field(default_factory=list)
    """ct-library's types of those columns"""
    statuses: list[int] = field(default_factory=list)
    outputs: dict[str, str | None] = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)
    client_messages: list[str] = field(default_factory=list)
    """messages of the client library itself"""
    counts: list[int] = field(default_factory=list)
    description: list[tuple[str, int]] = field(default_factory=list)
    """names and ct-library types of the parameters or columns of a dynamic statement"""
    formats: list[list[tuple[str, int, int, int, int]]] = field(default_factory=list)
    """of each result set its columns: name, ct-library type, length, precision and scale"""
    events: list[tuple[str, object]] = field(default_factory=list)
    """names of columns, rows, messages, counts and return statuses in the order of their arrival"""
    failed: bool = False
    end: str = ""

    @property
    def errors(self) -> list[Message]:
        return [message for message in self.messages if message.severity > 10]

    @property
    def error(self) -> Message:
        """The one error."""
        (error,) = self.errors
        return error


class Param(NamedTuple):
    """A parameter of a call through ct-library: a type of ct_client.c, its value as text, and its
    direction."""

    type: str
    value: str | None
    name: str = ""
    out: bool = False


class CtClient:
    """A running tests/gateway/programs/ct_client.c, logged in."""

    def __init__(self, program: Path, configuration: Path, section: str, login: Login) -> None:
        self.version = section.split()[0]
        self._process = subprocess.Popen(
            [program, section, login.user],
            env={"FREETDSCONF": str(configuration), "LC_ALL": "C.UTF-8"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )
        self.login = self._ask(login.password)

    def call(self, name: str, params: Sequence[Param] = ()) -> Answer:
        """A call by RPC."""
        return self._with(_line("rpc", name), params)

    def prepare(self, id: str, text: str) -> Answer:
        """Prepares a dynamic statement."""
        return self._ask(_line("prepare", id, text))

    def describe(self, what: Literal["in", "out"], id: str) -> Answer:
        """Describes the parameters or columns of a dynamic statement."""
        return self._ask(_line("describe", what, id))

    def execute(self, id: str, params: Sequence[Param] = ()) -> Answer:
        """Executes a dynamic statement."""
        return self._with(_line("execute", id), params)

    def close_dynamic(self, id: str) -> Answer:
        return self._ask(_line("close", id))

    def _with(self, line: str, params: Sequence[Param]) -> Answer:
        lines = [line]
        for param in params:
            value = () if param.value is None else (param.value,)
            lines.append(_line("param", param.type, param.name, "out" if param.out else "in", *value))
        return self._ask("\n".join([*lines, "go"]))

    def language(self, text: str) -> Answer:
        """A batch of text."""
        return self._ask(_line("language", text))

    def cancelled(self, text: str, after: float) -> Answer:
        """A batch of text that is cancelled after some seconds, its answer unread."""
        return self._ask(_line("cancel", str(int(after * 1000)), text))

    def cancelled_when(self, text: str, find: Callable[[], object]) -> Answer:
        """A batch of text that is cancelled once `find` is true, its answer unread."""
        self._tell(_line("send", text))
        wait_until(find)
        return self._ask("cancel_sent")

    def cancelled_after_rows(self, text: str, rows: int) -> Answer:
        """A batch of text that is cancelled after some of its rows have arrived."""
        return self._ask(_line("cancel_rows", str(rows), text))

    def _tell(self, lines: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(lines + "\n")
        self._process.stdin.flush()

    def _ask(self, lines: str) -> Answer:
        self._tell(lines)
        return self._answer()

    def _answer(self) -> Answer:
        assert self._process.stdout is not None
        answer = Answer()
        for line in self._process.stdout:
            ((kind, value),) = json.loads(line, strict=False).items()
            match kind:
                case "row_columns":
                    answer.events.append(("columns", [name for name, *_ in value]))
                    answer.formats.append([tuple(column) for column in value])
                case "message":
                    answer.events.append((kind, Message(*value)))
                case "row" | "count" | "status":
                    answer.events.append((kind, value))
            match kind:
                case "row":
                    answer.rows.append(value)
                case "row_columns" | "output_columns":
                    answer.columns = [name for name, *_ in value]
                    answer.types = [type for _, type, *_ in value]
                case "output":
                    names = [name or str(index) for index, name in enumerate(answer.columns)]
                    answer.outputs |= dict(zip(names, value, strict=True))
                case "description":
                    answer.description = [(name, type) for name, type in value]
                case "status":
                    answer.statuses.append(value)
                case "message":
                    answer.messages.append(Message(*value))
                case "count":
                    answer.counts.append(value)
                case "failed":
                    answer.failed = True
                case "client_message":
                    answer.client_messages.append(value)
                case "end":
                    answer.end = value
                    return answer
                case _:
                    raise AssertionError(f"ct_client: {line}")
        raise AssertionError(f"ct_client ended with {self._process.wait()} after {answer}")

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(PATIENCE)


def _line(*fields: str) -> str:
    return "\t".join(text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n") for text in fields)


@dataclass(frozen=True)
class Clients:
    """The clients of one server."""

    server: RunningServer
    program: Path
    """tests/gateway/programs/ct_client.c, built"""
    configuration: Path
    """a freetds.conf with a section for each of VERSIONS, and sections as `5.0 512` and `5.0 sjis`"""

    @classmethod
    def of(cls, server: RunningServer, program: Path, directory: Path) -> Self:
        """The clients of a server, their freetds.conf written into `directory`."""
        sections = {version: f"tds version = {version}" for version in VERSIONS}
        for version in ("5.0", "7.1", "7.4"):
            for size in PACKET_SIZES:
                sections[f"{version} {size}"] = f"tds version = {version}\ninitial block size = {size}"
        for charset in ("iso_1", "sjis", "eucjis", "utf8"):
            sections[f"5.0 {charset}"] = f"tds version = 5.0\nserver charset = {charset}"
        address = f"host = {server.host}\nport = {server.port}\n"
        text = "[global]\nclient charset = UTF-8\ntext size = 4000000\n"
        text += "".join(f"[{name}]\n{address}{lines}\n" for name, lines in sections.items())
        configuration = directory / "freetds.conf"
        configuration.write_text(text)
        return cls(server, program, configuration)

    @contextmanager
    def impatient(self, login: Login) -> Iterator[pymssql.Connection]:
        """A session whose client cancels a request without an answer within a second.

        pymssql has one limit for the whole process, which would also apply to later tests.
        """
        try:
            with self.pymssql(login, timeout=1) as connection:
                yield connection
        finally:
            _mssql.MSSQLConnection.__new__(_mssql.MSSQLConnection).query_timeout = 0

    def pymssql(
        self,
        login: Login,
        *,
        version: str = "7.4",
        autocommit: bool = True,
        database: str = "",
        timeout: int = 100,
    ) -> pymssql.Connection:
        return self.server.connect(
            login.user,
            login.password,
            database=database,
            tds_version=version,
            autocommit=autocommit,
            timeout=timeout,
        )

    def odbc(self, login: Login, version: str) -> pyodbc.Connection:
        return odbc(self.server, login, version)

    @contextmanager
    def ct(self, login: Login, section: str = "5.0") -> Iterator[CtClient]:
        client = CtClient(self.program, self.configuration, section, login)
        try:
            assert client.login.end == "login", client.login
            yield client
        finally:
            client.close()

    def ct_login(self, login: Login, section: str = "5.0") -> Answer:
        """The answer to a login through ct-library."""
        client = CtClient(self.program, self.configuration, section, login)
        client.close()
        return client.login

    def tsql(self, login: Login, *batches: str, section: str = "5.0", database: str = "") -> Answer:
        """Runs batches of text with tsql, which prints the values of rows separated by tabs."""
        command = ["tsql", "-S", section, "-U", login.user, "-P", login.password]
        if database:
            command += ["-D", database]
        done = subprocess.run(
            command,
            input="".join(f"{batch}\ngo\n" for batch in batches),
            env={"FREETDSCONF": str(self.configuration), "LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"},
            capture_output=True,
            encoding="utf-8",
            timeout=PATIENCE,
        )
        found = _TSQL_MESSAGE.findall(done.stderr)
        messages = [Message(int(number), int(severity), text) for number, severity, text in found]
        answer = Answer(messages=messages, end=str(done.returncode))
        for line in done.stdout.split("\n")[3:]:
            line = _TSQL_PROMPT.sub("", line)
            if status := _TSQL_STATUS.fullmatch(line):
                answer.statuses.append(int(status[1]))
            elif count := _TSQL_COUNT.fullmatch(line):
                answer.counts.append(int(count[1]))
            elif line:
                answer.rows.append(list(line.split("\t")))
        return answer


_TSQL_STATUS = re.compile(r"\(return status = (-?\d+)\)")
_TSQL_COUNT = re.compile(r"\((\d+) rows? affected\)")
_TSQL_PROMPT = re.compile(r"^(\d+> )+")
_TSQL_MESSAGE = re.compile(
    r'^Msg (\d+) \(severity (\d+), state \d+\) from \S+(?: Procedure \S+)? Line \d+:\n\t"(.*)"$', re.M
)


def errors_of(error: pymssql.Error) -> Message:
    """Number, severity and text of the server's error in a pymssql exception."""
    # a failed login wraps the pair once more
    number, raw = error.args if len(error.args) == 2 else error.args[0]
    text = raw.decode()
    severity = re.search(r"DB-Lib error message 20018, severity (\d+)", text)
    assert severity is not None, text
    return Message(number, int(severity[1]), text.split("DB-Lib error message")[0])


def result_sets(cursor: pymssql.Cursor, text: str) -> list[list[tuple[Any, ...]]]:
    """The rows of all result sets of a batch."""
    cursor.execute(text)
    found = []
    while True:
        if cursor.description:
            found.append([tuple(row) for row in cursor.fetchall()])
        if not cursor.nextset():
            return found


def rows_of(cursor: pymssql.Cursor, text: str) -> list[tuple[Any, ...]]:
    """The rows of all result sets of a batch, together."""
    return [row for rows in result_sets(cursor, text) for row in rows]


def error_of(cursor: pymssql.Cursor, text: str) -> Message:
    """The error that a batch ends with."""
    with pytest.raises(pymssql.Error) as raised:
        cursor.execute(text)
    return errors_of(raised.value)


def error_number(cursor: pymssql.Cursor, text: str) -> int:
    """The number of the error that a batch ends with."""
    return error_of(cursor, text).number


def odbc(
    server: RunningServer, login: Login, version: str = "7.4", *, autocommit: bool = True
) -> pyodbc.Connection:
    """A session over TDS by FreeTDS's ODBC driver."""
    with tds_version(version):
        return pyodbc.connect(
            f"DRIVER={TDSODBC};SERVER={server.host};PORT={server.port};ClientCharset=UTF-8",
            user=login.user,
            password=login.password,
            autocommit=autocommit,
        )


def ctds_of(server: RunningServer, login: Login) -> ctds.Connection:
    # its default is 5 s for a request
    return ctds.connect(
        server.host,
        port=server.port,
        user=login.user,
        password=login.password,
        autocommit=True,
        login_timeout=100,
        timeout=100,
    )


def pytds_of(server: RunningServer, login: Login, **more: Any) -> pytds.Connection:
    return pytds.connect(
        server=server.host,
        port=server.port,
        user=login.user,
        password=login.password,
        **({"autocommit": True, "login_timeout": 100} | more),
    )
