"""The catalogue signs reads of an object store: files of tables that a login may read, and nothing else."""

import re
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
import httpx
import psycopg
import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from catalogues import ALL, ONE, ROWS, Catalogue, published
from object_stores import BUCKET, REGION, ObjectStore, object_store, options

from ringlog.retrieval.iceberg.signature import Keys, encoded, signed
from servers import WRITER, Login, ringlog
from waiting import wait_until

SIGNING = {"header.X-Iceberg-Access-Delegation": "remote-signing"}
SECRETS = "of another project"


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    """A store that takes signed requests only, with objects of others."""
    with object_store() as store:
        yield store


@pytest.fixture(scope="module")
def catalogue(store: ObjectStore, temporary_directory: Path) -> Iterator[Catalogue]:
    """The server has the store's keys, the clients of the tests have not."""
    folder = Path(tempfile.mkdtemp(dir=temporary_directory))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in store.environment.items():
            patch.setenv(name, value)
        # its processes have the environment
        with published(folder, store.archive) as catalogue:
            for name in store.environment:
                patch.delenv(name)
            owner = client(store)
            owner.create_bucket(Bucket="others")
            for bucket, key in (("others", "secret"), (BUCKET, f"{store.folder}x/secret")):
                owner.put_object(Bucket=bucket, Key=key, Body=SECRETS.encode())
            store.check_keys()
            yield catalogue


def client(store: ObjectStore) -> Any:
    return boto3.client("s3", **options(store.url, store.key, store.secret))


def file_of(store: ObjectStore, begin: str) -> str:
    """The address of the file whose name begins so."""
    found = client(store).list_objects_v2(Bucket=BUCKET, Prefix=f"{store.folder}/{begin}")["Contents"]
    # a folder is an object too
    return next(f"{store.url}/{BUCKET}/{one['Key']}" for one in found if not one["Key"].endswith("/"))


def sign(
    catalogue: Catalogue,
    url: str,
    login: Login | None = ONE,
    method: str = "GET",
    table: str = "pumps",
    **headers: str,
) -> httpx.Response:
    given = {name: [value] for name, value in headers.items()}
    request = {"region": REGION, "method": method, "uri": url, "headers": given}
    auth = (login.user, login.password.encode()) if login else None
    return httpx.post(signer(catalogue, table), json=request, auth=auth, trust_env=False)


def signer(catalogue: Catalogue, table: str = "pumps") -> str:
    return f"{catalogue.url}/v1/namespaces/log/tables/{table}/sign"


def sent(answer: httpx.Response, method: str = "GET", url: str | None = None) -> httpx.Response:
    """The store's answer to a signed request, or to another one with its headers."""
    headers = {name: ", ".join(values) for name, values in answer.json()["headers"].items()}
    return httpx.request(method, url or answer.json()["uri"], headers=headers, trust_env=False)


def test_a_login_without_keys_reads_its_tables(catalogue: Catalogue, store: ObjectStore) -> None:
    seen = catalogue.of(ALL, **SIGNING)
    assert seen.load_table("log.magnets").scan().to_arrow()["current"].to_pylist() == [*range(ROWS)]
    table = catalogue.of(ONE, **SIGNING).load_table("log.pumps")
    scan = table.scan(row_filter="speed > 100", selected_fields=("speed",))
    assert scan.to_arrow()["speed"].to_pylist() == [*range(101, ROWS)]
    # the store itself demands a signature by its keys
    url = urlsplit(file_of(store, "pumps/"))
    headers = signed(Keys(store.key, "guess"), REGION, "GET", url, {}, datetime.now(UTC))
    assert httpx.get(url.geturl(), headers=headers, trust_env=False).status_code == 403
    # nothing that the client has is a key
    assert store.secret not in repr(vars(table)) + repr(table.io.properties)


def test_settings_of_signing_are_for_those_who_want_them(catalogue: Catalogue, store: ObjectStore) -> None:
    url, login = f"{catalogue.url}/v1/namespaces/log/tables/pumps", (ALL.user, ALL.password)
    settings = {"s3.endpoint": store.url, "s3.region": REGION, "client.region": REGION}
    for header in ("", "vended-credentials", "vended-credentials, remote-signing"):
        headers = {"X-Iceberg-Access-Delegation": header}
        answer = httpx.get(url, auth=login, headers=headers, trust_env=False)
        assert ("s3.remote-signing-enabled" in answer.json()["config"]) is ("signing" in header)
        assert answer.json()["config"].items() >= settings.items()
        assert store.key not in answer.text


@pytest.mark.parametrize("login", [None, Login(ONE.user, "wrong"), WRITER])
def test_others_sign_nothing(catalogue: Catalogue, store: ObjectStore, login: Login | None) -> None:
    answer = sign(catalogue, file_of(store, "pumps/"), login)
    assert answer.status_code == (403 if login == WRITER else 401)
    assert "Signature" not in answer.text


