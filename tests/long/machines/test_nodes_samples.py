"""Tables of samples on several servers: written, read, and their signals added and changed from the first."""

import io
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

import httpx
import psycopg
import pyarrow as pa
import pymssql
import pytest
from stops import Stop, broken_off

from ringlog.clients import Address
from ringlog.clients.sample_writer import SampleWriter
from ringlog.clients.samples import Samples
from ringlog.schema.facility_files.facility_file import load_facility
from servers import free_port, ringlog, serving_external
from sites import NOON, WHERE, Site, client, install
from waiting import PATIENCE, wait_until

pytestmark = pytest.mark.timeout(900)

GAUGES = """
[[table]]
name = "gauges"
kind = "samples"
type = "double"
ring = 20
{node}
[[table.signal]]
name = "gauge:{{n}}"
count = 3
unit = "mbar"
"""
SPAN = {"from": NOON.isoformat(), "to": (NOON + timedelta(days=1)).isoformat()}


def with_gauges(site: Site, node: str | None) -> None:
    site.write_facility(WHERE)
    text = GAUGES.format(node=f'node = "{node}"' if node else "")
    site.facility.write_text(site.facility.read_text() + text)


def done(site: Site, *words: object) -> str:
    ran = ringlog(*words, RINGLOG_DSN=site.dsn)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@contextmanager
def served(site: Site) -> Iterator[tuple[tuple[str, int], httpx.Client]]:
    """`ringlog serve --http`: the gateway's address, and the reader's client."""
    port = free_port()
    web = httpx.Client(
        base_url=f"http://127.0.0.1:{port}", auth=("reader", "secret"), timeout=60, trust_env=False
    )
    with (
        serving_external(site.dsn, site.folder / "serve.log", "--http", f"127.0.0.1:{port}") as address,
        web as reader,
    ):
        yield address, reader


def put(cursor: pymssql.Cursor, signal: str, second: int, value: float) -> None:
    at = NOON + timedelta(seconds=second)
    cursor.callproc("put_gauges", (signal, at, value, 1, 3, 7))


def selected(cursor: pymssql.Cursor, text: str) -> list[tuple[object, ...]]:
    cursor.execute(text)
    return cursor.fetchall()


def samples(reader: httpx.Client, signal: str) -> list[float]:
    answer = reader.get("/api/v1/data", params=SPAN | {"signal": signal, "format": "arrow"})
    assert answer.status_code == 200, answer.text
    return pa.ipc.open_stream(io.BytesIO(answer.content)).read_all()["value"].to_pylist()


def is_read(
    cursor: pymssql.Cursor, reader: httpx.Client, signal: str, values: list[float], shown: str = ""
) -> None:
    """In each way, by the signal's name; views show its present one."""
    assert samples(reader, signal) == values
    assert [row[1] for row in selected(cursor, f"exec get_signal '{signal}'")] == values
    assert [row[1] for row in selected(cursor, f"exec get_latest '{signal}'")] == values[-1:]
    assert [row[1:5] for row in selected(cursor, f"exec get_gauges '{signal}'")] == [
        (7, value, 1, 3) for value in values
    ]
    for database in ("log", "online"):
        read = f"select value from {database}..gauges where signal = '{shown or signal}' order by time"
        assert [row[0] for row in selected(cursor, read)] == values
    end = NOON + timedelta(days=1)
    span = f"'{NOON:%Y-%m-%dT%H:%M:%S+00:00}', '{end:%Y-%m-%dT%H:%M:%S+00:00}'"
    cursor.execute(f"exec get_statistics '{signal}', {span}")
    names = [column[0] for column in cursor.description]
    (found,) = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    assert [found[name] for name in ("n", "min", "max")] == [len(values), min(values), max(values)]
    cursor.execute(f"exec get_trend '{signal}', {span}, 24")
    names = [column[0] for column in cursor.description]
    bins = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    assert sum(each["n"] or 0 for each in bins) == len(values)


