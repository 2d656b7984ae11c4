"""Users that were named and must exist."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.cli.failures import unknown
from ottla.cli.user.rows import USERS_HINT
from ottla.client.admin.users import User, users
from ottla.client.client import Client


def existing_users(client: Client, names: Sequence[str]) -> list[User]:
    """In the order in which they were named. Raises Failed for the first missing one."""
    found = {each.name: each for each in users(client, names)}
    for name in names:
        if name not in found:
            known = [each.name for each in users(client)]
            raise unknown("user", name.removeprefix("User:"), known, USERS_HINT)
    return [found[name] for name in dict.fromkeys(names)]
