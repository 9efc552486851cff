"""The metrics of all writers for Prometheus: one endpoint, in a process of its own.

The supervisor forks, and so has no threads: this process answers instead, from the memory that it shares with
the writers. It takes no part in writing, and uses no CPU without requests.
"""

import math
import time
from collections.abc import Iterator, Mapping
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from ringlog.clients.figures import State
from ringlog.loader.control.stop_signal import StopSignal
from ringlog.loader.statistics import Statistics

# Bounds of the histogram, in octaves above 10 microseconds: 0.16 ms to 10.5 s.
_BOUNDS = range(4, 21)
# Seconds between two checks of the stop.
_TICK = 60.0

COUNTERS = {
    "rows": ("sent", "Rows of the source that were put into the spool."),
    "acknowledged_rows": ("acknowledged", "Rows that the server has acknowledged."),
    "bytes": ("bytes", "Bytes of the acknowledged readings, in the types of their columns."),
    "commits": ("commits", "Answered calls, one transaction each."),
    "batches": ("batches", "Calls that contained several rows of the backlog."),
    "late_rows": ("late", "Rows that arrived at the server after newer ones."),
    "refused_rows": ("refused", "Rows that the server refused because of their content."),
    "thinned_rows": ("thinned", "Rows dropped because the spool was full or damaged."),
    "repeated_calls": ("repeated", "Calls sent again because no answer arrived."),
    "reconnects": ("reconnected", "Lost connections."),
    "missed_cycles": ("missed", "Cycles in which the source gave no reading."),
    "dropped_readings": ("dropped", "Readings that were replaced by a newer one before a row was made."),
    "restarts": ("restarts", "Restarts of the writer's process."),
    "cpu_seconds": ("cpu", "Processor time of the writer's process."),
}
"""Name of a counter, its field in Statistics, and its help."""


class Metrics(Collector):
    """The counts of writers, by table."""

    def __init__(self, statistics: Mapping[str, Statistics]) -> None:
        self._statistics = statistics

    def collect(self) -> Iterator[Metric]:
        """The metrics, as collected by prometheus_client at each scrape."""
        for name, (field, description) in COUNTERS.items():
            counter = CounterMetricFamily(f"ringlog_writer_{name}", description, labels=["table"])
            for table, one in self._statistics.items():
                counter.add_metric([table], getattr(one, field))
            yield counter
        spooled = GaugeMetricFamily(
            "ringlog_writer_spooled_rows", "Rows not yet acknowledged.", labels=["table"]
        )
        age = GaugeMetricFamily(
            "ringlog_writer_oldest_spooled_seconds",
            "Age of the oldest row not yet acknowledged; 0 when there is none.",
            labels=["table"],
        )
        running = GaugeMetricFamily(
            "ringlog_writer_running", "1 while the writer is connected and writes.", labels=["table"]
        )
        latency = HistogramMetricFamily(
            "ringlog_writer_call_seconds", "Time from a call to its answer.", labels=["table"]
        )
        for table, one in self._statistics.items():
            spooled.add_metric([table], one.spooled)
            age.add_metric([table], max(0.0, time.time() - one.oldest / 1e6) if one.oldest else 0.0)
            running.add_metric([table], one.state == State.RUNNING)
            buckets = [
                (str(bound) if math.isfinite(bound) else "+Inf", count)
                for bound, count in one.buckets(_BOUNDS)
            ]
            latency.add_metric([table], buckets, one.total_latency)
        yield from (spooled, age, running, latency)


class _Quiet(WSGIRequestHandler):
    # timeout in seconds of a client's request, while others wait
    timeout = 10

    def log_message(self, format: str, *args: object) -> None:
        """Does not log scrapes."""


class Endpoint:
    """Answers every GET on host and port with the counts of these writers. Raises OSError if it cannot listen
    on the address.
    """

    def __init__(self, host: str, port: int, statistics: Mapping[str, Statistics]) -> None:
        self._server = WSGIServer((host, port), _Quiet)
        registry = CollectorRegistry()
        registry.register(Metrics(statistics))
        self._server.set_app(make_wsgi_app(registry))

    @property
    def port(self) -> int:
        """The port that it listens on, also if port 0 was requested."""
        return self._server.server_port

    def run(self, _statistics: Statistics, stop: StopSignal) -> None:
        """Answers until the stop is released."""
        while True:
            if stop.sleep(_TICK, self._server.fileno()):
                self._server.handle_request()
