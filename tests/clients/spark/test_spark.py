"""Spark reads the archive's Iceberg tables with the settings printed by `ringlog archive spark`."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pyspark
import pytest
import sqlalchemy as sa

from ringlog.history.archive.archiving import archive
from ringlog.history.archive.iceberg import publish
from ringlog.history.archive.spark import RUNTIMES
from ringlog.schema.facility import Column, Facility, History, Retention, Table
from ringlog.schema.installing.install import install
from ringlog.schema.relations.partitions import maintain
from ringlog.server.processes.web import Web, settings
from servers import free_port, ringlog

JOB = Path(__file__).with_name("job.py")
# of `make test-clients`, which reads pom.xml
JARS = Path(__file__).parents[3] / "build" / "client_compat" / "spark"
VERSION = ".".join(pyspark.__version__.split(".")[:2])

NOW = datetime(2026, 6, 10, tzinfo=UTC)
BEGIN = datetime(2026, 4, 27, tzinfo=UTC)
SIGNALS = [f"current_{number}" for number in range(1, 9)]
TABLE = Table("magnets", 10, 1.0, tuple(Column(name, name, "real") for name in SIGNALS))


@pytest.fixture
def published(engine: sa.Engine, database_url: sa.URL, temporary_directory: Path) -> Iterator[str]:
    """The connection string of a database with six weeks of rows, four of them archived and published; all
    are in `copied` too.
    """
    conninfo = database_url.set(drivername="postgresql").render_as_string(hide_password=False)
    folder = str(temporary_directory / f"archive-{database_url.database}")
    install(engine, Facility("test", "UTC", (TABLE,), history=History(Retention(2, "week"), folder)))
    values = ", ".join(
        f"case when n % {97 + 2 * k} > 0 then sin(n / {300 + k}.0) + {k} * cos(n) end" for k in range(8)
    )
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute("create table copied (like log.magnets)")
        connection.execute(
            f"insert into copied select 1 + n % 3, '{BEGIN}'::timestamptz + n * interval '10 minutes',"
            f" {values} from generate_series(1, 6000) as n".encode()
        )
        connection.execute("insert into weeks.magnets select * from copied")
        maintain(engine, NOW)
        lines = [*archive(conninfo, NOW, pauses=0)]
        assert len(lines) == 4, lines
        assert [*publish(conninfo)] == ["published log.magnets: 4 weeks more, 0 fewer; 4 with 4031 rows"]
        connection.execute("create role spark_reader login password 'spark' in role daq_reader")
    yield conninfo
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute("drop role spark_reader")


@pytest.mark.timeout(1000)
def test_a_job_over_all_signals_answers_as_postgresql(published: str, tmp_path: Path) -> None:
    """Two workers, each a process of its own."""
    with Web(settings("127.0.0.1", free_port(), published)).running() as web:
        answer = job_of(published, f"http://{web.address}", tmp_path)
    assert (answer["workers"], answer["files"]) == (2, 4)
    correlations = ", ".join(f"corr({name}, {SIGNALS[0]})" for name in SIGNALS)
    quantiles = ", ".join(f"percentile_cont(0.95) within group (order by {name})" for name in SIGNALS)
    archived = "from copied where time < '2026-05-25'"
    with psycopg.connect(published) as connection:
        connection.execute("set timezone = 'UTC'")
        (expected,) = connection.execute(f"select {correlations} {archived}".encode()).fetchall()
        days = connection.execute(
            f"select time::date::text, count(*), {quantiles} {archived} group by 1 order by 1".encode()
        ).fetchall()
    assert [answer["correlations"][name] for name in SIGNALS] == pytest.approx(expected, rel=1e-9)
    # the two interpolate in another order
    assert answer["days"] == {day: pytest.approx(values, rel=1e-12) for day, *values in days}


def job_of(published: str, url: str, tmp_path: Path) -> dict[str, Any]:
    printed = ringlog("archive", "spark", "--spark", VERSION, "--url", url, "--dsn", published)
    assert printed.returncode == 0, printed.stderr
    given = dict(line.split(" ", 1) for line in printed.stdout.splitlines())
    packages = given.pop("spark.jars.packages").split(",")
    jars = [JARS / "{1}-{2}.jar".format(*package.split(":")) for package in packages]
    given["spark.sql.catalog.ringlog.credential"] = "spark_reader:spark"
    properties = tmp_path / "spark.conf"
    properties.write_text("".join(f"{name} {value}\n" for name, value in given.items()))
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    few = ["--conf", "spark.sql.shuffle.partitions=2", "--conf", "spark.ui.enabled=false"]
    more = [*few, "--jars", ",".join(map(str, jars)), JOB, TABLE.name, SIGNALS[0]]
    ran = subprocess.run(
        [submit, "--master", "local-cluster[2,1,1024]", "--properties-file", properties, *more],
        env=os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_DIRS": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert ran.returncode == 0, ran.stderr[-5000:]
    return dict(json.loads(ran.stdout.splitlines()[-1]))


def test_settings_of_versions_and_stores(published: str) -> None:
    refused = ringlog("archive", "spark", "--spark", "2.4", "--url", "http://host:8080/", "--dsn", published)
    assert refused.returncode == 2
    assert ", ".join(RUNTIMES) in refused.stderr
    with psycopg.connect(published) as connection:
        connection.execute(
            "update ringlog.history set archive = 's3://weeks/a?region=r&scheme=http&endpoint_override=h:9000'"
        )
    printed = ringlog(
        "archive", "spark", "--spark", "3.5", "--url", "http://host:8080/", "--dsn", published
    ).stdout
    assert "iceberg-aws-bundle:1.12.0\n" in printed
    assert "spark.sql.catalog.ringlog.uri http://host:8080/iceberg\n" in printed
    assert "spark.sql.catalog.ringlog.header.X-Iceberg-Access-Delegation remote-signing\n" in printed
