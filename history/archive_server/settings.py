"""The settings of the archive server's process, as the server sends them; it needs no other library."""

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Settings:
    """The settings of the process; the password is never on a command line."""

    host: str
    port: int
    """0 is a free one"""
    password: str
    uid: int | None = None
    """account to run under"""
    gid: int | None = None

    def to_json(self) -> bytes:
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def from_json(cls, text: bytes) -> "Settings":
        return cls(**json.loads(text))
