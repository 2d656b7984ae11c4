"""Every partition that share groups read from this broker, and the sessions of their members."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator
from typing import Final

from ottla.network.client_session import ClientSession
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.replica.partitions import Partitions
from ottla.replica.share_session import ShareSession, ShareSessions, TopicPartition
from ottla.replica.shared_partition import SharedPartition, Surroundings
from ottla.runtime.slices import until_done
from ottla.share.stored import ShareKey

logger = logging.getLogger("ottla.share")

MAX_PARTITIONS: Final = 100_000
"""Shared partitions of this broker: they are held in memory, and clients name the groups."""

PART: Final = 4_000
"""Of the work that follows when sessions end, in each turn of the event loop: runs of records, and
PARTITION_WEIGHT for each partition; a few ms."""
PARTITION_WEIGHT: Final = 20


class SharedPartitions:
    """For the event loop's thread only."""

    def __init__(self, partitions: Partitions, around: Surroundings, max_sessions: int) -> None:
        self._partitions = partitions
        self._around = around
        self.sessions: Final = ShareSessions(lambda: max_sessions, self._session_ended)
        self.terms: Final = around.terms
        """What a group's settings say of its records."""
        self.dead_letters: Final = around.dead_letters
        self.history: Final = around.history
        self._shared: dict[ShareKey, SharedPartition] = {}
        self._of_group: dict[str, set[ShareKey]] = {}
        self._ended: deque[Iterator[int]] = deque()
        """What is left to do after sessions have ended."""

    def __len__(self) -> int:
        return len(self._shared)

    def close(self) -> None:
        """Ends all; requests that wait are answered with NOT_LEADER_OR_FOLLOWER."""
        self._ended.clear()
        for shared in list(self._shared.values()):
            shared.end()
        self._around.background.cancel()

    # Partitions.

    def known(self, group_id: str, partition: TopicPartition) -> SharedPartition | None:
        """One that this broker shares already."""
        key = ShareKey(group_id, *partition)
        shared = self._shared.get(key)
        if shared is not None and not shared.is_current:
            self._forget(shared)
            return None
        return shared

    def groups_of(self, partition: TopicPartition) -> list[str]:
        """The groups that share this partition here now."""
        return sorted(key.group_id for key in self._shared if key[1:] == tuple(partition))

    def find(self, group_id: str, partition: TopicPartition) -> SharedPartition:
        """One that this broker shares from now on, and that may be loading.

        Raises ApiError: what `Partitions.find` raises, NOT_LEADER_OR_FOLLOWER; once, why it could
        not be loaded.
        """
        failed = self._shared.get(ShareKey(group_id, *partition))
        shared = self.known(group_id, partition)
        if failed is not None and failed.failure is not None and not failed.is_told:
            failed.is_told = True
            raise failed.failure
        if shared is not None:
            return shared
        led = self._partitions.find(*partition)
        led.check_leads()
        if len(self._shared) >= MAX_PARTITIONS:
            raise ApiError(
                ErrorCode.coordinator_not_available,
                f"This broker shares {MAX_PARTITIONS:,} partitions already.",
            )
        key = ShareKey(group_id, *partition)
        shared = SharedPartition(key, led, self._around, self._unused)
        self._shared[key] = shared
        self._of_group.setdefault(group_id, set()).add(key)
        return shared

    def _forget(self, shared: SharedPartition) -> None:
        shared.end()
        if self._shared.get(shared.key) is shared:
            del self._shared[shared.key]
            of_group = self._of_group[shared.key.group_id]
            of_group.discard(shared.key)
            if not of_group:
                del self._of_group[shared.key.group_id]

    # Sessions.

    def watch(self, client: ClientSession) -> None:
        """The sessions that this connection begins end with it: now, if it has ended."""
        if client.has_ended:
            self.sessions.connection_ended(client.connection_id)
        else:
            client.ended = lambda: self.sessions.connection_ended(client.connection_id)

    def _session_ended(self, session: ShareSession) -> None:
        """The first part of the work is done at once: all of it, for most sessions. A connection
        may have 2,000 sessions of 10,000 partitions.
        """
        self._ended.append(self._clear(session))
        if len(self._ended) == 1:
            until_done(self._clear_part)

    def _clear_part(self) -> bool:
        """Whether there is more to do."""
        left = PART
        while self._ended:
            for weight in self._ended[0]:
                left -= weight
                if left <= 0:
                    return True
            if self._ended:
                self._ended.popleft()
        return False

    def _clear(self, session: ShareSession) -> Iterator[int]:
        """Gives others what the member has, unless it has a session again: then it keeps the rest,
        until the locks are over. Yields the weight of each piece of work.
        """
        member = session.member
        yield len(session.partitions) // 10
        for partition in list(session.partitions):
            if self.sessions.is_there(member):
                return
            shared = self.known(member.group_id, partition)
            if shared is not None:
                shared.release(member.member_id)
                yield PARTITION_WEIGHT + shared.run_count
            else:
                yield 1
        group_id = member.group_id
        if self.sessions.has_group(group_id):
            return
        for key in list(self._of_group.get(group_id, ())):
            shared = self._shared.get(key)
            if shared is not None:
                self._unused(shared)
                yield PARTITION_WEIGHT + shared.run_count

    def _unused(self, shared: SharedPartition) -> None:
        """Forgets it if nobody reads for the group here, and nobody has records. What is still to
        be written stays until it is: the next leader would not know of it.
        """
        if not self.sessions.has_group(shared.key.group_id) and (
            shared.is_idle or not shared.is_current
        ):
            self._forget(shared)
