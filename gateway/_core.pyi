class Gateway:
    """A running TDS server. It listens from construction on and serves until `stop`.

    `postgres` is a libpq key=value connection string for the gateway's own role `ringlog_gateway`
    (host, port, dbname, user, password). Client logins use its host, port and dbname with the
    client's own user and password. `port` 0 takes a free port.

    Raises OSError when the address cannot be listened on, ValueError for a connection string that
    cannot be read, ConnectionError when PostgreSQL refuses the gateway's own login.
    """

    def __init__(self, postgres: str, host: str = "127.0.0.1", port: int = 5000) -> None: ...
    @property
    def address(self) -> tuple[str, int]: ...
    def stop(self) -> None:
        """Ends the sessions after their running call and releases the port."""
