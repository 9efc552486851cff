"""The process that serves HTTP ends with the one that has started it."""

import os
import signal
import threading

import pytest

from ringlog.server.web import Web, settings
from waiting import PATIENCE, is_alive, wait_until


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


def test_one_that_does_not_understand_its_server_ends_for_it_to_start_another() -> None:
    web = Web(settings("127.0.0.1", 0, "host=127.0.0.1 port=1 dbname=none"))
    with web.running():
        assert web._process is not None
        first = web._process
        assert first.stdin is not None
        first.stdin.write(b"no nodes\n")
        # with an exit code of its own: its end is not an abort
        assert first.wait(PATIENCE) == 0
        wait_until(lambda: web._process is not first)
