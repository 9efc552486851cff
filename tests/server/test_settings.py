"""The settings of the embedded PostgreSQL."""

import re
from pathlib import Path

import psycopg
import pytest

from ringlog.server.embedded.postgres import Postgres
from ringlog.server.embedded.settings import GiB, MiB, settings_text


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("synchronous_commit", "on"),
        ("full_page_writes", "on"),
        ("data_checksums", "on"),
        ("password_encryption", "scram-sha-256"),
        ("server_encoding", "UTF8"),
        ("listen_addresses", "127.0.0.1"),
        ("log_min_error_statement", "panic"),
        ("shared_buffers", "128MB"),
    ],
)
def test_a_running_server_has_the_setting(scratch_postgres: Postgres, setting: str, value: str) -> None:
    # fsync, which is off for the tests, is in test_postgres.py
    with psycopg.connect(scratch_postgres.conninfo("postgres")) as connection:
        found = connection.execute("select current_setting(%s)", [setting]).fetchone()
    assert found == (value,)


def test_a_quarter_of_the_memory_is_the_buffer_cache() -> None:
    text = settings_text(memory=128 * GiB, disk=10_000 * GiB, port=5433, socket=Path("/x"))
    assert f"shared_buffers = '{32 * GiB // MiB}MB'\n" in text


def test_the_write_ahead_log_uses_at_most_a_twentieth_of_a_small_disk() -> None:
    text = settings_text(memory=128 * GiB, disk=20 * GiB, port=5433, socket=Path("/x"))
    assert "max_wal_size = '1024MB'\n" in text


def test_a_lock_for_each_object_of_thousands_of_new_tables() -> None:
    """PostgreSQL 18, 19.12: there is room for max_locks_per_transaction for each of max_connections."""
    for tables, least in ((0, 256 * 300), (600, 256 * 300), (5000, 5000 * 35)):
        text = settings_text(memory=128 * GiB, disk=20 * GiB, port=5433, socket=Path("/x"), tables=tables)
        found = re.search(r"^max_locks_per_transaction = (\d+)$", text, re.MULTILINE)
        assert found is not None
        assert int(found[1]) * 300 >= least
