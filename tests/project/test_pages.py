"""The commands of README and the first pages and guides of docs/, run as they are written there.

A server has the tables of the pages; names of hosts, paths and `DIR` stand for its own. ELSEWHERE lists the
rest, with the reason; each of its entries must be needed.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import psycopg
import pytest
from psycopg import sql

from ringlog.server.embedded.programs import packaged_programs
from ringlog.server.logins import Right, add_login
from servers import RunningServer, free_port, ringlog, serving
from waiting import wait_until, wait_until_reachable

ROOT = Path(__file__).parents[2]
_GUIDES = (page for kind in ("start", "how-to") for page in (ROOT / "docs" / kind).glob("*.md"))
PAGES = ["README.md", *sorted(str(page.relative_to(ROOT)) for page in _GUIDES)]
PASSWORD = "a-password"
UNTIL_STOPPED = "runs until it is stopped: the fixture and tests/demo, tests/loader, tests/retrieval start it"
OLD_SERVER = "needs a server of Sybase or Microsoft: tests/adoption, tests/optional"
SECOND = "needs a second machine: tests/machines, tests/long/machines"
SPARK = "needs Spark: tests/clients/spark"
SHORTENED = "the page leaves out the options of the own site (…)"

ELSEWHERE = {
    "README.md": [
        (r"make (demo|test)\b", "the build: tests/demo/test_demo.py, CI"),
        (r"ringlog (serve|load) ", UNTIL_STOPPED),
    ],
    "docs/start/first-plot.md": [(r"ringlog serve ", UNTIL_STOPPED), (r"pip install ", "the network")],
    "docs/start/first-table.md": [
        (r"ringlog (serve|load) ", UNTIL_STOPPED),
        (r"\$ tsql ", "the statements are those of README.md: tests/demo/test_readme.py compares them"),
    ],
    "docs/start/install.md": [
        (r"make demo|/opt/ringlog/bin/pip", "the build and the network: tests/demo, test_packaging.py"),
        (r"python3 -m venv", "writes to /opt"),
    ],
    "docs/how-to/archive.md": [
        (
            r"polars|duckdb|from pyiceberg|create secret|signing = ",
            "needs archived weeks: tests/history/rounds, test_iceberg.py",
        ),
        (r"setfacl|.*ringlog\.conf|from pyspark", SPARK),
    ],
    "docs/how-to/backup.md": [
        (r"ringlog restore |ringlog backup /mnt/backup --keep 4$", "test_backup.py"),
        (r"psql …|ringlog backup .* …", SECOND),
    ],
    "docs/how-to/captures.md": [
        (r"ringlog capture |exec capture_event", "needs a capture of this moment: test_captures.py")
    ],
    "docs/how-to/marks.md": [(r"ringlog mark |exec add_mark", "needs a login of its own: test_marks.py")],
    "docs/how-to/epics.md": [(r"ringlog load ", UNTIL_STOPPED), (r"pip install ", "the network")],
    "docs/how-to/import.md": [
        (r"ringlog load --backfill", "needs old files: tests/loader/test_backfill.py"),
        (
            r"ringlog migrate history .*(csv|postgresql):",
            "needs old rows: tests/history/sources/test_migration.py",
        ),
        (r"ringlog migrate history .*tds:", OLD_SERVER),
    ],
    "docs/how-to/load.md": [(r"# daq\.py", "reads a device: tests/loader/test_python_source.py")],
    "docs/how-to/migrate.md": [
        (r"ringlog (adopt|mirror)", OLD_SERVER),
        (r".*\badopted\b", OLD_SERVER),
        (r'psql "\$\(ringlog dsn.* -c "grant site', OLD_SERVER),
    ],
    "docs/how-to/monitor.md": [(r".*…", SHORTENED)],
    "docs/how-to/nodes.md": [(r".*…|cat >> ~/\.pgpass", SECOND)],
    "docs/how-to/own-postgresql.md": [
        (r"create role|export RINGLOG_DSN|ringlog ", "an own PostgreSQL: test_external.py")
    ],
    "docs/how-to/query.md": [(r"(TDSVER=5\.0 )?tsql |psql ", "interactive: tests/clients/compat")],
    "docs/how-to/read.md": [
        (r"ringlog (serve|web) ", UNTIL_STOPPED),
        (r"select cast\(time", "Grafana's variables: tests/clients/monitoring/test_grafana.py"),
    ],
    "docs/how-to/run.md": [
        (r"ringlog service install", "needs systemd: test_service.py"),
        (r"ringlog reload", "needs running writers: tests/loader/test_reload.py"),
    ],
    "docs/how-to/secure.md": [(r"ringlog serve …", SHORTENED)],
    "docs/how-to/two-machines.md": [(r".*", SECOND)],
    "docs/how-to/upgrade.md": [(r"ringlog upgrade|ringlog serve …|ringlog backup", "test_upgrade.py")],
    "docs/how-to/write-c.md": [(r"make -C|clients/ctlib", "tests/ctlib")],
    "docs/how-to/write-java-odbc.md": [(r"connection = pyodbc", "tests/clients/compat/test_odbc_driver.py")],
}
"""By page: a pattern for the begin of a command, or of a block of another language, and why it does not run
here."""


def fragments(page: str) -> Iterator[tuple[str, str]]:
    """Language and text of each command of a shell, and of each block of another language that can run."""
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```$", (ROOT / page).read_text(), re.M | re.S):
        if language == "sh":
            text = block.replace("\\\n", " ")
            # a quoted text may continue in the next line
            text = re.sub(r"'[^']*'", lambda quoted: quoted[0].replace("\n", " "), text)
            for line in text.splitlines():
                if command := re.sub(r"(^|\s{2,})#.*", "", line).strip():
                    yield "sh", command
        elif language in ("sql", "tsql", "python") or block.startswith("$ "):
            yield language or "sh", block


def elsewhere(page: str, text: str) -> str | None:
    """The pattern of ELSEWHERE that a fragment fits."""
    return next((pattern for pattern, _ in ELSEWHERE.get(page, ()) if re.match(pattern, text)), None)


@pytest.mark.parametrize("page", ELSEWHERE)
def test_what_does_not_run_here_is_on_its_page(page: str) -> None:
    used = {elsewhere(page, text) for _, text in fragments(page)}
    assert {pattern for pattern, _ in ELSEWHERE[page]} - used == set()


FACILITY = """
timezone = "UTC"

