"""`ringlog adopt`: a site with tables and T-SQL of its own, on ringlog itself as the old server, moves in."""

import json
import socket
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import psycopg
import pymssql
import pytest

from ringlog.adoption.assessment import assess
from ringlog.adoption.conversion.rights import rights
from ringlog.adoption.conversion.scripts import Database, write
from ringlog.adoption.conversion.writers import decisions, replaced
from ringlog.adoption.errors import AdoptionError
from ringlog.adoption.rings import Rules, read_rules, sort
from ringlog.adoption.server.objects import Grant, Module, Old, OldColumn, OldTable
from ringlog.gateway import translate
from ringlog.schema.facility_files.facility_file import load_facility
from servers import RunningServer, ringlog, serving

SITE = """
create role site nologin;
create schema site authorization site;
grant usage on schema site to daq_writer, daq_reader;
grant daq_reader, daq_writer to site;
create role developer login password 'develop-1' in role site;
grant developer to ringlog_gateway with inherit false, set true;
alter role developer set role = site;
"""
BEGIN = datetime(2026, 3, 2, 1, 2, 3)
ROWS = 120


@pytest.fixture(scope="module")
def old(temporary_directory: Path) -> Iterator[RunningServer]:
    """A server with a site's ring, its log, other tables and procedures."""
    with serving(temporary_directory / "adopted") as running:
        running.sql(SITE)
        with session(running) as client, client.cursor() as cursor:
            for batch in (Path(__file__).with_name("site.sql")).read_text().split("\ngo\n"):
                if batch.strip():
                    cursor.execute(batch)
            for number in range(ROWS):
                moment = BEGIN + timedelta(hours=3 * number)
                cursor.execute(f"exec put_beam_loss '{moment}', {number / 8}, {number}")
            cursor.execute("insert authors values ('172-32-1176', 'White', 1)")
        yield running


def session(server: RunningServer, database: str = "site") -> pymssql.Connection:
    return server.connect("developer", "develop-1", database=database, timeout=60)


@pytest.fixture(scope="module")
def new(temporary_directory: Path) -> Path:
    return temporary_directory / "moved_in"


def is_assessed(output: Path) -> None:
    """The folder of a site that was read."""
    facility = load_facility(output / "facility.toml")
    (table,) = facility.tables
    assert (table.name, table.rows) == ("beam_loss", 50)
    assert [(column.name, str(column.type)) for column in table.columns] == [
        ("loss", "real"),
        ("gate", "int"),
    ]
    # three hours between rows
    assert table.cycle == pytest.approx(10_800, rel=0.01)
    written = json.loads((output / "assessment.json").read_text())
    assert {(each["kind"], each["name"]): each["compiled"] for each in written["modules"]} == {
        ("procedure", "byroyalty"): True,
        ("procedure", "raise_price"): True,
        ("view", "titleview"): True,
    }
    assert {each["name"]: each["rows"] for each in written["site_tables"]} == {
        "authors": 1,
        "ring_position": 1,
        "titleauthor": 0,
        "titles": 0,
    }
    assert [(ring["log"], ring["log_rows"]) for ring in written["rings"]] == [("beam_loss_log", ROWS)]
    assert "raise_price" in (output / "assessment.html").read_text()
    own = (
        "procedure put_beam_loss is not migrated: ringlog's own writes the ring beam_loss, with "
        "@seq_no, @time, @loss, @gate by name or in this order (without @seq_no: the next row)"
    )
    assert own in written["decisions"]
    assert "put_beam_loss" not in (output / "3_procedures.sql").read_text()
    assert "create table titleauthor" in (output / "1_tables.sql").read_text()
    assert "print 'no such title'" in (output / "3_procedures.sql").read_text()


def clients_find_their_objects(here: RunningServer) -> None:
    with session(here) as client, client.cursor() as cursor:
        # a writer of the old server, which names its parameters
        cursor.execute(f"exec put_beam_loss @time = '{BEGIN - timedelta(days=1)}', @loss = -1, @gate = 7")
        cursor.execute("select loss, gate from log..beam_loss where loss < 0")
        assert cursor.fetchall() == [(-1.0, 7)]
        # a migrated view
        cursor.execute("exec sp_helptext titleview")
        view = "\n".join(line for (line,) in cursor.fetchall())
        assert view.startswith("create view titleview as\nselect title, au_lname, price, share = royalty --")
        assert view + "\ngo\n" in (Path(__file__).with_name("site.sql")).read_text()
        # and a reader, who uses the log's name on the old server
        cursor.execute("select seq_no, time, loss, gate from beam_loss_log where gate = 7 and loss > 0")
        assert cursor.fetchall() == [(8, BEGIN + timedelta(hours=21), 0.875, 7)]


