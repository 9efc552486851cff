"""Notifications of `ringlog load` to systemd."""

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ringlog.loader.control.notify import notify
from waiting import PATIENCE

pytestmark = pytest.mark.long


def test_systemd_is_notified_of_ready_alive_and_stopping(
    load: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(PATIENCE)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        one = load("--tables", "magnet")
        assert systemd.recv(1000) == b"READY=1"
        for _ in range(2):
            assert systemd.recv(1000).startswith(b"WATCHDOG=1\nSTATUS=1 of 1 writers running")
        assert one.stop()[0] == 0
        heard = systemd.recv(1000)
        while heard.startswith(b"WATCHDOG=1"):
            heard = systemd.recv(1000)
        assert heard == b"STOPPING=1"


def test_without_systemd_nothing_happens(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    notify("READY=1")
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "nobody"))
    notify("READY=1")
