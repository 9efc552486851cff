"""The signature of a request to S3, version 4, in its headers.

https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
"""

import hmac
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from urllib.parse import SplitResult, quote

_ALGORITHM = "AWS4-HMAC-SHA256"
DATE, CONTENT, TOKEN = "x-amz-date", "x-amz-content-sha256", "x-amz-security-token"


@dataclass(frozen=True)
class Keys:
    """The store's keys of this process."""

    name: str
    secret: str = field(repr=False)
    token: str | None = field(default=None, repr=False)
    """of keys that end"""


def keys_of_environment() -> Keys | None:
    """The keys in the environment; None without any."""
    name, secret = os.environ.get("AWS_ACCESS_KEY_ID"), os.environ.get("AWS_SECRET_ACCESS_KEY")
    return Keys(name, secret, os.environ.get("AWS_SESSION_TOKEN") or None) if name and secret else None


def encoded(path: str) -> str:
    """A path as S3 signs it: UTF-8, each byte but A-Z a-z 0-9 - . _ ~ / as % and two digits."""
    return quote(path, safe="/-._~")


def signed(
    keys: Keys, region: str, method: str, url: SplitResult, headers: Mapping[str, str], now: datetime
) -> dict[str, str]:
    """The headers that a request with these `headers` needs besides.

    `url` is encoded, with the parameters sorted; the names of `headers` are in lower case. The body is not
    signed unless `headers` has its digest.
    """
    moment = now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    added = {DATE: moment}
    if CONTENT not in headers:
        added[CONTENT] = "UNSIGNED-PAYLOAD"
    if keys.token is not None:
        added[TOKEN] = keys.token
    every = {"host": url.netloc, **headers, **added}
    names = ";".join(sorted(every))
    lines = [f"{name}:{' '.join(every[name].split())}\n" for name in sorted(every)]
    request = "\n".join((method, url.path, url.query, "".join(lines), names, every[CONTENT]))
    scope = f"{moment[:8]}/{region}/s3/aws4_request"
    text = "\n".join((_ALGORITHM, moment, scope, sha256(request.encode()).hexdigest()))
    key = b"AWS4" + keys.secret.encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    words = f"{_ALGORITHM} Credential={keys.name}/{scope},SignedHeaders={names},Signature={signature}"
    return {"Authorization": words, **added}
