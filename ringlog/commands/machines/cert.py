"""The certificate of the gateway for TLS, and making a self-signed one."""

import os
import socket
from pathlib import Path
from typing import Annotated, Literal

import typer

from ringlog.errors import UsageError
from ringlog.gateway import Tls, self_signed
from ringlog.loader.cli import option

TlsUse = Literal["offered", "required"]


def chosen_tls(certificate: Path | None, key: Path | None, use: TlsUse | None) -> Tls | None:
    """The meaning of --tls-cert, --tls-key and --tls. Raises UsageError when only a part is given."""
    if certificate is None and key is None:
        if use is not None:
            raise UsageError("--tls needs --tls-cert and --tls-key; `ringlog cert` makes both")
        return None
    if certificate is None or key is None:
        raise UsageError("--tls-cert and --tls-key must be given together")
    for file in (certificate, key):
        if not file.is_file():
            raise UsageError(f"{file}: no such file")
    return Tls(certificate, key, required=use == "required")


def cert(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="Where ringlog.crt and ringlog.key are written.")
    ],
    host: Annotated[
        list[str] | None,
        option(
            "--host",
            metavar="NAME",
            help="A host name or address under which clients connect to the server; may be repeated. "
            "Default: this machine's name, localhost, 127.0.0.1 and ::1.",
        ),
    ] = None,
    days: Annotated[
        int, typer.Option("--days", metavar="N", min=1, max=36500, help="How long the certificate is valid.")
    ] = 3650,
) -> None:
    """Make a certificate for TLS, signed by its own key, to be given to the clients."""
    files = [directory / "ringlog.crt", directory / "ringlog.key"]
    for file in files:
        if file.exists():
            raise UsageError(f"{file} exists already and is not overwritten")
    names = host or [socket.gethostname(), "localhost", "127.0.0.1", "::1"]
    try:
        contents = self_signed(names, days)
    except ValueError as error:
        raise UsageError(f"no certificate for {', '.join(names)}: {error}") from None
    directory.mkdir(parents=True, exist_ok=True)
    for file, content, mode in zip(files, contents, (0o644, 0o600), strict=True):
        with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w") as out:
            out.write(content)
        print(file)
