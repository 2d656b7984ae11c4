"""How long a member of a share group may keep a record (KIP-932)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ottla.client.admin.configs import settings_of
from ottla.testing.broker_request import kit_client
from ottla.testing.errors import KitError, is_for_the_test

__tracebackhide__ = is_for_the_test

_LOCK: Final = "share.record.lock.duration.ms"


def lock_ms(bootstrap: str, group: str, settings: Mapping[str, str] | None = None) -> int:
    """The group's own setting, or the brokers' default. Raises KitError."""
    with kit_client(bootstrap, settings=settings) as client:
        for each in settings_of(client, "group", [group], [_LOCK])[group]:
            if each.name == _LOCK and each.value is not None:
                return int(each.value)
    raise KitError(f"the broker does not say {_LOCK} of group {group}")
