"""The certificate of a running server: its expiry, and its renewal without a restart."""

import logging
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from prometheus_client.core import GaugeMetricFamily

from ringlog.gateway import Gateway, Tls
from ringlog.monitoring.metrics import exposition
from ringlog.retrieval.serving.renewal import followed

log = logging.getLogger(__name__)

SOON = timedelta(days=30)
"""A certificate that expires within this is to be renewed."""


def expiry(file: Path) -> datetime:
    """When a certificate expires (PEM; the first of a chain). Raises OSError, or ValueError."""
    try:
        return not_after(ssl.PEM_cert_to_DER_cert(_first_certificate(file.read_text())))
    except IndexError as error:
        raise ValueError(f"{file} cannot be read: {error}") from None


def warn(file: Path) -> None:
    """Logs when a certificate has expired or expires soon."""
    try:
        ends = expiry(file)
    except (OSError, ValueError) as error:
        log.error("the expiry of the certificate %s cannot be read: %s", file, error)
        return
    left = ends - datetime.now(UTC)
    if left < timedelta(0):
        log.error(
            "the certificate %s has expired on %s: clients that verify it cannot connect. Renew it; the "
            "server takes the new one without a restart",
            file,
            f"{ends:%Y-%m-%d}",
        )
    elif left < SOON:
        log.warning("the certificate %s expires on %s: renew it", file, f"{ends:%Y-%m-%d}")


def metrics_of(file: Path) -> str:
    """Seconds until the certificate expires, as OpenMetrics text without its end."""
    try:
        left = (expiry(file) - datetime.now(UTC)).total_seconds()
    except (OSError, ValueError):
        return ""
    description = "Seconds until the certificate of TLS expires; negative when it has."
    return exposition(
        [GaugeMetricFamily("ringlog_certificate_expiry", description, round(left), unit="seconds")]
    )


@contextmanager
def renewed(gateway: Gateway, tls: Tls, hang_up: threading.Event) -> Iterator[None]:
    """Lets the gateway load a renewed certificate inside the block, at once when `hang_up` is set."""

    def renew() -> None:
        gateway.reload_tls()
        log.info("the certificate %s was read again, for connections from now on", tls.certificate)
        warn(tls.certificate)

    warn(tls.certificate)
    with followed([tls.certificate, tls.key], renew, hang_up):
        yield


def _first_certificate(text: str) -> str:
    begin, end = ssl.PEM_HEADER, ssl.PEM_FOOTER
    if begin not in text or end not in text:
        raise ValueError("it has no PEM block")
    return begin + text.split(begin, 1)[1].split(end, 1)[0] + end


def not_after(der: bytes) -> datetime:
    """The end of a certificate's validity (RFC 5280, 4.1): Certificate, its first element, the fifth of that
    (sixth after a version), the second of that. Raises ValueError or IndexError."""

    def elements(content: bytes) -> list[tuple[int, bytes]]:
        found = []
        while content:
            kind, length, offset = content[0], content[1], 2
            if length & 0x80:
                offset += length & 0x7F
                length = int.from_bytes(content[2:offset], "big")
            found.append((kind, content[offset : offset + length]))
            content = content[offset + length :]
        return found

    ((_, signed), *_) = elements(elements(der)[0][1])
    parts = elements(signed)
    kind, text = elements(parts[4 if parts[0][0] == 0xA0 else 3][1])[1]
    digits = text.decode("ascii")
    if kind == 0x17:
        # UTCTime: two digits of the year, 50 to 49
        digits = ("19" if digits[:2] >= "50" else "20") + digits
    return datetime.strptime(digits, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)