@pytest.mark.parametrize("version", ["7.4", pytest.param("5.0", marks=pytest.mark.long)])
def test_a_site_is_read_and_moves_in(
    old: RunningServer, temporary_directory: Path, tmp_path: Path, version: str
) -> None:
    output = tmp_path / "adopted"
    url = f"tds://developer:develop-1@{old.host}:{old.port}/site"
    words = ("adopt", url, "--output", output, "--tds-version", version)
    done = ringlog(*words)
    assert done.returncode == 0, done.stderr
    is_assessed(output)
    data = temporary_directory / f"moved_in_{version}"
    with (
        serving(data, facility=output / "facility.toml") as here,
        psycopg.connect(here.dsn, autocommit=True) as connection,
    ):
        copied = ringlog(*words, "--copy", "--connections", "2", "--data", data, timeout=300)
        assert copied.returncode == 1, copied.stderr
        assert f"copied {ROWS + 50} rows, {ROWS + 50} of them new; 4 parts differ" in copied.stdout
        assert "authors: not copied: site.authors is not there: run 1_tables.sql" in copied.stdout
        connection.execute(SITE)
        plan = ("migrate", "plan", "--adopted", output, "--data", data)
        nowhere = tmp_path / "nowhere"
        assert ringlog("migrate", "plan", "--adopted", nowhere, "--data", data).stdout.splitlines() == [
            f"open  assess      there is no {nowhere}/assessment.json",
            f"next: ringlog adopt tds://USER@HOST/DATABASE --output {nowhere}",
        ]
        assert ringlog(*plan).stdout.splitlines()[:4] == [
            "done  assess      3 of 3 objects compile",
            "open  schema      1 of 5 are there, not site.authors, site.ring_position, site.titleauthor,"
            " site.titles",
            "open  procedures  0 of 3 are there, not site.byroyalty, site.raise_price, site.titleview",
            "done  history     the facility has no archive: copy takes all rows",
        ]
        with session(here) as client, client.cursor() as cursor:
            for file in ("1_tables.sql", "2_functions_and_views.sql"):
                for batch in (output / file).read_text().split("\ngo\n"):
                    if batch.strip():
                        cursor.execute(batch)
        again = ringlog(*words, "--copy", "--data", data, timeout=300)
        assert again.returncode == 0, again.stdout + again.stderr
        assert "copied 52 rows, 2 of them new; 0 parts differ" in again.stdout
        *states, following = ringlog(*plan).stdout.splitlines()
        assert [line.split(maxsplit=2)[:2] for line in states] == [
            ["done", "assess"],
            ["done", "schema"],
            ["open", "procedures"],
            ["done", "history"],
            ["done", "copy"],
            ["?", "mirror"],
            ["?", "cut-over"],
        ]
        assert following == f"next: {output}/2_functions_and_views.sql to 4_triggers.sql"
        authors = connection.execute("select au_id, au_lname, contract from site.authors").fetchall()
        assert authors == [("172-32-1176", "White", True)]
        clients_find_their_objects(here)
        connection.execute("delete from log.beam_loss where loss < 0")
        rows = connection.execute(
            'select seq_no, "time", loss, gate from log.beam_loss order by "time"'
        ).fetchall()
        ring = connection.execute("select count(*), max(gate) from online.beam_loss").fetchone()
    assert [(loss, gate) for _, _, loss, gate in rows] == [(number / 8, number) for number in range(ROWS)]
    assert [time.replace(tzinfo=None) for _, time, _, _ in rows] == [
        BEGIN + timedelta(hours=3 * number) for number in range(ROWS)
    ]
    assert ring == (50, ROWS - 1)


