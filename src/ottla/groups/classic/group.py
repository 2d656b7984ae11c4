"""A classic group: what the log has of it, and the rebalance in progress, which it has not.

In the log: one record for each generation that has its assignment or is empty (`stored`), and one
when a static member returns under another id. `apply` is the only way that these change the group:
from CompletingRebalance to Stable, and to Empty.

In memory only, as in Kafka: the next generation while members join it and until the leader has
brought the assignment (members, states PreparingRebalance and CompletingRebalance, requests that
wait, ids that were given out). It is lost when the partition moves: the last generation in the log
goes on, and its members join again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ottla.groups.classic.member import EMPTY_ASSIGNMENT, Member
from ottla.groups.classic.requests import JoinedMember, JoinRequest, JoinResult, SyncResult
from ottla.groups.classic.state import (
    COMPLETING_REBALANCE,
    DEAD,
    EMPTY,
    PREPARING_REBALANCE,
    PREVIOUS_STATES,
    STABLE,
    GroupState,
)
from ottla.groups.settings import GroupSettings
from ottla.groups.step import Step
from ottla.groups.stored import GroupMetadataValue, MemberMetadata
from ottla.groups.subscription import CONSUMER_PROTOCOL_TYPE, subscribed_topics
from ottla.protocol.errors import ErrorCode


class ClassicGroup:
    """One group; see the methods for what may be asked of it."""

    __slots__ = (
        "awaiting_join", "generation", "group_id", "leader_id", "members", "metadata_bytes",
        "new_member_added", "pending_members", "pending_sync", "previous_state", "protocol_name",
        "protocol_type",
        "state", "state_timestamp_ms", "static_members", "stored", "subscribed", "supported",
    )  # fmt: skip

    def __init__(self, group_id: str, now_ms: int) -> None:
        self.group_id = group_id
        self.state = EMPTY
        self.previous_state = DEAD
        self.state_timestamp_ms: int | None = now_ms
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.generation = 0
        self.leader_id: str | None = None
        self.members: dict[str, Member] = {}
        self.static_members: dict[str, str] = {}
        """Instance id to member id."""
        self.pending_members: dict[str, None] = {}
        """Ids that were given and not yet used (KIP-394)."""
        self.pending_sync: dict[str, None] = {}
        """Members of this generation that have not asked for their assignment."""
        self.awaiting_join = 0
        """How many members' JoinGroup requests wait."""
        self.supported: dict[str, int] = {}
        """Protocol to how many members know it."""
        self.metadata_bytes: dict[str, int] = {}
        """Protocol to the size of all members' metadata for it."""
        self.subscribed: frozenset[str] | None = None
        """Topics of all members; None where they are not known."""
        self.new_member_added = False
        self.stored: GroupMetadataValue | None = None
        """The newest record in the log."""

    @classmethod
    def from_stored(cls, group_id: str, value: GroupMetadataValue) -> ClassicGroup:
        """The group as its last record has it."""
        timestamp_ms = value.current_state_timestamp_ms
        group = cls(group_id, timestamp_ms)
        group.state_timestamp_ms = None if timestamp_ms == -1 else timestamp_ms
        group.generation = value.generation
        group.protocol_type = value.protocol_type or None
        group.protocol_name = value.protocol
        group.leader_id = value.leader
        group.state = STABLE if value.members else EMPTY
        for kept in value.members:
            group._put(Member.stored(kept, value.protocol_type, value.protocol))
        group.subscribed = group.compute_subscribed()
        group.stored = value
        return group

    # What the group is.

    @property
    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    @property
    def rebalance_timeout_ms(self) -> int:
        """The slowest member's."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def can_rebalance(self) -> bool:
        return self.state in PREVIOUS_STATES[PREPARING_REBALANCE]

    @property
    def all_joined(self) -> bool:
        return len(self.members) == self.awaiting_join and not self.pending_members

    def check_member(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """Whether this id speaks for a member; a replaced static member is fenced (KIP-345)."""
        if instance_id is not None:
            present = self.static_members.get(instance_id)
            if present is None:
                return ErrorCode.unknown_member_id
            if present != member_id:
                return ErrorCode.fenced_instance_id
        return ErrorCode.none if member_id in self.members else ErrorCode.unknown_member_id

    def supports(self, protocol_type: str, protocols: tuple[tuple[str, bytes], ...]) -> bool:
        """Whether a member with these protocols can be in one group with the others."""
        if self.state is EMPTY:
            return bool(protocol_type and protocols)
        return self.protocol_type == protocol_type and any(
            self.supported.get(name) == len(self.members) for name, _ in protocols
        )

    def has_room_for(
        self,
        member_id: str,
        protocols: tuple[tuple[str, bytes], ...],
        settings: GroupSettings,
    ) -> bool:
        """Whether a generation can be stored in which the member has these protocols, whichever is
        chosen.
        """
        member = self.members.get(member_id)
        own = {} if member is None else member.protocols
        for name, metadata in protocols:
            grown = len(metadata) - len(own.get(name, b""))
            size_bytes = self.metadata_bytes.get(name, 0) + grown
            if grown > 0 and size_bytes > settings.group_metadata_max_bytes:
                return False
        return True

    def select_protocol(self, changed_id: str | None = None, protocols: Iterable[str] = ()) -> str:
        """The protocol with the most votes among those that every member knows.

        With `changed_id`: if that member had these protocols.
        """
        preferences = [
            tuple(protocols if member_id == changed_id else member.protocols)
            for member_id, member in self.members.items()
        ]
        candidates = set(preferences[0]).intersection(*preferences[1:])
        votes: dict[str, int] = {}
        for names in preferences:
            choice = next(name for name in names if name in candidates)
            votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=votes.__getitem__)

    def is_subscribed(self, topic: str) -> bool:
        """Whether consumers read this topic; where they cannot be asked, they might."""
        if self.subscribed is None:
            return self.uses_consumer_protocol
        return topic in self.subscribed

    def compute_subscribed(self) -> frozenset[str] | None:
        if not self.uses_consumer_protocol:
            return None
        if not self.members:
            return frozenset()
        if self.protocol_name is None:
            return None
        topics: set[str] = set()
        for member in self.members.values():
            try:
                topics.update(subscribed_topics(member.protocols[self.protocol_name]))
            except ValueError:
                return None
        return frozenset(topics)

    # Members come and go.

    def add(self, member: Member) -> None:
        """Adds a member. It becomes the leader if the group has none."""
        assert member.group_instance_id not in self.static_members
        if not self.members:
            self.protocol_type = member.protocol_type
        assert self.supports(member.protocol_type, tuple(member.protocols.items()))
        if self.leader_id is None:
            self.leader_id = member.member_id
        self._put(member)
        self.pending_members.pop(member.member_id, None)

    def _put(self, member: Member) -> None:
        self.members[member.member_id] = member
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id
        self._count(member, 1)

    def _count(self, member: Member, by: int) -> None:
        for name, metadata in member.protocols.items():
            count = self.supported.get(name, 0) + by
            if count:
                self.supported[name] = count
                size = self.metadata_bytes.get(name, 0) + by * len(metadata)
                self.metadata_bytes[name] = size
            else:
                del self.supported[name], self.metadata_bytes[name]

    def remove(self, member_id: str) -> None:
        """Forgets a member or a pending one; another member becomes leader if it was."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._count(member, -1)
            if member.join_token is not None:
                self.awaiting_join -= 1
            if member.group_instance_id is not None:
                self.static_members.pop(member.group_instance_id, None)
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        self.pending_members.pop(member_id, None)
        self.pending_sync.pop(member_id, None)

    def update(self, member: Member, request: JoinRequest) -> None:
        """Takes over what a member says of itself as it joins again."""
        self.restore(
            member,
            dict(request.protocols),
            request.rebalance_timeout_ms,
            request.session_timeout_ms,
        )

    def restore(
        self,
        member: Member,
        protocols: dict[str, bytes],
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
    ) -> None:
        self._count(member, -1)
        member.protocols = protocols
        self._count(member, 1)
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms

    def rename_static(self, instance_id: str, member_id: str) -> Member:
        """A static member came back: the same member under another id."""
        old_id = self.static_members[instance_id]
        self.pending_sync.pop(old_id, None)
        member = self.members.pop(old_id)
        member.member_id = member_id
        self.members[member_id] = member
        self.static_members[instance_id] = member_id
        if self.leader_id == old_id:
            self.leader_id = member_id
        return member

    def elect_joined_leader(self) -> bool:
        """Sees to it that the leader is one who has joined again; False where none has."""
        if self.leader_id is None:
            return False
        if self.members[self.leader_id].join_token is None:
            for member in self.members.values():
                if member.join_token is not None:
                    self.leader_id = member.member_id
                    return True
            return False
        return True

    # Requests wait and are answered.

    def park_join(self, member: Member, token: Any, step: Step) -> None:
        """Lets a JoinGroup wait; a member has one, so an older one is answered."""
        if member.join_token is None:
            self.awaiting_join += 1
        else:
            error = ErrorCode.rebalance_in_progress
            step.reply(member.join_token, JoinResult(error, member.member_id))
        member.join_token = token

    def answer_join(self, member: Member, result: JoinResult, step: Step) -> None:
        if member.join_token is not None:
            step.reply(member.join_token, result)
            member.join_token = None
            self.awaiting_join -= 1

    def park_sync(self, member: Member, token: Any, step: Step) -> None:
        if member.sync_token is not None:
            step.reply(member.sync_token, SyncResult(ErrorCode.rebalance_in_progress))
        member.sync_token = token

    def answer_sync(self, member: Member, result: SyncResult, step: Step) -> bool:
        if member.sync_token is None:
            return False
        step.reply(member.sync_token, result)
        member.sync_token = None
        return True

    def joined(self, member_id: str) -> JoinResult:
        """The answer of this generation to a member that joined; the leader learns of all."""
        members: tuple[JoinedMember, ...] = ()
        if member_id == self.leader_id:
            assert self.protocol_name is not None
            members = tuple(
                JoinedMember(
                    member.member_id,
                    member.group_instance_id,
                    member.protocols[self.protocol_name],
                )
                for member in self.members.values()
            )
        return JoinResult(
            ErrorCode.none,
            member_id,
            self.generation,
            self.protocol_type,
            self.protocol_name,
            self.leader_id or "",
            members=members,
        )

    # The state moves on.

    def move_to(self, state: GroupState, now_ms: int | None) -> None:
        assert self.state in PREVIOUS_STATES[state], f"{self.state} to {state}"
        self.previous_state = self.state
        self.state = state
        self.state_timestamp_ms = now_ms

    def to_store(self, assignments: dict[str, bytes], now_ms: int) -> GroupMetadataValue:
        """The record of this generation with these assignments."""
        assert self.protocol_name is not None
        return GroupMetadataValue(
            self.protocol_type or "",
            self.generation,
            self.protocol_name,
            self.leader_id,
            now_ms,
            tuple(
                member.to_store(
                    self.protocol_name, assignments.get(member.member_id, EMPTY_ASSIGNMENT)
                )
                for member in self.members.values()
            ),
        )

    def apply(self, value: GroupMetadataValue) -> None:
        """Takes over a record of this group that was just appended."""
        self.stored = value
        if not value.members:
            if value.generation > self.generation:
                self._become_empty(value.generation, value.current_state_timestamp_ms)
            return
        assert value.generation == self.generation
        for kept in value.members:
            if kept.member_id not in self.members:
                self._apply_new_id(kept)
        if self.state is COMPLETING_REBALANCE:
            for kept in value.members:
                self.members[kept.member_id].assignment = kept.assignment
            self.move_to(STABLE, value.current_state_timestamp_ms)
        self.subscribed = self.compute_subscribed()

    def _apply_new_id(self, kept: MemberMetadata) -> None:
        """A static member returned under another id."""
        assert kept.group_instance_id is not None
        assert self.protocol_name is not None
        member = self.rename_static(kept.group_instance_id, kept.member_id)
        self.restore(
            member,
            {self.protocol_name: kept.subscription},
            kept.rebalance_timeout_ms,
            kept.session_timeout_ms,
        )

    def _become_empty(self, generation: int, now_ms: int) -> None:
        """The last members have gone, which is a generation of its own."""
        self.members.clear()
        self.static_members.clear()
        self.supported.clear()
        self.metadata_bytes.clear()
        self.pending_sync.clear()
        self.awaiting_join = 0
        self.generation = generation
        self.protocol_name = None
        self.leader_id = None
        self.subscribed = self.compute_subscribed()
        if self.state is not PREPARING_REBALANCE:
            self.move_to(PREPARING_REBALANCE, now_ms)
        self.move_to(EMPTY, now_ms)
