"""The last callers are noted by every gateway of a database."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from ringlog.gateway import Gateway, LastCall
from ringlog.monitoring import callers
from ringlog.monitoring.callers import callers_kept


def test_they_are_noted_in_one_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two gateways that record the same procedures in different orders would wait for each other's rows."""
    noted: list[list[str]] = []

    def note(_: str, calls: list[LastCall]) -> None:
        noted.append([call.procedure for call in calls])

    monkeypatch.setattr(callers, "_note", note)
    made: list[Any] = [SimpleNamespace(procedure=f"ringlog.put_{name}", called=1.0) for name in "cab"]
    with callers_kept(cast(Gateway, SimpleNamespace(last_calls=lambda: made)), ""):
        pass
    assert noted == [["ringlog.put_a", "ringlog.put_b", "ringlog.put_c"]]
