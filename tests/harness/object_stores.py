"""An object store of a test: S3 as implemented by moto, in this process."""

import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import boto3
import httpx
from moto.server import ThreadedMotoServer

BUCKET, REGION = "weeks", "us-east-1"
_EVERYTHING = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}


@dataclass(frozen=True)
class ObjectStore:
    url: str
    folder: str
    """of the archive, in its bucket: moto keeps its buckets"""
    key: str
    secret: str

    @property
    def archive(self) -> str:
        host = self.url.removeprefix("http://")
        options = f"region={REGION}&scheme=http&endpoint_override={host}&allow_bucket_creation=true"
        return f"s3://{BUCKET}/{self.folder}?{options}"

    @property
    def environment(self) -> dict[str, str]:
        return {"AWS_ACCESS_KEY_ID": self.key, "AWS_SECRET_ACCESS_KEY": self.secret}

    def check_keys(self, wanted: bool = True) -> None:
        """Whether each further request needs a right signature by these keys."""
        unchecked = "0" if wanted else "inf"
        httpx.post(f"{self.url}/moto-api/reset-auth", content=unchecked, trust_env=False).raise_for_status()


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    """The store takes any key until `check_keys`: https://docs.getmoto.org/en/latest/docs/iam.html"""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    url, name = f"http://{host}:{port}", secrets.token_hex(4)
    users = boto3.client("iam", **options(url, "any", "key"))
    users.create_user(UserName=name)
    users.put_user_policy(UserName=name, PolicyName="all", PolicyDocument=json.dumps(_EVERYTHING))
    key = users.create_access_key(UserName=name)["AccessKey"]
    store = ObjectStore(url, name, key["AccessKeyId"], key["SecretAccessKey"])
    try:
        yield store
    finally:
        store.check_keys(False)
        server.stop()


def options(url: str, name: str, secret: str) -> dict[str, str]:
    """The options of a client of the AWS SDK."""
    keys = {"aws_access_key_id": name, "aws_secret_access_key": secret}
    return keys | {"endpoint_url": url, "region_name": REGION}
