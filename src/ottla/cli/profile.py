"""`ottla profile`: the clusters that commands use by name."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ottla.cli.context import complete_profile
from ottla.cli.failures import Failed, UsageFailed
from ottla.cli.profiles import (
    Profile,
    is_secret,
    profiles_file,
    read_profiles,
    write_profiles,
)
from ottla.cli.screen import note, say, show_json, show_list, show_table
from ottla.cli.typer_options import AsJson, ClientConfig
from ottla.client.addresses import addresses

commands = typer.Typer(help="Keep the addresses and settings of clusters, and choose one.")

NO_PROFILES = "No profiles yet. Create one with: ottla profile add NAME --bootstrap HOST:PORT"
HIDDEN = "(hidden)"

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="The profile's name.", autocompletion=complete_profile)
]
NewName = Annotated[str, typer.Argument(metavar="NAME", help="The profile's name.")]
SomeName = Annotated[
    str | None,
    typer.Argument(
        metavar="NAME",
        help="The profile's name. Default: the current one.",
        autocompletion=complete_profile,
    ),
]
Addresses = Annotated[
    str, typer.Option("--bootstrap", "-b", metavar="HOST:PORT", help="The cluster's addresses.")
]
Secrets = Annotated[
    list[str] | None,
    typer.Option(
        "--secret",
        metavar="NAME",
        help="A setting to ask for without showing it, such as sasl.password. Repeatable.",
    ),
]
Replace = Annotated[bool, typer.Option("--replace", help="Replace the profile if it exists.")]


@commands.command("list")
def list_profiles(as_json: AsJson = False) -> None:
    """List profiles with their addresses."""
    profiles = read_profiles(profiles_file())
    rows = [
        {"profile": name, "bootstrap": each.bootstrap, "current": name == profiles.current}
        for name, each in sorted(profiles.by_name.items())
    ]
    if as_json:
        show_list([], rows, as_json=True, none=NO_PROFILES)
    elif not rows:
        note(NO_PROFILES)
    else:
        show_table(
            ["profile", "bootstrap", ""],
            [
                [row["profile"], row["bootstrap"], "current" if row["current"] else ""]
                for row in rows
            ],
        )


@commands.command()
def show(name: SomeName = None, as_json: AsJson = False) -> None:
    """Show a profile. Passwords are not shown."""
    profiles = read_profiles(profiles_file())
    chosen = name or profiles.current
    if chosen is None:
        raise Failed("no profile is current.", "Name one: ottla profile show NAME")
    profile = profiles.find(chosen)
    client = {
        setting: HIDDEN if is_secret(setting) else value
        for setting, value in sorted(profile.client.items())
    }
    if as_json:
        document: dict[str, Any] = {
            "profile": chosen,
            "bootstrap": profile.bootstrap,
            "current": chosen == profiles.current,
            "client": client,
        }
        show_json(document)
        return
    rows = [["bootstrap", profile.bootstrap], *client.items()]
    show_table(["setting", "value"], rows, title=f"{chosen}, in {profiles_file()}")


@commands.command()
def add(
    name: NewName,
    bootstrap: Addresses,
    client_config: ClientConfig = None,
    secret: Secrets = None,
    replace: Replace = False,
) -> None:
    """Add a profile. The first one becomes the current one."""
    # Imported late: it imports librdkafka's client, and the other commands need none.
    from ottla.cli.client import pairs

    if not name or not name.isprintable():
        raise UsageFailed(f"a profile cannot have the name {name!r}.")
    addresses(bootstrap)
    client = pairs("--client-config", client_config)
    path = profiles_file()
    profiles = read_profiles(path)
    if name in profiles.by_name and not replace:
        raise Failed(f"profile {name!r} already exists.", "To replace it, add --replace.")
    for setting in secret or ():
        if setting in client:
            raise UsageFailed(f"--client-config and --secret both set {setting}.")
        client[setting] = asked(setting)
    profiles.by_name[name] = Profile(bootstrap, client)
    if profiles.current is None:
        profiles.current = name
    write_profiles(path, profiles)
    current = ", the current one" if profiles.current == name else ""
    say(f"Saved profile {name}{current}, in {path}.")


def asked(setting: str) -> str:
    """A value typed without being shown, or the next line of standard input if that is no
    terminal.
    """
    import sys
    from getpass import getpass

    if sys.stdin.isatty():
        return getpass(f"{setting}: ")
    line = sys.stdin.readline()
    if not line:
        raise UsageFailed(f"standard input has no line for --secret {setting}.")
    return line.rstrip("\n")


@commands.command()
def use(name: Name) -> None:
    """Make a profile the current one: commands use it unless they name another cluster."""
    path = profiles_file()
    profiles = read_profiles(path)
    profile = profiles.find(name)
    profiles.current = name
    write_profiles(path, profiles)
    say(f"Commands use {name} now: {profile.bootstrap}.")


@commands.command()
def remove(name: Name) -> None:
    """Remove a profile. If it is the current one, none is current then."""
    path = profiles_file()
    profiles = read_profiles(path)
    profiles.find(name)
    del profiles.by_name[name]
    if profiles.current == name:
        profiles.current = None
    write_profiles(path, profiles)
    say(f"Removed profile {name}.")
