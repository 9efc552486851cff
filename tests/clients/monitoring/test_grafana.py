"""The packaged dashboards for Grafana: each query, run on a real data source."""

import csv
import io
import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import psycopg
import pymssql
import pytest
import yaml
from known_rows import BEGIN, ROWS, row
from psycopg.rows import dict_row

import ringlog as package
from client_compat import Clients, Conversation, Programs, go
from ringlog.loader.metrics import Metrics
from ringlog.server.logins import Right, add_login
from servers import Login, free_port
from waiting import PATIENCE, wait_until

FOLDER = Path(package.__file__).parent / "monitoring" / "grafana"
DASHBOARDS = {file.stem: json.loads(file.read_text()) for file in (FOLDER / "dashboards").glob("*.json")}
FROM, TO = datetime(2025, 12, 31, 23, 58, tzinfo=UTC), datetime(2026, 1, 1, 0, 2, tzinfo=UTC)
SIGNALS = ["every_type/a_real", "every_type/an_int"]

Query = tuple[str, dict[str, Any]]
"""The place of a query in its dashboard, and its object in Grafana's file."""


def queries(source: str) -> Iterator[Query]:
    """The queries of all dashboards to a data source of this type."""
    for name, dashboard in DASHBOARDS.items():
        for panel in dashboard["panels"]:
            for target in panel["targets"]:
                assert target["datasource"] == panel["datasource"]
                if panel["datasource"]["type"] == source:
                    yield f"{name}: {panel['title']} {target['refId']}", target
        for note in dashboard["annotations"]["list"]:
            if note["datasource"]["type"] == source:
                yield f"{name}: {note['name']}", note["target"]
        for variable in dashboard["templating"]["list"]:
            if variable["type"] == "query" and variable["datasource"]["type"] == source:
                query = variable["query"]
                yield (
                    f"{name}: {variable['name']}",
                    query.get("infinityQuery", query) if isinstance(query, dict) else {"rawSql": query},
                )


def shown(query: Query) -> str:
    return query[0]


# expanded as Grafana documents its macros and variables ("PostgreSQL query editor", "Variable syntax")
def sql_of(text: str) -> str:
    begin, end = (f"'{moment:%Y-%m-%dT%H:%M:%SZ}'" for moment in (FROM, TO))
    text = re.sub(r"\$__timeFilter\((.*?)\)(?=\n|$)", rf"\1 BETWEEN {begin} AND {end}", text)
    text = text.replace("$__timeFrom()", begin).replace("$__timeTo()", end)
    text = text.replace("$signal", ",".join(f"'{name}'" for name in SIGNALS)).replace("$search", "")
    text = text.replace("$table", "%")
    assert "$" not in text
    return text


def url_of(text: str) -> str:
    text = text.replace("${signal:percentencode}", quote(SIGNALS[0], safe=""))
    text = text.replace("${search:percentencode}", "")
    for name, moment in (("__from", FROM), ("__to", TO)):
        text = text.replace(f"${{{name}:date:iso}}", f"{moment:%Y-%m-%dT%H:%M:%S.000Z}")
    assert "$" not in text
    return text


@pytest.fixture(scope="module", autouse=True)
def mark(web) -> Iterator[tuple[Any, ...]]:
    """A note of a person over some of the known rows: its time, end, author and text."""
    operator = Login("grafana_operator", "note-Ω-3")
    add_login(web.server.dsn, operator.user, [Right.READER, Right.RECORDER], operator.password)
    made = (BEGIN, BEGIN + timedelta(seconds=20), "klystron 4 tripped")
    web.server.sql("select ringlog.add_mark(%s, %s, %s)", [made[0], made[2], made[1]], login=operator)
    yield (*made[:2], operator.user, made[2])
    web.server.sql("delete from ringlog.mark where login = %s", [operator.user])


