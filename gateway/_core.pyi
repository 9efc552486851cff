class Server:
    def __init__(
        self,
        *,
        postgres_host: str,
        postgres_port: int,
        database: str,
        role: str,
        password: str,
        host: str,
        port: int,
    ) -> None: ...
    @property
    def address(self) -> tuple[str, int]: ...
    def metrics(self) -> str: ...
    def stop(self) -> None: ...
