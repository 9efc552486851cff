"""PostgreSQL's fast shutdown, which becomes an immediate one if it makes no progress."""

import logging
import signal
import time
from contextlib import suppress
from pathlib import Path

import psutil

log = logging.getLogger(__name__)

_LOOK = 1.0  # seconds between two requests to stop
_REPORT = 10.0  # seconds between two messages
# Seconds without progress after which it is stopped immediately: before it has written that it stops, and
# after.
_STANDSTILL = 60.0
_STANDSTILL_STOPPING = 10.0
_IDLE_WORK = 0.2  # the work of its idle processes in that time, see `_work_done`


def pid_file(cluster: Path) -> list[str]:
    """postmaster.pid's lines: process, data directory, start, port, socket, address, memory, state."""
    return [line.strip() for line in (cluster / "postmaster.pid").read_text().splitlines()]


def stop_server(process: psutil.Process) -> None:
    """Requests PostgreSQL's fast shutdown and waits: sessions end, everything is written.

    Without progress it is stopped immediately, and its next start recovers: PostgreSQL 18.4 waits for ever if
    it is stopped in the first milliseconds of a recovery.
    """
    began = moved = reported = time.monotonic()
    done = _work_done(process)
    while True:
        # repeated: a server that has only begun to start ignores SIGINT if it was started with SIGINT
        # ignored, as a shell script does for commands with &
        with suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGINT)
        try:
            process.wait(_LOOK)
            return
        except psutil.TimeoutExpired:
            now = time.monotonic()
            if now - reported > _REPORT:
                reported = now
                log.info("PostgreSQL is stopping, %.0f s so far", now - began)
            # less than before: a process has ended
            if abs((more := _work_done(process)) - done) > _IDLE_WORK:
                done, moved = more, now
            elif now - moved > (_STANDSTILL_STOPPING if _is_stopping(process) else _STANDSTILL):
                log.warning(
                    "PostgreSQL has made no progress for %.0f s: stopping it immediately", now - moved
                )
                with suppress(psutil.NoSuchProcess):
                    process.send_signal(signal.SIGQUIT)


def _is_stopping(process: psutil.Process) -> bool:
    """Whether PostgreSQL has written that it stops, and none of its processes waits for a disk."""
    with suppress(OSError, IndexError, psutil.Error):
        status = pid_file(Path(process.cwd()))[7]
        disk = any(each.status() == psutil.STATUS_DISK_SLEEP for each in process.children())
        return status == "stopping" and not disk
    return False


def _work_done(process: psutil.Process) -> float:
    """The work of a PostgreSQL so far: CPU seconds of its processes plus MB of disk I/O."""
    done = 0.0
    with suppress(psutil.Error):
        for one in [process, *process.children()]:
            with suppress(psutil.Error):
                cpu, files = one.cpu_times(), one.io_counters()
                done += cpu.user + cpu.system + (files.read_bytes + files.write_bytes) / 1e6
    return done