@pytest.mark.parametrize("query", [*queries("grafana-postgresql-datasource")], ids=shown)
def test_sql(web, query: Query) -> None:
    """Run by a login that reads; a series has its time, its name and its value."""
    _, target = query
    with psycopg.connect(web.server.dsn_of(web.server.reader)) as connection:
        cursor = connection.execute(sql_of(target["rawSql"]).encode())
        assert cursor.description is not None
        names = [column.name for column in cursor.description]
        rows = cursor.fetchall()
    if target.get("format") == "time_series":
        assert names == ["time", "metric", "value"]
    if "get_trends" in target["rawSql"]:
        assert {row[1].split()[0] for row in rows} == set(SIGNALS)
        assert sum(row[1].startswith("every_type/a_real") for row in rows) == ROWS
    if "distinct found.table_name" in target["rawSql"]:
        assert ("every_type",) in rows
    elif "find_signals" in target["rawSql"]:
        assert ("every_type/a_real",) in rows
        # each of them can be drawn, and chosen with any others
        names = "\n".join(name for (name,) in rows)
        trends = web.server.sql(
            "select distinct signal from ringlog.get_trends(%s, %s, %s, 10)",
            (names, FROM, TO),
            login=web.server.reader,
        )
        assert {("every_type/a_real",), ("every_type/an_int",)} <= {*trends}


# as pkg/tsdb/mssql/macros.go of Grafana expands them: an argument ends at the first parenthesis
def tsql_of(text: str) -> str:
    begin, end = (f"'{moment:%Y-%m-%dT%H:%M:%SZ}'" for moment in (FROM, TO))
    seconds = [int(moment.timestamp()) for moment in (FROM, TO)]

    def expanded(found: re.Match[str]) -> str:
        column, *others = (each.strip() for each in found[2].split(","))
        group = f"FLOOR(DATEDIFF(second, '1970-01-01', {column})/60)*60"
        assert not others or others == ["'1m'"]
        return {
            "time": f"{column} AS time",
            "timeEpoch": f"DATEDIFF(second, '1970-01-01', {column}) AS time",
            "timeFilter": f"{column} BETWEEN {begin} AND {end}",
            "timeFrom": begin,
            "timeTo": end,
            "timeGroup": group,
            "timeGroupAlias": f"{group} AS [time]",
            "unixEpochFilter": f"{column} >= {seconds[0]} AND {column} <= {seconds[1]}",
            "unixEpochGroup": f"FLOOR({column}/60)*60",
            "unixEpochGroupAlias": f"FLOOR({column}/60)*60 AS [time]",
        }[found[1]]

    text = re.sub(r"\$__(\w+)\(([^)]*)\)", expanded, text)
    text = text.replace("$signal", ",".join(f"'{name}'" for name in SIGNALS)).replace("$search", "")
    text = text.replace("$table", "%")
    assert "$" not in text
    return text


@pytest.fixture(scope="module")
def grafana(web, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Conversation]:
    """A session of go-mssqldb, the driver of Grafana's source for SQL Server, with its default options."""
    folder = tmp_path_factory.mktemp("grafana")
    clients = Clients(web.server, Programs(folder / "programs"), folder / "clients")
    session = go("encrypt=false&database=ringlog")(clients, web.server.reader)
    session.login.good()
    yield session
    session.close()


