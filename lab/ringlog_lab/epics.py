"""A soft IOC for an experiment, and a `ringlog load` as its client."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from ringlog.clients.listening import free_port
from ringlog.loadtest.experiment.errors import LoadTestError
from ringlog.loadtest.experiment.server import WRITER, Server

_STARTED = 60.0


def own_ports(choose: Callable[[], int] = free_port) -> dict[str, str]:
    """Environment variables with which an IOC and its clients find only each other, by ports of `choose`."""
    port, pva, broadcast = (str(choose()) for _ in range(3))
    return {
        "EPICS_CA_SERVER_PORT": port,
        "EPICS_CAS_INTF_ADDR_LIST": "127.0.0.1",
        "EPICS_CA_ADDR_LIST": "127.0.0.1",
        "EPICS_CA_AUTO_ADDR_LIST": "NO",
        "EPICS_PVA_SERVER_PORT": pva,
        "EPICS_PVAS_SERVER_PORT": pva,
        "EPICS_PVA_BROADCAST_PORT": broadcast,
        "EPICS_PVAS_BROADCAST_PORT": broadcast,
        "EPICS_PVA_ADDR_LIST": "127.0.0.1",
        "EPICS_PVA_AUTO_ADDR_LIST": "NO",
        "EPICS_PVAS_INTF_ADDR_LIST": "127.0.0.1",
    }


@contextmanager
def ioc(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], ready: str
) -> Iterator["subprocess.Popen[bytes]"]:
    """A running IOC, after it has reported its start. Raises LoadTestError if it does not."""
    log = folder / "ioc.log"
    with log.open("wb") as log_file:
        process = subprocess.Popen(
            [sys.executable, "-P", *command],
            stdin=subprocess.PIPE,
            stdout=log_file,
            stderr=log_file,
            env=os.environ | dict(environment),
            process_group=0,
        )
    try:
        began = time.monotonic()
        while ready not in log.read_text(errors="replace"):
            if process.poll() is not None or time.monotonic() - began > _STARTED:
                raise LoadTestError(f"the soft IOC did not start: {log.read_text(errors='replace')[-300:]}")
            time.sleep(0.1)
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def loading(
    server: Server, facility: Path, folder: Path, environment: Mapping[str, str]
) -> Iterator["subprocess.Popen[bytes]"]:
    """The writers of all tables of a facility, by Channel Access; their spool is sent when this ends."""
    url = f"tds://{WRITER}@{server.host}:{server.port}"
    command = [sys.executable, "-P", "-m", "ringlog", "load", "--facility", str(facility), "--url", url]
    own = {"RINGLOG_PASSWORD": server.password, "RINGLOG_SPOOL": str(folder / "spool")}
    with (folder / "load.log").open("wb") as log_file:
        process = subprocess.Popen(
            [*command, "--source", "ca", "--processes", str(os.cpu_count() or 1)],
            stdin=subprocess.DEVNULL,
            stdout=log_file,
            stderr=log_file,
            env=os.environ | dict(environment) | own,
            process_group=0,
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait()
