"""The settings of the process that serves HTTP, as the server sends them; it needs no other library."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from ringlog.retrieval.serving.limits import Limits


@dataclass(frozen=True)
class LoginServer:
    """A server that logins connect to: its connection string without user and password, and a complete one
    for requests without a login; None refuses such requests."""

    database: str
    everyone: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Settings:
    """Settings of a server. Connection strings may contain passwords: never put them on a command line."""

    host: str
    port: int
    """0: any free port"""
    database: str
    """libpq connection string without user and password, for clients with a login"""
    everyone: str | None = None
    """connection string for clients without a login; None refuses them"""
    certificate: str | None = None
    key: str | None = None
    uid: int | None = None
    """account to run under, after the key is read and the port is bound"""
    gid: int | None = None
    data: str | None = None
    """folder on the disk of the data, if it is on this machine"""
    limits: Limits = field(default_factory=Limits)
    nodes: Mapping[str, LoginServer] = field(default_factory=dict)

    def to_json(self) -> bytes:
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def from_json(cls, text: bytes) -> "Settings":
        values = json.loads(text)
        return cls(**{**values, "limits": Limits(**values["limits"]), "nodes": _nodes_of(values["nodes"])})


def nodes_to_json(nodes: Mapping[str, LoginServer]) -> bytes:
    return json.dumps({name: asdict(node) for name, node in nodes.items()}).encode() + b"\n"


def nodes_from_json(text: bytes) -> dict[str, LoginServer]:
    return _nodes_of(json.loads(text))


def _nodes_of(values: Mapping[str, dict[str, str]]) -> dict[str, LoginServer]:
    return {name: LoginServer(**value) for name, value in values.items()}
