"""`ottla profile show`."""

from __future__ import annotations

from typing import Final

from ottla.cli.command import command
from ottla.cli.failures import Failed
from ottla.cli.options import AS_JSON, profile_argument
from ottla.cli.rows import emit, row
from ottla.cli.screen import show_table
from ottla.client.profiles import is_secret, profiles_file, read_profiles

HIDDEN: Final = "(hidden)"


@row
class ShownProfile:
    """A profile, its passwords hidden."""

    profile: str
    bootstrap: str
    current: bool
    client: dict[str, str]
    registry: str | None

    def show(self) -> None:
        registry = [["registry", self.registry]] if self.registry else []
        show_table(
            ["setting", "value"],
            [["bootstrap", self.bootstrap], *registry, *self.client.items()],
            title=f"{self.profile}, in {profiles_file()}",
        )


@command()
@profile_argument(
    required=False, metavar="[NAME]", help="The profile's name. Default: the current one."
)
@AS_JSON
def show(name: str | None, as_json: bool) -> None:
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
    scheme, _, rest = profile.registry.partition("://")
    user, _, place = rest.rpartition("@")
    registry = f"{scheme}://{HIDDEN}@{place}" if user else profile.registry or None
    is_current = chosen == profiles.current
    shown = ShownProfile(chosen, profile.bootstrap, is_current, client, registry)
    emit(shown, as_json=as_json)
