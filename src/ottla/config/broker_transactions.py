"""Settings of transactions: the coordinator, and the topic that holds its state."""

from __future__ import annotations

from ottla.config.setting import Settings, Update, boolean, integer, short
from ottla.config.validator import at_least


class TransactionSettings(Settings):
    """The transaction coordinator and `__transaction_state` (KIP-98)."""

    transaction_max_timeout_ms = integer(
        "transaction.max.timeout.ms",
        900_000,
        "Maximum timeout that a transactional producer may ask for. An open transaction is aborted "
        "when its timeout is over.",
        at_least(1),
    )
    transactional_id_expiration_ms = integer(
        "transactional.id.expiration.ms",
        604_800_000,
        "The coordinator forgets a transactional id without an open transaction that nobody has "
        "used for this long.",
        at_least(1),
    )
    transaction_abort_timed_out_transaction_cleanup_interval_ms = integer(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        10_000,
        "How often the coordinator looks for transactions whose timeout is over.",
        at_least(1),
    )
    transaction_remove_expired_transaction_cleanup_interval_ms = integer(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        3_600_000,
        "How often the coordinator looks for expired transactional ids.",
        at_least(1),
    )
    transaction_state_log_num_partitions = integer(
        "transaction.state.log.num.partitions",
        50,
        "Number of partitions of __transaction_state. Do not change it once the topic exists.",
        at_least(1),
    )
    transaction_state_log_replication_factor = short(
        "transaction.state.log.replication.factor",
        -1,
        "Number of replicas of __transaction_state. -1: three, or the number of brokers "
        "if there are fewer, alive or not. The topic is created once that many are alive.",
        at_least(-1),
        kafka_default="3",
        why="As for offsets.topic.replication.factor.",
    )
    transaction_state_log_min_isr = integer(
        "transaction.state.log.min.isr",
        2,
        "min.insync.replicas of __transaction_state; at most the number of replicas counts.",
        at_least(1),
    )
    transaction_state_log_segment_bytes = integer(
        "transaction.state.log.segment.bytes",
        104_857_600,
        "Maximum segment size of __transaction_state.",
        at_least(1),
    )
    transaction_partition_verification_enable = boolean(
        "transaction.partition.verification.enable",
        True,
        "Before a transaction's first append to a partition, the leader asks the coordinator "
        "whether the partition belongs to the transaction (KIP-890).",
        update=Update.CLUSTER_WIDE,
    )
    add_partitions_to_txn_retry_backoff_ms = integer(
        "add.partitions.to.txn.retry.backoff.ms",
        20,
        "Wait before a leader asks the coordinator again to add a partition, while the markers of "
        "the transaction before are written.",
        at_least(1),
    )
    add_partitions_to_txn_retry_backoff_max_ms = integer(
        "add.partitions.to.txn.retry.backoff.max.ms",
        100,
        "For so long in all a leader asks again; then the producer does.",
        at_least(0),
    )
