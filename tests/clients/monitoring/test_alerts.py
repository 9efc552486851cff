"""The packaged alert rules, in a real Prometheus that reads a real server."""

import json
import re
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest

import ringlog as package
from ringlog.loader.metrics import Metrics
from servers import free_port, serving
from waiting import PATIENCE, wait_until

RULES = Path(package.__file__).parent / "monitoring" / "alerts.yml"


def asked(port: int, path: str) -> Any:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=PATIENCE) as answer:
        return json.load(answer)["data"]


def metrics(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE) as answer:
        return str(answer.read(), "utf-8")


def alerts_of(prometheus: int, name: str) -> list[Any]:
    try:
        alerts = asked(prometheus, "/api/v1/alerts")["alerts"]
    except OSError:
        return []
    return [alert for alert in alerts if alert["labels"]["alertname"] == name]


def writers_metrics() -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(Metrics({}))
    return registry


def lint(text: str) -> str:
    """The findings of promtool on metrics in Prometheus' older form, in which the name of a counter includes
    _total.
    """
    counters = re.findall(r"^# TYPE (\w+) counter$", text, re.M)
    for name in counters:
        text = re.sub(rf"^# (HELP|TYPE|UNIT) {name}\b", rf"# \1 {name}_total", text, flags=re.M)
    text = text.replace("# EOF\n", "")
    ran = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
    return ran.stdout + ran.stderr


def test_a_silent_table_and_a_server_that_is_gone_raise_their_alerts(data: Path, tmp_path: Path) -> None:
    counts, prometheus = free_port(), free_port()
    configuration = tmp_path / "prometheus.yml"
    configuration.write_text(
        f"global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: [{RULES}]\n"
        f"scrape_configs: [{{job_name: ringlog, static_configs: [{{targets: ['127.0.0.1:{counts}']}}]}}]\n"
    )
    with serving(data, "--metrics", f"127.0.0.1:{counts}") as server:
        server.sql("select ringlog.put_sr_rf(row (1, now() + interval '1 hour', 1, 1)::online.sr_rf)")
        command = ["prometheus", f"--config.file={configuration}", f"--storage.tsdb.path={tmp_path / 'tsdb'}"]
        command.append(f"--web.listen-address=127.0.0.1:{prometheus}")
        with (tmp_path / "log").open("w") as log, subprocess.Popen(command, stderr=log) as process:
            try:
                wait_for = (tmp_path / "log").read_text
                alerts = wait_until(lambda: alerts_of(prometheus, "RinglogTableSilent"), wait_for)
                (ahead,) = wait_until(lambda: alerts_of(prometheus, "RinglogTableAhead"), wait_for)
                text = metrics(counts)
                server.process.terminate()
                (gone,) = wait_until(lambda: alerts_of(prometheus, "RinglogServerGone"), wait_for)
                (group,) = asked(prometheus, "/api/v1/rules")["groups"]
            finally:
                process.terminate()
    assert {alert["labels"]["table"] for alert in alerts} == {"sr_mag_ps", "sr_vac", "every_type"}
    assert ahead["labels"]["table"] == "sr_rf"
    assert gone["labels"]["instance"] == f"127.0.0.1:{counts}"
    assert [rule["lastError"] for rule in group["rules"] if "lastError" in rule] == []
    assert lint(text) == ""
    assert lint(generate_latest(writers_metrics()).decode()) == ""
    # a rule over an unknown name would never fire
    known = {*re.findall(r"^# TYPE (\w+)", text, re.M)}
    known |= {metric.name for metric in Metrics({}).collect()}
    # served once the logs have grown, and from the first call on (tests/server/test_metrics.py)
    known |= {"ringlog_disk_left_seconds", "ringlog_gateway_failed_calls"}
    # served with HTTP and with an archive (tests/server)
    known |= {"ringlog_http_up", "ringlog_archive_server_up"}
    # served with a certificate (tests/server/test_serve.py)
    known.add("ringlog_certificate_expiry_seconds")
    # served where a standby is connected (tests/machines)
    known.add("ringlog_standby_replay_lag_seconds")
    named = {name.removesuffix("_total") for name in re.findall(r"\bringlog_\w+", RULES.read_text())}
    assert named - known == set()
