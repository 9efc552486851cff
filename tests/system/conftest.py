from pathlib import Path

import pytest

from servers import RunningServer
from tds_clients import Clients


@pytest.fixture(scope="session")
def clients(server: RunningServer, tmp_path_factory: pytest.TempPathFactory) -> Clients:
    """pymssql and tsql; the ct-library program is not built."""
    return Clients.of(server, Path("ct_client"), tmp_path_factory.mktemp("system"))
