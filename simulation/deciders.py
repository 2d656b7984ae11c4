"""The deciders under trial. A mutation check puts a broken one in the place of a right one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ottla.controller.broker_changes import brokers_changed
from ottla.controller.controlled_shutdown import controlled_shutdown
from ottla.controller.image import PartitionState
from ottla.controller.in_sync_changes import alter_partitions
from ottla.replication.follower import Follower
from ottla.replication.leader import Leader
from ottla.replication.life import in_this_life, knows_this_life


@dataclass(frozen=True, slots=True)
class Deciders:
    """Each as the real brokers call it."""

    leader: type[Leader] = Leader
    follower: type[Follower] = Follower
    brokers_changed: Callable[..., Any] = brokers_changed
    alter_partitions: Callable[..., Any] = alter_partitions
    controlled_shutdown: Callable[..., Any] = controlled_shutdown
    in_this_life: Callable[..., PartitionState] = in_this_life
    knows_this_life: Callable[..., bool] = knows_this_life
