"""Every partition that share groups read from this broker, and the sessions of their members."""

from __future__ import annotations

import logging
from typing import Final

from ottla.network.client_session import ClientSession
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.replica.partitions import Partitions
from ottla.replica.share_session import Member, ShareSession, ShareSessions, TopicPartition
from ottla.replica.shared_partition import SharedPartition, Surroundings
from ottla.share.stored import ShareKey

logger = logging.getLogger("ottla.share")

MAX_PARTITIONS: Final = 100_000
"""Shared partitions of this broker: they are held in memory, and clients name the groups."""


class SharedPartitions:
    """For the event loop's thread only."""

    def __init__(self, partitions: Partitions, around: Surroundings, max_sessions: int) -> None:
        self._partitions = partitions
        self._around = around
        self.sessions: Final = ShareSessions(lambda: max_sessions, self._session_ended)
        self.terms: Final = around.terms
        """What a group's settings say of its records."""
        self._shared: dict[ShareKey, SharedPartition] = {}
        self._of_group: dict[str, set[ShareKey]] = {}

    def __len__(self) -> int:
        return len(self._shared)

    def close(self) -> None:
        """Ends all; requests that wait are answered with NOT_LEADER_OR_FOLLOWER."""
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
        shared = SharedPartition(key, led, self._around)
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
        """The sessions that this connection begins end with it."""
        client.ended = lambda: self.sessions.connection_ended(client.connection_id)

    def _session_ended(self, session: ShareSession) -> None:
        self.release(session.member, session)
        group_id = session.member.group_id
        if not self.sessions.has_group(group_id):
            self._forget_idle(group_id)

    def release(self, member: Member, session: ShareSession) -> None:
        """Gives others what the member has."""
        for partition in session.partitions:
            shared = self.known(member.group_id, partition)
            if shared is not None:
                shared.release(member.member_id)

    def _forget_idle(self, group_id: str) -> None:
        """Nobody reads for the group here. What is still to be written stays until somebody does
        again: the next leader would not know of it."""
        for key in sorted(self._of_group.get(group_id, ())):
            shared = self._shared[key]
            if shared.is_idle or not shared.is_current:
                self._forget(shared)
