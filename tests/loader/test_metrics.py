"""The metrics of writers, read as by Prometheus."""

import time
from collections.abc import Callable
from typing import Any

from scraping import read

from ringlog.loader.metrics import Metrics
from ringlog.loader.statistics import shared
from servers import free_port
from waiting import PATIENCE, wait_until


def test_one_endpoint_serves_all_writers(
    load: Callable[..., Any], stored: Callable[[str], list[Any]]
) -> None:
    port = free_port()
    before = len(stored("beam")), len(stored("magnet"))
    one = load("--tables", "beam,magnet", "--metrics", f"127.0.0.1:{port}")

    def wrote() -> bool:
        assert one.process.poll() is None, one.end()
        new = [len(stored(table)) - rows for table, rows in zip(("beam", "magnet"), before, strict=True)]
        return new[0] > new[1] >= 5

    counts: dict[str, dict[str, float]] = {}

    def agree() -> bool:
        """Whether the counts are consistent, and of five rows: a row is stored before it is counted."""
        counts.update(read(port))
        rows = counts["ringlog_writer_acknowledged_rows_total"]
        commits, batches = counts["ringlog_writer_commits_total"], counts["ringlog_writer_batches_total"]
        # one transaction a row, unless a writer was late and sent some in one; 60 reals and one double
        return (
            commits == counts["ringlog_writer_call_seconds_count"]
            and min(rows.values(), default=0) >= 5
            and all(rows[table] - commits[table] >= batches[table] for table in rows)
            and all(rows[table] == commits[table] for table in rows if not batches[table])
            and counts["ringlog_writer_bytes_total"]
            == {"magnet": 240 * rows["magnet"], "beam": 8 * rows["beam"]}
            and counts["ringlog_writer_spooled_rows"]["beam"] <= 2
            and counts["ringlog_writer_oldest_spooled_seconds"]["beam"] < 5
        )

    wait_until(wrote)
    wait_until(agree, lambda: counts)
    code, said = one.stop()
    assert code == 0, said
    written = len(stored("magnet")) - before[1]
    rows = counts["ringlog_writer_acknowledged_rows_total"]
    assert rows["magnet"] <= written
    assert 0 < counts["ringlog_writer_call_seconds_sum"]["beam"] < 10 * rows["beam"]
    assert counts["ringlog_writer_running"] == {"beam": 1, "magnet": 1}
    assert counts["ringlog_writer_reconnects_total"] == {"beam": 0, "magnet": 0}
    assert counts["ringlog_writer_cpu_seconds_total"]["beam"] > 0


def test_latencies_are_counted_by_octaves_and_ages_from_the_oldest_row() -> None:
    (one,) = shared(1)
    for latency in (0.00005, 0.001, 0.001, 0.5, 100.0):
        one.answered(latency)
    one.oldest = time.time_ns() // 1000 - 90_000_000
    one.spooled = 3
    found = {family.name: family for family in Metrics({"beam": one}).collect()}
    (age,) = found["ringlog_writer_oldest_spooled_seconds"].samples
    assert 90 <= age.value < 90 + PATIENCE
    histogram = found["ringlog_writer_call_seconds"].samples
    buckets = {float(each.labels["le"]): each.value for each in histogram if "le" in each.labels}
    assert [*buckets] == sorted(buckets)
    assert buckets[0.00016] == 1
    assert buckets[0.00128] == 3
    assert buckets[10.48576] == 4
    assert buckets[float("inf")] == 5
    (total,) = (each.value for each in histogram if each.name.endswith("_sum"))
    assert abs(total - 100.50205) < 1e-6


def test_an_address_in_use_is_named(load: Callable[..., Any], quick_server: Any) -> None:
    taken = f"{quick_server.host}:{quick_server.port}"
    code, said = load("--tables", "beam", "--metrics", taken).end()
    assert code == 1
    assert f"ringlog: --metrics: cannot listen on {taken}: " in said