@pytest.mark.parametrize("query", [*queries("mssql")], ids=shown)
def test_tsql(web, grafana: Conversation, query: Query) -> None:
    """Run by a login that reads; a series has its time, its name and its value."""
    _, target = query
    text = tsql_of(target["rawSql"])
    answer = grafana.query(text).good()
    if target.get("format") == "time_series":
        assert answer.columns == ["time", "metric", "value"]
        assert {row[1].split()[0] for row in answer.rows} == set(SIGNALS)
        # the instants are right, though the facility is not in UTC
        reader = web.server.reader
        with (
            closing(
                pymssql.connect(
                    server=web.server.host,
                    port=str(web.server.port),
                    user=reader.user,
                    password=reader.password,
                    tds_version="7.4",
                )
            ) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute(text)
            times = [time for time, *_ in cursor.fetchall()]
        assert abs(times[0] - BEGIN) < timedelta(seconds=1)
        assert len(times) == len(answer.rows)
    elif "distinct found.table_name" in text:
        assert ["every_type"] in answer.rows
    elif "found.unit" in text:
        assert [row[0] for row in answer.rows] == sorted(SIGNALS)
    elif "top 500 found.signal" in text:
        assert ["every_type/a_real"] in answer.rows


LOGGED = """(
  select moved.at, datediff(second, '1970-01-01', moved.at) as unix, moved.a_double
  from (
    select convert(datetime2, switchoffset(cast(time as datetimeoffset), '+00:00')) as at, a_double
    from log.every_type
    where time between cast($__timeFrom() as datetimeoffset) and cast($__timeTo() as datetimeoffset)
  ) as moved
) as logged"""
MINUTES = [BEGIN.replace(second=0) + timedelta(minutes=number) for number in range(4)]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (f"select $__time(at), a_double from {LOGGED} where $__timeFilter(at) order by at", ROWS),
        (f"select $__timeEpoch(at), a_double from {LOGGED} where $__unixEpochFilter(unix)", ROWS),
        (
            f"select $__timeGroupAlias(at, '1m'), avg(a_double) as value from {LOGGED}"
            " group by $__timeGroup(at, '1m') order by 1",
            len(MINUTES),
        ),
        (
            f"select $__unixEpochGroupAlias(unix, '1m'), avg(a_double) as value from {LOGGED}"
            " group by $__unixEpochGroup(unix, '1m') order by 1",
            len(MINUTES),
        ),
    ],
)
def test_macros(grafana: Conversation, text: str, rows: int) -> None:
    answer = grafana.query(tsql_of(text)).good()
    assert answer.columns[0] == "time"
    assert len(answer.rows) == rows
    if rows == len(MINUTES):
        means = []
        for minute in MINUTES:
            values = [
                float(str(row(number)["a_double"]))
                for number in range(ROWS)
                if row(number)["a_double"] is not None
                and minute <= BEGIN + timedelta(seconds=number) < minute + timedelta(minutes=1)
            ]
            means.append([int(minute.timestamp()), pytest.approx(sum(values) / len(values))])
        assert [[int(float(time)), value] for time, value in answer.rows] == means


# https://github.com/grafana/grafana, public/app/plugins/datasource/mssql/MSSqlMetaQuery.ts
def test_the_query_builder_finds_tables(grafana: Conversation) -> None:
    databases = (
        "SELECT name FROM sys.databases WHERE name NOT IN ('master', 'tempdb', 'model', 'msdb');",
        ["log"],
    )
    tables = (
        "SELECT TABLE_SCHEMA + '.' + TABLE_NAME as schemaAndName FROM [log].INFORMATION_SCHEMA.TABLES",
        ["dbo.every_type"],
    )
    columns = (
        "\n   USE [log]\n   SELECT COLUMN_NAME as 'column',DATA_TYPE as 'type'\n"
        "   FROM INFORMATION_SCHEMA.COLUMNS WHERE TABLE_NAME='every_type';",
        ["a_real", "real"],
    )
    for text, wanted in (databases, tables, columns):
        assert wanted in grafana.query(text).good().rows