def test_each_table_signs_its_own_files(catalogue: Catalogue, store: ObjectStore) -> None:
    for table, other in (("pumps", "magnets"), ("magnets", "pumps")):
        for begin in ("", "_iceberg/"):
            own = sign(catalogue, file_of(store, f"{begin}{table}/"), ALL, table=table)
            assert sent(own).status_code == 200
            assert sign(catalogue, file_of(store, f"{begin}{other}/"), ALL, table=table).status_code == 403
            assert (
                sign(catalogue, file_of(store, f"{begin}magnets/"), ONE, table="magnets").status_code == 404
            )
    for table in ("other", "%2e%2e", "pumps%20", "%00", "x" * 10_000):
        assert sign(catalogue, file_of(store, "pumps/"), ALL, table=table).status_code == 404


@pytest.mark.parametrize("token", ["x" * 43, "é"])
def test_a_token_that_is_none_signs_nothing(catalogue: Catalogue, store: ObjectStore, token: str) -> None:
    request = {"region": REGION, "method": "GET", "uri": file_of(store, "pumps/"), "headers": {}}
    headers = {"Authorization": f"Bearer {token}".encode()}
    answer = httpx.post(signer(catalogue), json=request, headers=headers, trust_env=False)
    assert answer.status_code == 401


def test_a_token_ends_with_its_login(catalogue: Catalogue, store: ObjectStore) -> None:
    leaver = Login("leaver", "pass-3")
    words = ("user", "add", leaver.user, "--reader", "--password-stdin", "--data", catalogue.server.data)
    assert ringlog(*words, stdin=leaver.password).returncode == 0
    url = file_of(store, "pumps/")
    assert sent(sign(catalogue, url, leaver)).status_code == 200
    form = {"grant_type": "client_credentials", "client_id": leaver.user, "client_secret": leaver.password}
    token = httpx.post(f"{catalogue.url}/v1/oauth/tokens", data=form, trust_env=False).json()["access_token"]
    request = {"region": REGION, "method": "GET", "uri": url, "headers": {}}

    def by_token() -> int:
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.post(signer(catalogue), json=request, headers=headers, trust_env=False).status_code

    assert by_token() == 200
    assert ringlog("user", "remove", leaver.user, "--data", catalogue.server.data).returncode == 0
    wait_until(lambda: by_token() == 401)


Change = Callable[[str, ObjectStore], str]
ADDRESSES: dict[str, Change] = {
    "another table's rows": lambda url, store: file_of(store, "magnets/"),
    "another table's metadata": lambda url, store: file_of(store, "_iceberg/magnets/"),
    "the archive's own files": lambda url, store: f"{store.url}/{BUCKET}/{store.folder}/ringlog.json",
    "the manifest": lambda url, store: f"{store.url}/{BUCKET}/{store.folder}/manifest.json",
    "a file that is none": lambda url, store: url.replace(".parquet", "-9.parquet"),
    "a replaced file": lambda url, store: url.replace("pumps/", "pumps/_replaced/"),
    "another folder": lambda url, store: f"{store.url}/{BUCKET}/{store.folder}x/secret",
    "another bucket": lambda url, store: f"{store.url}/others/secret",
    "another bucket by its host": lambda url, store: f"{store.url}/secret".replace("//", "//others."),
    "the bucket": lambda url, store: f"{store.url}/{BUCKET}",
    "the folder": lambda url, store: f"{store.url}/{BUCKET}/{store.folder}/",
    "a list": lambda url, store: f"{store.url}/{BUCKET}?list-type=2&prefix={store.folder}",
    "dots": lambda url, store: url.replace("pumps/", "pumps/../magnets/"),
    "dots in metadata": lambda url, store: re.sub(
        "pumps/.*", f"_iceberg/pumps/metadata/../../../{file_of(store, 'magnets/').split('/')[-1]}", url
    ),
    "encoded dots": lambda url, store: url.replace("pumps/", "pumps/%2e%2e/magnets/"),
    "an encoded slash": lambda url, store: url.replace("pumps/", "pumps/..%2fmagnets/"),
    "encoded twice": lambda url, store: url.replace("pumps/", "%2570umps/"),
    "a backslash": lambda url, store: url.replace("pumps/", "pumps\\..\\magnets\\"),
    "no UTF-8": lambda url, store: url.replace("pumps/", "pumps/%ff"),
    "a zero": lambda url, store: f"{url}%00",
    "two slashes": lambda url, store: url.replace("pumps/", "pumps//"),
    "another host": lambda url, store: re.sub("//[^/]*", "//evil.example", url),
    "a user": lambda url, store: url.replace("//", "//store@"),
    "another port": lambda url, store: re.sub(r":\d+", ":1", url),
    "another scheme": lambda url, store: url.replace("http:", "https:"),
    "a version": lambda url, store: f"{url}?versionId=1",
    "its rights": lambda url, store: f"{url}?acl",
    "another operation": lambda url, store: f"{url}?x-id=GetObject&acl",
    "parameters of the answer": lambda url, store: f"{url}?response-content-type=text/html",
    "a presigned address": lambda url, store: f"{url}?X-Amz-Expires=604800",
    "parameters of a path": lambda url, store: f"{url};acl",
    "an empty parameter": lambda url, store: f"{url}?",
    "a fragment": lambda url, store: f"{url}#acl",
    "a line": lambda url, store: f"{url}\n?acl",
    "no address": lambda url, store: "",
    "a name of another store": lambda url, store: url.replace("http:", "s3:"),
}


