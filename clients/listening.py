"""Where a program listens, as an option says it."""


def host_and_port(text: str) -> tuple[str, int] | None:
    """Reads HOST:PORT, an IPv6 address in brackets; None when it is none."""
    host, _, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        return None
    if not host or not (port.isascii() and port.isdecimal()) or int(port) > 65535:
        return None
    return host, int(port)
