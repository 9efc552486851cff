"""FreeTDS, on which pymssql and the ODBC driver tdsodbc are built."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

_VERSION = "TDSVER"


@contextmanager
def tds_version(version: str) -> Iterator[None]:
    """The version of TDS ("5.0", "7.4") of the sessions that this process opens in the with block.

    FreeTDS prefers the environment's version to that of a connection string. It is as before afterwards.
    """
    before = os.environ.get(_VERSION)
    os.environ[_VERSION] = version
    try:
        yield
    finally:
        if before is None:
            del os.environ[_VERSION]
        else:
            os.environ[_VERSION] = before
