"""The settings of a Spark session that reads the archive's Iceberg tables (`archive.iceberg`)."""

import psycopg

from ringlog.history.archive.iceberg import CATALOG, NotPublished, is_published
from ringlog.history.archive.manifest import settings

RUNTIMES = {"3.5": "iceberg-spark-runtime-3.5_2.12:1.12.0", "4.0": "iceberg-spark-runtime-4.0_2.13:1.11.0"}
"""Iceberg's package for each version of Spark, with a reader of BYTE_STREAM_SPLIT"""


def session_settings(connection: psycopg.Connection, spark: str, url: str) -> dict[str, str]:
    """The settings of a session of this version of Spark, for HTTP at this address; a login's credential is
    not among them. The catalogue tells Spark where the tables and their object store are.

    Raises NotPublished when there are no Iceberg tables.
    """
    chosen = settings(connection)
    if chosen is None or not is_published(connection):
        raise NotPublished("there are no Iceberg tables: make them with ringlog archive publish")
    runtime = RUNTIMES[spark]
    packages, delegation = [f"org.apache.iceberg:{runtime}"], {}
    if not chosen[1].startswith("/"):
        packages.append(f"org.apache.iceberg:iceberg-aws-bundle:{runtime.rpartition(':')[2]}")
        delegation = {"header.X-Iceberg-Access-Delegation": "remote-signing"}
    served = f"{url.rstrip('/')}/iceberg"
    catalog = {
        "": "org.apache.iceberg.spark.SparkCatalog",
        "type": "rest",
        "uri": served,
        "oauth2-server-uri": f"{served}/v1/oauth/tokens",
    } | delegation
    named = {f"spark.sql.catalog.{CATALOG}{'.' if name else ''}{name}": catalog[name] for name in catalog}
    return {"spark.jars.packages": ",".join(packages), **named, "spark.sql.session.timeZone": "UTC"}
