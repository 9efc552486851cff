"""Soft IOCs for the tests, and programs that are their clients."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from servers import RINGLOG, RunningServer, free_port
from waiting import PATIENCE, wait_until

PUTTING = """
import sys
from p4p.client.thread import Context

with Context("pva") as context:
    for name, value in (each.split("=") for each in sys.argv[1:]):
        context.put(name, eval(value), request="record[block=true]")
"""
"""A program that puts values to PVs by PV Access, `name=value`."""

SOURCE = """
import json, sys, time
import numpy
from p4p.nt import NTNDArray, NTScalar
from p4p.server import Server
from p4p.server.thread import SharedPV

kinds, images = {"d": NTScalar("d"), "ad": NTScalar("ad")}, NTNDArray()
pvs = {}

def update(kind, value, age, severity):
    # others are images of a type of numpy
    value = value if kind in kinds else numpy.array(value, kind)
    made = kinds.get(kind, images).wrap(value, timestamp=time.time() - age)
    if severity:
        made["alarm.severity"], made["alarm.status"] = severity, 1
    return made

def take(line):
    for name, *content in json.loads(line):
        if name in pvs:
            pvs[name].post(update(*content))
        else:
            pvs[name] = SharedPV(initial=update(*content))

take(sys.stdin.readline())
with Server(providers=[pvs]):
    print("serving", flush=True)
    for line in sys.stdin:
        take(line)
"""


class Source:
    """A PV Access server whose PVs begin with these updates: name, type ("d", "ad", or numpy's of an image),
    value, age of the value in seconds, severity. An alarm that is none is not marked in an update."""

    def __init__(self, environment: dict[str, str], *updates: tuple[str, str, object, float, int]) -> None:
        port = str(free_port())
        own = {"EPICS_PVA_SERVER_PORT": port, "EPICS_PVAS_SERVER_PORT": port}
        self._process = subprocess.Popen(
            [sys.executable, "-c", SOURCE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | environment | own,
        )
        self.post(*updates)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "serving\n"

    def post(self, *updates: tuple[str, str, object, float, int]) -> None:
        print(json.dumps(updates), file=self._process.stdin, flush=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()


@dataclass
class Ioc:
    """A soft IOC, and its addresses for clients."""

    database: Path
    environment: dict[str, str]
    process: subprocess.Popen[bytes] | None = None
    preload: str = ""
    """a library that is loaded first"""

    @property
    def log(self) -> Path:
        return self.database.with_suffix(".log")

    def start(self) -> None:
        own = {"LD_PRELOAD": self.preload} if self.preload else {}
        command = [sys.executable, "-m", "pvxslibs.ioc", "-d", str(self.database)]
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                env=os.environ | self.environment | own,
            )
        wait_until(self._runs, lambda: self.log.read_text(errors="replace"))

    def _runs(self) -> bool:
        assert self.process is not None
        output = self.log.read_text(errors="replace")
        assert self.process.poll() is None, output
        return "IOC Running" in output

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()


@dataclass
class Loader:
    """`ringlog load` from an IOC."""

    process: "subprocess.Popen[bytes]"
    log: Path

    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def is_running(self) -> bool:
        assert self.process.poll() is None, self.output()
        return True

    def stop(self) -> str:
        """Ends it; returns its output."""
        self.process.terminate()
        self.process.wait(PATIENCE)
        assert self.process.returncode == 0, self.output()
        return self.output()


class Programs:
    """Programs that end with the test."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        self.environment = environment
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self, name: str, *command: str | Path, **environment: str) -> "subprocess.Popen[bytes]":
        """A program whose output is in a file of the folder."""
        with (self.folder / name).open("ab") as output:
            process = subprocess.Popen(
                [str(word) for word in command],
                stdout=output,
                stderr=output,
                env=os.environ | self.environment | environment,
            )
        self._running.append(process)
        return process

    def load(self, server: RunningServer, source: str, tables: str, *options: str) -> Loader:
        """The writers of tables of a server, whose facility file is named like its data."""
        url = f"tds://writer@{server.host}:{server.port}"
        where = ("--facility", server.data.with_suffix(".toml"), "--url", url, "--source", source)
        secret = {"RINGLOG_PASSWORD": server.writer.password, "RINGLOG_SPOOL": str(self.folder / "spool")}
        process = self.start("load", RINGLOG, "load", *where, "--tables", tables, *options, **secret)
        return Loader(process, self.folder / "load")

    def stop(self) -> None:
        for process in self._running:
            process.terminate()
        for process in self._running:
            process.wait(PATIENCE)
