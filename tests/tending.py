"""A supervisor's processes, tended while a test waits."""

from collections.abc import Callable

from ringlog.loader.supervisor import Supervisor
from waiting import wait_until


def tend_until(
    supervisor: Supervisor, find: Callable[[], object], why: Callable[[], object] = lambda: None
) -> None:
    """Starts what died again until `find` is true; `why` describes how it stands instead."""

    def tended() -> object:
        supervisor.tend(0.05)
        return find()

    wait_until(tended, why)
