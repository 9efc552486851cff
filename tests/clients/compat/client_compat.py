"""The clients: the start of each, the form of its errors, and its missing features."""

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import Protocol

import mssql_python_odbc

from conversation import Answer, Session
from ct_conversation import CtSession
from servers import Login, RunningServer
from tds_clients import TDSODBC, Admin, CtClient, Param

PROGRAMS = Path(__file__).parent / "programs"
CT_CLIENT = Path(__file__).parents[2] / "gateway" / "programs" / "ct_client.c"
PREPARED = Path(__file__).parents[3] / "build" / "client_compat"
"""the files fetched by the Makefile: jars/, node/, go/"""
PYTHON = PROGRAMS / "python"


def tool(name: str) -> str:
    """Go or Node: the copy that the Makefile has installed next to Python, otherwise the machine's."""
    beside = Path(sys.executable).parent
    found = shutil.which(name, path=f"{beside}:{os.environ['PATH']}")
    assert found, f"{name} is missing: make test"
    return found


class Conversation(Protocol):
    """A session with a client of any kind."""

    login: Answer
    broken: bool
    """the program has ended"""

    def call(self, name: str, *params: Param) -> Answer: ...
    def execute(self, text: str, *params: Param) -> Answer: ...
    def query(self, text: str) -> Answer: ...
    def begin(self) -> Answer: ...
    def commit(self) -> Answer: ...
    def rollback(self) -> Answer: ...
    def again(self) -> Answer: ...
    def abandon(self, text: str) -> Answer: ...
    def cancel(self, text: str, after: float) -> Answer: ...
    def timeout(self, text: str, seconds: int) -> Answer: ...
    def close(self) -> None: ...


class Programs:
    """The clients that must be built, each at its first use."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir()

    @cached_property
    def ct_client(self) -> Path:
        return self._compiled(CT_CLIENT, "ct")

    @cached_property
    def db_client(self) -> Path:
        return self._compiled(PROGRAMS / "c/db_client.c", "sybdb")

    def _compiled(self, source: Path, library: str) -> Path:
        program = self._directory / source.stem
        command = ["cc", "-std=gnu11", "-O1", "-Wall", "-Werror", "-o", program, source, f"-l{library}"]
        subprocess.run(command, check=True)
        return program

    @cached_property
    def java(self) -> str:
        """The class path of JdbcClient, compiled."""
        path = f"{PREPARED / 'jars'}/*"
        command = ["javac", "-Xlint:all", "-Werror", "-d", self._directory, "-cp", path]
        subprocess.run([*command, PROGRAMS / "java/JdbcClient.java"], check=True)
        return f"{self._directory}:{path}"

    @cached_property
    def go(self) -> Path:
        """The program of programs/go, built."""
        program = self._directory / "go_client"
        caches = {"GOPATH": str(PREPARED / "go"), "GOCACHE": str(PREPARED / "go-build")}
        environment = os.environ | caches | {"GOFLAGS": "-modcacherw"}
        command = [tool("go"), "build", "-o", program, "."]
        subprocess.run(command, cwd=PROGRAMS / "go", env=environment, check=True)
        return program


class Clients:
    def __init__(
        self, server: RunningServer, programs: Programs, directory: Path, certificate: Path | None = None
    ) -> None:
        """`certificate` is the server's, for clients with encryption."""
        self.server = server
        self.programs = programs
        self.directory = directory
        self.certificate = certificate
        directory.mkdir()
        self.freetds_conf = directory / "freetds.conf"
        address = f"host = {server.host}\nport = {server.port}\n"
        text = "[global]\nclient charset = UTF-8\ntext size = 4000000\n"
        text += "encryption = require\n" if certificate else ""
        text += "".join(f"[{name}]\n{address}tds version = {name}\n" for name in ("5.0", "7.4"))
        self.freetds_conf.write_text(text)
        self._logs = count(1)

    def run(self, password: str, *command: str | Path, **environment: str) -> Session:
        log = self.directory / f"client-{next(self._logs)}.stderr"
        return Session(command, password, {"FREETDSCONF": str(self.freetds_conf)} | environment, log)

    @contextmanager
    def session(self, client: "Client", login: Login) -> Iterator[Conversation]:
        """A session, logged in or not according to `login`."""
        session = client.start(self, login)
        try:
            yield session
        finally:
            session.close()