def test_a_later_run_has_the_options_of_the_first(
    old: RunningServer, temporary_directory: Path, tmp_path: Path
) -> None:
    """The last command of docs/how-to/migrate.md has none of the first one's options."""
    output = tmp_path / "adopted"
    url = f"tds://developer:develop-1@{old.host}:{old.port}/site"
    rules = tmp_path / "decided.toml"
    rules.write_text('site = ["titles"]\n')
    first = ("--timezone", "Asia/Tokyo", "--rules", rules, "--charset", "cp1252")
    assert ringlog("adopt", url, "--output", output, *first).returncode == 0
    refused = ringlog("adopt", url, "--output", output, "--timezone", "UTC")
    assert refused.returncode == 2
    assert "was made with --timezone 'Asia/Tokyo', not 'UTC'" in refused.stderr
    rules.write_text('site = ["beam_loss"]\n')
    data = temporary_directory / "in_tokyo"
    with (
        serving(data, facility=output / "facility.toml") as here,
        psycopg.connect(here.dsn, autocommit=True) as connection,
    ):
        plan = ("migrate", "plan", "--adopted", output, "--data", data)
        copied = ringlog("adopt", url, "--output", output, "--copy", "--data", data)
        assert "beam_loss, ring: 50 rows, 50 new, the same on both sides" in copied.stdout, copied.stderr
        assert 'timezone = "Asia/Tokyo"' in (output / "facility.toml").read_text()
        (newest,) = connection.execute("select max(time) from log.beam_loss").fetchone() or ()
        last = BEGIN + timedelta(hours=3 * (ROWS - 1))
        assert newest == last.replace(tzinfo=ZoneInfo("Asia/Tokyo"))
        # the other tables were not made
        (line,) = (line for line in ringlog(*plan).stdout.splitlines() if line[6:10] == "copy")
        assert line.startswith("open")
        assert "NOT THE SAME: authors; ring_position; titleauthor; titles" in line
        other = ringlog("adopt", url, "--output", output, "--copy", "--rules", rules, "--data", data)
        assert other.returncode == 2
        assert "differs from the rules by which rows were copied already" in other.stderr
        # a folder in another zone than the facility's
        elsewhere = tmp_path / "elsewhere"
        shifted = ringlog("adopt", url, "--output", elsewhere, "--copy", "--data", data)
        assert shifted.returncode == 2
        assert "are of UTC (--timezone), and those of the facility of Asia/Tokyo" in shifted.stderr
        history = ("migrate", "history", "beam_loss", "--from", url, "--timezone", "UTC", "--data", data)
        assert "those of the facility of Asia/Tokyo" in ringlog(*history).stderr


@pytest.mark.long
def test_old_rows_go_into_the_archive_and_new_ones_into_the_log(
    old: RunningServer, temporary_directory: Path, tmp_path: Path
) -> None:
    output = tmp_path / "adopted"
    url = f"tds://developer:develop-1@{old.host}:{old.port}/site"
    assert ringlog("adopt", url, "--output", output).returncode == 0
    facility = output / "facility.toml"
    archive = temporary_directory / "moved_archive"
    facility.write_text(facility.read_text() + f'\n[history]\nonline = "8 weeks"\narchive = "{archive}"\n')
    data = temporary_directory / "moved_history"
    with (
        newer_row(old),
        serving(data, facility=facility) as here,
        psycopg.connect(here.dsn, autocommit=True) as connection,
    ):
        words = ("migrate", "history", "beam_loss", "--from", url, "--connections", "2", "--data", data)
        moved = ringlog(*words)
        assert moved.returncode == 0, moved.stderr
        weeks = [line.split(",")[0] for line in moved.stdout.splitlines()]
        assert weeks == [
            "beam_loss 2026w10: 56 rows",
            "beam_loss 2026w11: 56 rows",
            "beam_loss 2026w12: 8 rows",
        ]
        assert ringlog(*words).stdout.startswith("no week of beam_loss is left to migrate")
        assert connection.execute("select count(*) from weeks.beam_loss").fetchone() == (0,)
        plan = ringlog("migrate", "plan", "--adopted", output, "--data", data).stdout
        assert "done  history     beam_loss done to " in plan
        status = ringlog("migrate", "status", "--data", data)
        assert f": {ROWS} rows, {2 * ROWS} values; done to " in status.stdout
        assert "develop-1" not in status.stdout
        copied = ringlog("adopt", url, "--output", output, "--copy", "--data", data)
        assert "log of beam_loss: rows before " in copied.stdout
        assert ": 1 rows, 1 new, the same on both sides" in copied.stdout
        assert connection.execute("select count(*) from weeks.beam_loss").fetchone() == (1,)
        connection.execute(SITE)
        with session(here, "log") as client, client.cursor() as cursor:
            cursor.execute("select time, loss, gate from beam_loss order by time")
            rows = cursor.fetchall()
        with session(old) as client, client.cursor() as cursor:
            cursor.execute("select time, loss, gate from beam_loss_log order by time")
            assert rows == cursor.fetchall()
    assert len(rows) == ROWS + 1


