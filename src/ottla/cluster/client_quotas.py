"""Hands the quotas of the cluster to what throttles this broker's clients, as they change."""

from __future__ import annotations

from collections.abc import Mapping

from ottla.controller.image import MetadataDelta, QuotaConfigChanged, UserConfigChanged
from ottla.controller.quotas import entity_of, read_quotas
from ottla.network.throttling import Throttling
from ottla.quotas.entity import Entity, Kind


class ClientQuotas:
    """Follows the image."""

    def __init__(self, throttling: Throttling) -> None:
        self._throttling = throttling
        self._has: set[Entity] = set()
        """Those with quotas: most changes of users are of passwords."""

    def notified(self, delta: MetadataDelta) -> None:
        """A subscriber of the cluster's view."""
        match delta:
            case UserConfigChanged(user, config):
                self._set(Entity(user), config.values)
            case QuotaConfigChanged(path, config):
                entity = entity_of(path)
                if entity is not None:
                    self._set(entity, config.values)

    def _set(self, entity: Entity, values: Mapping[str, str]) -> None:
        quotas = read_quotas(values)
        if not quotas and entity not in self._has:
            return
        if quotas:
            self._has.add(entity)
        else:
            self._has.discard(entity)
        throttling = self._throttling
        if entity.ip is not None:
            throttling.connections.set(entity.ip, quotas.get(Kind.CONNECTION))
        else:
            throttling.meters.set(entity, quotas)
            throttling.changed()
