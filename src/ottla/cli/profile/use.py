"""`ottla profile use`."""

from __future__ import annotations

from ottla.cli.command import command
from ottla.cli.options import profile_argument
from ottla.cli.screen import say
from ottla.client.profiles import profiles_file, read_profiles, write_profiles


@command()
@profile_argument()
def use(name: str) -> None:
    """Make a profile the current one: commands use it unless they name another cluster."""
    path = profiles_file()
    profiles = read_profiles(path)
    profile = profiles.find(name)
    profiles.current = name
    write_profiles(path, profiles)
    say(f"Commands use {name} now: {profile.bootstrap}.")
