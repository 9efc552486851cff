"""The configuration of etcd and Patroni on each machine, as values of their configuration files."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from ringlog.machines.site import (
    ETCD_PEER_PORT,
    ETCD_PORT,
    GATEWAY_PORT,
    METRICS_PORT,
    PATRONI_PORT,
    POSTGRESQL_PORT,
    Layout,
    Machine,
    Site,
)

CLUSTER = "ringlog"
ADMINISTRATOR = "keeper"
"""role that owns the database"""
REPLICATOR = "replicator"
REWINDER = "rewinder"

# Seconds until the lock of a silent primary expires: the least that Patroni accepts.
# loop_wait + 2 * retry_timeout may not be more (Patroni: Dynamic Configuration Settings).
_TTL = 20
_LOOP_WAIT = 2
_RETRY_TIMEOUT = 9
# Seconds for PostgreSQL to stop by itself; then Patroni stops it in its own way.
_STOP_PATIENCE = 5

# Settings that Patroni keeps the same on all members (Patroni: Patroni Configuration, "PostgreSQL parameters
# controlled by Patroni").
_COMMON = (
    "max_connections",
    "max_locks_per_transaction",
    "max_prepared_transactions",
    "max_worker_processes",
    "track_commit_timestamp",
    "wal_level",
)


@dataclass(frozen=True)
class Secrets:
    """Passwords, the same on every machine."""

    replication: str
    rewind: str
    rest: str
    """of Patroni's REST API, for requests that change something"""
    administrator: str
    gateway: str


def etcd(site: Site, machine: Machine, layout: Layout) -> dict[str, object]:
    """etcd's configuration file (etcd: Configuration flags; `etcd.conf.yml.sample`)."""
    peer = f"http://{machine.address}:{ETCD_PEER_PORT}"
    client = f"http://{machine.address}:{ETCD_PORT}"
    return {
        "name": machine.name,
        "data-dir": str(layout.data / "etcd"),
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "listen-client-urls": client,
        "advertise-client-urls": client,
        "initial-cluster": ",".join(
            f"{one.name}=http://{one.address}:{ETCD_PEER_PORT}" for one in site.machines
        ),
        "initial-cluster-token": CLUSTER,
        "initial-cluster-state": "new",
        # the API that Patroni uses; etcd 3.4 enables it by default, but not with a configuration file
        "enable-grpc-gateway": True,
        "auto-compaction-mode": "periodic",
        "auto-compaction-retention": "1h",
        "logger": "zap",
        "log-level": "warn",
    }


def _access(site: Site) -> list[str]:
    """The lines of pg_hba.conf."""
    local = "local", "all", "postgres", "peer map=administrator"
    members = [
        (kind, database, role, f"{member.address}/32", "scram-sha-256")
        for member in site.members
        for kind, database, role in (("host", "replication", REPLICATOR), ("host", "all", REWINDER))
    ]
    rest = [("local", "all", "all", "scram-sha-256"), ("host", "all", "all", "all", "scram-sha-256")]
    return ["  ".join(words) for words in (local, *members, *rest)]


def patroni(
    site: Site,
    machine: Machine,
    layout: Layout,
    secrets: Secrets,
    settings: Mapping[str, str | int],
    *,
    strict: bool,
) -> dict[str, object]:
    """Patroni's configuration file. `settings` are PostgreSQL's; `strict`: no row is stored without a
    standby."""
    own = {name: value for name, value in settings.items() if name not in _COMMON}
    data = layout.data / "postgresql"
    stop = (layout.postgresql / "pg_ctl", "stop", "-D", data, "-m", "fast", "-t", _STOP_PATIENCE)
    return {
        "scope": CLUSTER,
        "name": machine.name,
        "restapi": {
            "listen": f"{machine.address}:{PATRONI_PORT}",
            "connect_address": f"{machine.address}:{PATRONI_PORT}",
            "authentication": {"username": CLUSTER, "password": secrets.rest},
        },
        "etcd3": {"hosts": [f"{one.address}:{ETCD_PORT}" for one in site.machines]},
        "bootstrap": {
            "dcs": {
                "ttl": _TTL,
                "loop_wait": _LOOP_WAIT,
                "retry_timeout": _RETRY_TIMEOUT,
                "synchronous_mode": True,
                "synchronous_mode_strict": strict,
                # the primary continues while etcd has no majority, as long as it reaches every other member
                "failsafe_mode": True,
                # a crashed primary has this many seconds to return before a standby takes over
                "primary_start_timeout": 10,
                "postgresql": {
                    "use_pg_rewind": True,
                    "use_slots": True,
                    "parameters": {name: settings[name] for name in _COMMON if name in settings},
                },
            },
            # the collation must be the same on every machine, and cannot be changed later
            "initdb": ["data-checksums", {"encoding": "UTF8"}, {"locale": "C"}],
            "post_bootstrap": f"{layout.postgresql / 'psql'} -v ON_ERROR_STOP=1 -qf "
            f"{layout.configuration / 'database.sql'}",
        },
        "postgresql": {
            "listen": f"{machine.address}:{POSTGRESQL_PORT}",
            "connect_address": f"{machine.address}:{POSTGRESQL_PORT}",
            "data_dir": str(data),
            "bin_dir": str(layout.postgresql),
            "pgpass": str(layout.data / "pgpass"),
            "basebackup": [{"checkpoint": "fast"}],
            # Patroni checks once a second whether PostgreSQL has stopped. It waits for this command, which
            # notices the stop at once: a switchover is a second shorter.
            "before_stop": shlex.join(map(str, stop)),
            # Patroni's own access, by its account: the superuser has no password
            "use_unix_socket": True,
            "authentication": {
                "superuser": {"username": "postgres"},
                "replication": {"username": REPLICATOR, "password": secrets.replication},
                "rewind": {"username": REWINDER, "password": secrets.rewind},
            },
            "parameters": own
            | {
                "unix_socket_directories": str(layout.socket),
                # rows wait this long for a standby that has vanished
                "wal_sender_timeout": "5s",
                "wal_receiver_timeout": "5s",
            },
            "pg_hba": _access(site),
            "pg_ident": [f"administrator  {name}  postgres" for name in sorted({"root", layout.account})],
        },
        # the queries of `ringlog ha status`
        "tags": {
            "gateway": f"{machine.address}:{GATEWAY_PORT}",
            "metrics": f"http://{machine.address}:{METRICS_PORT}/metrics",
        },
    }


def database(secrets: Secrets) -> str:
    """The SQL for a new cluster."""
    return (
        f"create role {ADMINISTRATOR} login createrole password '{secrets.administrator}';\n"
        f"create database {CLUSTER} owner {ADMINISTRATOR};\n"
    )


def conninfo(site: Site, secrets: Secrets) -> str:
    """The administrator's connection string, which finds the primary."""
    values = {
        "host": ",".join(member.address for member in site.members),
        "port": POSTGRESQL_PORT,
        "dbname": CLUSTER,
        "user": ADMINISTRATOR,
        "password": secrets.administrator,
        "target_session_attrs": "read-write",
        # a dead machine does not answer
        "connect_timeout": 2,
        "keepalives_idle": 2,
        "keepalives_interval": 1,
        "keepalives_count": 3,
        "tcp_user_timeout": 5000,
    }
    return " ".join(f"{name}={value}" for name, value in values.items())
