"""The table of coordinators: internal topic to shard kind, built from this node's parts."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from uuid import UUID

from ottla.config import BrokerConfig
from ottla.config.group import GroupConfig
from ottla.controller.features import TRANSACTION_VERSION
from ottla.controller.group_settings import settings_of_group
from ottla.controller.image import ClusterImage
from ottla.coordinator.coordinator_runtime import CoordinatorRuntime
from ottla.coordinator.end_offsets import EndOffsets
from ottla.coordinator.group_coordinator import GroupCoordinator, group_kind
from ottla.coordinator.group_histories import GroupHistories
from ottla.coordinator.led_partitions import LedPartitions
from ottla.coordinator.long_decisions import RunLong
from ottla.coordinator.marker_sender import NO_LEADER, MarkerSender, Transactions
from ottla.coordinator.share_groups import ShareStates
from ottla.coordinator.transaction_coordinator import TransactionCoordinator, transaction_kind
from ottla.coordinator.transaction_verifier import Retry, TransactionVerifier
from ottla.groups.consumer.settings import ConsumerGroupSettings
from ottla.groups.offsets.transactional_commit import TransactionalCommitRequest
from ottla.groups.settings import MAX_GROUP_SIZE, GroupSettings
from ottla.groups.shard import GroupShard
from ottla.groups.share.settings import ShareGroupSettings
from ottla.groups.streams.settings import StreamsGroupSettings
from ottla.node.commit_recording import CommitRecording
from ottla.node.group_topics import topics_of
from ottla.protocol.errors import ErrorCode
from ottla.protocol.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from ottla.replica.partitions import Partitions
from ottla.runtime.clock import Clock
from ottla.shards.partitioning import partition_for
from ottla.transactions.settings import TransactionSettings
from ottla.transactions.shard import TransactionShard
from ottla.transactions.step import MarkersDue
from ottla.transactions.stored import TopicPartition
from ottla.transactions.verification import asked_for_offset_commit

logger = logging.getLogger("ottla.groups")


def group_runtime(
    config: BrokerConfig,
    partitions: Partitions,
    clock: Clock,
    image: Callable[[], ClusterImage],
    recording: CommitRecording,
) -> tuple[CoordinatorRuntime[GroupShard], GroupHistories]:
    """The coordinator of `__consumer_offsets`; timelines record its commits, and histories, which
    are returned too, why its groups rebalance.
    """
    histories = _group_histories(partitions, clock, image)
    noted: dict[str, GroupConfig] = {}

    def settings_of(group: str) -> GroupConfig:
        settings = settings_of_group(image(), config, group)
        if settings.notes and noted.get(group) is not settings:
            noted[group] = settings
            for note in settings.notes:
                logger.warning("group %s: %s", group, note)
        return settings

    kind = group_kind(
        group_settings(config),
        topics=lambda: topics_of(image()),
        consumer_settings=lambda group: consumer_group_settings(settings_of(group), config),
        share_settings=lambda group: share_group_settings(settings_of(group), config),
        streams_settings=lambda group: streams_group_settings(settings_of(group), config),
        on_committed=recording.committed,
        on_event=histories.note,
    )
    runtime = CoordinatorRuntime(kind, LedPartitions(partitions, kind.topic), clock)
    return runtime, histories


def _group_histories(
    partitions: Partitions, clock: Clock, image: Callable[[], ClusterImage]
) -> GroupHistories:
    """Beside the logs of this broker's partitions of `__consumer_offsets`."""

    def partition_of(group: str) -> int | None:
        topic = image().topic(OFFSETS_TOPIC)
        return None if topic is None else partition_for(group, len(topic.partitions))

    def folder_of(index: int) -> Path | None:
        partition = partitions.get(OFFSETS_TOPIC, index)
        if partition is None or not partition.log.is_on_disk:
            return None
        return Path(partition.log.folder)

    def name_of(topic_id: UUID) -> str | None:
        topic = image().topic_by_id(topic_id)
        return None if topic is None else topic.name

    return GroupHistories(clock, partition_of, folder_of, name_of)


