"""Addresses of an archive's files, as Iceberg's metadata and its readers write them."""

from urllib.parse import parse_qs, urlsplit

NAMESPACE = "log"
"""of the Iceberg tables"""
METADATA = "_iceberg"
"""of their metadata, below the archive's; Spark ignores names with a leading _"""


def address(archive: str, name: str) -> str:
    """The URL of a file of the archive's folder."""
    folder = archive.split("?")[0].rstrip("/")
    return f"{'file://' if folder.startswith('/') else ''}{folder}/{name}"


def object_store(archive: str) -> dict[str, str]:
    """The options of a folder in an object store, by pyiceberg's names."""
    given = {name: values[-1] for name, values in parse_qs(urlsplit(archive).query).items()}
    options = {}
    if "endpoint_override" in given:
        options["s3.endpoint"] = f"{given.get('scheme', 'https')}://{given['endpoint_override']}"
    if "region" in given:
        options["s3.region"] = given["region"]
    return options
