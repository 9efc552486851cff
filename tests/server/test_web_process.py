"""The process that serves HTTP ends with the one that has started it."""

import os
import signal
import threading

import pytest

from ringlog.web import Web, settings
from waiting import is_alive


def test_one_that_is_started_again_at_the_moment_of_the_stop_ends_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    web = Web(settings("127.0.0.1", 0, "host=127.0.0.1 port=1 dbname=none"))
    begin, starts = web._begin, threading.Event()

    def begin_at_the_stop() -> None:
        starts.set()
        web._stop.wait()
        begin()

    with web.running():
        first = web.pid
        monkeypatch.setattr(web, "_begin", begin_at_the_stop)
        os.kill(first, signal.SIGKILL)
        starts.wait()
    assert web.pid != first
    assert not is_alive(web.pid)
