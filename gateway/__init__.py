"""How legacy clients reach ringlog: the TDS server in front of PostgreSQL."""

from dataclasses import dataclass
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict

from ringlog.gateway._core import Server, self_signed

__all__ = ["Gateway", "Tls", "self_signed"]


@dataclass(frozen=True)
class Tls:
    """How the gateway encrypts: PEM files of a certificate (with its chain) and its key.

    With `required` nobody logs in without TLS; otherwise clients that do not ask for it go on in the clear.
    """

    certificate: Path
    key: Path
    required: bool


class Gateway:
    """A running TDS server. It listens from construction on and serves until `stop`.

    `postgres` is a libpq connection string for the gateway's own role (host, port, dbname, user,
    password). Client logins go to the same host, port and dbname with the client's own user and
    password. `port` 0 takes a free port.

    Raises OSError when the address cannot be listened on, ValueError for a connection string that
    says too little or too much and for a certificate or key that cannot be used, ConnectionError when
    PostgreSQL refuses the gateway's own login.
    """

    def __init__(
        self, postgres: str, host: str = "127.0.0.1", port: int = 5000, tls: Tls | None = None
    ) -> None:
        settings = {key: str(value) for key, value in conninfo_to_dict(postgres).items() if value is not None}
        missing = [key for key in ("host", "dbname", "user", "password") if key not in settings]
        if missing:
            raise ValueError(f"the gateway's connection string lacks {', '.join(missing)}")
        if settings.get("sslmode") in ("require", "verify-ca", "verify-full"):
            raise ValueError(f"the gateway does not speak TLS to PostgreSQL: sslmode={settings['sslmode']}")
        self._server = Server(
            postgres_host=settings["host"],
            postgres_port=int(settings.get("port", "5432")),
            database=settings["dbname"],
            role=settings["user"],
            password=settings["password"],
            host=host,
            port=port,
            tls=None if tls is None else (tls.certificate, tls.key, tls.required),
        )

    @property
    def address(self) -> tuple[str, int]:
        """Host and port it listens on."""
        return self._server.address

    def metrics(self) -> str:
        """What the gateway counts, as OpenMetrics text."""
        return self._server.metrics()

    def stop(self) -> None:
        """Ends the sessions after their running call and releases the port."""
        self._server.stop()
