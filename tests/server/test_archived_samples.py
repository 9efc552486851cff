"""Tables of samples whose weeks are archived: the same answers over TDS, PostgreSQL's protocol and HTTP."""

import csv
import json
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pyarrow.parquet as pq

from ringlog.history.archive.archiving import archive
from ringlog.history.summaries.summarising import summarise
from ringlog.schema.relations.sample_tables import merge
from ringlog.schema.session import engine
from ringlog.server.processes.web import Web, settings
from servers import RunningServer, free_port, ringlog, serving
from waiting import wait_until_reachable

NOW = datetime.now(UTC)
MONDAY = (NOW - timedelta(days=NOW.weekday())).replace(hour=0, minute=0, second=0, microsecond=0)
BEGIN = MONDAY - timedelta(weeks=5)
FACILITY = """
timezone = "UTC"

[history]
online = "2 weeks"
archive = "{folder}"

[[table]]
name = "vac"
kind = "samples"
type = "double"
[[table.signal]]
name = "gauge:{{n}}"
count = 3
"""
SPAN = {"from": BEGIN.isoformat(), "to": NOW.isoformat()}
TSQL = (
    "select signal, time, value, severity, status, nanoseconds from log..vac order by number, time",
    "select count(*), max(value) from log..vac where signal = 'gauge:2'",
    f"select value from log..vac where time < '{BEGIN + timedelta(days=10):%Y-%m-%d}' order by time, number",
    "exec get_vac @signal = 'gauge:1'",
    f"exec get_vac_at @at = '{BEGIN + timedelta(days=10):%Y-%m-%d}'",
    "exec get_vac_at",
    "exec get_signal @name = 'gauge:2'",
    "exec get_latest @name = 'gauge:3'",
)
SQL = (
    "select got::text from ringlog.get_vac('gauge:1') as got",
    "select sample::text from log.vac as sample order by signal, time",
    f"select n, min, max, round(mean::numeric, 9) from ringlog.get_statistics('gauge:2', '{BEGIN}', '{NOW}')",
)


def fill(server: RunningServer) -> None:
    """Samples every two hours for five weeks; the last signal's end after a week."""
    ns = int(BEGIN.timestamp()) * 10**9
    with psycopg.connect(server.dsn, autocommit=True) as admin:
        for signal, n in (("gauge:1", 420), ("gauge:2", 420), ("gauge:3", 84)):
            admin.execute(
                """
                select ringlog.put_vac_batch(
                  array_agg(number), array_agg(%s + k * 7200000000123),
                  array_agg(case when k %% 50 <> 7 then k / 7.0::double precision end),
                  array_agg((k %% 30 / 29)::smallint)
                )
                from ringlog.sample_signal, generate_series(0, %s) as k where signal = %s
                """,
                [ns, n - 1, signal],
            )
        for week in range(5):
            admin.execute("select ringlog.make_week('vac', %s)", [BEGIN + timedelta(weeks=week)])
    merge(engine(server.dsn))


def rounded(answer: httpx.Response) -> Any:
    """JSON whose means do not depend on the order of additions."""
    return json.loads(answer.text, parse_float=lambda text: round(float(text), 9))


def answers(server: RunningServer, http: httpx.Client, folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    with closing(server.connect(server.reader.user, server.reader.password)) as session:
        for text in TSQL:
            with session.cursor() as cursor:
                cursor.execute(text)
                found[text] = cursor.fetchall()
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute("set timezone to 'UTC'; set role daq_reader")
        for text in SQL:
            found[text] = connection.execute(text.encode()).fetchall()
    names = [("signal", f"gauge:{n}") for n in (1, 2, 3)]
    for path, options in (
        ("/api/v1/data", {}),
        ("/api/v1/trend", {"points": "30"}),
        ("/api/v1/data", {"wide": "last", "format": "csv"}),
    ):
        answer = http.get(path, params=[*SPAN.items(), *options.items(), *names])
        assert answer.status_code == 200, answer.text
        found[path + str(options)] = (
            answer.text if "csv" in answer.headers["content-type"] else rounded(answer)
        )
    for pv in ("gauge:1", "mean_86400(gauge:2)", "lastSample_86400(gauge:1)"):
        middle = SPAN | {"from": (BEGIN + timedelta(days=10)).isoformat(), "pv": pv}
        answer = http.get("/retrieval/data/getData.json", params=middle)
        assert answer.status_code == 200, answer.text
        found[pv] = rounded(answer)
    for file in (folder / "all.csv", folder / "all.parquet"):
        words = ("--from", SPAN["from"], "--to", SPAN["to"], "--output", file)
        ran = ringlog("export", "gauge:1", "gauge:3", "--server", str(http.base_url), *words)
        assert ran.returncode == 0, ran.stdout + ran.stderr
    with (folder / "all.csv").open() as text_file:
        found["csv"] = [*csv.reader(text_file)]
    found["parquet"] = pq.read_table(folder / "all.parquet").to_pylist()
    return found


def test_every_client_has_the_same_answers(temporary_directory: Path) -> None:
    folder = temporary_directory / "archive"
    folder.mkdir()
    folder.chmod(0o777)
    file = temporary_directory / "facility.toml"
    file.write_text(FACILITY.format(folder=folder))
    with serving(temporary_directory / "data", facility=file) as server:
        fill(server)
        served = settings("127.0.0.1", free_port(), server.dsn, role="daq_reader")
        with (
            Web(served).running() as web,
            httpx.Client(base_url=f"http://{web.address}", timeout=60, trust_env=False) as http,
            psycopg.connect(server.dsn, autocommit=True) as admin,
        ):
            before = answers(server, http, temporary_directory)
            assert len(before[TSQL[0]]) == len(before[SQL[1]]) == 2 * 420 + 84
            assert len(before["csv"]) == len(before["parquet"]) + 1 == 420 + 84 + 1
            # the server may have summarised and archived some
            summarise(server.dsn, enough=1)
            [*archive(engine(server.dsn), server.dsn, pauses=0)]
            weeks = admin.execute("select count(*), sum(rows) from ringlog.cold_week").fetchone()
            assert weeks == (3, 2 * 252 + 84)
            wait_until_reachable(lambda: admin.execute("select count(*) from log.vac").fetchone() == (924,))
            after = answers(server, http, temporary_directory)
            for what, answer in before.items():
                assert after[what] == answer, what
        said = ringlog("archive", "status", "--data", server.data).stdout
        assert "vac" in said
        assert ringlog("archive", "verify", "--data", server.data).returncode == 0
        week = [f"{at:%Y-%m-%d}" for at in (BEGIN, BEGIN + timedelta(weeks=1))]
        recalled = ringlog("recall", "vac", *week, "--data", server.data)
        assert "252 rows" in recalled.stdout, recalled.stdout + recalled.stderr
        again = ringlog("recall", "vac", *week, "--data", server.data)
        assert again.stdout.startswith("nothing to recall: the archive has no week of vac in this time")
        status = json.loads(ringlog("status", "--json", "--data", server.data).stdout)
        assert [table["table_name"] for table in status["tables"]] == ["vac"]