@dataclass(frozen=True)
class Client:
    name: str
    protocol: str
    version: Callable[[], str]
    start: Callable[[Clients, Login], Conversation]
    refused: str
    """class of the exception, or its substitute, for a wrong password"""
    failed: str
    """the same for a procedure that violates a constraint"""
    missing: dict[str, str] = field(default_factory=dict)
    """features that the client does not have, by the names of tests, with the reason"""
    remarks: dict[str, str] = field(default_factory=dict)
    """remarks on supported features, by the names of tests"""
    not_yet: dict[str, str] = field(default_factory=dict)
    """features that fail today, by the names of tests, with the reason"""
    outputs_by_name: bool = False
    """it reports outputs only of parameters that it gives by name"""
    empty: str | None = ""
    """the received value of an empty text as a parameter"""
    empty_binary: str | None = ""
    """its form of an empty binary"""
    longest_text: int | None = None
    """the length at which it cuts a text parameter"""
    minutes: bool = False
    """it shows times to the minute"""

    @property
    def id(self) -> str:
        return f"{self.name} {self.protocol}"

    @property
    def login_number(self) -> int:
        """The error of a refused login: Sybase's or SQL Server's."""
        return 4002 if self.protocol == "5.0" else 18456


def stored(admin: Admin) -> list[tuple[object, ...]]:
    """The contents of the ring of every_type, times in the facility's zone."""
    return admin.execute(
        "select seq_no, time::timestamp, a_real, a_double, an_int, a_smallint, a_bigint, a_bit, a_varchar "
        "from online.every_type where time is not null order by seq_no"
    ).fetchall()


# --- versions ---


@cache
def freetds() -> str:
    printed = subprocess.run(["tsql", "-C"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"freetds v(\S+)", printed)
    assert found, printed
    return f"FreeTDS {found[1]}"


@dataclass(frozen=True)
class FreetdsProgram:
    """A program of FreeTDS; all accept section, user and password by the same options."""

    name: str
    protocol: str
    missing: dict[str, str] = field(default_factory=dict)
    remarks: dict[str, str] = field(default_factory=dict)
    not_yet: dict[str, str] = field(default_factory=dict)
    version: Callable[[], str] = freetds

    @property
    def id(self) -> str:
        return f"{self.name} {self.protocol}"

    def run_as(
        self, clients: Clients, login: Login, *words: str | Path, script: str = ""
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.name, *words, "-S", self.protocol, "-U", login.user, "-P", login.password],
            input=script,
            env={"FREETDSCONF": str(clients.freetds_conf), "LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"},
            capture_output=True,
            encoding="utf-8",
            timeout=60,
        )


