"""`ottla profile list`."""

from __future__ import annotations

from typing import Final

from ottla.cli.command import command
from ottla.cli.options import AS_JSON
from ottla.cli.rows import column, emit, row
from ottla.client.profiles import profiles_file, read_profiles

NO_PROFILES: Final = (
    "No profiles yet. Create one with: ottla profile add NAME --bootstrap HOST:PORT"
)


@row
class ListedProfile:
    """`current`: it is used unless another is named."""

    profile: str
    bootstrap: str
    current: bool = column("", lambda each: "current" if each.current else "")


@command("list")
@AS_JSON
def list_profiles(as_json: bool) -> None:
    """List profiles with their addresses."""
    profiles = read_profiles(profiles_file())
    rows = [
        ListedProfile(name, each.bootstrap, name == profiles.current)
        for name, each in sorted(profiles.by_name.items())
    ]
    emit(rows, as_json=as_json, none=NO_PROFILES)
