"""Writes the files for each machine of a site."""

import secrets
from collections.abc import Mapping
from pathlib import Path

import yaml

from ringlog.machines import configuration
from ringlog.machines.configuration import Secrets
from ringlog.machines.site import Layout, Site, SiteError
from ringlog.machines.units import units

_UNITS = Path("/etc/systemd/system")


def write(
    folder: Path, site: Site, layout: Layout, settings: Mapping[str, str | int], *, strict: bool
) -> None:
    """Makes `folder`, with a folder for each machine that contains its files with their paths from / on.

    They contain new passwords. Raises SiteError if the folder exists.
    """
    try:
        folder.mkdir(mode=0o700, parents=True)
    except FileExistsError:
        raise SiteError(
            f"{folder} exists already: its passwords are in use, and new ones would not match the machines"
        ) from None
    passwords = Secrets(*(secrets.token_urlsafe(24) for _ in range(5)))
    for machine in site.machines:
        root = folder / machine.name
        files = {layout.configuration / "etcd.yml": _yaml(configuration.etcd(site, machine, layout))}
        if not machine.witness:
            chosen = configuration.patroni(site, machine, layout, passwords, settings, strict=strict)
            files |= {
                layout.configuration / "patroni.yml": _yaml(chosen),
                layout.configuration / "database.sql": configuration.database(passwords),
                layout.configuration / "gateway.password": passwords.gateway + "\n",
                layout.configuration
                / "gateway.env": f'RINGLOG_DSN="{configuration.conninfo(site, passwords)}"\n',
            }
        for path, text in files.items():
            _write(root, path, text, mode=0o600)
        for name, text in units(machine, layout).items():
            _write(root, _UNITS / name, text, mode=0o644)


def _yaml(values: object) -> str:
    return str(yaml.safe_dump(values, sort_keys=False, width=110))


def _write(root: Path, path: Path, text: str, *, mode: int) -> None:
    file = root / path.relative_to("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch(mode)
    file.write_text(text)