def test_a_table_of_samples_on_a_node_is_written_read_and_changed(site: Site) -> None:
    with_gauges(site, "b")
    assert "table gauges on node b" in install(site)
    assert install(site) == "nothing to do\n"
    with served(site) as (address, reader), client(address) as cursor:
        for number in range(1, 4):
            for second in range(5):
                put(cursor, f"gauge:{number}", second, 10.0 * number + second)
        with site.admin(None) as first, site.admin("b") as there:
            assert first.execute("select to_regclass('weeks.gauges')").fetchone() != (None,)
            assert first.execute("select count(*) from ringlog.sample_signal").fetchone() == (0,)
            assert there.execute("select count(*) from log.gauges").fetchone() == (15,)
            (least,) = there.execute("select min(number) from ringlog.sample_signal").fetchone() or (0,)
            assert least > 2**24
        is_read(cursor, reader, "gauge:2", [20.0, 21.0, 22.0, 23.0, 24.0])

        # signals come and go, by the first server
        assert done(site, "signal", "add", "gauges", "gauge:4", "gauge:5", "--unit", "Pa") == (
            "2 signals added to gauges\n"
        )
        put(cursor, "gauge:4", 9, 4.5)
        is_read(cursor, reader, "gauge:4", [4.5])
        assert done(site, "signal", "pause", "gauge:5").startswith("1 signal paused")
        done(site, "signal", "rename", "gauge:4", "pump:4")
        put(cursor, "gauge:4", 10, 4.75)
        for name in ("gauge:4", "pump:4"):
            is_read(cursor, reader, name, [4.5, 4.75], shown="pump:4")
        assert done(site, "signal", "change", "pump:4", "--unit", "mA").startswith("1 signal changed")
        assert [row[4] for row in selected(cursor, "exec find_signals 'pump%'")] == ["mA"]
        done(site, "signal", "retire", "pump:4")
        listed = done(site, "signal", "list").splitlines()
        assert [line.split()[:3] for line in listed[1:]] == [
            *(["gauge:" + number, "active", "gauges"] for number in "123"),
            ["gauge:5", "paused", "gauges"],
            ["pump:4", "retired", "gauges"],
        ]
        states = done(site, "signal", "status", "gauge:3").splitlines()
        assert states[1].split()[4] == "34"
        # names are those of one signal on all servers
        for table, name in (("gauges", "magnets"), ("gauges", "gauge:1")):
            refused = ringlog("signal", "add", table, name, RINGLOG_DSN=site.dsn)
            assert (refused.returncode, "is there already" in refused.stderr) == (2, True)
        # a session on the first server is told who changes them
        for call in ("pause_signal('gauge:1')", "add_signal('gauges', 'gauge:9')"):
            with site.admin(None) as first, pytest.raises(psycopg.Error, match=r"is on (a )?node"):
                first.execute(f"select ringlog.{call}".encode())
        assert len(selected(cursor, "exec written_signals 'gauges'")) == 3
        assert [row[1] for row in selected(cursor, "exec signal_states 'gauge:1', 'gauges'")] == ["gauges"]
        # what a source tells is known here within seconds
        with site.admin("b") as there:
            told = (
                "select ringlog.report_signals('gauges', json_build_array(json_build_object("
                "'number', number, 'connected', true, 'since', now(), 'dropped', 0,"
                " 'reported', json_build_object('unit', 'K', 'description', 'told'), 'reported_at', now()"
                "))::text)"
                " from ringlog.sample_signal where signal = 'gauge:5'"
            )
            there.execute(told)
        wait_until(lambda: "told" in [row[5] for row in selected(cursor, "exec find_signals 'gauge:5'")])
    assert "gauges" in done(site, "node", "list").splitlines()[1]
    assert install(site) == "nothing to do\n"


WAVES = """
[[table]]
name = "waves"
kind = "samples"
type = "double[]"
points = 4
ring = 5
{node}
[[table.signal]]
name = "wave:1"
"""
REGISTRY = {
    "samples": "select each::text from log.{} as each order by 1",
    "signals": "select signal::text from ringlog.signal where table_name = '{}' order by 1",
    "numbers": "select each::text from ringlog.sample_signal as each where table_name = '{}' order by 1",
    "states": """select each::text from ringlog.signal_state as each join ringlog.sample_signal as known
      using (number) where table_name = '{}' order by 1""",
    "changes": """select "time", login, signal, change, detail from ringlog.signal_change
      where table_name = '{}' order by number""",
    "summaries": "select count(*) from summary.{}",
    "merged": "select merged_until from ringlog.sample_table where table_name = '{}'",
    "ledger": "select ledger::text from ringlog.ledger where table_name = '{}' order by 1",
}


def all_of(site: Site, table: str, node: str | None) -> dict[str, list[tuple[object, ...]]]:
    with site.admin(node) as connection:
        return {
            name: connection.execute(query.format(table).encode()).fetchall()
            for name, query in REGISTRY.items()
            if table == "gauges" or name not in ("summaries", "merged")
        }


