"""Decides AlterPartition: the ISR changes that leaders propose (KIP-497, KIP-841, KIP-903).

The checks, their order and their codes are those of Kafka's
ReplicationControlManager.validateAlterPartitionData.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple
from uuid import UUID

from ottla.config.broker import BrokerConfig
from ottla.controller.image import ClusterImage, PartitionState
from ottla.controller.leadership import all_brokers, unclean_allowed
from ottla.controller.partition_changes import PartitionChanges
from ottla.controller.plan import Plan, PlanBuilder
from ottla.controller.reassignment import repaired
from ottla.protocol.errors import ApiError, ErrorCode

ANY_EPOCH = -1


class ProposedIsr(NamedTuple):
    """The ISR that a leader proposes for one partition."""

    topic_id: UUID
    partition: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[tuple[int, int], ...]
    """Brokers with the epochs that the leader knows for them; ANY_EPOCH skips the check."""


class IsrAnswer(NamedTuple):
    """The answer for one partition; `state` is set only without an error."""

    topic_id: UUID
    partition: int
    code: ErrorCode
    state: PartitionState | None = None


def alter_partitions(
    broker_id: int,
    broker_epoch: int,
    proposals: Sequence[ProposedIsr],
    image: ClusterImage,
    config: BrokerConfig,
    *,
    shutting_down: Collection[int] = (),
) -> Plan[tuple[IsrAnswer, ...]]:
    """Apply each valid proposal, in order; the answers are in the order of the proposals.

    If a proposal completes a reassignment, the partition may get another leader. The answer is then
    NEW_LEADER_ELECTED although the state was written.

    Raises STALE_BROKER_EPOCH, BROKER_ID_NOT_REGISTERED.
    """
    sender = image.brokers.get(broker_id)
    if sender is None:
        message = f"Broker {broker_id} is not registered."
        raise ApiError(ErrorCode.broker_id_not_registered, message)
    if sender.epoch != broker_epoch:
        message = f"Expected broker epoch {sender.epoch}, but got broker epoch {broker_epoch}"
        raise ApiError(ErrorCode.stale_broker_epoch, message)
    builder = PlanBuilder()
    changes = PartitionChanges(image)
    brokers = all_brokers(image, shutting_down)
    answers: list[IsrAnswer] = []
    for proposal in proposals:
        topic = image.topic_by_id(proposal.topic_id)
        if topic is None:
            answers.append(
                IsrAnswer(proposal.topic_id, proposal.partition, ErrorCode.unknown_topic_id)
            )
            continue
        if not 0 <= proposal.partition < len(topic.partitions):
            code = ErrorCode.unknown_topic_or_partition
            answers.append(IsrAnswer(proposal.topic_id, proposal.partition, code))
            continue
        state = changes.state(topic, proposal.partition)
        code = _refusal(broker_id, proposal, state, image, shutting_down)
        if code is not ErrorCode.none:
            answers.append(IsrAnswer(proposal.topic_id, proposal.partition, code))
            continue
        after = state._replace(isr=tuple(broker for broker, _ in proposal.isr))
        after = repaired(
            after, brokers, unclean=unclean_allowed(topic, config.unclean_leader_election_enable)
        )
        if after != state:
            after = changes.put(topic, proposal.partition, after)
        if after.leader != broker_id:
            code = ErrorCode.new_leader_elected
            answers.append(IsrAnswer(proposal.topic_id, proposal.partition, code))
        else:
            answers.append(IsrAnswer(proposal.topic_id, proposal.partition, ErrorCode.none, after))
    changes.add_to(builder)
    return builder.plan(tuple(answers))


def _refusal(
    broker_id: int,
    proposal: ProposedIsr,
    state: PartitionState,
    image: ClusterImage,
    shutting_down: Collection[int],
) -> ErrorCode:
    newer = (
        proposal.leader_epoch > state.leader_epoch
        or proposal.partition_epoch > state.partition_epoch
    )
    if newer:
        # The leader is ahead of this controller: a later controller must have elected it.
        return ErrorCode.not_controller
    if proposal.leader_epoch < state.leader_epoch:
        return ErrorCode.fenced_leader_epoch
    if broker_id != state.leader:
        return ErrorCode.invalid_request
    if proposal.partition_epoch < state.partition_epoch:
        return ErrorCode.invalid_update_version
    isr = [broker for broker, _ in proposal.isr]
    if not isr or len(set(isr)) != len(isr) or not set(isr) <= set(state.replicas):
        return ErrorCode.invalid_request
    if broker_id not in isr:
        return ErrorCode.invalid_request
    for broker, epoch in proposal.isr:
        known = image.brokers.get(broker)
        # Unlike in Kafka, a leader that is shutting down stays in the ISR until it stops. If its
        # proposals were refused, no replica could catch up with the records that only it has.
        leaves = broker in shutting_down and broker != broker_id
        if known is None or leaves or epoch not in (ANY_EPOCH, known.epoch):
            return ErrorCode.ineligible_replica
    return ErrorCode.none
