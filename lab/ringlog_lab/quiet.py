"""Whether a machine does nothing else: a figure from a busy machine is no figure."""

import os
import time

import psutil

LOAD = 0.2
"""the highest load average of the minute before"""
OTHERS = 0.1
"""the highest CPU of all processes, in cores"""
_SAMPLE, _PAUSE = 3.0, 5.0


def busy_seconds() -> float:
    """CPU time of all processes of the machine so far, on all its cores."""
    times = psutil.cpu_times()
    # of a virtual machine: the time that its host gave to others
    beside = times.idle + getattr(times, "iowait", 0.0) + getattr(times, "steal", 0.0)
    return float(sum(times) - beside - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0))


def disturbance(patience: float = 0.0) -> str:
    """What keeps the machine busy, with figures; empty if nothing does. Waits so many seconds for it to end:
    a load average has the load of the minutes before."""
    until = time.monotonic() + patience
    while True:
        began, before = time.monotonic(), busy_seconds()
        time.sleep(_SAMPLE)
        cores = (busy_seconds() - before) / (time.monotonic() - began)
        load = os.getloadavg()[0]
        if load < LOAD and cores < OTHERS:
            return ""
        if time.monotonic() > until:
            return (
                f"the load average is {load:.2f} and other processes use {cores:.2f} cores: figures are made "
                f"below {LOAD} and {OTHERS}"
            )
        time.sleep(_PAUSE)
