"""A running server for `ringlog loadtest --url`, with fast tables of every type: fixtures for several
folders."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from servers import RINGLOG, RunningServer, run, serving

QUICK = Path(__file__).parents[1] / "loader" / "facility.toml"


@pytest.fixture(scope="session")
def site(temporary_directory: Path) -> Iterator[RunningServer]:
    """`ringlog serve` with the loader's facility and the logins `writer` and `reader`."""
    with serving(temporary_directory / "site", facility=QUICK) as running:
        yield running


@pytest.fixture
def home(site: RunningServer, tmp_path: Path) -> Path:
    """A home folder whose .ringlogpass has the passwords of both logins."""
    file = tmp_path / ".ringlogpass"
    file.touch(0o600)
    file.write_text("".join(f"*:*:*:{one.user}:{one.password}\n" for one in (site.writer, site.reader)))
    return tmp_path


@pytest.fixture
def there(site: RunningServer) -> tuple[str, ...]:
    """The options that name the server; a load with readers needs --reader too."""
    return (
        *("--facility", str(QUICK), "--dsn", site.dsn),
        *("--url", f"tds://{site.writer.user}@{site.host}:{site.port}"),
    )


@pytest.fixture
def loadtest(home: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `ringlog loadtest` to its end."""

    def start(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        return run(RINGLOG, "loadtest", *arguments, timeout=600, HOME=str(home), **environment)

    return start
