"""Findings of `ringlog doctor` on the disks, kernel and clock of this machine."""

import ctypes
import errno
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

from ringlog.commands.machines.findings import Finding
from ringlog.server.guards.disk import Disk

_NETWORKED = frozenset({"nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "9p"})
_FLEETING = frozenset({"tmpfs", "ramfs"})
# Durable writes a second of a rotating disk: one a turn, at 15,000 turns a minute at most.
_TURNING = 250
# No disk is known to reach this without a cache that survives a power failure.
_PLAUSIBLE = 20_000
# linux/timex.h: the state of a clock that nothing synchronizes.
_TIME_ERROR = 5


def disk(data: Path) -> Iterator[Finding]:
    """Findings on the file system and the disk of a data directory, which need not exist yet."""
    folder = next(folder for folder in (data, *data.parents) if folder.exists())
    beneath = Disk.beneath(data)
    if beneath.is_nearly_full:
        yield Finding(
            "warning",
            str(beneath),
            "a full disk stops every write (error 1105) until there is free space again",
            f"{beneath.remedy}; ringlog status shows how many days are left",
        )
    mounts = [mount for mount in psutil.disk_partitions(all=True) if folder.is_relative_to(mount.mountpoint)]
    if mounts:
        mount = max(mounts, key=lambda mount: len(mount.mountpoint))
        yield from mounted(mount.mountpoint, mount.fstype, mount.opts)
    device = folder.stat().st_dev
    yield from block_device(Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}"))
    if os.access(folder, os.W_OK) and (syncs := syncs_a_second(folder)) is not None:
        yield from plausible(syncs, _turns(device))


def mounted(folder: str, kind: str, given: str) -> Iterator[Finding]:
    """Findings on the type and options of a mount, as in /proc/mounts."""
    options = given.split(",")
    if kind in _FLEETING:
        yield Finding(
            "danger",
            f"{folder} is in memory ({kind})",
            "all data are lost when the machine stops",
            "put the data directory on a disk",
        )
    if kind in _NETWORKED:
        yield Finding(
            "danger",
            f"{folder} is on another machine ({kind})",
            "PostgreSQL relies on synced data being on the disk, which network file systems may not "
            "guarantee",
            "put the data directory on a disk of this machine",
        )
    if {"nobarrier", "barrier=0"} & {*options}:
        yield Finding(
            "danger",
            f"{folder} is mounted without barriers",
            "after a power failure the disk's cache is lost, and acknowledged rows with it",
            "mount it without nobarrier and barrier=0",
        )
    if kind == "btrfs" and "nodatacow" not in options:
        yield Finding(
            "note",
            f"{folder} is on btrfs with copy-on-write",
            "rings are updated in place all the time: copy-on-write fragments their files",
            "chattr +C on the data directory before anything is in it, or another file system (ext4, xfs)",
        )
    if not {"noatime", "relatime"} & {*options}:
        yield Finding(
            "note",
            f"{folder} is mounted with access times",
            "every read of a file then causes a write",
            "mount it with noatime",
        )


def block_device(folder: Path) -> Iterator[Finding]:
    """The settings of a block device, or of the disk it is a part of, below /sys."""
    queue = next(
        (each for each in (folder / "queue", folder.resolve().parent / "queue") if each.is_dir()), None
    )
    if queue is None:
        return
    if _read(queue / "write_cache") == "write back":
        yield Finding(
            "note",
            "the disk has a write cache",
            "this is safe only if it obeys flush commands, or has a battery",
            "check the manufacturer's documentation; otherwise switch the cache off (hdparm -W 0)",
        )
    turning = _read(queue / "rotational") == "1"
    ahead = int(_read(queue / "read_ahead_kb") or 0)
    if turning and ahead < 1024:
        yield Finding(
            "note",
            f"the read-ahead of this rotating disk is {ahead} kB",
            "weeks of a log are read faster with a larger read-ahead",
            "blockdev --setra 8192",
        )
    scheduler = _read(queue / "scheduler")
    if (
        not turning
        and "[" in scheduler
        and not any(f"[{name}]" in scheduler for name in ("none", "mq-deadline"))
    ):
        yield Finding(
            "note",
            f"the disk's scheduler is {scheduler[scheduler.index('[') + 1 : scheduler.index(']')]}",
            "an SSD does not need a scheduler that waits",
            "set it to none or mq-deadline",
        )


def _turns(device: int) -> bool:
    folder = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
    return "1" in (_read(folder / "queue/rotational"), _read(folder.resolve().parent / "queue/rotational"))


def syncs_a_second(folder: Path, seconds: float = 0.5) -> float | None:
    """The rate at which a page can be written and synced, one after another; None: the disk is full."""
    file = folder / f".doctor-{os.getpid()}"
    handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        count, began = 0, time.monotonic()
        while (passed := time.monotonic() - began) < seconds:
            try:
                os.pwrite(handle, b"\1" * 8192, 0)
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                return None
            os.fdatasync(handle)
            count += 1
        return count / passed
    finally:
        os.close(handle)
        file.unlink()


def plausible(syncs: float, turns: bool) -> Iterator[Finding]:
    """Checks whether a disk can do so many syncs a second."""
    if syncs > (_TURNING if turns else _PLAUSIBLE):
        kind = "a rotating disk" if turns else "any disk"
        yield Finding(
            "danger",
            f"{syncs:,.0f} syncs a second are more than {kind} can do",
            "a cache reports data as durable that are not: rows may be lost in a power failure",
            "find the cache (disk, controller, hypervisor) and make it obey flush commands, or make sure "
            "that it has a battery",
        )
    elif syncs < 50:
        yield Finding(
            "warning",
            f"only {syncs:.0f} syncs a second",
            "each commit waits for one; group commit shares them, but they still limit the rate of writing",
            "put the data directory on a faster disk",
        )


def kernel(proc: Path = Path("/proc"), system: Path = Path("/sys")) -> Iterator[Finding]:
    """Settings of the kernel."""
    if "[always]" in _read(system / "kernel/mm/transparent_hugepage/enabled"):
        # https://www.postgresql.org/docs/current/runtime-config-resource.html, huge_pages
        yield Finding(
            "note",
            "the kernel uses huge pages for any memory (transparent_hugepage is always)",
            "processes wait while it collects them; PostgreSQL's manual advises against it",
            "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled, at each start",
        )
    swappiness = _read(proc / "sys/vm/swappiness")
    if swappiness.isdecimal() and int(swappiness) > 10:
        yield Finding(
            "note",
            f"vm.swappiness is {swappiness}",
            "the kernel may move PostgreSQL's memory to disk to cache files",
            "sysctl vm.swappiness=1",
        )
    if _read(proc / "sys/vm/overcommit_memory") != "2":
        yield Finding(
            "note",
            "the kernel allows allocating more memory than there is (vm.overcommit_memory)",
            "when memory runs out it kills a process, and PostgreSQL then restarts",
            "sysctl vm.overcommit_memory=2, with vm.overcommit_ratio according to the other programs here",
        )
    if " hypervisor" in _read(proc / "cpuinfo"):
        yield Finding(
            "note",
            "this is a virtual machine",
            "its host's cache decides whether synced data are durable",
            "have the disk attached with cache=none or writethrough, not unsafe",
        )


class _Timex(ctypes.Structure):
    # struct timex of linux/timex.h, only its size is of interest
    _fields_ = (("modes", ctypes.c_uint), ("rest", ctypes.c_byte * 252))


def clock(state: Callable[[], int] | None = None) -> Iterator[Finding]:
    """Checks whether the kernel reports its clock as synchronized."""
    if state is None:
        library = ctypes.CDLL(None, use_errno=True)
        answer = int(library.ntp_adjtime(ctypes.byref(_Timex())))
    else:
        answer = state()
    if answer == _TIME_ERROR:
        yield Finding(
            "warning",
            "nothing synchronizes the clock",
            "ambiguous times in autumn, rows with times far ahead, and the log's weeks are decided by "
            "this clock",
            "run chrony or systemd-timesyncd",
        )


def wal_disk(cluster: Path) -> Iterator[Finding]:
    """Checks whether the write-ahead log has a disk of its own."""
    if (cluster / "pg_wal").stat().st_dev == cluster.stat().st_dev:
        yield Finding(
            "note",
            "the write-ahead log is on the same disk as the data",
            "they compete for the disk, and a broken disk destroys both",
            "with the server stopped, move pg_wal to another disk and link to it; ringlog backup archives it",
        )


def _read(file: Path) -> str:
    """The contents of a kernel's file; empty where it does not exist."""
    try:
        return file.read_text().strip()
    except OSError:
        return ""
