"""A case for each cause that lasts until now, or that the mixes do not have."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pymssql
import pytest
from webs import Web

from servers import Login, free_port, ringlog, serving
from waiting import wait_until

from .asking import WAYS, Spans, by_command, by_http, by_postgres, by_tds

FACILITY = Path(__file__).with_name("why.toml")
T0 = datetime(2026, 3, 2, 12, tzinfo=UTC)
ALONE = Login("alone", "only-mag-Ω-1")


@pytest.fixture(scope="module")
def own(temporary_directory: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    port = free_port()
    facility = tmp_path_factory.mktemp("causes") / "why.toml"
    facility.parent.chmod(0o755)
    facility.write_text(FACILITY.read_text())
    with serving(temporary_directory / "causes", "--http", f"127.0.0.1:{port}", facility=facility) as running:
        words = (
            "user",
            "add",
            ALONE.user,
            "--reader",
            "--tables",
            "mag",
            "--password-stdin",
            "--data",
            running.data,
        )
        added = ringlog(*words, stdin=ALONE.password)
        assert added.returncode == 0, added.stderr
        running.sql("update ringlog.how_taken set valid_from = %s", [T0 - timedelta(days=1)])
        running.sql("update ringlog.signal set valid_from = %s", [T0 - timedelta(days=1)])
        yield Web(running, f"http://127.0.0.1:{port}", "")


def now(web: Web) -> datetime:
    ((moment,),) = web.server.sql("select clock_timestamp()")
    return moment


def put(web: Web, table: str, *moments: datetime, value: float | None = 1.0) -> None:
    for number, at in enumerate(moments):
        query = f"select ringlog.put_{table}(row(%s, %s, %s)::online.{table})"
        web.server.sql(query, [number % 100 + 1, at, value], login=web.server.writer)


def writes(web: Web, query: str, *values: object) -> None:
    web.server.sql(query, [*values], login=web.server.writer)


def backdate(web: Web, which: str) -> None:
    """These signals have been there for an hour more."""
    web.server.sql(f"update ringlog.signal set valid_from = valid_from - interval '1 h' where {which}")


def causes(found: Spans) -> list[str]:
    return [span[0] for span in found]


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


def test_a_log_policy_leaves_rows_out(own: Web) -> None:
    put(own, "thin", *(T0 + seconds(number) for number in range(40)))
    for ask in WAYS:
        (span,) = ask(own, "thin/current", T0, T0 + seconds(40))
        assert (span[0], span[3]) == ("log policy", None)
        # of the 40 rows the log has four
        assert "log = { nth = 10 } (4 spans, the longest 9.000 s)" in span[4]
    # long after the last row the policy leaves none out
    later = [T0 + seconds(100), T0 + seconds(160)]
    (span,) = by_postgres(own, "thin/current", *later)
    assert span[:3] == ("unknown", *later)


def test_rows_of_changes_only(own: Web) -> None:
    put(own, "quiet", T0, T0 + seconds(100))
    asked = ("quiet/current", T0, T0 + seconds(101))
    assert causes(by_postgres(own, *asked)) == ["unknown"], "no writer of ringlog has written it"
    writes(own, "select ringlog.claim_writer('quiet', 'spool', 'daq1')")
    own.server.sql("update ringlog.writer set since = %s where table_name = 'quiet'", [T0 - seconds(1)])
    writes(own, "select ringlog.report_writer('quiet', 'spool', 'writing')")
    for ask in WAYS:
        (span,) = ask(own, *asked)
        assert span[0] == "unchanged"
        assert 'sample = "monitor"' in span[4]


def test_a_stopped_and_a_silent_writer_and_its_spool(own: Web) -> None:
    begin = now(own) - seconds(300)
    put(own, "own", begin)
    query = "select ringlog.claim_writer('own', 'spool7', 'daq1 process 7')"
    writes(own, query)
    set_writer = "update ringlog.writer set {} where table_name = 'own'"
    own.server.sql(set_writer.format("since = %s, reported = %s"), [begin - seconds(9), begin + seconds(1)])
    asked = ("own/current", begin, begin + seconds(299))
    for ask in (by_postgres, by_tds, by_http):
        (span,) = ask(own, *asked)
        assert (span[0], span[2]) == ("writer silent", None)
        assert "daq1 process 7" in span[4]
    report = "select ringlog.report_writer('own', 'spool7', 'writing', waiting => 70, oldest => %s)"
    writes(own, report, begin + seconds(1))
    (span,) = by_postgres(own, *asked)
    assert (span[0], span[1], span[2], span[3]) == ("in a spool", begin + seconds(1), None, 70)
    assert "spool7" in span[4]
    writes(own, "select ringlog.report_writer('own', 'spool7', 'writing', waiting => 0)")
    writes(own, "select ringlog.release_claim('own', 'spool7', 1)")
    own.server.sql(set_writer.format("released = %s"), [begin + seconds(2)])
    # its own last call is no cause besides
    called = "insert into ringlog.last_call (procedure, host, program, login, called) select {}, %s"
    own.server.sql(called.format("'put_own', 'daq1', 'ringlog', 'writer'"), [begin + seconds(1)])
    (span,) = by_postgres(own, *asked)
    assert (span[0], span[1], span[2]) == ("writer stopped", begin + seconds(2), None)
    # the next writer's claim ends it
    writes(own, query)
    (span,) = by_postgres(own, *asked)
    assert (span[0], span[1]) == ("writer stopped", begin + seconds(2))
    assert span[2] is not None
    own.server.sql("delete from ringlog.writer where table_name = 'own'")
    own.server.sql("delete from ringlog.writer_run where table_name = 'own'")
    own.server.sql("delete from ringlog.last_call where procedure = 'put_own'")


def test_a_program_whose_calls_are_refused(own: Web) -> None:
    begin = now(own)
    put(own, "mine", begin)
    writer = own.server.writer
    with own.server.connect(writer.user, writer.password) as session, pytest.raises(pymssql.Error):
        session.cursor().execute(
            "exec put_mine @seq_no = 4711, @time = %s, @current = 1", (str(begin + seconds(1))[:19],)
        )

    def noted() -> bool:
        return bool(own.server.sql("select 1 from ringlog.event where spool = 'put_mine'"))

    wait_until(noted, lambda: "the refused call is no event")
    wait_until(lambda: now(own) > begin + seconds(25))
    found = by_postgres(own, "mine/current", begin, None)
    assert sorted(causes(found)) == ["no call", "refused"]
    (refused,) = (span for span in found if span[0] == "refused")
    assert "outside 1 to 100" in refused[4]
    assert "login writer" in refused[4]


def test_columns_and_signals_come_and_go(own: Web) -> None:
    facility = Path(own.server.process.args[own.server.process.args.index("--facility") + 1])  # type: ignore[union-attr]
    text = facility.read_text()
    put(own, "mag", *(T0 + seconds(10 * number) for number in range(6)))
    added = '[[table.column]]\nname = "voltage"\ntype = "double"\n'
    facility.write_text(text.replace('type = "double"\n', f'type = "double"\n\n{added}', 1))
    done = ringlog("init", "--facility", facility, "--data", own.server.data)
    assert done.returncode == 0, done.stderr
    (span,) = by_command(own, "mag/voltage", T0, T0 + seconds(60))
    ((moment,),) = own.server.sql("select valid_from from ringlog.signal where signal = 'mag/voltage'")
    assert span[:4] == ("column added later", None, moment, None)
    # another signal in the same column
    renamed = text.replace('type = "double"\n', f'type = "double"\n\n{added}signal = "mag/tension"\n', 1)
    facility.write_text(renamed)
    done = ringlog("init", "--facility", facility, "--data", own.server.data)
    assert done.returncode == 0, done.stderr
    ((moment,),) = own.server.sql("select valid_from from ringlog.signal where signal = 'mag/tension'")
    for name, other in (("mag/voltage", "mag/tension"), ("mag/tension", "mag/voltage")):
        found = [span for span in by_postgres(own, name, moment - seconds(1), None) if span[0] == "renamed"]
        assert len(found) == 1, found
        assert other in found[0][4]
        assert moment in found[0][1:3]


def test_signals_of_samples_come_and_go(own: Web) -> None:
    own.server.sql("select ringlog.add_signal('loose', 'door')")
    ((added,),) = own.server.sql("select valid_from from ringlog.signal where signal = 'door'")
    found = by_postgres(own, "door", added - seconds(60), added)
    assert [span[:3] for span in found] == [("not yet added", None, added)]
    own.server.sql("select ringlog.pause_signal('door')")
    own.server.sql("select ringlog.put_loose('door', now(), 1.0)", login=own.server.writer)
    earlier = "update ringlog.signal_change set time = time - interval '1 min' where signal = 'door'"
    own.server.sql(earlier)
    own.server.sql(
        "update ringlog.signal set valid_from = valid_from - interval '2 min' where signal = 'door'"
    )
    (*_, paused) = by_http(own, "door", added - seconds(70), now(own))
    assert (paused[0], paused[2], paused[3]) == ("paused", None, 1)
    own.server.sql("select ringlog.rename_signal('door', 'gate')")
    for name in ("door", "gate"):
        (*_, paused) = by_postgres(own, name, added - seconds(70), None)
        assert paused[0] == "paused"
    own.server.sql("select ringlog.retire_signal('gate')")
    assert "retired" in causes(by_postgres(own, "gate", added - seconds(70), now(own) + seconds(3)))


def test_samples_ahead_of_the_clock_are_counted_by_signal(own: Web) -> None:
    own.server.sql("select ringlog.add_signal('loose', 'early')")
    own.server.sql("select ringlog.add_signal('loose', 'punctual')")
    own.server.sql(
        "update ringlog.signal set valid_from = valid_from - interval '1 h' where table_name = 'loose'"
    )
    for _ in range(3):
        query = "select ringlog.put_loose('early', now() + interval '9 hours', 1.0)"
        own.server.sql(query, login=own.server.writer)
    begin = now(own) - seconds(600)
    clock = [span for span in by_postgres(own, "early", begin, None) if span[0] == "clock"]
    # an hour may have begun between them
    assert sum(span[3] for span in clock) == 3
    assert causes(by_postgres(own, "punctual", begin, None)) == ["unknown"]


def test_null_with_its_severity(own: Web) -> None:
    own.server.sql("select ringlog.add_signal('loose', 'udf')")
    own.server.sql("update ringlog.signal set valid_from = %s where signal = 'udf'", [T0])
    for after, value, severity, status in ((0, 1.0, 0, 0), (1, None, 3, 17), (2, 2.0, 0, 0)):
        own.server.sql(
            "select ringlog.put_loose('udf', %s, %s, %s::smallint, %s::smallint)",
            [T0 + seconds(after), value, severity, status],
            login=own.server.writer,
        )
    (span,) = by_postgres(own, "udf", T0, T0 + seconds(3))
    assert span[:4] == ("null", T0 + seconds(1), T0 + seconds(2), 1)
    assert "severity 3 (INVALID) and status 17 (UDF)" in span[4]


def test_weeks_that_retention_has_removed(own: Web) -> None:
    monday = datetime(2019, 3, 4, tzinfo=UTC)
    week = timedelta(weeks=1)
    own.server.sql("insert into ringlog.dropped values ('own', %s)", [monday + 2 * week])
    own.server.sql(
        "insert into ringlog.set_aside values ('own_2019w11', 'own', %s, %s, now())",
        [monday + week, monday + 2 * week],
    )
    found = by_postgres(own, "own/current", monday, monday + 3 * week)
    assert [span[:3] for span in found] == [
        ("not yet added", None, found[0][2]),
        ("past retention", None, monday + week),
        ("set aside", monday + week, monday + 2 * week),
    ]
    assert "ringlog weeks restore own" in found[2][4]
    own.server.sql("delete from ringlog.dropped")
    own.server.sql("delete from ringlog.set_aside")


def test_an_archive_that_cannot_be_read(own: Web) -> None:
    monday = datetime(2019, 3, 4, tzinfo=UTC)
    own.server.sql(
        "insert into ringlog.cold_week (table_name, begins, ends, file, rows, bytes, sha256)"
        " values ('own', %s, %s, 'own/own_2019w10.parquet', 7, 7, '')",
        [monday, monday + timedelta(weeks=1)],
    )
    try:
        (span,) = by_tds(own, "own/current", monday, monday + seconds(60))
        assert span[0] == "archive unreadable"
        assert "own_2019w10.parquet" in span[4]
    finally:
        own.server.sql("delete from ringlog.cold_week")


def test_late_rows_wait_for_the_next_round(own: Web) -> None:
    marks = [T0 + seconds(1), T0 + seconds(7)]
    # the round of housekeeping removes marks: both in one transaction
    with psycopg.connect(own.server.dsn) as connection:
        connection.execute("insert into ringlog.summary_mark values ('mag', %s), ('mag', %s)", marks)
        query = "select cause, since, until, rows from ringlog.why_missing('mag/current', %s, %s)"
        found = connection.execute(query, [T0, T0 + seconds(50)]).fetchall()
        connection.rollback()
    assert [span for span in found if span[0] == "late"] == [("late", *marks, 2)]


def test_who_may_not_read_a_signal_learns_nothing_else(own: Web) -> None:
    query = "select * from ringlog.why_missing(%s, %s)"
    own.server.sql("select ringlog.add_signal('loose', 'secret')")
    ((cause, since, until, rows, evidence),) = own.server.sql(query, ["secret", T0], login=ALONE)
    assert (cause, since, until, rows) == ("no right", None, None, None)
    assert evidence == "login alone may not read signal secret"
    with own.client(ALONE) as client:
        (answer,) = client.get("/api/v1/why", params={"signal": "secret"}).json()
        assert answer["cause"] == "no right"
        assert client.get("/api/v1/why", params={"signal": "mag/current"}).status_code == 200
    assert "no right" not in causes(own.server.sql(query, ["mag/current", T0], login=ALONE))
    with own.server.connect(ALONE.user, ALONE.password) as session:
        cursor = session.cursor()
        cursor.execute("exec why_missing @signal = 'secret'")
        assert [row[0] for row in cursor] == ["no right"]


def test_an_unknown_signal_and_wrong_times_are_refused(own: Web) -> None:
    with own.client(own.server.reader) as client:
        assert client.get("/api/v1/why", params={"signal": "nothing"}).status_code == 404
        assert client.get("/api/v1/why").status_code == 400
    query = "select * from ringlog.why_missing(%s, %s, %s)"
    for values in (["mag/current", T0, T0 - seconds(1)], ["mag/current", "-infinity", None]):
        with pytest.raises(psycopg.errors.InvalidParameterValue):
            own.server.sql(query, values, login=own.server.reader)
    done = ringlog("why", "nothing", "--data", own.server.data)
    assert (done.returncode, "there is no signal 'nothing'" in done.stderr) == (2, True)