@pytest.fixture(scope="module")
def prometheus(web, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Prometheus that has read the server's counts."""
    folder, port = tmp_path_factory.mktemp("prometheus"), free_port()
    configuration = folder / "prometheus.yml"
    configuration.write_text(
        "global: {scrape_interval: 1s}\n"
        f"scrape_configs: [{{job_name: ringlog, static_configs: [{{targets: ['{web.counts}']}}]}}]\n"
    )
    command = ["prometheus", f"--config.file={configuration}", f"--storage.tsdb.path={folder / 'tsdb'}"]
    command.append(f"--web.listen-address=127.0.0.1:{port}")
    url = f"http://127.0.0.1:{port}"
    with (folder / "log").open("w") as log, subprocess.Popen(command, stderr=log) as process:
        try:
            wait_until(lambda: asked(url, "ringlog_up"), (folder / "log").read_text)
            yield url
        finally:
            process.terminate()


def asked(prometheus: str, expression: str) -> list[Any]:
    try:
        answer = httpx.get(
            f"{prometheus}/api/v1/query", params={"query": expression}, timeout=PATIENCE, trust_env=False
        )
    except httpx.TransportError:
        return []
    if answer.status_code == 503:
        return []
    content = answer.json()
    assert content["status"] == "success", content
    found: list[Any] = content["data"]["result"]
    return found


@pytest.mark.parametrize("query", [*queries("prometheus")], ids=shown)
def test_promql(web, prometheus: str, query: Query) -> None:
    """Each is PromQL, with names that ringlog serves."""
    expression = query[1]["expr"].replace("$__rate_interval", "1m")
    asked(prometheus, expression)
    served = httpx.get(f"http://{web.counts}/metrics", timeout=PATIENCE, trust_env=False).text
    known = {*re.findall(r"^# TYPE (\w+)", served, re.M)} | {metric.name for metric in Metrics({}).collect()}
    # served from the first call on, and once the logs have grown (tests/server/test_metrics.py)
    known |= {"ringlog_gateway_call_seconds", "ringlog_gateway_failed_calls", "ringlog_disk_left_seconds"}
    named = {
        re.sub(r"_(total|count|bucket|sum)$", "", name) for name in re.findall(r"\bringlog_\w+", expression)
    }
    assert named
    assert named - known == set()


@pytest.mark.parametrize("query", [*queries("yesoreyeram-infinity-datasource")], ids=shown)
def test_http(anyone: httpx.Client, query: Query) -> None:
    """The answer has the fields that the query reads."""
    target = query[1]
    answer = anyone.get(url_of(target["url"]))
    assert answer.status_code == 200, answer.text
    wanted = [column["selector"] for column in target["columns"]]
    if target["type"] == "csv":
        lines = list(csv.DictReader(io.StringIO(answer.text)))
    else:
        content = answer.json()
        lines = content[target["root_selector"]] if target["root_selector"] else content
    assert lines
    assert set(wanted) <= set(lines[0])


@pytest.mark.parametrize("dashboard", ["signals", "http"])
def test_marks_are_annotations(web, anyone: httpx.Client, mark: tuple[Any, ...], dashboard: str) -> None:
    """By PostgreSQL and by HTTP. Grafana finds the fields of an annotation by their names in lower case
    (public/app/features/annotations/standardAnnotationSupport.ts)."""
    (target,) = (
        note["target"] for note in DASHBOARDS[dashboard]["annotations"]["list"] if note["name"] == "Marks"
    )
    if "rawSql" in target:
        with psycopg.connect(web.server.dsn_of(web.server.reader), row_factory=dict_row) as connection:
            rows = connection.execute(sql_of(target["rawSql"]).encode()).fetchall()
    else:
        rows = [
            {column["text"]: line[column["selector"]] for column in target["columns"]}
            for line in anyone.get(url_of(target["url"])).json()
        ]
    (event,) = ({name.lower(): value for name, value in row.items()} for row in rows)
    moments = [
        each if isinstance(each, datetime) else datetime.fromisoformat(each)
        for each in (event["time"], event["timeend"])
    ]
    assert (*moments, event["title"], event["text"]) == mark


def test_every_source_is_provisioned() -> None:
    sources = yaml.safe_load((FOLDER / "datasources.yml").read_text())["datasources"]
    provisioned = {(source["type"], source["uid"]) for source in sources}
    used = {
        (panel["datasource"]["type"], panel["datasource"]["uid"])
        for dashboard in DASHBOARDS.values()
        for panel in dashboard["panels"]
    }
    assert used == provisioned
    (provider,) = yaml.safe_load((FOLDER / "dashboards.yml").read_text())["providers"]
    assert provider["type"] == "file"
    assert len({dashboard["uid"] for dashboard in DASHBOARDS.values()}) == len(DASHBOARDS) == 5
