"""Bugs to plant in the shipped drivers, as patches of their classes: seeds must find them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final, Protocol

from ottla.broker.broker_watch import BrokerWatch
from ottla.broker.in_sync_changes import InSyncChanges
from ottla.broker.membership import Membership
from ottla.broker.metadata_applier import MetadataApplier
from ottla.broker.metadata_log import MetadataLog
from ottla.broker.partition_follow import FollowingPartition
from ottla.controller.image import PartitionsChanged
from ottla.replication.leader import Leader


class Patch(Protocol):
    """What is needed of pytest's `monkeypatch`."""

    def setattr(self, target: Any, name: str, value: Any) -> None:
        """Replace an attribute until the end of a test."""


def follower_keeps_its_tail(patch: Patch) -> None:
    """A follower does not truncate what its leader does not have."""
    patch.setattr(FollowingPartition, "truncate_to", lambda *_: None)


def high_watermark_waits_for_nobody(patch: Patch) -> None:
    """The leader counts what only it has as committed."""

    def advance(self: Leader, end_offset: int, now_ms: int, min_isr: int) -> bool:
        moved = end_offset > self.high_watermark
        self.high_watermark = max(end_offset, self.high_watermark)
        return moved

    patch.setattr(Leader, "advance", advance)


def isr_changes_are_not_sent(patch: Patch) -> None:
    """The leader decides who is in sync, and does not tell the controller."""
    patch.setattr(InSyncChanges, "propose", lambda *_: None)


def nobody_registers_again(patch: Patch) -> None:
    """A broker whose session expired stays out of the cluster."""

    async def sleep(self: Membership) -> None:
        await asyncio.sleep(3_600)

    patch.setattr(Membership, "_new_session", sleep)


def the_watch_is_blind(patch: Patch) -> None:
    """The controller does not notice that brokers come and go."""

    async def nothing(self: BrokerWatch) -> None:
        return None

    patch.setattr(BrokerWatch, "_take_in", nothing)


def deltas_are_lost(patch: Patch) -> None:
    """The controller's log drops the deltas that a broker asks for, and says that it has them."""
    since = MetadataLog.since

    def forgetful(self: MetadataLog, version: int) -> dict[str, Any]:
        found = since(self, version)
        return {**found, "deltas": []} if "deltas" in found else found

    patch.setattr(MetadataLog, "since", forgetful)


def role_changes_are_missed(patch: Patch) -> None:
    """A broker hears of new topics, and not of new leaders."""
    tell = MetadataApplier.tell

    async def deaf(self: MetadataApplier, delta: Any) -> None:
        if not isinstance(delta, PartitionsChanged):
            await tell(self, delta)

    patch.setattr(MetadataApplier, "tell", deaf)


# The seed that finds it, as long as faults are drawn as they are: it is tried first.
PLANTED: Final[dict[Callable[[Patch], None], int]] = {
    follower_keeps_its_tail: 20,
    high_watermark_waits_for_nobody: 1,
    isr_changes_are_not_sent: 0,
    nobody_registers_again: 1,
    the_watch_is_blind: 0,
    deltas_are_lost: 1,
    role_changes_are_missed: 0,
}