@contextmanager
def newer_row(old: RunningServer) -> Iterator[None]:
    """A row of the log that is newer than the weeks to archive."""
    moment = datetime.now(UTC).replace(tzinfo=None, microsecond=0) - timedelta(days=9)
    with session(old) as client, client.cursor() as cursor:
        cursor.execute(f"insert beam_loss_log values (1, '{moment}', 0.1, 1000)")
    try:
        yield
    finally:
        with session(old) as client, client.cursor() as cursor:
            cursor.execute("delete beam_loss_log where gate = 1000")


def test_errors_of_the_request(old: RunningServer, tmp_path: Path) -> None:
    address = f"{old.host}:{old.port}"
    no_database = ringlog("adopt", f"tds://developer:develop-1@{address}", "--output", tmp_path / "a")
    assert (no_database.returncode, "names no database" in no_database.stderr) == (2, True)
    refused = ringlog("adopt", f"tds://developer:wrong@{address}/site", "--output", tmp_path / "a")
    assert refused.returncode == 1
    assert "wrong" not in refused.stderr
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    away = ringlog("adopt", f"tds://developer:develop-1@127.0.0.1:{port}/site", "--output", tmp_path / "a")
    assert away.returncode == 1
    assert "20009 Unable to connect" in away.stderr


def column(name: str, kind: str, length: int = 4) -> OldColumn:
    return OldColumn(name, kind, length, 0, 0, True)


RING = OldTable(
    "SR_VAC",
    (column("No", "int"), column("Stamp", "datetime", 8), column("P1", "float", 8)),
    (("No",),),
    2000,
)
HISTORY = OldTable("SR_VAC_HIST", RING.columns, (), 500_000)
ORDERS = OldTable(
    "orders", (column("id", "int"), column("at", "datetime", 8), column("n", "int")), (("id",),), 7
)


def bounds(table: OldTable, name: str) -> tuple[object, object]:
    if name == "No":
        return 1, 2000
    if name == "id":
        return 3, 99
    return datetime(2026, 1, 1), datetime(2026, 1, 1) + timedelta(seconds=10 * (table.rows - 1))


def of(*tables: OldTable, modules: tuple[Module, ...] = (), is_ase: bool = True) -> Old:
    return Old(
        "Adaptive Server Enterprise/15.7", is_ase, tables, modules, (Grant("x", "EXECUTE", "p"),), ("x",)
    )


def test_rings_and_logs_are_recognized_by_their_form() -> None:
    found = sort([of(RING, HISTORY, ORDERS)], Rules(), bounds)[0]
    (ring,) = found.rings
    assert (ring.seq_no, ring.time, ring.log, ring.cycle) == ("No", "Stamp", HISTORY, 10.0)
    assert found.site == (ORDERS,)
    assert "orders could be a ring, but its id goes from 3 to 99 and it has 7 rows" in found.decisions[-1]
    assert any("No and Stamp are seq_no and time here" in decision for decision in found.decisions)


def test_a_log_with_more_columns_than_its_ring_keeps_them(tmp_path: Path) -> None:
    """A log has its ring's columns: a table with others remains a table, unless the rules make it a log."""
    noted = OldTable("SR_VAC_HIST", (*RING.columns, column("Note", "varchar", 20)), (), 9)
    found = sort([of(RING, noted)], Rules(), bounds)[0]
    assert (found.rings[0].log, found.site) == (None, (noted,))
    assert found.decisions[0] == (
        "table SR_VAC_HIST could be the log of SR_VAC, but has column Note: it stays a site table "
        "(by --rules it is the log, without that)"
    )
    bare = OldTable("SR_VAC_HIST", RING.columns[1:], (), 9)
    found = sort([of(RING, bare)], Rules(), bounds)[0]
    assert (found.rings[0].log, found.site) == (None, (bare,))
    assert "has no No, the number of the ring's row: it stays a site table" in found.decisions[0]
    file = tmp_path / "rules.toml"
    file.write_text('[ring.SR_VAC]\nlog = "SR_VAC_HIST"\n')
    found = sort([of(RING, noted)], read_rules(file), bounds)[0]
    assert found.rings[0].log == noted
    assert found.decisions[0] == "log SR_VAC_HIST has column Note besides the ring's: not migrated"
    with pytest.raises(AdoptionError, match="which has no No"):
        sort([of(RING, bare)], read_rules(file), bounds)[0]


