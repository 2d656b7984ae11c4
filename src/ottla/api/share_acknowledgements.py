"""What members of share groups say of their records, in ShareFetch and ShareAcknowledge (KIP-932).

All partitions are taken before the first is waited for: the end of a delivery is answered once the
share coordinator has it. Also what both requests check first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias
from uuid import UUID

from ottla.api.context import Context
from ottla.api.current_leader import current_leader
from ottla.controller.features import SHARE_VERSION
from ottla.protocol.access import Operation, Resource
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.replica.share_session import Member, TopicPartition
from ottla.runtime.slices import Slices
from ottla.share.record_state import AckType
from ottla.share.share_partition import AckBatch

MAX_MEMBER_ID: Final = 36
NO_ID: Final = UUID(int=0)
_RENEW_SINCE: Final = 2
_OFFSETS_A_SLICE: Final = 20
"""Types of offsets that count as one element."""
_PIECES_AN_ELEMENT: Final = 5
"""Types, of which each may be another, and runs of records in flight: 2 us each."""

Acknowledgements: TypeAlias = dict[TopicPartition, Sequence[AckBatch]]
Refusals: TypeAlias = dict[TopicPartition, ApiError]


def member_of(request: Any, context: Context) -> Member:
    """Who sends it. Raises ApiError: UNSUPPORTED_VERSION, INVALID_REQUEST."""
    if context.broker.image.features.get(SHARE_VERSION, 0) < 1:
        raise ApiError(
            ErrorCode.unsupported_version,
            "This cluster does not use share groups (KIP-932): its feature share.version is at "
            "level 0. Raise it (kafka-features.sh upgrade --feature share.version=1).",
        )
    if request.group_id is None:
        raise ApiError(ErrorCode.invalid_request, "Invalid group id in the request.")
    member_id = request.member_id
    if not member_id or len(member_id) > MAX_MEMBER_ID:
        raise ApiError(ErrorCode.invalid_request, "Invalid member id in the request.")
    return Member(request.group_id, member_id)


def is_renewal(request: Any, context: Context) -> bool:
    """Whether the member wants to keep records for longer (KIP-1222)."""
    if context.version < _RENEW_SINCE:
        return False
    renews: bool = request.is_renew_ack
    return renews


async def acknowledgements(
    request: Any, *, renews: bool, context: Context, slices: Slices
) -> tuple[Acknowledgements, Refusals]:
    """What the request says, by partition, and what it says wrongly. Partitions about which it says
    nothing are left out. What it says of a partition in two places is put together: the whole is
    taken, or refused as it is in no order.
    """
    found: dict[TopicPartition, list[AckBatch]] = {}
    refused: Refusals = {}
    most = AckType.RENEW if context.version >= _RENEW_SINCE else AckType.REJECT
    for topic in request.topics:
        for each in topic.partitions:
            await slices.count()
            if not each.acknowledgement_batches:
                continue
            where = TopicPartition(topic.topic_id or NO_ID, each.partition_index)
            batches = found.setdefault(where, [])
            for batch in each.acknowledgement_batches:
                types = batch.acknowledge_types
                await slices.count(1 + len(types) // _OFFSETS_A_SLICE)
                if not types or any(
                    not AckType.GAP <= kind <= most or (kind == AckType.RENEW and not renews)
                    for kind in set(types)
                ):
                    refused[where] = ApiError(ErrorCode.invalid_request)
                batches.append(AckBatch(batch.first_offset, batch.last_offset, types))
    for where in refused:
        found.pop(where, None)
    return {**found}, refused


def check_topic(where: TopicPartition, context: Context) -> None:
    """Raises ApiError: UNKNOWN_TOPIC_ID, TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION."""
    broker = context.broker
    topic = broker.image.topic_by_id(where.topic_id)
    if topic is None:
        raise ApiError(ErrorCode.unknown_topic_id)
    may = broker.authorization
    if (
        may is not None
        and not broker.is_broker(context.session)
        and not may.allows(context.session, Operation.READ, Resource.TOPIC, topic.name)
    ):
        raise ApiError(ErrorCode.topic_authorization_failed)
    if not 0 <= where.partition < len(topic.partitions):
        raise ApiError(ErrorCode.unknown_topic_or_partition)


class Acknowledging:
    """Acknowledgements on their way; `begin` takes them all."""

    def __init__(self, member: Member, context: Context) -> None:
        self._member = member
        self._context = context
        self._waiting: dict[TopicPartition, asyncio.Future[None] | None] = {}
        self._refused: Refusals = {}

    async def begin(self, said: Acknowledgements, refused: Refusals, slices: Slices) -> None:
        self._refused.update(refused)
        shares = self._context.broker.shared_partitions
        for where, batches in said.items():
            shared = shares.known(self._member.group_id, where)
            pieces = sum(len(each.types) for each in batches)
            if shared is not None:
                pieces += shared.run_count
            await slices.count(1 + pieces // _PIECES_AN_ELEMENT)
            try:
                check_topic(where, self._context)
                if shared is None:
                    # Nobody here has handed them out.
                    raise ApiError(ErrorCode.unknown_topic_or_partition)
                self._waiting[where] = shared.acknowledge(self._member.member_id, batches)
            except ApiError as error:
                self._refused[where] = error

    async def results(self) -> Mapping[TopicPartition, ApiError | None]:
        """The error of each partition, None if what was said holds."""
        waiting = [each for each in self._waiting.values() if each is not None]
        if waiting:
            await asyncio.wait(waiting)
        found: dict[TopicPartition, ApiError | None] = dict(self._refused)
        for where, written in self._waiting.items():
            error = None if written is None else written.exception()
            assert error is None or isinstance(error, ApiError)
            found[where] = error
        return found


def leader_of(where: TopicPartition, code: ErrorCode, context: Context) -> Any:
    """The message LeaderIdAndEpoch, with -1 unless the error says that another broker leads."""
    leader = current_leader(where.topic_id, where.partition, code, context)
    if leader is None:
        return context.messages.LeaderIdAndEpoch(leader_id=-1, leader_epoch=-1)
    return leader


def lock_ms(group_id: str, context: Context) -> int:
    """For how long a record is locked for its member."""
    return context.broker.shared_partitions.terms(group_id).records.lock_ms
