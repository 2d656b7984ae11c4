"""A member describes the topology, after the coordinator has asked it to (KIP-1331).

One member is asked: the next one only if it has not sent the description in time, later each time.
Kafka's StreamsGroupTopologyDescriptionManager and its backoff, which has jitter beside.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.groups.streams.departure import known_member
from ottla.groups.streams.description import MAX_DESCRIPTION_BYTES, MAX_DESCRIPTION_NAMES
from ottla.groups.streams.group import Asked, Soft, StreamsGroup
from ottla.groups.streams.step import Step
from ottla.groups.streams.stored import NOT_DESCRIBED
from ottla.groups.streams.written import described_records, undescribable_record
from ottla.protocol.errors import ApiError, ErrorCode

FIRST_RETRY_MS: Final = 30_000
MAX_RETRY_MS: Final = 3_600_000


class DescriptionUpdate(NamedTuple):
    """StreamsGroupTopologyDescriptionUpdate."""

    group: str
    member_id: str
    topology_epoch: int
    description: bytes | None
    """As `description.encode` has it; None: it is too large."""


def asked(group: StreamsGroup, topology_epoch: int, soft: Soft, now_ms: int) -> Soft | None:
    """What the group knows once a member is asked; None if it asks none now."""
    if topology_epoch in (group.described_epoch, group.undescribable_epoch):
        return None
    last = soft.asked
    times = 0
    if last is not None and last.topology_epoch == topology_epoch:
        if now_ms < last.again_ms:
            return None
        times = last.times + 1
    wait_ms = min(FIRST_RETRY_MS << min(times, 10), MAX_RETRY_MS)
    return soft._replace(asked=Asked(topology_epoch, times, now_ms + wait_ms))


def describe_topology(group: StreamsGroup, update: DescriptionUpdate, step: Step) -> str | None:
    """Keeps the description; returns why not if it is too large, which is remembered. Raises
    ApiError (UNKNOWN_MEMBER_ID; INVALID_REQUEST for that of another epoch).
    """
    known_member(group, update.member_id)
    current = NOT_DESCRIBED if group.topology is None else group.topology.epoch
    if update.topology_epoch != current:
        raise ApiError(
            ErrorCode.invalid_request,
            f"Topology epoch {update.topology_epoch} does not match the group's current topology"
            f" epoch {current}.",
        )
    if update.description is None or len(update.description) > MAX_DESCRIPTION_BYTES:
        step.records.append(undescribable_record(group, current))
        return (
            f"The description is too large; it may have {MAX_DESCRIPTION_NAMES:,} names and"
            f" {MAX_DESCRIPTION_BYTES:,} bytes."
        )
    step.records += described_records(group, update.description)
    return None