def test_rules_take_precedence(tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text('site = ["SR_VAC"]\n[ring.orders]\nseq_no = "id"\ntime = "at"\ncycle = 2\n')
    found = sort([of(RING, HISTORY, ORDERS)], read_rules(file), bounds)[0]
    assert [(ring.table.name, ring.cycle) for ring in found.rings] == [("orders", 2.0)]
    assert RING in found.site
    for text, words in (
        ("x = 1", "is neither ring nor site"),
        ("[ring.orders]\nfoo = 1", "and nothing else"),
        ('site = ["gone"]', "which the old database does not have"),
        ('[ring.orders]\nseq_no = "nr"\ntime = "at"', "names? column 'nr'"),
    ):
        file.write_text(text)
        with pytest.raises(AdoptionError, match=words):
            sort([of(RING, ORDERS)], read_rules(file), bounds)[0]


def test_every_object_is_compiled_or_refused_with_its_line() -> None:
    """The texts resemble those of SAP's and Microsoft's manuals; unsupported constructs are named."""
    modules = (
        Module("procedure", "good", "create procedure good @a int as\nselect @a + 1\nreturn 0"),
        Module("procedure", "bad", "create procedure bad as\nselect 1\nselect * from openquery(x, 'y')"),
        Module("view", "hidden", ""),
    )
    old, found = of(modules=modules), sort([of()], Rules(), bounds)[0]
    judged = assess(old, found, [], rights(old, found, "site"), "site")
    verdicts = {verdict.name: verdict for verdict in judged.modules}
    assert verdicts["good"].compiled
    assert (verdicts["bad"].compiled, verdicts["bad"].line) == (False, 3)
    assert verdicts["hidden"].why == "the old server does not return its text"
    assert any("objects are refused" in decision for decision in judged.decisions)
    assert any("login x needs a password" in decision for decision in judged.decisions)


def test_procedures_that_write_a_ring_are_reported() -> None:
    rings = sort([of(RING, HISTORY)], Rules(), bounds)[0].rings
    modules = (
        Module("procedure", "Put_SR_VAC", "create procedure Put_SR_VAC as update SR_VAC set P1 = 0"),
        Module("procedure", "trim", "create proc trim as DELETE FROM dbo.[SR_VAC_HIST] where No = 1"),
        Module("trigger", "mark", "create trigger mark on t for insert as update control..sr_vac set No = 1"),
        Module("procedure", "read", "create proc read as -- update SR_VAC\nupdate SR_VAC_2 set a = 1"),
        Module(
            "procedure", "show", "create proc show as select * from SR_VAC update t set a = 1 from SR_VAC"
        ),
    )
    assert list(replaced(modules, rings)) == ["Put_SR_VAC"]
    own, trims, marks = decisions(modules, rings)
    assert own.endswith("with @seq_no, @time, @p1 by name or in this order (without @seq_no: the next row)")
    assert trims.startswith("procedure trim changes SR_VAC_HIST, which only put_sr_vac does here")
    assert marks.startswith("trigger mark changes SR_VAC, which only put_sr_vac does here")


def test_views_have_the_old_names_of_logs_and_columns(tmp_path: Path) -> None:
    old = of(RING, HISTORY)
    found = sort([old], Rules(), bounds)[0]
    write(tmp_path, [Database("site", old, found, [], rights(old, found, "site"))], "UTC")
    assert (tmp_path / "2_functions_and_views.sql").read_text() == (
        "create view SR_VAC_HIST as select No = seq_no, Stamp = time, P1 from log..sr_vac\ngo\n"
        "grant select on SR_VAC_HIST to daq_reader\ngo\n"
        "create view SR_VAC as select No = seq_no, Stamp = time, P1 from online..sr_vac\ngo\n"
        "grant select on SR_VAC to daq_reader\ngo\n"
    )
    for text in (tmp_path / "2_functions_and_views.sql").read_text().split("\ngo\n")[:-1]:
        assert translate(text, database="site")


def test_the_facility_file_is_toml(tmp_path: Path) -> None:
    from ringlog.adoption.conversion.scripts import facility

    text = "\n".join(facility(sort([of(RING, HISTORY)], Rules(), bounds)[0].rings, "Asia/Tokyo"))
    assert tomllib.loads(text)["table"][0]["name"] == "sr_vac"
