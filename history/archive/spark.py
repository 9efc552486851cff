"""The settings of a Spark session that reads the archive's Iceberg tables (`archive.iceberg`)."""

import socket

import sqlalchemy as sa

from ringlog.history.archive.iceberg import CATALOG, FOLDER, NotPublished, address, is_published, object_store
from ringlog.history.archive.manifest import settings
from ringlog.schema.layout import ICEBERG

RUNTIMES = {
    "3.5": "iceberg-spark-runtime-3.5_2.12:1.12.0",
    "4.0": "iceberg-spark-runtime-4.0_2.13:1.11.0",
}
"""Iceberg's package for each version of Spark, with a reader of BYTE_STREAM_SPLIT"""
_DRIVER = "org.postgresql:postgresql:42.7.8"
"""PostgreSQL's for Java, which is in no package of Spark"""


def session_settings(connection: sa.Connection, spark: str, user: str) -> dict[str, str]:
    """The settings of a session of this version of Spark, for a login of PostgreSQL.

    Raises NotPublished when there are no Iceberg tables.
    """
    chosen = settings(connection)
    if chosen is None or not is_published(connection):
        raise NotPublished("there are no Iceberg tables: make them with ringlog archive publish")
    archive = chosen[1]
    runtime = RUNTIMES[spark]
    packages = [f"org.apache.iceberg:{runtime}", _DRIVER]
    catalog = {
        "": "org.apache.iceberg.spark.SparkCatalog",
        "type": "jdbc",
        "uri": f"jdbc:postgresql://{_server(connection)}?currentSchema={ICEBERG}",
        "jdbc.user": user,
        "jdbc.init-catalog-tables": "false",
        "warehouse": address(archive, FOLDER),
    }
    if not archive.startswith("/"):
        packages.append(f"org.apache.iceberg:iceberg-aws-bundle:{runtime.rpartition(':')[2]}")
        catalog |= {"io-impl": "org.apache.iceberg.aws.s3.S3FileIO"} | _of_store(archive)
    named = {f"spark.sql.catalog.{CATALOG}{'.' if name else ''}{name}": catalog[name] for name in catalog}
    return {"spark.jars.packages": ",".join(packages), **named, "spark.sql.session.timeZone": "UTC"}


def _server(connection: sa.Connection) -> str:
    """Host, port and database by which PostgreSQL is reached over TCP."""
    reached = connection.connection.driver_connection.info  # type: ignore[union-attr]
    host = reached.host
    if host.startswith("/"):
        listens = connection.scalar(sa.text("show listen_addresses"))
        host = "127.0.0.1" if listens in ("127.0.0.1", "localhost") else socket.getfqdn()
    return f"{host}:{reached.port}/{reached.dbname}"


def _of_store(archive: str) -> dict[str, str]:
    """Iceberg's options of an object store."""
    given = object_store(archive)
    options = {"client.region": given["s3.region"]} if "s3.region" in given else {}
    if "s3.endpoint" in given:
        options |= {"s3.endpoint": given["s3.endpoint"], "s3.path-style-access": "true"}
    return options
