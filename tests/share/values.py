"""A share partition, and records of it."""

from uuid import UUID

from ottla.share.record_state import RecordState
from ottla.share.state_batch import StateBatch
from ottla.share.stored import ShareKey, Snapshot, Update

KEY = ShareKey("g", UUID(hex="00112233445566778899aabbccddeeff"), 3)
ACKED = StateBatch(6, 7, RecordState.ACKNOWLEDGED, 1)
FREE = StateBatch(9, 10, RecordState.AVAILABLE, 2)
SNAPSHOT = Snapshot(2, 1, 7, 5, 2, 1_700_000_000_000, 1_700_000_000_001, [ACKED, FREE])
UPDATE = Update(2, 7, -1, -1, [StateBatch(6, 7, RecordState.ARCHIVED, 5)])
