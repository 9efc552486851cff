"""Reads of an object store that the catalogue signs: a request for one file of an archive.

The catalogue takes a request apart, checks each part, and signs the request that it builds from them.

https://github.com/apache/iceberg/blob/main/aws/src/main/resources/s3-signer-open-api.yaml
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

import orjson

from ringlog.history.archive.addresses import METADATA, object_store
from ringlog.history.archive.folder import Folder
from ringlog.retrieval.iceberg.signature import CONTENT, Keys, encoded, signed
from ringlog.retrieval.serving.refused import Refused

_QUERIES = {"GET": ("", "x-id=GetObject"), "HEAD": ("", "x-id=HeadObject")}
"""of each permitted method; some SDKs name the operation, which stores ignore"""
_SIGNED = {
    CONTENT: "UNSIGNED-PAYLOAD|[0-9a-f]{64}",
    "x-amz-checksum-mode": "ENABLED",
    "x-amz-te": "append-md5",
}
"""the permitted values of headers x-amz-…: S3 demands that all of these be signed"""
_METADATA_FILE = re.compile(r"[^/]+\.(?:avro|metadata\.json)")


@dataclass(frozen=True)
class Store:
    """The object store of an archive, as a client addresses it."""

    endpoint: str
    region: str
    bucket: str
    folder: str
    """the begin of the keys of all files"""

    def options(self) -> dict[str, str]:
        """The settings by which a client of the catalogue reads the store."""
        return {
            "s3.endpoint": self.endpoint,
            "s3.region": self.region,
            "client.region": self.region,
            "s3.path-style-access": "true",
        }

    def name(self, url: SplitResult) -> str | None:
        """The file's name below the archive's folder; None: the address is not below it."""
        endpoint = urlsplit(self.endpoint)
        hosts = {endpoint.netloc: f"/{self.bucket}/", f"{self.bucket}.{endpoint.netloc}": "/"}
        begin = hosts.get(url.netloc)
        if url.scheme != endpoint.scheme or begin is None:
            return None
        key = unquote(url.path, errors="strict")
        return key.removeprefix(begin + self.folder) if key.startswith(begin + self.folder) else None


@lru_cache(100)
def store(archive: str) -> Store | None:
    """The object store of an archive; None: a folder of a machine."""
    if archive.startswith("/"):
        return None
    options, url = object_store(archive), urlsplit(archive)
    region = options.get("s3.region") or Folder(archive).region
    endpoint = options.get("s3.endpoint", f"https://s3.{region}.amazonaws.com").lower()
    root = url.path.strip("/")
    return Store(endpoint, region, url.netloc, f"{root}/" if root else "")


@dataclass(frozen=True)
class Reading:
    """A client's request to read an object."""

    method: str
    url: SplitResult
    headers: Mapping[str, str]
    """those to be signed, with lower-case names"""

    def signed(self, store: Store, keys: Keys, now: datetime) -> dict[str, Any]:
        """The answer in the specification's form: the address, and the headers that the request needs
        besides."""
        url = self.url._replace(path=encoded(unquote(self.url.path)))
        headers = signed(keys, store.region, self.method, url, self.headers, now)
        return {"uri": url.geturl(), "headers": {name: [value] for name, value in headers.items()}}


def reading(body: bytes) -> Reading:
    """The request in a body. Raises Refused: 400 for one that cannot be read, 403 for one that does more than
    read one object."""
    try:
        given = orjson.loads(body)
        method, address = str(given["method"]), str(given["uri"])
        headers = {str(name).lower(): ",".join(values) for name, values in given["headers"].items()}
        url = urlsplit(address)
        if not unquote(url.path, errors="strict").isprintable():
            raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError):
        raise Refused(400, "a request to sign is JSON with region, uri, method and headers") from None
    if method not in _QUERIES:
        raise Refused(403, f"method {method[:20]} is not signed, only GET and HEAD")
    if url.query not in _QUERIES[method] or address != url.geturl() or url.fragment:
        raise Refused(403, "an address with parameters is not signed")
    headers = {name: value for name, value in headers.items() if name.startswith("x-amz-")}
    for name, value in headers.items():
        if not re.fullmatch(_SIGNED.get(name, "(?!)"), value):
            raise Refused(403, f"a request with the header {name[:60]} and this value is not signed")
    return Reading(method, url, headers)


def is_metadata(name: str, table: str) -> bool:
    """Whether a file of the archive belongs to the metadata of a table."""
    begin = f"{METADATA}/{table}/metadata/"
    return name.startswith(begin) and _METADATA_FILE.fullmatch(name, len(begin)) is not None


def settings(endpoint: str) -> dict[str, str]:
    """The settings of a client whose reads are signed at this address below the catalogue's, as Iceberg's
    Java library and pyiceberg name them. The library knows the address from 1.12 on."""
    return {
        "s3.remote-signing-enabled": "true",
        "s3.signer.endpoint": endpoint,
        "s3.signer": "S3V4RestSigner",
        # pyiceberg's other file system signs by keys only
        "py-io-impl": "pyiceberg.io.fsspec.FsspecFileIO",
    }
