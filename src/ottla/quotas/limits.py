"""Which quota applies to a user and a client id: the most specific one (ClientQuotaManager).

    users/<user>/clients/<client-id>
    users/<user>/clients/<default>
    users/<user>
    users/<default>/clients/<client-id>
    users/<default>/clients/<default>
    users/<default>
    clients/<client-id>
    clients/<default>

All connections to which the same quota applies with the same names use it up together: a user's
quota all of the user's, whatever their client ids are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from ottla.quotas.entity import DEFAULT, OF_CLIENTS, Entity, Kind

MAX_NAME_CHARACTERS: Final = 1_000
"""Of a user, client id or address that has a quota."""


class Share(NamedTuple):
    """Who uses up one quota together. A name that the quota does not ask for is empty."""

    user: str
    client_id: str


class Limits:
    """The limits of all users and client ids."""

    def __init__(self) -> None:
        self._limits: dict[Kind, dict[Entity, float]] = {}

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self._limits)

    def set(self, entity: Entity, values: Mapping[Kind, float]) -> None:
        """These are all quotas of a user, client id, or both."""
        for kind in OF_CLIENTS:
            limits = self._limits.setdefault(kind, {})
            if kind in values:
                limits[entity] = values[kind]
            else:
                limits.pop(entity, None)
            if not limits:
                del self._limits[kind]

    def find(self, kind: Kind, user: str, client_id: str) -> tuple[Share, float] | None:
        """Who shares the quota of this client, and its limit per second; None without one."""
        limits = self._limits.get(kind)
        if limits is None:
            return None
        share = _share(limits, user, client_id)
        entity = _decides(limits, share)
        return None if entity is None else (share, limits[entity])

    def deciding(self, kind: Kind, user: str, client_id: str) -> tuple[Entity, float] | None:
        """Whose quota applies to this client, and its limit per second; None without one."""
        limits = self._limits.get(kind, {})
        entity = _decides(limits, _share(limits, user, client_id))
        return None if entity is None else (entity, limits[entity])


def _decides(limits: Mapping[Entity, float], share: Share) -> Entity | None:
    """As in Kafka, which keeps quotas by the two names of a share: where no client id is given,
    quotas of a user and a client id end in those of the user alone.
    """
    of_user, of_client = share
    candidates: tuple[Entity, ...] = ()
    if of_user and of_client:
        candidates = (
            Entity(of_user, of_client),
            Entity(of_user, DEFAULT),
            Entity(DEFAULT, of_client),
            Entity(DEFAULT, DEFAULT),
        )
    elif of_user:
        candidates = (Entity(of_user), Entity(DEFAULT))
    elif of_client:
        candidates = (Entity(None, of_client), Entity(None, DEFAULT))
    return next((entity for entity in candidates if entity in limits), None)


def _share(limits: Mapping[Entity, float], user: str, client_id: str) -> Share:
    if Entity(user, client_id) in limits or Entity(user, DEFAULT) in limits:
        return Share(user, client_id)
    if Entity(user) in limits:
        return Share(user, "")
    if Entity(DEFAULT, client_id) in limits or Entity(DEFAULT, DEFAULT) in limits:
        return Share(user, client_id)
    if Entity(DEFAULT) in limits:
        return Share(user, "")
    return Share("", client_id)
