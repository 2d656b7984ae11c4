"""`ottla console`: pages that show the cluster."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from ottla.cli import console_beside
from ottla.cli.command import command
from ottla.cli.console_beside import check_installed
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.failures import UsageFailed
from ottla.cli.screen import note, say
from ottla.client.addresses import addresses

if TYPE_CHECKING:
    from ottla.console.access import Access
    from ottla.console.login import Login
    from ottla.console.schemas import Schemas
    from ottla.console.server import Listen

DEFAULT: Final = "127.0.0.1:8095"
CLIENT_ID: Final = "ottla-console"
FILE: Final = click.Path(path_type=Path, exists=True, dir_okay=False)


@command()
@click.option(
    "--listen",
    metavar="HOST:PORT",
    default=DEFAULT,
    envvar="OTTLA_CONSOLE_LISTEN",
    show_envvar=True,
    help="Where browsers reach it. Port 0 picks a free port.",
)
@click.option("--read-only", is_flag=True, help="Show everything, change nothing.")
@click.option(
    "--registry",
    metavar="URL",
    help="Decode records by the schemas of this registry, and show them. Default: the profile's.",
)
@click.option(
    "--allow-host",
    metavar="NAME",
    multiple=True,
    help="A name by which browsers may call it, such as that of a proxy. Repeatable.",
)
@click.option(
    "--password-file",
    type=FILE,
    metavar="FILE",
    help="Ask for the password in the first line of this file.",
)
@click.option(
    "--sasl-login",
    is_flag=True,
    help="Ask for a user and password of the cluster, whose ACLs then hold.",
)
@click.option(
    "--certificate", type=FILE, metavar="FILE", help="Listen with TLS: the certificate (PEM)."
)
@click.option("--key", type=FILE, metavar="FILE", help="The certificate's private key (PEM).")
@click.option(
    "--stop-with-parent",
    is_flag=True,
    hidden=True,
    help="Stop once the process that has started it has ended (ottla serve --console).",
)
@cluster_options
def console(
    cluster: Cluster,
    listen: str,
    read_only: bool,
    registry: str | None,
    allow_host: Sequence[str],
    password_file: Path | None,
    sasl_login: bool,
    certificate: Path | None,
    key: Path | None,
    stop_with_parent: bool,
) -> None:
    """Show the cluster in a browser until Ctrl-C.

    Topics, messages, groups and brokers of any Kafka cluster, and the journey of a message.
    """
    check_installed()
    from ottla.console.access import Access
    from ottla.console.console import Console
    from ottla.console.history import History
    from ottla.console.sampler import Sampler
    from ottla.console.server import serve

    place = listen_of(listen, allow_host, certificate, key)
    addresses(cluster.bootstrap)
    settings = {name: value for name, value in cluster.settings.items() if name != "client.id"}
    access = Access(cluster.bootstrap, settings, CLIENT_ID)
    login = login_of(password_file, sasl_login, cluster, access)
    check_beyond_loopback(place, login)

    if stop_with_parent:
        console_beside.stop_with_parent()

    def announce(address: str) -> None:
        say(f"The console of {cluster.bootstrap} is at {address} Ctrl-C stops it.")
        sys.stdout.flush()

    schemas = schemas_of(registry or cluster.registry)
    # As a user of the cluster, each visitor would have to have a history of his own.
    sampler = None if sasl_login else Sampler(access, History())
    if sampler is not None:
        sampler.start()
    served = Console(access, read_only, login, certificate is not None, schemas, sampler)
    serve(served, place, announce)


def schemas_of(url: str | None) -> Schemas | None:
    """Raises UsageFailed, and Failed."""
    if not url:
        return None
    from ottla.cli.records.schema_registry import client_of
    from ottla.console.schemas import TIMEOUT_S, Schemas

    client = client_of(url, TIMEOUT_S)
    # Without the user and the password that an address may have.
    scheme, _, rest = url.partition("://")
    return Schemas(client, f"{scheme}://{rest.rpartition('@')[2]}")


def listen_of(
    listen: str, names: Sequence[str], certificate: Path | None, key: Path | None
) -> Listen:
    """Raises UsageFailed."""
    from ottla.console.server import Listen

    host, colon, port = listen.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise UsageFailed(
            f"--listen must be HOST:PORT with a port from 0 to 65535, not {listen!r}.",
            f"For example: ottla console --listen {DEFAULT}",
        )
    if (certificate is None) != (key is None):
        raise UsageFailed("--certificate and --key are given together or not at all.")
    return Listen(host.strip("[]") or "0.0.0.0", int(port), tuple(names), certificate, key)


def login_of(
    password_file: Path | None, sasl_login: bool, cluster: Cluster, access: Access
) -> Login | None:
    """Raises UsageFailed, and PasswordFileError."""
    from ottla.console.login import PasswordLogin, SaslLogin, read_password

    if password_file is not None and sasl_login:
        raise UsageFailed("--password-file and --sasl-login exclude each other.")
    if password_file is not None:
        return PasswordLogin(read_password(password_file), access)
    if not sasl_login:
        return None
    protocol = str(cluster.settings.get("security.protocol", "plaintext")).lower()
    if not protocol.startswith("sasl"):
        raise UsageFailed(
            "--sasl-login needs a cluster with SASL.",
            "For example: ottla console --sasl-login --client-config security.protocol=SASL_SSL "
            "--client-config sasl.mechanism=SCRAM-SHA-512",
        )
    return SaslLogin(cluster.bootstrap, cluster.settings, CLIENT_ID)


def check_beyond_loopback(place: Listen, login: Login | None) -> None:
    """Who can reach the console from elsewhere has to log in. Raises UsageFailed."""
    from ottla.console.guard import is_loopback

    if is_loopback(place.host):
        return
    if login is None:
        raise UsageFailed(
            f"on {place.host} other machines reach the console, so it needs a login.",
            "Add --password-file FILE or --sasl-login. On 127.0.0.1 it needs none.",
        )
    if not place.hosts:
        raise UsageFailed(
            f"with {place.host} the names of the console have to be given.",
            "For example: ottla console --allow-host console.example.com",
        )
    if place.certificate is None:
        note("Passwords are sent in clear: add --certificate and --key, or a proxy with TLS.")
