"""The users that a new cluster begins with (ottla.first.users).

A broker whose listener of the other brokers has SCRAM needs a user before there is anybody who
could make one.
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.controller import layout
from ottla.controller.users import write_credential
from ottla.coordination.tree import Create
from ottla.security.sasl.scram import credential_of, salted_password
from ottla.security.sasl.scram_users import parse_scram_users


def first_users(text: str, new_salt: Callable[[], bytes]) -> tuple[Create, ...]:
    """The nodes of these users. A password takes milliseconds."""
    configs: dict[str, dict[str, str]] = {}
    for user in parse_scram_users(text):
        salt = new_salt()
        salted = salted_password(user.mechanism, user.password, salt, user.iterations)
        kept = credential_of(user.mechanism, salted, salt, user.iterations)
        configs.setdefault(user.name, {})[user.mechanism] = write_credential(kept)
    return tuple(
        Create(layout.user_config_path(name), layout.write_config(values))
        for name, values in configs.items()
    )