def group_coordinator(
    runtime: CoordinatorRuntime[GroupShard],
    config: BrokerConfig,
    image: Callable[[], ClusterImage],
    verifier: TransactionVerifier,
    random: Random,
    run_long: RunLong,
    share_states: ShareStates,
    brokers: Brokers,
    histories: GroupHistories,
) -> GroupCoordinator:
    """Answers the requests about groups, on their runtime; `run_long` has a thread."""

    def leader_of(topic: str, index: int) -> int | None:
        state = image().partition(topic, index)
        return state.leader if state is not None and state.leader in image().brokers else None

    async def verify(request: TransactionalCommitRequest, index: int) -> ErrorCode:
        partition = TopicPartition(OFFSETS_TOPIC, index)
        asked = asked_for_offset_commit(request.version)
        errors = await verifier.verify(
            request.transactional_id, request.producer, frozenset({partition}), asked
        )
        return errors[partition]

    def partition_count() -> int:
        topic = image().topic(OFFSETS_TOPIC)
        return config.offsets_topic_num_partitions if topic is None else len(topic.partitions)

    return GroupCoordinator(
        runtime,
        partition_count,
        random=random,
        verify=verify,
        verifies_older=lambda: config.transaction_partition_verification_enable,
        topics=lambda: topics_of(image()),
        run_long=run_long,
        share_states=share_states,
        share_ends=EndOffsets(
            leader_of, lambda broker_id, request: brokers.ask(broker_id, "share-lag", request)
        ),
        note=histories.note,
    )


def group_settings(config: BrokerConfig) -> GroupSettings:
    """The broker's settings in the form that `groups` needs."""
    return GroupSettings(
        min_session_timeout_ms=config.group_min_session_timeout_ms,
        max_session_timeout_ms=config.group_max_session_timeout_ms,
        initial_rebalance_delay_ms=config.group_initial_rebalance_delay_ms,
        max_size=min(config.group_max_size, MAX_GROUP_SIZE),
        group_metadata_max_bytes=config.message_max_bytes,
        offset_metadata_max_bytes=config.offset_metadata_max_bytes,
        offsets_retention_ms=config.offsets_retention_minutes * 60_000,
        offsets_retention_check_interval_ms=config.offsets_retention_check_interval_ms,
        offset_commit_timeout_ms=config.offsets_commit_timeout_ms,
    )


@lru_cache(maxsize=1024)
def consumer_group_settings(group: GroupConfig, config: BrokerConfig) -> ConsumerGroupSettings:
    """Those of a group of KIP-848. `group` is another object once any of them has changed, those
    of the broker included.
    """
    return ConsumerGroupSettings(
        session_timeout_ms=group.consumer_session_timeout_ms,
        heartbeat_interval_ms=group.consumer_heartbeat_interval_ms,
        assignment_interval_ms=group.consumer_assignment_interval_ms,
        regex_refresh_interval_ms=config.group_consumer_regex_refresh_interval_ms,
        max_size=min(config.group_consumer_max_size, MAX_GROUP_SIZE),
        migration_policy=config.group_consumer_migration_policy.lower(),
        max_classic_size=min(config.group_max_size, MAX_GROUP_SIZE),
    )


@lru_cache(maxsize=1024)
def share_group_settings(group: GroupConfig, config: BrokerConfig) -> ShareGroupSettings:
    """The same of a share group."""
    return ShareGroupSettings(
        session_timeout_ms=group.share_session_timeout_ms,
        heartbeat_interval_ms=group.share_heartbeat_interval_ms,
        assignment_interval_ms=group.share_assignment_interval_ms,
        initialize_retry_interval_ms=max(
            config.group_share_initialize_retry_interval_ms, config.offsets_commit_timeout_ms
        ),
        max_size=config.group_share_max_size,
    )


