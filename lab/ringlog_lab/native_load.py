"""A load by one contender for some seconds, and its cost in each process."""

import json
import os
import subprocess
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from ringlog.loadtest.experiment.errors import LoadTestError
from ringlog.loadtest.experiment.facility import Tables
from ringlog.loadtest.experiment.native import WARM, command
from ringlog.loadtest.experiment.server import Server
from ringlog_lab.stolen import Stolen


@dataclass(frozen=True)
class Contender:
    """A way to call put_<table>."""

    key: str
    title: str
    version: str = ""
    """of TDS; empty for straight to PostgreSQL"""
    group: int = 1
    """calls in one transaction"""


# Each call is a transaction of its own, on a connection of its own.
DIRECT = Contender("direct", "direct, one by one")
# The practical limit: 4 connections, on each the calls of 15 tables as one transaction.
PIPELINED = Contender("pipelined", "direct, pipelined", group=15)
TDS5 = Contender("tds5", "gateway, TDS 5.0", "5.0")
TDS74 = Contender("tds74", "gateway, TDS 7.4", "7.4")
CONTENDERS = {one.key: one for one in (DIRECT, PIPELINED, TDS5, TDS74)}
GATEWAY = (TDS5, TDS74)
_PIPELINES = 4


@dataclass(frozen=True)
class Measurement:
    """Calls measured in one round of one part. Times in seconds, CPU in seconds of the whole measurement."""

    part: str
    contender: str
    round: int
    columns: int
    connections: int
    calls: int
    """acknowledged while it was measured"""
    acknowledged: int
    """all calls of the load, including the warm-up"""
    seconds: float
    p50: float
    p99: float
    p999: float
    max: float
    silence: float
    """the longest time in which no call at all was acknowledged"""
    clients: float
    gateway: float
    postgres: float
    backends: float
    """that part of `postgres` which serves connections; the rest is autovacuum, checkpoints and the like"""
    others: float
    """CPU of processes outside the measurement"""
    cores: int
    wal: int
    memory: int
    by_second: list[list[float]]
    """calls acknowledged in each second, and the longest that one of them took"""
    stolen: list[float] = field(default_factory=list)
    """CPU that the machine's host took in each second, of all processors"""

    @property
    def rate(self) -> float:
        """Calls a second."""
        return self.calls / self.seconds

    @property
    def values(self) -> float:
        """Values a second."""
        return self.rate * self.columns

    @property
    def server(self) -> float:
        """CPU spent on calls by PostgreSQL's backends and the gateway together."""
        return self.backends + self.gateway

    @property
    def background(self) -> float:
        """CPU of PostgreSQL's other processes: autovacuum, checkpoints and the like."""
        return self.postgres - self.backends

    @property
    def gateway_share(self) -> float | None:
        """CPU of the gateway ÷ that of PostgreSQL's backends; None when none of theirs was counted."""
        return self.gateway / self.backends if self.backends else None

    @property
    def rate_without_clients(self) -> float:
        """Calls a second if the clients ran elsewhere and their share of the machine served calls too."""
        return self.rate / (1 - self.clients / (self.seconds * self.cores))

    def each(self, cost: float) -> float:
        """A cost of the whole measurement, for one call."""
        return cost / self.calls


@dataclass(frozen=True)
class Load:
    """Calls of put procedures: `connections` callers, each with one call outstanding."""

    contender: Contender
    tables: Tables
    connections: int
    seconds: float
    warm: float = WARM
    rate: float = 0.0
    """calls a second of each caller; 0: at once after each answer"""

    def command(self, programs: Path, server: Server, first: int) -> list[str]:
        """The client and its arguments. `first`: the row of the rings to continue from."""
        one = self.contender
        return command(
            programs / ("tdsload" if one.version else "pgload"),
            server.port if one.version else server.postgres_port,
            self.tables,
            _PIPELINES if one.group > 1 else self.connections,
            self.seconds,
            first,
            version=one.version,
            warm=self.warm,
            group=one.group,
            callers=self.connections,
            rate=self.rate,
        )


class Stand:
    """The environment of loads: the programs, the server, and the calls acknowledged so far on each group of
    tables."""

    def __init__(self, programs: Path, server: Server) -> None:
        self.programs = programs
        self.server = server
        self.acknowledged: dict[Tables, int] = {}

    def run(self, load: Load, part: str, round: int = 0) -> Measurement:
        """Runs a load and measures it.

        Raises LoadTestError with the client's message if a call fails: such a run measures nothing.
        """
        before = self.acknowledged.get(load.tables, 0)
        # its measurement begins when the first mark is taken
        command = [*load.command(self.programs, self.server, before // load.tables.count), "-m"]
        stolen = Stolen()
        with (
            ExitStack() as measured,
            subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            ) as client,
        ):
            try:
                assert client.stdin is not None
                assert client.stdout is not None
                assert client.stderr is not None
                client.stdin.write(f"{self.server.password}\n")
                client.stdin.flush()
                marks = []
                result: dict[str, Any] | None = None
                for line in client.stdout:
                    if line.startswith("{"):
                        result = json.loads(line)
                    else:
                        marks.append(self.server.mark())
                        if line == "end\n":
                            measured.close()
                            client.stdin.close()
                            continue
                        measured.enter_context(stolen)
                        # not by the buffer, whose rest would fail once more when the pipe is closed
                        with suppress(BrokenPipeError):  # its output has the reason of its end
                            os.write(client.stdin.fileno(), b"\n")
                complaint = client.stderr.read().strip()
            except BaseException:
                client.kill()
                raise
        if client.returncode != 0 or result is None:
            raise LoadTestError(f"{load.contender.title}: {complaint or 'the client ended without a result'}")
        self.acknowledged[load.tables] = before + result["acknowledged"]
        begin, end = marks
        # the client's seconds are exact, the marks lie a few milliseconds beside them
        share = result["seconds"] / (end.moment - begin.moment)
        gateway, postgres = (end.gateway - begin.gateway) * share, (end.postgres - begin.postgres) * share
        clients = result.pop("cpu")
        others = (end.machine - begin.machine) * share - gateway - postgres - clients
        return Measurement(
            part=part,
            contender=load.contender.key,
            round=round,
            columns=load.tables.columns,
            connections=load.connections,
            clients=clients,
            gateway=gateway,
            postgres=postgres,
            backends=(end.backends - begin.backends) * share,
            others=max(0.0, others),
            cores=psutil.cpu_count() or 1,
            wal=int((end.wal - begin.wal) * share),
            memory=end.memory,
            stolen=stolen.seconds,
            **result,
        )
