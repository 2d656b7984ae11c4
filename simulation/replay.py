"""A coordinator's memory is what its log says: another broker that loads it gets the same.

The shipped `Loading` reads the log of each loaded partition into a new shard, which is compared
with the shard in use. A partition whose log has not grown is compared with what was read before: a
refused append must not have changed anything either.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Final

from ottla.coordinator.loading import Loading
from ottla.groups.shard import GroupShard
from ottla.groups.streams.group import StreamsGroup
from ottla.share.shard import ShareShard
from ottla.transactions.shard import TransactionShard
from ottla.transactions.state import PREPARED
from ottla.transactions.stored import NO_EPOCH, TransactionValue
from simulation.broker import Broker
from simulation.violation import Violation

STORED: Final = (
    "epoch", "metadata_hash", "target_epoch", "target_timestamp_ms", "members", "targets",
    "static_members", "owner_epochs", "subscribers", "regexes",
)  # fmt: skip
"""What a consumer group has from its records."""
STORED_OF_SHARES: Final = (
    "epoch", "metadata_hash", "target_epoch", "target_timestamp_ms", "members", "targets",
    "subscribers", "states", "states_since_ms",
)  # fmt: skip
"""The same of a share group."""
STORED_OF_STREAMS: Final = sorted({*StreamsGroup.__slots__} - {"group_id", "revision", "soft"})
"""The same of a streams group."""
NOT_STORED: Final = frozenset[Any]()


class ReplayWatch:
    """Compares the coordinators of all brokers."""

    def __init__(self, brokers: list[Broker]) -> None:
        self._brokers = brokers
        self._replayed: dict[Any, tuple[int, dict[str, Any]]] = {}
        """By partition: the end of its log when it was read, and what it said."""

    def check(self) -> None:
        """Raises Violation."""
        known, self._replayed = self._replayed, {}
        for broker in self._brokers:
            for partition in loaded(broker):
                if partition.is_sharing:
                    continue  # its log gets what memory has later in this turn
                end_offset = partition._log._partition.log.end_offset
                replayed = known.get(partition)
                if replayed is None or replayed[0] != end_offset:
                    replayed = end_offset, content(_replay(partition))
                self._replayed[partition] = replayed
                _compare(broker, partition.name, content(partition.shard), replayed[1])


def loaded(broker: Broker) -> list[Any]:
    """The coordinators' partitions that a broker has loaded, and still leads as far as it knows."""
    node = broker.node
    if node is None or not hasattr(node, "coordinators"):
        return []
    runtimes: list[Any] = list(node.coordinators._runtimes.values())
    return [
        partition
        for runtime in runtimes
        for partition in runtime._partitions.values()
        if partition.is_active and partition._log._partition.leader_epoch == partition.epoch
    ]


def content(shard: TransactionShard | GroupShard | ShareShard) -> dict[str, Any]:
    """What a shard has from its log, by key."""
    if isinstance(shard, ShareShard):
        return {
            f"state {key}": (
                known.state._replace(batches=tuple(known.state.batches)),
                known.state_epoch,
                known.leader_epoch,
                known.offset,
                known.updates,
            )
            for key, known in shard.known.items()
        }
    if isinstance(shard, TransactionShard):
        return {name: _stored(value) for name, value in shard.transactions.items()}
    found: dict[str, Any] = {f"offset {key}": value for key, value in shard.offsets.all()}
    for producer_id, pending in shard.pending._by_producer.items():
        for key, each in pending.items():
            found[f"pending {key} of {producer_id}"] = each
    for name, group in shard.groups.items():
        if group.stored is not None:
            found[f"group {name}"] = group.stored
    for name, consumers in shard.consumer.groups.items():
        for field in STORED:
            value = getattr(consumers, field)
            found[f"group {name} {field}"] = dict(value) if isinstance(value, dict) else value
    for name, shares in shard.share.groups.items():
        for field in STORED_OF_SHARES:
            value = getattr(shares, field)
            found[f"share group {name} {field}"] = dict(value) if isinstance(value, dict) else value
    for name, streams in shard.streams.groups.items():
        for field in STORED_OF_STREAMS:
            value = getattr(streams, field)
            found[f"streams group {name} {field}"] = (
                dict(value) if isinstance(value, dict) else value
            )
    return found


def _stored(value: TransactionValue) -> TransactionValue:
    """Without what is in memory only: the last epoch, and which markers are written."""
    value = value._replace(last_epoch=NO_EPOCH)
    return value._replace(partitions=NOT_STORED) if value.state in PREPARED else value


def _replay(partition: Any) -> Any:
    shard = partition._kind.new_shard()
    _run(Loading(partition._kind, shard, partition._log, f"replay of {partition.name}").run())
    return shard


def _run(loading: Coroutine[Any, Any, int]) -> None:
    """At once: it only lets others run now and then."""
    try:
        while True:
            loading.send(None)
    except StopIteration:
        return


def _compare(broker: Broker, name: str, live: dict[str, Any], replayed: dict[str, Any]) -> None:
    if live == replayed:
        return
    key = min(key for key in live.keys() | replayed.keys() if live.get(key) != replayed.get(key))
    raise Violation(
        f"{name} on {broker.name}: its memory has {key}: {live.get(key)}, its log "
        f"{replayed.get(key)}"
    )