def moved(before: dict[str, list[tuple[object, ...]]], after: dict[str, list[tuple[object, ...]]]) -> None:
    """The same, but for what housekeeping does as time goes on."""
    for kind in ("summaries", "merged"):
        if kind in before:
            assert after.pop(kind) >= before.pop(kind) != [(None,)]
    assert after == before


def nothing_is_left(site: Site, node: str | None) -> None:
    with site.admin(node) as connection:
        left = connection.execute(
            "select relname::text from pg_class"
            " where relname ~ '^(gauges|waves)' and relkind not in ('i', 'c')"
            " union all select table_name from ringlog.sample_table"
            " union all select signal from ringlog.sample_signal"
            " union all select number::text from ringlog.signal_state"
            " union all select signal from ringlog.signal where table_name in ('gauges', 'waves')"
            " union all select tgname::text from pg_trigger where tgname ~ '^moved_'"
            " union all select table_name from ringlog.move"
        ).fetchall()
        assert left == []


def with_both(site: Site, node: str | None) -> None:
    with_gauges(site, node)
    text = WAVES.format(node=f'node = "{node}"' if node else "")
    site.facility.write_text(site.facility.read_text() + text)


def test_tables_of_samples_move_with_all_they_have(site: Site) -> None:
    with_both(site, None)
    install(site)
    with served(site) as (address, reader), client(address) as cursor:
        for second in range(5):
            put(cursor, "gauge:1", second, float(second))
            put(cursor, "gauge:2", second - 300 * 86_400, float(second))
        done(site, "signal", "add", "gauges", "gauge:4", "gauge:5")
        done(site, "signal", "rename", "gauge:4", "pump:4")
        done(site, "signal", "pause", "gauge:5")
        put(cursor, "gauge:4", 7, 7.5)
        with site.admin(None) as connection:
            connection.execute(
                "select ringlog.put_waves('wave:1', %s, array[1.0, 2.0])", [NOON + timedelta(seconds=1)]
            )
            connection.execute("select ringlog.put_waves('wave:1', %s, null)", [NOON + timedelta(seconds=2)])
            connection.execute(
                "select ringlog.report_signals('gauges', json_build_array(json_build_object('number', number,"
                " 'connected', true, 'since', now(), 'dropped', 2))::text)"
                " from ringlog.sample_signal where signal = 'gauge:1'"
            )
            connection.execute(
                "select ringlog.report_ledger('gauges', 's', '2026-11-20 12:00Z', 9, 8, 0, 0, 0, 1)"
            )
            connection.execute("select ringlog.merge_samples('gauges') from generate_series(1, 3)")
        for _ in range(2):
            done(site, "maintain")
        before = {table: all_of(site, table, None) for table in ("gauges", "waves")}
        assert all(before["gauges"].values())

        with_both(site, "b")
        refused = ringlog("init", "--facility", site.facility, RINGLOG_DSN=site.dsn)
        assert "ringlog node move gauges --facility FILE takes it there" in refused.stderr
        lines = done(site, "node", "move", "--facility", site.facility)
        assert "gauges: on node b now; writers waited" in lines
        for table in before:
            moved(before[table], all_of(site, table, "b"))
        nothing_is_left(site, None)
        put(cursor, "pump:4", 8, 8.5)
        is_read(cursor, reader, "gauge:4", [7.5, 8.5], shown="pump:4")
        done(site, "signal", "add", "gauges", "gauge:6")
        put(cursor, "gauge:6", 8, 6.5)
        # to another node, and back
        with_both(site, "c")
        done(site, "node", "move", "--facility", site.facility)
        nothing_is_left(site, "b")
        put(cursor, "gauge:6", 9, 6.75)
        before = {table: all_of(site, table, "c") for table in ("gauges", "waves")}
        with_both(site, None)
        assert "gauges: on the first server now" in done(site, "node", "move", "--facility", site.facility)
        for table in before:
            moved(before[table], all_of(site, table, None))
        nothing_is_left(site, "c")
        is_read(cursor, reader, "gauge:6", [6.5, 6.75])
        is_read(cursor, reader, "gauge:4", [7.5, 8.5], shown="pump:4")
        done(site, "signal", "add", "gauges", "gauge:7")
        done(site, "signal", "resume", "gauge:5")
        put(cursor, "gauge:7", 1, 1.5)
        is_read(cursor, reader, "gauge:7", [1.5])
    assert install(site) == "nothing to do\n"


