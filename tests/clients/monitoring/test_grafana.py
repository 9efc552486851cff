"""The packaged dashboards for Grafana: each query, run on a real data source."""

import csv
import io
import json
import re
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import psycopg
import pytest
import yaml
from known_rows import ROWS

import ringlog as package
from ringlog.loader.metrics import Metrics
from servers import free_port
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


@pytest.mark.parametrize("query", [*queries("grafana-postgresql-datasource")], ids=shown)
def test_sql(web, query: Query) -> None:
    """As a login that reads; a series has its time, its name and its value."""
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
        with psycopg.connect(web.server.dsn_of(web.server.reader)) as connection:
            trends = connection.execute(
                "select distinct signal from ringlog.get_trends(%s, %s, %s, 10)", (names, FROM, TO)
            ).fetchall()
        assert {("every_type/a_real",), ("every_type/an_int",)} <= {*trends}


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
    """It is PromQL, over names that ringlog serves."""
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
    assert len({dashboard["uid"] for dashboard in DASHBOARDS.values()}) == len(DASHBOARDS) == 4
