"""In-sync replicas as their leader proposes them (AlterPartition; KIP-497, KIP-841, KIP-903).

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
from ottla.controller.plan import Draft, Plan
from ottla.controller.reassignment import settled
from ottla.protocol.errors import ApiError, ErrorCode

ANY_EPOCH = -1


class ProposedIsr(NamedTuple):
    """What one leader proposes for one partition."""

    topic_id: UUID
    partition: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[tuple[int, int], ...]
    """Brokers with the epochs in which their leader knows them; ANY_EPOCH is not checked."""


class IsrAnswer(NamedTuple):
    """The answer for one partition; `state` is there without an error only."""

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
    """Take each proposal that is right, in order; answers are in the order of the proposals.

    A proposal that completes a reassignment may give the partition another leader: the answer is
    then NEW_LEADER_ELECTED although the state was written.

    Raises STALE_BROKER_EPOCH, BROKER_ID_NOT_REGISTERED.
    """
    sender = image.brokers.get(broker_id)
    if sender is None:
        message = f"Broker {broker_id} is not registered."
        raise ApiError(ErrorCode.broker_id_not_registered, message)
    if sender.epoch != broker_epoch:
        message = f"Expected broker epoch {sender.epoch}, but got broker epoch {broker_epoch}"
        raise ApiError(ErrorCode.stale_broker_epoch, message)
    draft = Draft()
    changes = PartitionChanges(image)
    brokers = all_brokers(image, shutting_down)
    answers: list[IsrAnswer] = []
    for wish in proposals:
        topic = image.topic_by_id(wish.topic_id)
        if topic is None:
            answers.append(IsrAnswer(wish.topic_id, wish.partition, ErrorCode.unknown_topic_id))
            continue
        if not 0 <= wish.partition < len(topic.partitions):
            code = ErrorCode.unknown_topic_or_partition
            answers.append(IsrAnswer(wish.topic_id, wish.partition, code))
            continue
        state = changes.state(topic, wish.partition)
        code = _refusal(broker_id, wish, state, image, shutting_down)
        if code is not ErrorCode.none:
            answers.append(IsrAnswer(wish.topic_id, wish.partition, code))
            continue
        after = state._replace(isr=tuple(broker for broker, _ in wish.isr))
        after = settled(
            after, brokers, unclean=unclean_allowed(topic, config.unclean_leader_election_enable)
        )
        if after != state:
            after = changes.put(topic, wish.partition, after)
        if after.leader != broker_id:
            code = ErrorCode.new_leader_elected
            answers.append(IsrAnswer(wish.topic_id, wish.partition, code))
        else:
            answers.append(IsrAnswer(wish.topic_id, wish.partition, ErrorCode.none, after))
    changes.into(draft)
    return draft.plan(tuple(answers))


def _refusal(
    broker_id: int,
    wish: ProposedIsr,
    state: PartitionState,
    image: ClusterImage,
    shutting_down: Collection[int],
) -> ErrorCode:
    newer = wish.leader_epoch > state.leader_epoch or wish.partition_epoch > state.partition_epoch
    if newer:
        # The leader knows more than we do: another controller must have told it.
        return ErrorCode.not_controller
    if wish.leader_epoch < state.leader_epoch:
        return ErrorCode.fenced_leader_epoch
    if broker_id != state.leader:
        return ErrorCode.invalid_request
    if wish.partition_epoch < state.partition_epoch:
        return ErrorCode.invalid_update_version
    isr = [broker for broker, _ in wish.isr]
    if not isr or len(set(isr)) != len(isr) or not set(isr) <= set(state.replicas):
        return ErrorCode.invalid_request
    if broker_id not in isr:
        return ErrorCode.invalid_request
    for broker, epoch in wish.isr:
        known = image.brokers.get(broker)
        # A leader that shuts down stays in sync until it goes (not so in Kafka): were its proposals
        # refused, nobody could ever take over what only it has.
        leaves = broker in shutting_down and broker != broker_id
        if known is None or leaves or epoch not in (ANY_EPOCH, known.epoch):
            return ErrorCode.ineligible_replica
    return ErrorCode.none
