from pathlib import Path

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
        tls: tuple[Path, Path, bool] | None = None,
    ) -> None: ...
    @property
    def address(self) -> tuple[str, int]: ...
    def metrics(self) -> str: ...
    def stop(self) -> None: ...

def self_signed(names: list[str], days: int) -> tuple[str, str]: ...
