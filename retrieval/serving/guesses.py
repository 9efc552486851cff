"""Wrong passwords are answered late, and many of one login and address are tried one by one.

The limits are the gateway's (gateway/src/limits/admission.rs): a login with the password that was right last
is never delayed, so that nobody can lock others out. Tokens are too long to be guessed.
"""

import base64
import binascii
import time
from dataclasses import dataclass
from hashlib import sha256
from typing import TypeVar

import anyio
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ringlog.gateway._core import FORGOTTEN, FREE_FAILURES, LONGEST_WAIT, MOST_REMEMBERED, REFUSAL_PAUSE, TURN

Value = TypeVar("Value")


@dataclass
class _Failed:
    count: int
    last: float
    turn: float
    """when the next try may begin"""


class Guesses:
    """Delays requests with wrong passwords."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._failed: dict[tuple[str, str], _Failed] = {}
        self._right: dict[tuple[str, str], bytes] = {}
        """digests of credentials, by address and login"""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        shown = Headers(scope=scope).get("authorization") if scope["type"] == "http" else None
        user = None if shown is None else _user(shown)
        if shown is None or user is None:
            await self._app(scope, receive, send)
            return
        client = scope.get("client")
        key = (client[0] if client else "", user)
        digest = sha256(shown.encode()).digest()
        if self._right.get(key) != digest:
            wait = self._turn(key, time.monotonic())
            if wait > LONGEST_WAIT:
                words = "too many wrong passwords of this login came from this address: try again later\n"
                await PlainTextResponse(words, 429, {"Retry-After": "60"})(scope, receive, send)
                return
            await anyio.sleep(wait)

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                if message["status"] == 401:
                    self._count(key, time.monotonic())
                    await anyio.sleep(REFUSAL_PAUSE)
                elif message["status"] < 400 and self._right.get(key) != digest:
                    # a client that goes on beside guesses does not make up for them
                    self._failed.pop(key, None)
                    _put(self._right, key, digest)
            await send(message)

        await self._app(scope, receive, sending)

    def _turn(self, key: tuple[str, str], now: float) -> float:
        """Takes the next turn. Returns the seconds until then."""
        failed = self._failed.get(key)
        if failed is None or failed.count < FREE_FAILURES or now - failed.last > FORGOTTEN:
            return 0.0
        wait = max(failed.turn - now, 0.0)
        if wait <= LONGEST_WAIT:
            failed.turn = now + wait + TURN
        return wait

    def _count(self, key: tuple[str, str], now: float) -> None:
        failed = self._failed.get(key)
        if failed is None or now - failed.last > FORGOTTEN:
            failed = _Failed(0, now, now)
        failed.count += 1
        failed.last = now
        _put(self._failed, key, failed)


def _put(values: dict[tuple[str, str], Value], key: tuple[str, str], value: Value) -> None:
    """Adds a value; the oldest goes if there are too many."""
    values.pop(key, None)
    if len(values) >= MOST_REMEMBERED:
        del values[next(iter(values))]
    values[key] = value


def _user(shown: str) -> str | None:
    """The login that an Authorization header names; None: it has no readable password."""
    scheme, _, credentials = shown.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        return base64.b64decode(credentials.strip()).decode(errors="replace").partition(":")[0]
    except binascii.Error:
        return None
