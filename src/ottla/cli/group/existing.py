"""The groups that a command names: those there are; an error names the first missing one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ottla.cli.failures import Failed, unknown
from ottla.client.admin.groups import Group, described_groups, listed_groups
from ottla.client.client import Client

LIST_HINT: Final = "To list all groups: ottla group list"
NO_GROUPS: Final = "No groups yet. Create one with: ottla consume TOPIC --group NAME"


def no_active_members(group: Group) -> None:
    """Raises Failed while members of the group are active: brokers refuse changes then."""
    count = len(group.members)
    if not count:
        return
    readers = "1 member is" if count == 1 else f"{count} members are"
    raise Failed(
        f"{readers} reading as group {group.name!r} now.",
        f"Stop the consumers first. To list them: ottla group describe {group.name}",
    )


def existing_groups(client: Client, names: Iterable[str]) -> dict[str, Group]:
    """Descriptions by name. Raises Failed that names the first missing group."""
    wanted = list(dict.fromkeys(names))
    found = described_groups(client, wanted)
    for name in wanted:
        if name not in found:
            raise unknown_group(client, name, LIST_HINT)
    return found


def unknown_group(client: Client, name: str, hint: str) -> Failed:
    return unknown("group", name, [each.group for each in listed_groups(client)], hint)


def chosen_groups(client: Client, names: Sequence[str]) -> dict[str, Group]:
    """Descriptions by name of these groups, or of all if none is named. Raises Failed."""
    if names:
        return existing_groups(client, names)
    return described_groups(client, [each.group for each in listed_groups(client)])
