"""The addresses of a site's machines and the account of Patroni's REST API, from Patroni's configuration
file."""

from pathlib import Path

import yaml

from ringlog.machines.site import SiteError
from ringlog.machines.state import Access


def read_access(file: Path) -> Access:
    """From a patroni.yml. Raises OSError, and SiteError when it is another kind of file."""
    try:
        values = yaml.safe_load(file.read_text())
        rest = values["restapi"]
        address, _, port = rest["connect_address"].rpartition(":")
        return Access(
            values["name"],
            address,
            values["scope"],
            tuple(host.rpartition(":")[0] for host in values["etcd3"]["hosts"]),
            int(port),
            rest["authentication"]["username"],
            rest["authentication"]["password"],
        )
    except (yaml.YAMLError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise SiteError(f"{file} is not a patroni.yml written by ringlog ha init ({error!r})") from None
