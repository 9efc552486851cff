"""Restarts a supervisor's processes while a test waits."""

from collections.abc import Callable

from ringlog.loader.supervisor import Supervisor
from waiting import wait_until


def tend_until(
    supervisor: Supervisor, find: Callable[[], object], why: Callable[[], object] = lambda: None
) -> None:
    """Restarts dead processes until `find` is true; `why` describes the present state."""

    def tended() -> object:
        supervisor.tend(0.05)
        return find()

    wait_until(tended, why)