def dbd_sybase() -> str:
    command = ["perl", "-MDBD::Sybase", "-e", "print $DBD::Sybase::VERSION"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def jar(artifact: str) -> str:
    pom = (PROGRAMS / "java/pom.xml").read_text()
    found = re.search(rf"<artifactId>{artifact}</artifactId>\s*<version>([^<]+)", pom)
    assert found
    return found[1]


def go_module(name: str) -> str:
    found = re.search(rf"{name} v(\S+)", (PROGRAMS / "go/go.mod").read_text())
    assert found
    return found[1]


def tedious() -> str:
    return str(json.loads((PROGRAMS / "node/package.json").read_text())["dependencies"]["tedious"])


# --- starts ---


def ct_library(section: str) -> Callable[[Clients, Login], Conversation]:
    def start(clients: Clients, login: Login) -> Conversation:
        return CtSession(CtClient(clients.programs.ct_client, clients.freetds_conf, section, login))

    return start


def db_library(section: str) -> Callable[[Clients, Login], Conversation]:
    def start(clients: Clients, login: Login) -> Conversation:
        return clients.run(login.password, clients.programs.db_client, section, login.user)

    return start


def dbi(clients: Clients, login: Login) -> Conversation:
    return clients.run(login.password, "perl", PROGRAMS / "perl/dbi_client.pl", "5.0", login.user)


def python(program: str, *more: str) -> Callable[[Clients, Login], Conversation]:
    def start(clients: Clients, login: Login) -> Conversation:
        host, port = clients.server.host, str(clients.server.port)
        options = (word.format(host=host, port=port, certificate=clients.certificate) for word in more)
        return clients.run(login.password, sys.executable, PYTHON / program, host, port, login.user, *options)

    return start


def tdsodbc(protocol: str, encryption: str) -> Callable[[Clients, Login], Conversation]:
    words = f"Driver={TDSODBC};Server={{host}};Port={{port}};TDS_Version={protocol};ClientCharset=UTF-8;"
    return python("pyodbc_client.py", f"{words}Encryption={encryption}")


def microsoft_driver() -> Path:
    """Microsoft's ODBC Driver 18, which PyPI has for mssql-python."""
    libraries = Path(mssql_python_odbc.get_libs_dir(), "linux", "debian_ubuntu", platform.machine(), "lib")
    (driver,) = libraries.glob("libmsodbcsql-*")
    return driver


def odbc_18(encryption: str) -> Callable[[Clients, Login], Conversation]:
    return python("pyodbc_client.py", f"Driver={microsoft_driver()};Server={{host}},{{port}};{encryption}")


def jdbc(url: str) -> Callable[[Clients, Login], Conversation]:
    def start(clients: Clients, login: Login) -> Conversation:
        words = ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        words += ["-cp", clients.programs.java, "JdbcClient"]
        location = url.format(
            host=clients.server.host, port=clients.server.port, certificate=clients.certificate
        )
        return clients.run(login.password, *words, location, login.user)

    return start


def go(options: str) -> Callable[[Clients, Login], Conversation]:
    def start(clients: Clients, login: Login) -> Conversation:
        address = (clients.server.host, str(clients.server.port), login.user)
        # the driver sends its times with their zone: the facility's
        words = options.format(certificate=clients.certificate)
        return clients.run(login.password, clients.programs.go, *address, words, TZ="Asia/Tokyo")

    return start


def node(clients: Clients, login: Login, *encryption: str) -> Conversation:
    # a certificate is looked up by the server's name
    address = (
        "localhost" if encryption else clients.server.host,
        str(clients.server.port),
        login.user,
        *encryption,
    )
    program = PROGRAMS / "node/tedious_client.js"
    return clients.run(
        login.password, tool("node"), program, *address, NODE_PATH=str(PREPARED / "node/node_modules")
    )


# --- the compatibility tests ---

NO_POOL = "it has no pool"
NO_STATUS = "it keeps the return status to itself"
NO_CANCEL = "it cannot cancel from another thread"

CLIENTS = (
    *(
        Client(
            "ct-library",
            protocol,
            freetds,
            ct_library(protocol),
            refused="server message",
            failed="server message",
            missing={"pool": NO_POOL, "timeout": "ct_client.c has none"} | missing,
            empty=" " if protocol == "5.0" else "",
        )
        for protocol, missing in (
            ("5.0", {}),
            ("7.4", {"unicode": "it sends CS_CHAR in the server's code page"}),
        )
    ),
    *(
        Client(
            "db-library",
            protocol,
            freetds,
            db_library(protocol),
            refused="message handler",
            failed="message handler",
            missing={"pool": NO_POOL, "parameters": "its text has no parameters"},
            empty=None,
        )
        for protocol in ("5.0", "7.4")
    ),
    Client(
        "DBD::Sybase",
        "5.0",
        dbd_sybase,
        dbi,
        refused="DBI::err",
        failed="DBI::err",
        minutes=True,
        empty=" ",
        longest_text=255,
        missing={
            "pool": NO_POOL,
            "cancel": NO_CANCEL,
            "timeout": "it reports that the time has run out, and waits on",
        },
        remarks={
            "long_text": "up to its LongReadLen, which it sends as SET TEXTSIZE; else up to 32,768 bytes"
        },
    ),
    Client(
        "pymssql",
        "7.4",
        lambda: version("pymssql"),
        python("pymssql_client.py", "7.4", "request"),
        refused="pymssql.exceptions.OperationalError",
        failed="pymssql.exceptions.DatabaseError",
        empty=None,
        missing={"pool": NO_POOL, "cancel": NO_CANCEL},
    ),
    Client(
        "ctds",
        "7.4",
        lambda: version("ctds"),
        python("ctds_client.py", "7.4"),
        refused="_tds.OperationalError",
        failed="_tds.IntegrityError",
        empty=None,
        empty_binary=None,
        missing={
            "status": NO_STATUS,
            "cancel": NO_CANCEL,
            "pool": "its pool hands connections on as they are",
        },
    ),
    Client(
        "python-tds",
        "7.4",
        lambda: version("python-tds"),
        python("pytds_client.py"),
        refused="pytds.tds_base.OperationalError",
        failed="pytds.tds_base.IntegrityError",
        missing={"cancel": NO_CANCEL},
    ),
    *(
        Client(
            "pyodbc + tdsodbc",
            protocol,
            lambda: f"{version('pyodbc')}, {freetds()}",
            tdsodbc(protocol, "off"),
            refused="pyodbc.ProgrammingError",
            failed="pyodbc.IntegrityError",
            missing={
                "status": "it has no output parameters",
                "output_parameters": "it has none",
                "pool": "unixODBC's pool is a matter of its configuration",
            },
            empty=" " if protocol == "5.0" else "",
            longest_text=255 if protocol == "5.0" else None,
        )
        for protocol in ("5.0", "7.4")
    ),
    Client(
        "pyodbc + ODBC Driver 18",
        "7.4",
        lambda: f"{version('pyodbc')}, {version('mssql-python-odbc')}",
        odbc_18("Encrypt=no"),
        refused="pyodbc.InterfaceError",
        failed="pyodbc.IntegrityError",
        missing={
            "status": "it has no output parameters",
            "output_parameters": "it has none",
            "pool": "unixODBC's pool is a matter of its configuration",
        },
    ),
    Client(
        "jTDS, sybase",
        "5.0",
        lambda: jar("jtds"),
        jdbc("jdbc:jtds:sybase://{host}:{port};charset=utf8"),
        refused="java.sql.SQLException",
        failed="java.sql.SQLException",
        missing={"pool": "its pooled connections are handed on as they are"},
        remarks={"nulls": "setNull(…, BIT) sends 0, as ASE has no NULL bits; setNull(…, INTEGER) sends NULL"},
        empty=" ",
        empty_binary=None,
    ),
    Client(
        "jTDS, sqlserver",
        "7.1",
        lambda: jar("jtds"),
        jdbc("jdbc:jtds:sqlserver://{host}:{port}"),
        refused="java.sql.SQLException",
        failed="java.sql.SQLException",
        missing={"pool": "its pooled connections are handed on as they are"},
    ),
    Client(
        "mssql-jdbc, encrypt=false",
        "7.4",
        lambda: jar("mssql-jdbc"),
        jdbc("jdbc:sqlserver://{host}:{port};encrypt=false"),
        refused="com.microsoft.sqlserver.jdbc.SQLServerException",
        failed="com.microsoft.sqlserver.jdbc.SQLServerException",
    ),
    Client(
        "go-mssqldb",
        "7.4",
        lambda: go_module("go-mssqldb"),
        go("encrypt=disable"),
        refused="mssql.Error",
        failed="mssql.Error",
        outputs_by_name=True,
    ),
    Client("tedious", "7.4", tedious, node, refused="ConnectionError ELOGIN", failed="RequestError EREQUEST"),
)
