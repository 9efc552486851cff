from pathlib import Path

class Server:
    def __init__(
        self,
        *,
        postgres: list[tuple[str, int]],
        read_write: bool,
        sslmode: str,
        sslrootcert: Path | None,
        database: str,
        role: str,
        password: str,
        host: str,
        port: int,
        nodes: list[tuple[str, tuple[list[tuple[str, int]], bool, str, Path | None, str], str, str]] = ...,
        tls: tuple[Path, Path, bool] | None = None,
        postmaster: int | None = None,
        writers_first: bool = True,
    ) -> None: ...
    @property
    def address(self) -> tuple[str, int]: ...
    def metrics(self) -> str: ...
    def know_nodes(
        self, nodes: list[tuple[str, tuple[list[tuple[str, int]], bool, str, Path | None, str], str, str]]
    ) -> None: ...
    def last_calls(
        self,
    ) -> list[tuple[str, tuple[str, str, str], float, tuple[float, int, str] | None]]: ...
    def stop(self) -> None: ...

class Mirror:
    def __init__(self, *, host: str, port: int, old: str, new: str, report: Path) -> None: ...
    @property
    def address(self) -> tuple[str, int]: ...
    @property
    def new_answers(self) -> bool: ...
    def switch(self, new: bool, close: bool) -> None: ...
    def metrics(self) -> str: ...
    def stop(self) -> None: ...

def start_log(level: str, *, json: bool) -> None: ...
def self_signed(names: list[str], days: int) -> tuple[str, str]: ...

class TsqlError(Exception):
    """A text of T-SQL cannot be run; `args` are the number, the line (from 1) and the text of the error."""

    args: tuple[int, int, str]

def translate(text: str, *, database: str = "", sybase: bool = False) -> list[str]: ...
