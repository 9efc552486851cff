"""Words to systemd, as sd_notify(3) describes them: one datagram to the socket it names."""

import os
import socket


def notify(words: str) -> None:
    """Tells systemd `READY=1`, `WATCHDOG=1`, `STATUS=…`; does nothing where nobody listens."""
    name = os.environ.get("NOTIFY_SOCKET")
    if not name:
        return
    # a name that begins with @ is an abstract one
    address = "\0" + name[1:] if name.startswith("@") else name
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
            sender.sendto(words.encode(), address)
    except OSError:
        # a writer goes on without being watched
        return
