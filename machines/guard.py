"""Lets a standby take over soon after the primary's machine has vanished.

Patroni waits until the primary's lock in etcd expires: 20 seconds at least, and as long again when etcd's own
leader was on that machine, since a new leader restarts the time (etcd: lease/lessor.go, Promote). The machine
of the synchronous standby need not wait: when no port of the primary's machine accepts a connection for three
seconds, it deletes the lock, if it is still that primary's. Patroni continues as after an expired lock. A
primary that is still alive but unreachable cannot acknowledge anything meanwhile: it waits for this standby.
"""

import http.client
import json
import logging
import socket
import threading
import time
import urllib.request
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from ringlog.machines.site import ETCD_PORT, Unreachable
from ringlog.machines.state import Access, Cluster, Member, cluster

log = logging.getLogger(__name__)

SILENCE = 3.0
"""seconds without an accepted connection on the primary's machine"""
_LOOK = 0.25
_PATIENCE = 1.0
# Short compared with the silence: several tries fail before the lock is released, and the release follows
# soon.
_CONNECT_PATIENCE = 0.5
# Seconds after which the known synchronous standby may have changed.
_STALE = 30.0
# Patroni's keys for the lock of a cluster and for its next holder, with its default `namespace`.
_LOCK = "/service/{scope}/leader"
_FAILOVER = "/service/{scope}/failover"


def guard(access: Access, stop: threading.Event) -> None:
    """Watches the primary from a standby's machine until `stop` is set."""
    known: Cluster | None = None
    described = answered = time.monotonic()
    # While etcd has no leader, Patroni's answer takes seconds: the primary is watched meanwhile.
    with ThreadPoolExecutor(1) as patroni:
        pending = patroni.submit(cluster, access, (access.address,))
        while not stop.wait(_LOOK):
            if pending.done():
                # while its own Patroni does not answer, the last state may still be valid
                with suppress(Unreachable):
                    known, described = pending.result(), time.monotonic()
                pending = patroni.submit(cluster, access, (access.address,))
            if known is None or time.monotonic() - described > _STALE or not _may_take_over(access, known):
                answered = time.monotonic()
                continue
            leader = known.leader
            if leader is None or _answers(leader):
                answered = time.monotonic()
            elif time.monotonic() - answered > SILENCE and release(access, leader.name):
                log.warning("%s does not respond: its lock is released, a standby may take over", leader.name)
                answered = time.monotonic()


def release(access: Access, leader: str) -> bool:
    """Deletes the primary's lock if it is still held by this machine. False when it is not, or when no etcd
    answers.

    The same transaction requests a switchover to this machine. Patroni grants it to a synchronous standby
    only, without the two seconds' timeout of querying the dead primary.
    """
    key, request = (_encoded(name.format(scope=access.scope)) for name in (_LOCK, _FAILOVER))
    switchover = _encoded(json.dumps({"leader": leader, "member": access.name}))
    transaction = {
        "compare": [{"key": key, "target": "VALUE", "result": "EQUAL", "value": _encoded(leader)}],
        "success": [
            {"request_delete_range": {"key": key}},
            {"request_put": {"key": request, "value": switchover}},
        ],
    }
    others = [address for address in access.machines if address != access.address]
    for address in (access.address, *others):
        url = f"http://{address}:{ETCD_PORT}/v3/kv/txn"
        try:
            with urllib.request.urlopen(url, json.dumps(transaction).encode(), timeout=_PATIENCE) as answer:
                return bool(json.load(answer).get("succeeded"))
        # HTTPException: the answer broke off
        except (OSError, http.client.HTTPException):
            continue
    return False


def _may_take_over(access: Access, known: Cluster) -> bool:
    """Whether this machine is the standby that the primary waits for."""
    own = next((one for one in known.members if one.name == access.name), None)
    return own is not None and own.is_synchronous and not known.paused


def _answers(leader: Member) -> bool:
    """Whether PostgreSQL or Patroni on the primary's machine accepts a connection; the kernel accepts it for
    slow programs too."""
    host, _, port = leader.api.rpartition("/")[2].rpartition(":")
    with ThreadPoolExecutor(2) as threads:
        return any(list(threads.map(_takes_connections, [(leader.address, leader.port), (host, int(port))])))


def _takes_connections(address: tuple[str, int]) -> bool:
    try:
        with socket.create_connection(address, _CONNECT_PATIENCE):
            return True
    except OSError:
        return False


def _encoded(text: str) -> str:
    return b64encode(text.encode()).decode()
