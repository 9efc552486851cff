"""The Iceberg REST catalogue, read by pyiceberg: each login sees the tables that it may read."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from catalogues import ALL, ONE, ROWS, Catalogue, published
from pyiceberg.exceptions import ForbiddenError, NoSuchNamespaceError, NoSuchTableError, OAuthError

from servers import WRITER, Login


@pytest.fixture(scope="module")
def catalogue(temporary_directory: Path) -> Iterator[Catalogue]:
    folder = Path(tempfile.mkdtemp(dir=temporary_directory))
    with published(folder, str(folder / "archive")) as catalogue:
        yield catalogue


def test_a_login_reads_the_tables_that_it_may(catalogue: Catalogue) -> None:
    seen = catalogue.of(ALL)
    assert seen.list_namespaces() == [("log",)]
    assert seen.list_tables("log") == [("log", "magnets"), ("log", "pumps")]
    assert seen.load_table("log.magnets").scan().to_arrow()["current"].to_pylist() == [*range(ROWS)]
    scan = seen.load_table("log.pumps").scan(row_filter="speed > 100", selected_fields=("speed",))
    assert scan.to_arrow()["speed"].to_pylist() == [*range(101, ROWS)]


def test_tables_of_others_do_not_exist(catalogue: Catalogue) -> None:
    seen = catalogue.of(ONE)
    assert seen.list_tables("log") == [("log", "pumps")]
    assert seen.load_table("log.pumps").scan().to_arrow().num_rows == ROWS
    assert not seen.table_exists("log.magnets")
    with pytest.raises(NoSuchTableError, match=r"log\.magnets"):
        seen.load_table("log.magnets")
    with pytest.raises(ForbiddenError, match="login writer has no right"):
        catalogue.of(WRITER).list_tables("log")
    with pytest.raises(NoSuchNamespaceError, match="only log"):
        seen.list_tables("other")


def test_passwords_are_demanded_and_slowed(catalogue: Catalogue) -> None:
    for path in ("config", "namespaces", "namespaces/log/tables", "namespaces/log/tables/pumps"):
        answer = httpx.get(f"{catalogue.url}/v1/{path}", trust_env=False)
        assert answer.status_code == 401
        assert answer.json()["error"]["type"] == "NotAuthorizedException"
        answer = httpx.get(f"{catalogue.url}/v1/{path}", auth=(ALL.user, ALL.password), trust_env=False)
        assert answer.status_code == 200, (path, answer.text)
    with pytest.raises(OAuthError):
        catalogue.of(Login(ALL.user, "wrong"))
    form = {"grant_type": "client_credentials", "client_id": ALL.user, "client_secret": "guess"}
    answer = httpx.post(f"{catalogue.url}/v1/oauth/tokens", data=form, trust_env=False)
    assert answer.status_code == 401
    assert answer.elapsed.total_seconds() >= 0.5  # as Guesses answers wrong passwords


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"grant_type": "password", "client_id": ALL.user, "client_secret": ALL.password},
        {"grant_type": "client_credentials", "client_id": "", "client_secret": ALL.password},
        {"grant_type": "client_credentials", "client_id": ALL.user, "client_secret": "x" * 100_000},
    ],
)
def test_other_forms_give_no_token(catalogue: Catalogue, form: dict[str, str]) -> None:
    answer = httpx.post(f"{catalogue.url}/v1/oauth/tokens", data=form, trust_env=False)
    assert answer.status_code == 401
    assert "access_token" not in answer.text


def test_nothing_can_be_changed(catalogue: Catalogue) -> None:
    seen = catalogue.of(ALL)
    table = seen.load_table("log.pumps")
    with pytest.raises(Exception, match=r"405|not support"):
        seen.drop_table("log.pumps")
    with pytest.raises(Exception, match=r"405|not support"):
        table.append(table.scan().to_arrow())
    assert catalogue.of(ALL).load_table("log.pumps").scan().to_arrow().num_rows == ROWS
