"""The state of the machines, from Patroni's REST API, etcd and the gateways' metrics."""

import http.client
import json
import re
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from ringlog.machines.site import ETCD_PORT, Unreachable

# Seconds in which a living machine answers.
_PATIENCE = 2.0
_REACHED = re.compile(r'^ringlog_postgresql_reached\{host="([^"]+)",port="(\d+)"\} 1', re.MULTILINE)

Queried = TypeVar("Queried")
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Access:
    """The machines to query, from a machine's patroni.yml."""

    name: str
    """of the machine whose file it is"""
    address: str
    scope: str
    """Patroni's name of the cluster"""
    machines: tuple[str, ...]
    """addresses of all machines, witnesses included"""
    patroni_port: int
    user: str
    password: str


@dataclass(frozen=True)
class Member:
    """A machine with data."""

    name: str
    address: str
    port: int
    """of its PostgreSQL"""
    role: str
    """leader, sync_standby, quorum_standby or replica"""
    state: str
    """running, streaming, stopped, …"""
    timeline: int | None
    receive_lag: int | None
    """bytes of write-ahead log that it has not received; None for the leader, or if unknown"""
    replay_lag: int | None
    """bytes that its readers do not see yet"""
    api: str
    """URL of its REST API"""
    gateway: str | None
    metrics: str | None

    @property
    def is_synchronous(self) -> bool:
        """Whether the primary waits for it with each row."""
        return self.role in ("sync_standby", "quorum_standby")


@dataclass(frozen=True)
class Cluster:
    """The members of the cluster, as Patroni reports them."""

    members: tuple[Member, ...]
    paused: bool
    """whether Patroni is paused: it then changes nothing"""

    @property
    def leader(self) -> Member | None:
        """The holder of the lock, alive or not."""
        return next((one for one in self.members if one.role == "leader"), None)


@dataclass(frozen=True)
class SiteState(Cluster):
    """The site at a moment."""

    etcd: dict[str, bool]
    """whether the etcd at each address is healthy"""
    reaches: dict[str, str | None]
    """by member, the address of the PostgreSQL that its gateway uses, or None"""

    @property
    def troubles(self) -> list[str]:
        """The defects of the current state."""
        found = []
        if self.leader is None:
            found.append("no machine is the primary: rows cannot be written")
        elif self.leader.state != "running":
            found.append(f"PostgreSQL on the primary {self.leader.name} is {self.leader.state}")
        if not any(one.is_synchronous for one in self.members):
            found.append("no synchronous standby: rows are on one machine only")
        for one in self.members:
            if one.role != "leader" and one.state != "streaming":
                found.append(f"{one.name} does not follow the primary ({one.state})")
            elif self.leader and one.timeline not in (None, self.leader.timeline):
                found.append(
                    f"{one.name} is on timeline {one.timeline}, the primary on {self.leader.timeline}"
                )
            if self.leader and self.reaches.get(one.name) != self.leader.address:
                where = self.reaches.get(one.name) or "no PostgreSQL"
                found.append(f"the gateway on {one.name} reaches {where}, not the primary")
        names = {one.address: one.name for one in self.members}
        for address, well in self.etcd.items():
            if not well and address in names:
                found.append(f"etcd on {names[address]} ({address}) is not healthy")
            elif not well:
                found.append(f"the machine {address} does not answer: neither its etcd nor its Patroni")
        if self.paused:
            found.append("Patroni is paused: no automatic failover")
        return found


def state(access: Access) -> SiteState:
    """Queries every machine. Raises Unreachable if no Patroni answers."""
    site = cluster(access, access.machines)
    etcd = _each(_etcd_is_well, access.machines)
    reaches = _each(_reached, [one.metrics for one in site.members])
    return SiteState(
        site.members,
        site.paused,
        dict(zip(access.machines, etcd, strict=True)),
        {one.name: reach for one, reach in zip(site.members, reaches, strict=True)},
    )


def cluster(access: Access, whom: Sequence[str]) -> Cluster:
    """The cluster's state, from the first of these addresses whose Patroni answers. Raises Unreachable."""
    for answer in _each(_get, [f"http://{host}:{access.patroni_port}/cluster" for host in whom]):
        if answer is not None:
            sent: dict[str, Any] = json.loads(answer)
            return Cluster(tuple(map(_member, sent["members"])), bool(sent.get("pause")))
    raise Unreachable(f"no Patroni answers on {', '.join(whom)} (port {access.patroni_port})")


def is_primary(member: Member) -> bool:
    """Whether it reports itself as the primary with the lock."""
    return _get(f"{member.api}/primary") is not None


def request_switchover(access: Access, leader: Member, candidate: str | None) -> tuple[int, str]:
    """Requests a switchover from the leader's Patroni: HTTP status and text of the answer, which arrives at
    the end. Raises Unreachable."""
    body = json.dumps({"leader": leader.name} | ({"candidate": candidate} if candidate else {}))
    login = b64encode(f"{access.user}:{access.password}".encode()).decode()
    headers = {"Authorization": f"Basic {login}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{leader.api}/switchover", body.encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(errors="replace")
    except (OSError, http.client.HTTPException) as error:
        raise Unreachable(f"Patroni on {leader.name} ({leader.api}) did not answer: {error}") from None


def _member(sent: dict[str, Any]) -> Member:
    tags = sent.get("tags", {})
    lags = (sent.get(name) for name in ("receive_lag", "replay_lag"))
    receive, replay = (lag if isinstance(lag, int) else None for lag in lags)
    return Member(
        sent["name"],
        sent.get("host", "-"),
        sent.get("port", 0),
        sent["role"],
        sent["state"],
        sent.get("timeline"),
        receive,
        replay,
        sent["api_url"].removesuffix("/patroni"),
        tags.get("gateway"),
        tags.get("metrics"),
    )


def _etcd_is_well(address: str) -> bool:
    answer = _get(f"http://{address}:{ETCD_PORT}/health")
    return answer is not None and json.loads(answer).get("health") == "true"


def _reached(metrics: str | None) -> str | None:
    text = _get(metrics) if metrics else None
    found = _REACHED.search(text) if text else None
    return found[1] if found else None


def _get(url: str) -> str | None:
    """The answer's body; None after an error or without an answer."""
    try:
        with urllib.request.urlopen(url, timeout=_PATIENCE) as answer:
            text: str = answer.read().decode()
            return text
    # HTTPException: the answer broke off
    except (OSError, http.client.HTTPException):
        return None


def _each(ask: Callable[[Queried], Answer], whom: Sequence[Queried]) -> list[Answer]:
    """Queries all of them at once."""
    with ThreadPoolExecutor(max(1, len(whom))) as threads:
        return list(threads.map(ask, whom))
