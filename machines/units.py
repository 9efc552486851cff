"""The systemd units of each machine, and the form of every unit."""

from ringlog.machines.site import GATEWAY_PORT, METRICS_PORT, Layout, Machine

ETCD = "ringlog-etcd.service"
PATRONI = "ringlog-patroni.service"
GATEWAY = "ringlog-gateway.service"
GUARD = "ringlog-guard.service"


def units(machine: Machine, layout: Layout) -> dict[str, str]:
    found = {ETCD: _etcd(layout)}
    if not machine.witness:
        found |= {PATRONI: _patroni(layout), GUARD: _guard(layout), GATEWAY: _gateway(machine, layout)}
    return found


def _etcd(layout: Layout) -> str:
    return _unit(
        "etcd, which stores the name of ringlog's primary",
        "network-online.target",
        layout,
        f"{layout.etcd} --config-file {layout.configuration / 'etcd.yml'}",
        "Type=notify",
        "Restart=always",
        "RestartSec=1",
    )


def _patroni(layout: Layout) -> str:
    return _unit(
        "Patroni, which runs ringlog's PostgreSQL",
        f"network-online.target {ETCD}",
        layout,
        f"{layout.environment / 'bin' / 'patroni'} {layout.configuration / 'patroni.yml'}",
        "ExecReload=/bin/kill -s HUP $MAINPID",
        f"RuntimeDirectory={layout.socket.name}",
        "RuntimeDirectoryMode=0700",
        # PostgreSQL may continue without Patroni
        "RuntimeDirectoryPreserve=yes",
        # Patroni stops PostgreSQL
        "KillMode=process",
        "TimeoutSec=60",
        "Restart=on-failure",
        "RestartSec=1",
    )


def _guard(layout: Layout) -> str:
    return _unit(
        "fast failover to a standby after the primary's machine has failed",
        f"network-online.target {PATRONI}",
        layout,
        f"{layout.environment / 'bin' / 'ringlog'} ha guard --config {layout.configuration / 'patroni.yml'}",
        "Restart=always",
        "RestartSec=2",
    )


def _gateway(machine: Machine, layout: Layout) -> str:
    return _unit(
        "ringlog's gateway",
        f"network-online.target {PATRONI}",
        layout,
        f"{layout.environment / 'bin' / 'ringlog'} serve"
        f" --listen {machine.address}:{GATEWAY_PORT} --metrics {machine.address}:{METRICS_PORT}"
        f" --gateway-password-file {layout.configuration / 'gateway.password'}",
        f"EnvironmentFile={layout.configuration / 'gateway.env'}",
        # it ends if there is no primary at its start
        "Restart=always",
        "RestartSec=2",
    )


def _unit(what: str, after: str, layout: Layout, command: str, *lines: str) -> str:
    return unit_text(
        what,
        after,
        layout.account,
        # a folder owned by the account
        f"StateDirectory={layout.data.name}",
        "StateDirectoryMode=0700",
        f"ExecStart={command}",
        *lines,
    )


def unit_text(description: str, after: str, account: str, *lines: str) -> str:
    """The text of a unit that starts with the machine, after the network and the units in `after`; `lines`
    are of its section Service."""
    return "\n".join(
        (
            "[Unit]",
            f"Description={description}",
            "Wants=network-online.target",
            f"After={after}",
            # restarted without a limit
            "StartLimitIntervalSec=0",
            "",
            "[Service]",
            f"User={account}",
            *lines,
            "LimitNOFILE=65536",
            "",
            "[Install]",
            "WantedBy=multi-user.target",
            "",
        )
    )
