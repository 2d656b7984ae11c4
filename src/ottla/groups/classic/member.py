"""One member of a classic group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ottla.groups.classic.requests import DescribedMember, JoinRequest
from ottla.groups.stored import MemberMetadata

EMPTY_ASSIGNMENT = b""


@dataclass(slots=True)
class Member:
    """Its own metadata, its assignment, and which of its requests wait.

    A member with a `group_instance_id` is static (KIP-345): it keeps its place until its session
    ends, even while its process is restarted.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: dict[str, bytes]
    """Name to metadata, the preferred one first."""
    assignment: bytes = EMPTY_ASSIGNMENT
    join_token: Any = None
    """The JoinGroup that waits for the next generation."""
    sync_token: Any = None
    """The SyncGroup that waits for the leader's assignment."""
    is_new: bool = False
    """Has no generation yet, so it cannot send heartbeats."""

    @classmethod
    def joining(cls, request: JoinRequest, member_id: str) -> Member:
        """A member that was not in the group."""
        return cls(
            member_id,
            request.group_instance_id,
            request.client_id,
            request.client_host,
            request.rebalance_timeout_ms,
            request.session_timeout_ms,
            request.protocol_type,
            dict(request.protocols),
            is_new=True,
        )

    @classmethod
    def stored(cls, kept: MemberMetadata, protocol_type: str, protocol: str | None) -> Member:
        """A member as the record of its generation has it."""
        return cls(
            kept.member_id,
            kept.group_instance_id,
            kept.client_id,
            kept.client_host,
            kept.rebalance_timeout_ms,
            kept.session_timeout_ms,
            protocol_type,
            {} if protocol is None else {protocol: kept.subscription},
            kept.assignment,
        )

    @property
    def is_static(self) -> bool:
        return self.group_instance_id is not None

    @property
    def is_waiting(self) -> bool:
        """A member whose request waits here does not have to send heartbeats, unless it is new.

        The client of a new member may have left and come back under another id, again and again;
        so new members expire even while they wait.
        """
        return not self.is_new and (self.join_token is not None or self.sync_token is not None)

    def prefers_same(self, protocols: tuple[tuple[str, bytes], ...]) -> bool:
        """True where these are the protocols, in the same order, with the same metadata."""
        return list(self.protocols.items()) == list(dict(protocols).items())

    def to_store(self, protocol: str, assignment: bytes) -> MemberMetadata:
        return MemberMetadata(
            self.member_id,
            self.group_instance_id,
            self.client_id,
            self.client_host,
            self.rebalance_timeout_ms,
            self.session_timeout_ms,
            self.protocols[protocol],
            assignment,
        )

    def described(self, protocol: str | None) -> DescribedMember:
        """For administrators; its metadata only where a protocol was chosen."""
        return DescribedMember(
            self.member_id,
            self.group_instance_id,
            self.client_id,
            self.client_host,
            b"" if protocol is None else self.protocols[protocol],
            self.assignment,
        )
