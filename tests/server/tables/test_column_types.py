"""numeric(p,s), datetime and text: from the facility file through every way of writing, read back exactly."""

import re
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from zoneinfo import ZoneInfo

import psycopg
import pymssql
import pytest
from psycopg import errors

from ringlog.schema.facility_files.facility_file import FacilityError, load_facility
from servers import RunningServer, free_port, ringlog, serving

pytestmark = pytest.mark.long

FACILITY = """
timezone = "Asia/Tokyo"
[[table]]
name = "dose"
rows = 10
cycle = 1
summaries = ["1 min"]
column = [
  { name = "total", type = "numeric(12, 3)", unit = "mSv", limits = [0, 1e6] },
  { name = "calibrated", type = "datetime" },
  { name = "remark", type = "text" },
]
"""
LONG = "a remark of some length, äöü, " * 5000


def connection(server: RunningServer) -> pymssql.Connection:
    return server.connect(server.writer.user, server.writer.password)


def nan_is_refused_in_a_decimal(server: RunningServer) -> None:
    """PostgreSQL's numeric accepts it, but no TDS client could then read the table."""
    row = "row (1, '2026-03-02T12:00:02+09:00', 'NaN', null, null)::online.dose"
    with psycopg.connect(server.dsn_of(server.writer), autocommit=True) as writer:
        for call in (
            f"put_dose({row})",
            """put_dose_batch('[{"seq_no": 1, "time": "2026-03-02", "total": "NaN"}]', %(epoch)s)""",
        ):
            with writer.transaction(force_rollback=True):
                claim = "select ringlog.claim_writer('dose', 'nan', 'test')"
                (epoch,) = writer.execute(claim).fetchone() or (None,)
                with pytest.raises(errors.NumericValueOutOfRange, match="put_dose: total = NaN is no number"):
                    writer.execute(f"select ringlog.{call}".encode(), {"epoch": epoch})
        with writer.transaction(force_rollback=True):
            writer.execute("select ringlog.begin_import('dose', 'nan.csv', '')")
            writer.execute("insert into pg_temp.dose values (1, '2026-03-02', 'NaN', null, null)")
            with pytest.raises(errors.NumericValueOutOfRange, match="import_dose: NaN in a numeric column"):
                writer.execute("select ringlog.import_dose('nan.csv', 0, true, true)")


def test_types_are_exact_over_tds_and_from_recordings(data: Path) -> None:
    file = data.parent / "dose.toml"
    file.write_text(FACILITY)
    with serving(data, "--pg-port", str(free_port()), facility=file) as server:
        with connection(server) as client, client.cursor() as cursor:
            cursor.execute(
                "exec put_dose @time = '2026-03-02T12:00:00+09:00', @total = 123456789.125,"
                " @calibrated = '2026-01-02 03:04:05.123456', @remark = %s",
                (LONG,),
            )
            cursor.execute("exec put_dose @time = '2026-03-02T12:00:01+09:00', @total = 0.1")
            with pytest.raises(pymssql.Error, match=r"Parameter '@total' of put_dose: value out of range"):
                cursor.execute("exec put_dose @time = '2026-03-02T12:00:02+09:00', @total = 1234567890.5")
            for number in ("nan", "inf", "-inf"):
                with pytest.raises(pymssql.Error, match="is NaN or infinite") as refused:
                    cursor.callproc("put_dose", (None, "2026-03-02T12:00:02+09:00", float(number)))
                assert refused.value.args[0] == 8023
            with pytest.raises(pymssql.Error, match=r"Parameter '@calibrated' of put_dose: "):
                cursor.execute("exec put_dose @time = '2026-03-02T12:00:02+09:00', @calibrated = 'soon'")
        nan_is_refused_in_a_decimal(server)
        recordings = data.parent / "recordings"
        recordings.mkdir()
        (recordings / "dose.csv").write_text(
            "time,total,calibrated,remark\n2026-03-02T12:00:03+09:00,2.500,2026-01-02T03:04:05,short\n"
            "2026-03-02T12:00:04+09:00,,,\n"
        )
        loaded = ringlog(
            *("load", "--facility", file, "--url", f"tds://{server.writer.user}@127.0.0.1:{server.port}"),
            *("--source", f"csv:{recordings}", "--speed", "inf", "--spool", data.parent / "spool"),
            RINGLOG_PASSWORD=server.writer.password,
        )
        assert loaded.returncode == 0, loaded.stderr
        with psycopg.connect(server.dsn) as admin:
            stored = admin.execute("select total, calibrated, remark from log.dose order by time").fetchall()
            calibrated = datetime(2026, 1, 2, 3, 4, 5, 123456, ZoneInfo("Asia/Tokyo"))
            assert stored == [
                (Decimal("123456789.125"), calibrated, LONG),
                (Decimal("0.100"), None, None),
                (Decimal("2.500"), calibrated.replace(microsecond=0), "short"),
                (None, None, None),
            ]
            trend = admin.execute(
                "select n, min, max, nulls"
                " from ringlog.get_trend('dose/total', '2026-03-02', '2026-03-03', 1)"
            )
            assert trend.fetchall() == [(3, 0.1, 123456789.125, 1)]
            assert admin.execute("select value from ringlog.get_signal('dose/total')").fetchall() == [
                (123456789.125,),
                (0.1,),
                (2.5,),
                (None,),
            ]
            for signal, kind in (("remark", "text"), ("calibrated", "a time")):
                with pytest.raises(psycopg.errors.DatatypeMismatch, match=f"is {kind} "):
                    admin.execute("select * from ringlog.get_signal(%s)", [f"dose/{signal}"])
                admin.rollback()
        same = ringlog("facility", "diff", file, "--data", data)
        assert (same.returncode, same.stdout) == (0, "no difference\n")
        file.write_text(FACILITY.replace("numeric(12, 3)", "numeric(14, 3)"))
        refused = ringlog("facility", "diff", file, "--data", data)
        assert refused.returncode == 1
        assert re.search(r"total: is NUMERIC\(12, 3\) in the database and NUMERIC\(14, 3\)", refused.stderr)
        assert ringlog("verify", "--data", data).returncode == 0


def test_the_simulator_fills_these_types(tmp_path: Path) -> None:
    from ringlog.loader.sources.simulator import Simulator
    from ringlog.loader.sources.values import decimal

    file = tmp_path / "dose.toml"
    file.write_text(FACILITY)
    (table,) = load_facility(file).tables
    simulator = Simulator()
    row = simulator.row(table, simulator.signals(table), 1_700_000_000_000_000)
    total, calibrated, remark = row.values
    assert decimal(str(total), table.columns[0]) == total
    assert datetime.fromisoformat(str(calibrated)) <= datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
    assert isinstance(remark, str)


def test_an_unknown_type_names_the_type_to_use(tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text(FACILITY.replace("numeric(12, 3)", "numeric(40, 3)").replace('"datetime"', '"float"'))
    with pytest.raises(FacilityError) as refused:
        load_facility(file)
    assert refused.value.problems[0].endswith("1 to 38, of which s, 0 to p, are behind the point")
    assert refused.value.problems[1].endswith(": write double (8 bytes) or real (4 bytes)")