@pytest.mark.parametrize("kind", ADDRESSES)
def test_other_objects_are_not_signed(catalogue: Catalogue, store: ObjectStore, kind: str) -> None:
    url = file_of(store, "pumps/")
    answer = sign(catalogue, ADDRESSES[kind](url, store))
    assert answer.status_code in (400, 403), answer.text
    assert answer.json()["error"]["code"] == answer.status_code
    assert "Signature" not in answer.text


@pytest.mark.parametrize("method", ["PUT", "DELETE", "POST", "PATCH", "OPTIONS", "get", "GET\nDELETE", ""])
def test_other_methods_are_not_signed(catalogue: Catalogue, store: ObjectStore, method: str) -> None:
    answer = sign(catalogue, file_of(store, "pumps/"), ALL, method)
    assert answer.status_code == 403
    assert "only GET and HEAD" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    "headers",
    [
        {"x-amz-copy-source": "/others/secret"},
        {"X-Amz-Security-Token": "x"},
        {"x-amz-date": "20260101T000000Z"},
        {"x-amz-content-sha256": "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"},
        {"x-amz-checksum-mode": "ENABLED\nx-amz-acl:public-read"},
        {"x-amz-checksum-mode\n": "ENABLED"},
    ],
)
def test_other_headers_are_not_signed(
    catalogue: Catalogue, store: ObjectStore, headers: dict[str, str]
) -> None:
    answer = sign(catalogue, file_of(store, "pumps/"), **headers)
    assert answer.status_code == 403
    assert "Signature" not in answer.text


@pytest.mark.parametrize("body", [b"", b"[]", b"7", b"{}", b'{"method": "GET"}', b"\xff", b"[" * 100_000])
def test_other_bodies_are_refused(catalogue: Catalogue, body: bytes) -> None:
    login = (ALL.user, ALL.password)
    answer = httpx.post(signer(catalogue), content=body, auth=login, trust_env=False)
    assert answer.status_code == 400
    assert "region, uri, method and headers" in answer.json()["error"]["message"]


def test_a_signature_is_for_one_request(catalogue: Catalogue, store: ObjectStore) -> None:
    url, other = file_of(store, "pumps/"), file_of(store, "magnets/")
    answer = sign(catalogue, url)
    assert sent(answer).status_code == 200
    assert sent(answer, url=other).status_code == 403
    for method in ("PUT", "DELETE"):
        assert sent(answer, method).status_code == 403
    assert sent(answer, url=f"{url}?acl").status_code == 403
    head = sent(sign(catalogue, url, method="HEAD"), "HEAD")
    assert int(head.headers["content-length"]) == len(sent(answer).content)


def test_a_right_that_has_ended_signs_nothing(catalogue: Catalogue, store: ObjectStore) -> None:
    url = file_of(store, "pumps/")
    assert sign(catalogue, url).status_code == 200
    with psycopg.connect(catalogue.server.dsn, autocommit=True) as admin:
        admin.execute("revoke select on log.pumps from one")
        try:
            assert sign(catalogue, url).status_code == 404
            assert sign(catalogue, file_of(store, "_iceberg/pumps/")).status_code == 404
        finally:
            admin.execute("grant select on log.pumps to one")


def test_the_documented_example() -> None:
    """`GET Object` of https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html."""
    keys = Keys("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
    url = urlsplit("https://examplebucket.s3.amazonaws.com/test.txt")
    headers = {"range": "bytes=0-9", "x-amz-content-sha256": sha256(b"").hexdigest()}
    now = datetime(2013, 5, 24, tzinfo=UTC)
    assert signed(keys, "us-east-1", "GET", url, headers, now) == {
        "x-amz-date": "20130524T000000Z",
        "Authorization": "AWS4-HMAC-SHA256 "
        "Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
        "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,"
        "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
    }


@pytest.mark.parametrize("path", ["/weeks/1/pumps/2026w10.parquet", "/weeks/é x/~a+b=c&d.parquet"])
def test_the_signature_is_that_of_the_sdk(path: str) -> None:
    keys = Keys("name", "secret", "token/+=")
    url = urlsplit(f"http://store:9000{encoded(path)}?x-id=GetObject")
    request = AWSRequest("GET", url.geturl(), {"x-amz-checksum-mode": "ENABLED"})
    request.context["payload_signing_enabled"] = False
    S3SigV4Auth(Credentials(keys.name, keys.secret, keys.token), "s3", "eu-1").add_auth(request)
    now = datetime.strptime(request.context["timestamp"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    headers = {
        "x-amz-checksum-mode": "ENABLED",
        "x-amz-content-sha256": request.headers["X-Amz-Content-SHA256"],
    }
    ours = signed(keys, "eu-1", "GET", url, headers, now)
    assert ours["Authorization"] == request.headers["Authorization"].replace(", ", ",")
