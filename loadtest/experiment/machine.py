"""The description of the machine and software of a load test, so that its figures can be compared and
repeated."""

import importlib.metadata
import os
import platform
import subprocess
from dataclasses import dataclass
from pathlib import Path

import psutil

from ringlog.schema import session

_SETTINGS = (
    "fsync",
    "synchronous_commit",
    "full_page_writes",
    "shared_buffers",
    "max_wal_size",
    "checkpoint_timeout",
    "wal_compression",
    "max_connections",
)


@dataclass(frozen=True)
class Machine:
    """The machine of the clients, and of the server if it is the same."""

    processor: str
    cores: int
    memory: int
    """bytes"""
    system: str
    file_system: str
    """of the server's data"""


def this_machine(data: Path | None) -> Machine:
    """This machine; `data` is the folder of the server's data, if the server is here."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")
    return Machine(
        processor=model or platform.machine(),
        cores=psutil.cpu_count() or 1,
        memory=psutil.virtual_memory().total,
        system=f"{_distribution()}, {platform.system()} {platform.release()}",
        file_system=file_system(data) if data else "",
    )


def versions(conninfo: str) -> dict[str, str]:
    """Versions of everything that took part."""
    import pymssql

    with session.connect(conninfo) as connection:
        postgres = connection.info.parameter_status("server_version") or "?"
    return {
        "ringlog": _commit(),
        "PostgreSQL": postgres,
        "Python": platform.python_version(),
        "pymssql": importlib.metadata.version("pymssql"),
        "FreeTDS in pymssql": pymssql.get_dbversion().removeprefix("freetds v"),
        "locust": importlib.metadata.version("locust"),
        "gevent": importlib.metadata.version("gevent"),
    }


def settings(conninfo: str) -> dict[str, str]:
    """PostgreSQL's settings that matter for writing."""
    with session.connect(conninfo) as connection:
        rows = connection.execute(
            "select name, current_setting(name) from pg_settings where name = any(%s)", [list(_SETTINGS)]
        ).fetchall()
    values: dict[str, str] = dict(rows)
    return {name: values[name] for name in _SETTINGS if name in values}


def load_average() -> float:
    """The 1-minute load average, which papers/004 reads from /proc/loadavg."""
    return os.getloadavg()[0]


def _commit() -> str:
    """The version, and the commit if it runs from the sources."""
    version = importlib.metadata.version("ringlog")
    folder = str(Path(__file__).resolve().parent)
    command = ["git", "-C", folder, "describe", "--always", "--dirty", "--exclude", "*"]
    try:
        commit = subprocess.run(command, capture_output=True, text=True).stdout.strip()
    except FileNotFoundError:
        commit = ""
    return f"{version}, commit {commit}" if commit else version


def _distribution() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except OSError:
        return "an unknown distribution"


def file_system(path: Path) -> str:
    """The type of the file system of a path (which need not exist yet)."""
    mounts = {part.mountpoint: part.fstype for part in psutil.disk_partitions(all=True)}
    folder = path.resolve()
    while str(folder) not in mounts and folder != folder.parent:
        folder = folder.parent
    return mounts.get(str(folder), "?")