def test_no_sample_of_a_running_writer_is_lost(site: Site) -> None:
    with_gauges(site, None)
    install(site)
    with site.admin(None) as connection:
        query = "select number from ringlog.sample_signal order by number"
        numbers = [number for (number,) in connection.execute(query)]
    (table,) = load_facility(site.facility).sample_tables
    sent: list[tuple[int, int, float]] = []
    end = threading.Event()
    with served(site) as (address, _):

        def write() -> None:
            spool = site.folder / "spool"
            spool.mkdir()
            table_at_once = replace(table, collect=0.05)
            writer = SampleWriter(table_at_once, Address("writer", *address), "secret", spool)
            while not end.wait(0.01):
                samples = Samples()
                for number in numbers:
                    sent.append((number, time.time_ns(), float(len(sent))))
                    samples.add(*sent[-1], 0, 0)
                writer.take_samples(samples)
            assert writer.drain(PATIENCE)
            writer.close()

        thread = threading.Thread(target=write)
        thread.start()
        try:
            for node in ("b", None):
                before = len(sent)
                wait_until(lambda before=before: len(sent) > before + 300)
                with_gauges(site, node)
                done(site, "node", "move", "--facility", site.facility)
            before = len(sent)
            wait_until(lambda: len(sent) > before + 300)
        finally:
            end.set()
            thread.join()
        stored = (
            'select known.number, each."time", each.value from ringlog.sample_signal as known'
            " join weeks.gauges as block on block.signal = known.number"
            ' cross join unnest(block.times, block.samples) as each ("time", value)'
        )
        with site.admin(None) as connection:
            assert sorted(connection.execute(stored)) == sorted(sent)


def test_samples_that_came_to_the_old_copy_are_carried(site: Site) -> None:
    """As if the command had ended between the two ends of the switch: the old copy is open."""
    with_both(site, None)
    install(site)
    at = [1_795_176_000_000_000_000 + number for number in range(4)]
    batch = "select ringlog.put_gauges_batch(array_fill({}, array[2]), %s, %s)"
    with site.admin(None) as connection:
        query = "select signal, number from ringlog.sample_signal"
        numbers = dict(connection.execute(query).fetchall())
        connection.execute(batch.format(numbers["gauge:1"]).encode(), [at[:2], [1.0, 2.0]])
        for table in ("gauges", "waves"):
            report = "select ringlog.report_ledger(%s, 's', '2026-11-20 12:00Z', 9, 8, 0, 0, 0, 1)"
            connection.execute(report, [table])
    with_both(site, "b")
    for table in ("gauges", "waves"):
        # when the new copy is in use
        is_new = f"exists (select from ringlog.sample_signal where table_name = '{table}')"
        with broken_off(site, Stop("b", "ringlog.ledger", "update", is_new, at_commit=False)):
            pass
        with site.admin(None) as old, site.admin("b") as new:
            old.execute(f"drop trigger ringlog_refuse_moved on weeks.{table}".encode())
            if table == "gauges":
                old.execute(batch.format(numbers["gauge:2"]).encode(), [at[:2], [5.0, 6.0]])
                # a writer that was not answered has sent one of them again
                new.execute(batch.format(numbers["gauge:2"]).encode(), [at[1:3], [6.0, 7.0]])
            else:
                put_wave = "select ringlog.put_waves('wave:1', %s, %s::float8[])"
                old.execute(put_wave, [NOON, [1.0, 2.0]])
                old.execute(put_wave, [NOON + timedelta(seconds=1), None])
                new.execute(put_wave, [NOON, [1.0, 2.0]])
            with pytest.raises(psycopg.Error, match="has moved to another server"):
                old.execute(
                    "update ringlog.sample_signal set state = 'paused' where table_name = %s", [table]
                )
        assert f"{table} from the first server to node b: done" in done(
            site, "node", "move", table, "--facility", site.facility
        )
    nothing_is_left(site, None)
    with site.admin("b") as connection:
        found = connection.execute("select signal, value from log.gauges order by signal, nanoseconds")
        assert found.fetchall() == [("gauge:1", 1), ("gauge:1", 2)] + [("gauge:2", n) for n in (5, 6, 7)]
        waves = connection.execute('select value from log.waves order by "time"').fetchall()
        assert waves == [([1.0, 2.0],), (None,)]
