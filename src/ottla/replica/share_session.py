"""Share sessions: which partitions a member of a share group fetches from this broker (KIP-932).

    epoch 0        begins the session, with all of its partitions
    1, 2, ... max  changes: partitions to add, partitions to forget; then 1 again
    -1             ends it

A session belongs to a group and a member, and ends with its connection: what the member has
acquired is released then. There are as many as group.share.max.share.sessions says; when they are
used up, no new one begins (Kafka's ShareSessionCache).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final, NamedTuple
from uuid import UUID

from ottla.protocol.errors import ApiError, ErrorCode

FIRST_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
LAST_EPOCH: Final = 2**31 - 1
MAX_PARTITIONS: Final = 10_000
"""Of one session: they are held in memory, and looked at with each request."""
MAX_ALL_PARTITIONS: Final = 1_000_000
"""Of all sessions; clients name them, whether they exist or not."""
SMALL: Final = 100
"""Sessions with so few partitions are not refused for that."""


class TopicPartition(NamedTuple):
    topic_id: UUID
    partition: int


class Member(NamedTuple):
    """Whose session it is."""

    group_id: str
    member_id: str


class ShareSession:
    """One member's."""

    __slots__ = ("connection_id", "epoch", "member", "partitions")

    def __init__(self, member: Member, connection_id: int) -> None:
        self.member = member
        self.connection_id = connection_id
        self.epoch = next_epoch(FIRST_EPOCH)
        """That of the next request."""
        self.partitions: dict[TopicPartition, bool] = {}
        """Whether the next response must name it, even if there is nothing to say: it is new, or
        had an error."""


def next_epoch(epoch: int) -> int:
    """What follows on an epoch that does not end its session."""
    return 1 if epoch == LAST_EPOCH else epoch + 1


def check_count(count: int) -> None:
    """Raises ApiError: INVALID_REQUEST for so many partitions in one session."""
    if count > MAX_PARTITIONS:
        raise ApiError(
            ErrorCode.invalid_request,
            f"The share session has {count:,} partitions; at most {MAX_PARTITIONS:,} are possible:"
            " use more brokers, or groups for some topics.",
        )


class ShareSessions:
    """Those of this broker. `ended` is called with each session that ends."""

    def __init__(self, max_sessions: Callable[[], int], ended: Callable[[ShareSession], None]):
        self._max_sessions = max_sessions
        self._ended = ended
        self._sessions: dict[Member, ShareSession] = {}
        self._of_connection: dict[int, set[Member]] = {}
        self._of_group: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def has_group(self, group_id: str) -> bool:
        """Whether a member of the group has a session."""
        return group_id in self._of_group

    def is_there(self, member: Member) -> bool:
        """Whether the member has a session."""
        return member in self._sessions

    def get(self, member: Member) -> ShareSession:
        """Raises ApiError: SHARE_SESSION_NOT_FOUND."""
        session = self._sessions.get(member)
        if session is None:
            raise ApiError(
                ErrorCode.share_session_not_found, "The share session is not known to this broker."
            )
        return session

    def begin(
        self, member: Member, connection_id: int, partitions: Collection[TopicPartition]
    ) -> ShareSession:
        """A session with these partitions; one of the same member before it is forgotten, and keeps
        what it has acquired.

        Raises ApiError: SHARE_SESSION_LIMIT_REACHED, INVALID_REQUEST.
        """
        before = self._sessions.get(member)
        if before is not None:
            self._remove(before)
        if len(self._sessions) >= self._max_sessions():
            raise ApiError(
                ErrorCode.share_session_limit_reached,
                "This broker has as many share sessions as group.share.max.share.sessions allows.",
            )
        session = ShareSession(member, connection_id)
        session.partitions = dict.fromkeys(partitions, True)
        self._sessions[member] = session
        self._of_connection.setdefault(connection_id, set()).add(member)
        self._of_group[member.group_id] = self._of_group.get(member.group_id, 0) + 1
        self.check_size(session)
        return session

    def go_on(self, member: Member, epoch: int) -> ShareSession:
        """The session, one epoch on.

        Raises ApiError: SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH.
        """
        session = self.get(member)
        if session.epoch != epoch:
            raise ApiError(
                ErrorCode.invalid_share_session_epoch,
                f"The epoch is {session.epoch}, not {epoch}.",
            )
        session.epoch = next_epoch(epoch)
        return session

    def check_size(self, session: ShareSession) -> None:
        """Raises ApiError for a session with too many partitions, which ends: INVALID_REQUEST;
        SHARE_SESSION_LIMIT_REACHED if all sessions together have too many.
        """
        count = len(session.partitions)
        try:
            check_count(count)
            if count > SMALL and self._partition_count() > MAX_ALL_PARTITIONS:
                raise ApiError(
                    ErrorCode.share_session_limit_reached,
                    f"The share sessions of this broker have {MAX_ALL_PARTITIONS:,} partitions.",
                )
        except ApiError:
            self.end(session)
            raise

    def _partition_count(self) -> int:
        return sum(len(each.partitions) for each in self._sessions.values())

    def end(self, session: ShareSession) -> None:
        """Ends a session, unless it has ended: what the member has is released."""
        if self._sessions.get(session.member) is session:
            self._remove(session)
            self._ended(session)

    def connection_ended(self, connection_id: int) -> None:
        """Ends the sessions of a connection."""
        for member in sorted(self._of_connection.get(connection_id, ())):
            self.end(self._sessions[member])

    def end_all(self) -> None:
        """The cluster does not use share groups any more."""
        for session in list(self._sessions.values()):
            self.end(session)

    def _remove(self, session: ShareSession) -> None:
        member, connection_id = session.member, session.connection_id
        del self._sessions[member]
        of_connection = self._of_connection[connection_id]
        of_connection.discard(member)
        if not of_connection:
            del self._of_connection[connection_id]
        left = self._of_group[member.group_id] - 1
        if left:
            self._of_group[member.group_id] = left
        else:
            del self._of_group[member.group_id]
