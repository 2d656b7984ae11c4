"""`ottla profile remove`."""

from __future__ import annotations

from ottla.cli.command import command
from ottla.cli.options import profile_argument
from ottla.cli.screen import say
from ottla.client.profiles import profiles_file, read_profiles, write_profiles


@command()
@profile_argument()
def remove(name: str) -> None:
    """Remove a profile. If it is the current one, none is current then."""
    path = profiles_file()
    profiles = read_profiles(path)
    profiles.find(name)
    del profiles.by_name[name]
    if profiles.current == name:
        profiles.current = None
    write_profiles(path, profiles)
    say(f"Removed profile {name}.")
