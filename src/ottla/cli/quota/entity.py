"""The options that say whom a quota is for; named as those of kafka-configs."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from ottla.cli.complete import complete_user
from ottla.cli.failures import UsageFailed
from ottla.quotas.entity import DEFAULT, Entity

EXAMPLE = "For example: ottla quota add --user alice producer_byte_rate=10MB"


def entity_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """`entity`: the three names."""

    @click.option("--user", metavar="USER", shell_complete=complete_user, help="Of this user.")
    @click.option("--user-defaults", is_flag=True, help="Of each user without a quota of its own.")
    @click.option("--client", "client_id", metavar="ID", help="Of clients with this client id.")
    @click.option("--client-defaults", is_flag=True, help="Of each client id without its own.")
    @click.option("--ip", metavar="ADDRESS", help="Of clients at this address.")
    @click.option("--ip-defaults", is_flag=True, help="Of each address without its own.")
    @wraps(function)
    def with_entity(
        *words: Any,
        user: str | None,
        user_defaults: bool,
        client_id: str | None,
        client_defaults: bool,
        ip: str | None,
        ip_defaults: bool,
        **more: Any,
    ) -> Any:
        entity = Entity(
            _name("user", user, user_defaults),
            _name("client", client_id, client_defaults),
            _name("ip", ip, ip_defaults),
        )
        if entity.ip is not None and (entity.user is not None or entity.client_id is not None):
            raise UsageFailed("an address has quotas of its own: leave out --user and --client.")
        return function(*words, entity=entity, **more)

    return with_entity


def _name(type: str, name: str | None, defaults: bool) -> str | None:
    if name is not None and defaults:
        raise UsageFailed(f"--{type} and --{type}-defaults exclude each other.")
    if name == "":
        raise UsageFailed(f"--{type} must have a name.", f"For all others: --{type}-defaults")
    return DEFAULT if defaults else name


def named(entity: Entity) -> Entity:
    """The entity, if the words name one. Raises UsageFailed."""
    if not entity.names():
        raise UsageFailed("say whom the quota is for.", EXAMPLE)
    return entity
