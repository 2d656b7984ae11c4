"""A step of the transactions' shard, and the work that it leaves to the driver."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from ottla.shards.step import ProducerEpoch
from ottla.shards.step import Step as ShardStep
from ottla.transactions.settings import TransactionSettings
from ottla.transactions.stored import TopicPartition, TransactionRecord


class MarkersDue(NamedTuple):
    """A transaction whose outcome is committed: its partitions get their markers now.

    In `Step.committed`, more than once for one transaction if need be: the driver ignores what it
    is doing already.
    """

    transactional_id: str
    producer: ProducerEpoch
    """With the epoch that the markers carry."""
    is_commit: bool
    partitions: frozenset[TopicPartition]
    """None left: the transaction can be completed at once."""
    client_version: int


class ProducerIdNeeded(Exception):  # noqa: N818 - a question to the driver, not an error
    """The decision needs a producer id that nobody had: decide again with one.

    Nothing is decided yet.
    """


Step: TypeAlias = ShardStep[TransactionRecord, None, TransactionSettings]
