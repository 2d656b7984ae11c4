"""What the share coordinator keeps in `__share_group_state`, as values (KIP-932, KIP-1226).

A snapshot is the whole state of one share partition, an update what changed after the snapshot
before it; a snapshot without a value (a tombstone) removes the state. The topic is not compacted:
what is older than every share partition's last snapshot is deleted. `record_format` has the bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple
from uuid import UUID

from ottla.share.state_batch import StateBatch

NO_OFFSET: Final = -1
"""As a start offset: the share partition has none yet; in an update: it is not changed."""
NO_COUNT: Final = -1
NO_EPOCH: Final = -1


class ShareKey(NamedTuple):
    """A share partition: a group and a partition of a topic."""

    group_id: str
    topic_id: UUID
    partition: int


class Snapshot(NamedTuple):
    """The whole state of a share partition."""

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    create_ms: int
    write_ms: int
    batches: Sequence[StateBatch] = ()


class Update(NamedTuple):
    """What changed of a share partition."""

    snapshot_epoch: int
    """That of the snapshot before it."""
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: Sequence[StateBatch] = ()


class ShareRecord(NamedTuple):
    """One record to append; `value` None is a tombstone."""

    key: ShareKey
    value: Snapshot | Update | None
