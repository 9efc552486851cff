"""Authentication: HTTP Basic and bearer tokens become logins of PostgreSQL, which decides every right
itself."""

import base64
import binascii
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from ringlog.retrieval.serving.refused import CHALLENGE, Refused
from ringlog.retrieval.serving.settings import LoginServer

_TOKEN_LIFE = 12 * 3600.0  # seconds
_TOKENS = 1000  # at once
_LOGINS = 200  # whose connection strings are kept
_LONGEST = 1024  # bytes of a user and password


_PATIENCE = 5  # seconds that a node may take to answer


@dataclass(frozen=True)
class Login:
    """A login that may connect. `conninfo` is a libpq connection string with the password. `on_node` is the
    same login on a node; it raises Refused for an unknown node."""

    name: str
    conninfo: str = field(repr=False)
    on_node: Callable[[str], "Login"] = field(repr=False, compare=False)


class Access:
    """Finds the login of a request.

    `first` is the server on which clients log in, `nodes` are other servers by their names.
    """

    def __init__(
        self, first: LoginServer, seconds: float, nodes: Mapping[str, LoginServer] | None = None
    ) -> None:
        self._first = first
        self._nodes = dict(nodes or {})
        self._settings = {
            "application_name": "ringlog web",
            "options": f"-c statement_timeout={int(seconds * 1000)} -c default_transaction_read_only=on"
            " -c timezone=UTC -c jit=off",
        }
        # parsing connection strings takes as long as a small query
        self._login = lru_cache(_LOGINS)(self._made_login)
        self._login_of_all = lru_cache(_LOGINS)(self._made_login_of_all)
        self._tokens: dict[str, tuple[float, Login]] = {}
        self._lock = threading.Lock()

    @property
    def open(self) -> bool:
        """Whether requests without a login are served."""
        return self._first.everyone is not None

    def know_nodes(self, nodes: Mapping[str, LoginServer]) -> None:
        """Adds nodes, or replaces the addresses of nodes with these names."""
        self._nodes = self._nodes | dict(nodes)

    def login(self, authorization: str | None) -> Login:
        """The login of a request's Authorization header. Raises Refused (401)."""
        if authorization is None:
            if self._first.everyone is None:
                raise Refused(
                    401, "log in: HTTP Basic with a login of PostgreSQL, or a bearer token", CHALLENGE
                )
            return self._login_of_all(self._first.everyone)
        scheme, _, shown = authorization.partition(" ")
        if scheme.lower() == "basic":
            return self._basic(shown.strip())
        if scheme.lower() == "bearer":
            return self._bearer(shown.strip())
        raise Refused(
            401, f"authentication by {scheme[:20]!r} is not supported: use Basic or Bearer", CHALLENGE
        )

    def token(self, login: Login) -> tuple[str, float]:
        """A new bearer token for a login, and its validity in seconds.

        The token is kept in this process's memory only.
        """
        now = time.monotonic()
        token = secrets.token_urlsafe(32)
        with self._lock:
            for old in [each for each, (until, _) in self._tokens.items() if until < now]:
                del self._tokens[old]
            if len(self._tokens) >= _TOKENS:
                # of the login that has most: one login does not use up those of others
                tokens_of = Counter(owner.name for _, owner in self._tokens.values())
                ((name, _),) = tokens_of.most_common(1)
                del self._tokens[next(old for old, (_, owner) in self._tokens.items() if owner.name == name)]
            self._tokens[token] = (now + _TOKEN_LIFE, login)
        return token, _TOKEN_LIFE

    def _basic(self, shown: str) -> Login:
        try:
            user, colon, password = base64.b64decode(shown, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            user = colon = password = ""
        if not colon or not user or "\0" in user + password or len(user) + len(password) > _LONGEST:
            raise Refused(401, "the Basic credentials cannot be read", CHALLENGE)
        return self._login(self._first.database, user, password)

    def _made_login(self, database: str, user: str, password: str) -> Login:
        def on_node(name: str) -> Login:
            there = make_conninfo(self._node(name).database, connect_timeout=_PATIENCE)
            return self._login(there, user, password)

        return Login(user, make_conninfo(database, user=user, password=password, **self._settings), on_node)

    def _made_login_of_all(self, conninfo: str) -> Login:
        def on_node(name: str) -> Login:
            server = self._node(name)
            if server.everyone is None:
                raise Refused(401, f"log in: node {name} can be read with a login only", CHALLENGE)
            return self._login_of_all(make_conninfo(server.everyone, connect_timeout=_PATIENCE))

        # the options may already name a role
        options = f"{conninfo_to_dict(conninfo).get('options') or ''} {self._settings['options']}".strip()
        return Login("everyone", make_conninfo(conninfo, **self._settings | {"options": options}), on_node)

    def _node(self, name: str) -> LoginServer:
        server = self._nodes.get(name)
        if server is None:
            raise Refused(
                503,
                f"node {name} is not known here: try again in some seconds; ringlog web learns of nodes by"
                " the administrator's connection string only",
            )
        return server

    def _bearer(self, token: str) -> Login:
        with self._lock:
            until, login = self._tokens.get(token, (0.0, None))
        if login is None or until < time.monotonic():
            raise Refused(401, "the token is unknown or has expired: get one at /api/v1/token", CHALLENGE)
        return login