[history]
online = "8 weeks"
archive = "{archive}"

[[table]]
name = "sr_rf"
rows = 10
cycle = 1.0
column = [{{ name = "power", type = "real", unit = "kW" }}, {{ name = "arcs", type = "int" }}]

[[table]]
name = "bo_vac"
rows = 10
cycle = 1.0
column = [{{ name = "pressure", type = "real" }}]

[[table]]
name = "sr_mag_ps"
rows = 10
cycle = 1.0

[[table.column]]
name = "current_{{n}}"
count = 2
signal = "sr_mag_ps_b_{{n}}/current_adc"
type = "real"
unit = "A"
"""


@dataclass(frozen=True)
class Site:
    """A server with the tables of the pages, and a folder for their files."""

    server: RunningServer
    folder: Path
    http: str
    """HOST:PORT"""

    def here(self, text: str) -> str:
        """A text of a page with this site's addresses and paths."""
        tds = f"{self.server.host}:{self.server.port}"
        for written, own in (
            (r"127\.0\.0\.1:5000|dbserver:5000|HOST:5000", tds),
            (r"archive:8080|127\.0\.0\.1:8080", self.http),
            (r"dbserver:5433", f"127.0.0.1:{self.server.postgres_port}"),
            (r"(?<=http://)(?!\w+@)(?=127)", "display@"),
            (r"/mnt/backup|/etc/ringlog|/var/spool/daq", rf"{self.folder}\g<0>"),
            (r"--data DIR", f"--data {self.server.data}"),
            (r'"dbserver", "vacuum_daq"', f'"{self.server.host}", "vacuum_daq"'),
            (r'port="5000"', f'port="{self.server.port}"'),
        ):
            text = re.sub(written, own, text)
        return text

    @property
    def environment(self) -> dict[str, str]:
        programs = f"{Path(sys.executable).parent}:{packaged_programs()}:{os.environ['PATH']}"
        return os.environ | {
            "PATH": programs,
            "HOME": str(self.folder),
            "RINGLOG_DATA": str(self.server.data),
            "RINGLOG_PASSWORD": PASSWORD,
            "RINGLOG_HTTP": f"http://display@{self.http}",
        }

    def run(self, language: str, text: str) -> None:
        """Runs a fragment. Raises, or fails the test, if it fails."""
        text = self.here(text)
        match language:
            case "sh":
                self._command(text)
            case "python":
                begin = f"import pymssql\nfrom datetime import UTC, datetime\npassword = {PASSWORD!r}\n"
                self._program(sys.executable, "-c", begin + text)
            case "sql" if re.match(r"(create|select \*|select count)", text):
                self.server.sql(text.encode())
            case "tsql" if "beam_loss" in text:
                self._console(text)
            case _:
                self._batches(text)

    def _batches(self, text: str) -> None:
        with self.server.connect("shift", PASSWORD, database="online") as session:
            # each line of a page's list of queries is a batch
            for batch in text.splitlines() if re.match(r"select top|declare @now", text) else [text]:
                with session.cursor() as cursor:
                    cursor.execute(re.sub(r"^go$", "", batch))
                    # an error may follow a result
                    while cursor.nextset():
                        pass

    def _console(self, text: str) -> None:
        """Types a block of a page at the console of a Sybase client."""
        where = ["-H", self.server.host, "-p", str(self.server.port), "-U", "developer", "-P", "choose one"]
        database = ["-D", "site"] if "use site" not in text else []
        ran = subprocess.run(
            ["tsql", *where, *database],
            env=self.environment | {"TDSVER": "5.0"},
            capture_output=True,
            text=True,
            input=text,
        )
        assert ran.returncode == 0, ran.stderr
        assert "Msg " not in ran.stderr + ran.stdout, ran.stderr + ran.stdout

    def _program(self, *command: str) -> None:
        ran = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            input=f"{PASSWORD}\n",
        )
        # status: 1 for a table without a writer
        codes = (0, 1) if command[-1] == "ringlog status" else (0,)
        assert ran.returncode in codes, f"{command[-1]}\n{ran.stdout}{ran.stderr}"

    def _command(self, command: str) -> None:
        if re.match(r"ringlog user (add|passwd) ", command) and "--password-stdin" not in command:
            # it asks at a terminal only
            command += " --password-stdin"
        self._program("bash", "-c", command)