@lru_cache(maxsize=1024)
def streams_group_settings(group: GroupConfig, config: BrokerConfig) -> StreamsGroupSettings:
    """The same of a streams group."""
    return StreamsGroupSettings(
        session_timeout_ms=group.streams_session_timeout_ms,
        heartbeat_interval_ms=group.streams_heartbeat_interval_ms,
        assignment_interval_ms=group.streams_assignment_interval_ms,
        initial_rebalance_delay_ms=group.streams_initial_rebalance_delay_ms,
        num_standby_replicas=group.streams_num_standby_replicas,
        task_offset_interval_ms=group.streams_task_offset_interval_ms,
        acceptable_recovery_lag=group.streams_acceptable_recovery_lag,
        max_size=min(config.group_streams_max_size, MAX_GROUP_SIZE),
    )


class Brokers(NamedTuple):
    """How this broker reaches itself and the others."""

    own_id: int
    ask: Callable[[int, str, Any], Awaitable[Any]]
    """Sends a request to a broker, maybe this one; the text names the purpose. Raises PeerError."""


class TransactionParts(NamedTuple):
    """What this broker does for transactions."""

    runtime: CoordinatorRuntime[TransactionShard]
    coordinator: TransactionCoordinator
    sender: MarkerSender
    verifier: TransactionVerifier


def transaction_parts(
    config: BrokerConfig,
    image: Callable[[], ClusterImage],
    partitions: Partitions,
    clock: Clock,
    brokers: Brokers,
    next_producer_id: Callable[[], Awaitable[int]],
) -> TransactionParts:
    """The coordinator of `__transaction_state`, its marker sender, and the verifier."""

    def partition_count() -> int:
        topic = image().topic(TRANSACTIONS_TOPIC)
        return (
            config.transaction_state_log_num_partitions if topic is None else len(topic.partitions)
        )

    def leader_of(partition: TopicPartition) -> int | None:
        state = image().partition(*partition)
        if state is None:
            return None
        return state.leader if state.leader in image().brokers else NO_LEADER

    def coordinator_of(transactional_id: str) -> int | None:
        index = coordinator.partition_for(transactional_id)
        leader = leader_of(TopicPartition(TRANSACTIONS_TOPIC, index))
        return None if leader == NO_LEADER else leader

    def cluster_version() -> int:
        return image().features.get(TRANSACTION_VERSION, 0)

    def send_markers(due: MarkersDue) -> None:
        sender.send(due)

    kind = transaction_kind(transaction_settings(config), cluster_version, send_markers)
    runtime = CoordinatorRuntime(kind, LedPartitions(partitions, kind.topic), clock)
    coordinator = TransactionCoordinator(
        runtime, partition_count, next_producer_id, cluster_version
    )
    sender = MarkerSender(
        Transactions(coordinator.partition_for, coordinator.epoch, coordinator.written),
        leader_of,
        lambda broker_id, request: brokers.ask(broker_id, "transaction-markers", request),
    )
    verifier = TransactionVerifier(
        coordinator.add,
        coordinator.verify,
        coordinator_of,
        lambda broker_id, request: brokers.ask(broker_id, "transaction-verification", request),
        own_id=brokers.own_id,
        retry=Retry(
            config.add_partitions_to_txn_retry_backoff_ms,
            config.add_partitions_to_txn_retry_backoff_max_ms,
        ),
        clock=clock,
    )
    return TransactionParts(runtime, coordinator, sender, verifier)


def transaction_settings(config: BrokerConfig) -> TransactionSettings:
    """The broker's settings in the form that `transactions` needs."""
    return TransactionSettings(
        max_timeout_ms=config.transaction_max_timeout_ms,
        id_expiration_ms=config.transactional_id_expiration_ms,
        abort_interval_ms=config.transaction_abort_timed_out_transaction_cleanup_interval_ms,
        remove_expired_interval_ms=(
            config.transaction_remove_expired_transaction_cleanup_interval_ms
        ),
    )
