"""Requests to the group deciders and their results, independent of protocol versions."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from ottla.protocol.errors import ErrorCode

UNKNOWN_MEMBER_ID = ""
"""A member that has no id yet."""
NO_GENERATION = -1
MAX_PROTOCOLS: Final = 100
"""Of one member; clients have one for each assignor, which are a handful."""


class JoinRequest(NamedTuple):
    """A member asks to be in the next generation; answered when that begins."""

    token: Any
    group: str
    member_id: str
    group_instance_id: str | None
    new_member_id: str
    """The id it gets if it has none. Made outside: deciders have no random numbers."""
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: tuple[tuple[str, bytes], ...]
    """Name and metadata, the preferred one first."""
    requires_known_member_id: bool = True
    """JoinGroup 4 and later (KIP-394)."""
    supports_skip_assignment: bool = True
    """JoinGroup 9 and later (KIP-814)."""
    new_consumer_id: str = ""
    """The id it gets instead if the group is one of KIP-848, whose ids have another form."""
    reason: str = ""
    """JoinGroup 8 and later (KIP-800)."""


class JoinedMember(NamedTuple):
    """A member, as described to the group's leader."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


class JoinResult(NamedTuple):
    """The answer to a JoinRequest."""

    error: ErrorCode
    member_id: str
    generation: int = NO_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    members: tuple[JoinedMember, ...] = ()
    """Only for the leader."""


class SyncRequest(NamedTuple):
    """A member asks for its assignment; the leader brings those of all."""

    token: Any
    group: str
    generation: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str | None
    protocol_name: str | None
    assignments: dict[str, bytes]


class SyncResult(NamedTuple):
    """The answer to a SyncRequest."""

    error: ErrorCode
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


class HeartbeatRequest(NamedTuple):
    """A member is alive."""

    group: str
    generation: int
    member_id: str
    group_instance_id: str | None


class LeavingMember(NamedTuple):
    """A member that leaves, or is removed by its instance id (KIP-345)."""

    member_id: str
    group_instance_id: str | None
    reason: str | None = None


class LeftMember(NamedTuple):
    """The result for a LeavingMember."""

    member_id: str
    group_instance_id: str | None
    error: ErrorCode


class DescribedMember(NamedTuple):
    """A member as administrators see it; the bytes are the clients' own."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


class DescribedGroup(NamedTuple):
    """A group as administrators see it; `state` is "Dead" for one that does not exist."""

    group: str
    state: str
    protocol_type: str = ""
    protocol: str = ""
    members: tuple[DescribedMember, ...] = ()
    reason: str = ""
    """Why there is no such group."""


class ListedGroup(NamedTuple):
    """One entry in a list of groups."""

    group: str
    protocol_type: str
    state: str
    type: str
