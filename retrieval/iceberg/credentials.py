"""Client credentials of OAuth 2, in a form, become HTTP Basic: passwords are tried and slowed in one way."""

import base64
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ringlog.retrieval.iceberg.routes import TOKENS

_FIELDS = ("grant_type", "client_id", "client_secret")
_LONGEST = 8192  # bytes of a form


class Credentials:
    """Reads the form of a request for a token, as RFC 6749 (2.3.1, 4.4.2) describes it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_asked = scope["type"] == "http" and scope["path"] == TOKENS and scope["method"] == "POST"
        if is_asked and "authorization" not in Headers(scope=scope):
            form = parse_qs((await _body(receive)).decode(errors="replace"), keep_blank_values=True)
            kind, user, password = (form.get(name, [""])[-1] for name in _FIELDS)
            if kind == "client_credentials" and user:
                headers = MutableHeaders(scope=scope)
                headers["authorization"] = f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"
                scope = {**scope, "headers": headers.raw}
        await self._app(scope, receive, send)


async def _body(receive: Receive) -> bytes:
    """The body; of a longer one than a form has, the begin."""
    body, more = b"", True
    while more and len(body) <= _LONGEST:
        message: Message = await receive()
        body += message.get("body", b"")
        more = message["type"] == "http.request" and message.get("more_body", False)
    return body
