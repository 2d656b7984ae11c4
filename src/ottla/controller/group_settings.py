"""The settings that are in force for a group now: what coordinators read."""

from __future__ import annotations

from ottla.config.broker import BrokerConfig
from ottla.config.group import GroupConfig, group_config
from ottla.controller.image import ClusterImage


def settings_of_group(image: ClusterImage, broker: BrokerConfig, group: str) -> GroupConfig:
    """Its own, within the broker's bounds, and else the broker's defaults. Quick enough for every
    heartbeat, and the same object as long as nothing has changed.
    """
    own = image.groups.get(group)
    return group_config(broker, None if own is None else own.values)
