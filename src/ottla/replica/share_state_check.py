"""A leader asks now and then whether the state that it has read is still the one that is stored.

A group may be deleted, or its offsets altered, while a member still has a share session with the
leader, which then keeps what it knows of the group. Another state may have begun since, or none.
What the leader writes is refused then (`ottla.share.shard`), and it reads. But where it has nothing
to hand out it writes nothing: members of the next group of that name would wait there for records
that are in the log. So it asks, while somebody waits for records (ReadShareGroupStateSummary).

Kafka's leaders do not ask, and its share coordinators take their writes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final, Protocol

from ottla.protocol.errors import ApiError
from ottla.runtime.background import Background
from ottla.share.shard import Summary
from ottla.share.share_partition import Write
from ottla.share.stored import NO_EPOCH, NO_OFFSET, ShareKey

logger = logging.getLogger("ottla.share")

CHECK_S: Final = 10
"""Between a read, a write or a check, and the next check: at most 10,000 share partitions are asked
about in a second by a broker that has as many as it can."""


class Summaries(Protocol):
    """As `ottla.coordinator.share_persister.SharePersister`."""

    async def summary(self, key: ShareKey) -> Summary:
        """Raises ApiError."""


class ShareStateCheck:
    """Of one shared partition. For the event loop's thread only."""

    def __init__(
        self,
        key: ShareKey,
        leader_epoch: int,
        summaries: Summaries,
        background: Background,
        is_other: Callable[[], None],
    ) -> None:
        """`is_other` is called if another state is stored, or none."""
        self._key = key
        self._leader_epoch = leader_epoch
        self._summaries = summaries
        self._background = background
        self._is_other = is_other
        self._state_epoch = NO_EPOCH
        self._start_offset: int | None = None
        self._complete_count: int | None = None
        """Both as they are stored; None: not known."""
        self._changes = 0
        self._is_asking = False
        self._due_s = 0.0

    def read(self, state_epoch: int, start_offset: int) -> None:
        """The state was read."""
        self._state_epoch = state_epoch
        self._known(start_offset, None)

    def writing(self) -> None:
        """The state is written from now on: an answer may tell of it before or after that."""
        self._known(None, None)

    def written(self, write: Write) -> None:
        """It has been written; it is not called where that is not known."""
        self._known(write.start_offset, write.delivery_complete_count)

    def _known(self, start_offset: int | None, complete_count: int | None) -> None:
        self._start_offset, self._complete_count = start_offset, complete_count
        self._changes += 1
        self._due_s = asyncio.get_running_loop().time() + CHECK_S

    @property
    def is_due(self) -> bool:
        """Whether it is time to ask."""
        return not self._is_asking and asyncio.get_running_loop().time() >= self._due_s

    def begin(self) -> None:
        """Asks. Nothing may be about to be written."""
        self._is_asking = True
        self._background.spawn(self._ask())

    async def _ask(self) -> None:
        changes = self._changes
        try:
            found = await self._summaries.summary(self._key)
        except ApiError as error:
            logger.info("group %s: the state is not known: %s", self._key.group_id, error)
        else:
            if changes == self._changes and not self._is_that(found):
                logger.info("group %s: another state is stored, or none", self._key.group_id)
                self._is_other()
        finally:
            self._is_asking = False
            self._due_s = asyncio.get_running_loop().time() + CHECK_S

    def _is_that(self, found: Summary) -> bool:
        """A state that nobody has read yet has no leader epoch (0 in a summary), and mostly no
        start."""
        return (
            found.state_epoch == self._state_epoch
            and found.leader_epoch == self._leader_epoch
            and found.start_offset != NO_OFFSET
            and self._start_offset in (None, found.start_offset)
            and self._complete_count in (None, found.delivery_complete_count)
        )