@pytest.fixture(scope="module")
def site(temporary_directory: Path) -> Iterator[Site]:
    folder = temporary_directory / "pages"
    folder.mkdir()
    tables = [
        re.findall(r"^```toml\n(.*?)^```$", (ROOT / page).read_text(), re.M | re.S)[0]
        for page in ("README.md", "docs/how-to/write.md", "docs/how-to/parameters.md")
    ]
    facility = folder / "plant.toml"
    facility.write_text("\n".join((FACILITY.format(archive=folder / "archive"), *tables)))
    checked = ringlog("facility", "check", facility)
    assert checked.returncode == 0, checked.stderr
    (folder / "facility.toml").write_text(facility.read_text())
    (folder / "password").write_text(f"{PASSWORD}\n")
    http = f"127.0.0.1:{free_port()}"
    with serving(folder / "data", "--http", http, facility=facility) as server:
        now = datetime.now(UTC)
        with psycopg.connect(server.dsn) as admin:
            for number in range(20):
                time = now - timedelta(seconds=number)
                admin.execute(
                    "insert into log.sr_rf (seq_no, time, power, arcs) values (1, %s, 500, 0)", [time]
                )
                admin.execute("insert into log.vacuum (seq_no, time, pressure) values (1, %s, 1e-7)", [time])
        with psycopg.connect(server.dsn, autocommit=True) as admin:
            # the archive server starts beside the others
            wait_until_reachable(lambda: admin.execute("select count(*) from archive.sr_mag_ps").fetchone())
        yield Site(server, folder, http)


LOGINS = ("daq", "display", "shift", "vacuum_daq")


@pytest.mark.parametrize("page", [page for page in PAGES if [*fragments(page)]])
def test_the_commands_of_a_page(page: str, site: Site) -> None:
    runs = [(language, text) for language, text in fragments(page) if elsewhere(page, text) is None]
    made = {
        login for _, text in runs for login in re.findall(r"(?:ringlog user add|create role) (\w+)", text)
    }
    for login in {*LOGINS} - made:
        add_login(site.server.dsn, login, [Right.WRITER, Right.READER, Right.PARAMETER_WRITER], PASSWORD)
    # HTTP refuses a login that was made again for up to two seconds
    if "display" not in made:
        auth = ("display", PASSWORD)
        wait_until(lambda: httpx.get(f"http://{site.http}/api/v1/tables", auth=auth).is_success)
    try:
        for language, text in runs:
            site.run(language, text)
    finally:
        with psycopg.connect(site.server.dsn, autocommit=True) as admin:
            # a writer that ended a minute ago is a loss in the report of another page
            admin.execute("truncate ringlog.writer, ringlog.ledger, ringlog.event")
            for login in {*LOGINS, *made}:
                if admin.execute("select from pg_roles where rolname = %s", [login]).fetchone() is not None:
                    role = sql.Identifier(login)
                    admin.execute(sql.SQL("drop owned by {0} cascade; drop role {0}").format(role))
