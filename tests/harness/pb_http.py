"""A reader of PB/HTTP by the appliance's documentation and the library of Protocol Buffers."""

from typing import Any

from epics_event import message


def unescaped(line: bytes) -> bytes:
    """Removes the escapes by the table in the appliance's documentation, the escape itself last."""
    return line.replace(b"\x1b\x03", b"\r").replace(b"\x1b\x02", b"\n").replace(b"\x1b\x01", b"\x1b")


def chunks(answer: bytes) -> list[tuple[Any, list[bytes]]]:
    """Header and lines of each chunk."""
    found = []
    for chunk in answer.removesuffix(b"\n").split(b"\n\n"):
        head, *lines = chunk.split(b"\n")
        found.append(
            (message("PayloadInfo").FromString(unescaped(head)), [unescaped(line) for line in lines])
        )
    return found
