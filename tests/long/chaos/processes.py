"""The processes of a site, and their kills."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psutil

from random_operations import LOOK, Operation

_AGAIN = 0.02
"""probability at each look that a server is killed which is still starting"""

Processes = Callable[[Any], list[psutil.Process]]


def kill(choose: Processes) -> Operation:
    """Kills one of these processes: none may run."""

    def act(site: Any, draw: Any) -> bool:
        with suppress(psutil.Error, OSError, IndexError, ValueError):
            draw.choice(choose(site)).kill()
            return True
        return False

    return act


def kill_at_any_time(choose: Processes) -> Operation:
    """Kills one of these processes, seldom also while the server starts. Writers may wait until it is back,
    for which the next kill does not wait."""

    def act(site: Any, draw: Any) -> bool:
        if not site.server.accepts_calls and draw.random() > _AGAIN:
            return False
        with suppress(psutil.Error, OSError, IndexError, ValueError):
            process = draw.choice(choose(site))
            threading.Thread(target=excuse, args=(site,), daemon=True).start()
            process.kill()
            return True
        return False

    return act


def excuse(site: Any) -> None:
    """Writers may wait until the server answers again."""
    with site.excused():
        time.sleep(LOOK)
        site.until_it_answers()


def restarted(operation: Operation) -> Operation:
    """The operation, which ends the server or PostgreSQL; writers may wait until it answers again."""

    def act(site: Any, draw: Any) -> bool:
        with site.excused():
            try:
                operation(site, draw)
            except (psutil.Error, OSError, IndexError, ValueError):
                return False
            site.tend()
            site.until_it_answers()
        return True

    return act


def postmaster(site: Any) -> list[psutil.Process]:
    lines = (site.data / "postgresql-18" / "postmaster.pid").read_text().splitlines()
    process = psutil.Process(int(lines[0]))
    return [process] if process.name() == "postgres" else []


def postgres(words: str, has_words: bool = True) -> Processes:
    """PostgreSQL's processes by their titles."""

    def choose(site: Any) -> list[psutil.Process]:
        children = [child for process in postmaster(site) for child in process.children()]
        return [child for child in children if (words in " ".join(child.cmdline())) == has_words]

    return choose


def server(site: Any) -> list[psutil.Process]:
    return [psutil.Process(site.server.pid)]


def web(site: Any) -> list[psutil.Process]:
    children = server(site)[0].children(recursive=True)
    return [child for child in children if "ringlog.server.processes.web_process" in child.cmdline()]


def load(site: Any) -> list[psutil.Process]:
    return [psutil.Process(site.load.pid)]


def writers_of_load(site: Any) -> list[psutil.Process]:
    return load(site)[0].children()


kill_gateway = restarted(lambda site, draw: site.server.kill())
kill_postgresql = restarted(lambda site, draw: site.server.kill_postgresql())
kill_backend = restarted(kill(postgres(" ringlog ")))
