"""`ottla profile add`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from ottla.cli.command import command
from ottla.cli.context import CLIENT_CONFIG
from ottla.cli.failures import Failed, UsageFailed
from ottla.cli.options import profile_argument
from ottla.cli.screen import line_of_input, say
from ottla.client.addresses import addresses
from ottla.client.profiles import Profile, profiles_file, read_profiles, write_profiles


@command()
@profile_argument(shell_complete=None)
@click.option(
    "--bootstrap", "-b", required=True, metavar="HOST:PORT", help="The cluster's addresses."
)
@CLIENT_CONFIG
@click.option(
    "--secret",
    metavar="NAME",
    multiple=True,
    help="A setting to ask for without showing it, such as sasl.password. Repeatable.",
)
@click.option(
    "--registry",
    default="",
    metavar="URL",
    help="The schema registry by which ottla console decodes records.",
)
@click.option("--replace", is_flag=True, help="Replace the profile if it exists.")
def add(
    name: str,
    bootstrap: str,
    client_config: Sequence[str],
    secret: Sequence[str],
    registry: str,
    replace: bool,
) -> None:
    """Add a profile. The first one becomes the current one."""
    # Imported late: it imports librdkafka's client, and the other commands need none.
    from ottla.cli.name_values import pairs

    if not name or not name.isprintable():
        raise UsageFailed(f"a profile cannot have the name {name!r}.")
    addresses(bootstrap)
    if registry and not registry.startswith(("http://", "https://")):
        raise UsageFailed(
            "--registry must be http://HOST:PORT or https://HOST:PORT.",
            "For example: --registry http://localhost:8081",
        )
    client = pairs("--client-config", client_config)
    path = profiles_file()
    profiles = read_profiles(path)
    if name in profiles.by_name and not replace:
        raise Failed(f"profile {name!r} already exists.", "To replace it, add --replace.")
    for setting in secret:
        if setting in client:
            raise UsageFailed(f"--client-config and --secret both set {setting}.")
        client[setting] = asked(setting)
    profiles.by_name[name] = Profile(bootstrap, client, registry)
    if profiles.current is None:
        profiles.current = name
    write_profiles(path, profiles)
    current = ", the current one" if profiles.current == name else ""
    say(f"Saved profile {name}{current}, in {path}.")


def asked(setting: str) -> str:
    """A value typed without being shown, or the next line of standard input if that is no
    terminal.
    """
    from getpass import getpass

    if sys.stdin.isatty():
        return getpass(f"{setting}: ")
    line = line_of_input()
    if not line:
        raise UsageFailed(f"standard input has no line for --secret {setting}.")
    return line.rstrip("\n")
