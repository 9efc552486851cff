"""Notifications to systemd, as sd_notify(3) describes them: one datagram to its socket."""

import os
import socket


def notify(message: str) -> None:
    """Sends `READY=1`, `WATCHDOG=1`, `STATUS=…` to systemd; does nothing without systemd's socket."""
    name = os.environ.get("NOTIFY_SOCKET")
    if not name:
        return
    # a name that begins with @ is an abstract address
    address = "\0" + name[1:] if name.startswith("@") else name
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
            sender.sendto(message.encode(), address)
    except OSError:
        # the writer continues without systemd's watchdog
        return
