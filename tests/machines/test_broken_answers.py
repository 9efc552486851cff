"""A program that dies in the middle of its answer is treated like one that does not answer."""

import socket
import threading
from collections.abc import Iterator

import pytest

from ringlog.commands.machines import ha
from ringlog.machines import guard, state
from ringlog.machines.site import Unreachable
from ringlog.machines.state import Access, Member, SiteState


@pytest.fixture
def dying() -> Iterator[int]:
    """The port of a server that sends less than announced."""

    def serve() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            with client:
                client.recv(65536)
                client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_a_broken_answer_is_no_answer(dying: int, monkeypatch: pytest.MonkeyPatch) -> None:
    access = Access("a", "127.0.0.1", "plant", ("127.0.0.1",), dying, "user", "secret")
    with pytest.raises(Unreachable, match="no Patroni answers"):
        state.cluster(access, access.machines)
    monkeypatch.setattr(guard, "ETCD_PORT", dying)
    assert not guard.release(access, "b")


def test_a_lost_machine_is_no_witness(capsys: pytest.CaptureFixture[str]) -> None:
    """Patroni's members are those that answered it lately; etcd has the addresses of all machines."""
    left = Member("db2", "10.0.0.2", 5432, "leader", "running", 2, None, None, "", None, None)
    now = SiteState((left,), False, {"10.0.0.1": False, "10.0.0.2": True, "10.0.0.3": True}, {"db2": None})
    ha._show(now)
    lines = capsys.readouterr().out.splitlines()
    (lost,) = (line for line in lines if line.startswith("10.0.0.1 "))
    (witness,) = (line for line in lines if line.startswith("10.0.0.3 "))
    assert ("does not answer" in lost, "witness" in lost, "witness" in witness) == (True, False, True)
    assert "the machine 10.0.0.1 does not answer: neither its etcd nor its Patroni" in lines
