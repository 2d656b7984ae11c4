"""No transaction is stuck: each that is open is aborted within its timeout and a scan, and each
that is prepared is completed soon.

That holds while the cluster is calm: every broker is up, every partition fully in sync, no two
hosts are cut off, no message is stalled. So a transaction counts from when its time is over, or
from when the cluster became calm. The time is that of its coordinator's wall clock, as in Kafka.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.transactions.expiry import is_timed_out
from ottla.transactions.state import PREPARED
from ottla.transactions.stored import TransactionValue
from simulation.broker import Broker
from simulation.cluster import TRANSACTIONS, Cluster
from simulation.violation import Violation

ABORTED_WITHIN_MS: Final = 5_000
"""After its timeout. A scan is each second; a producer id may have to be fetched."""
COMPLETED_WITHIN_MS: Final = 10_000
"""Markers are sent again after 1 s at most, or with the next scan."""

Key = tuple[int, int, str, TransactionValue]


class TransactionWatch:
    """Looks at the state of all transactional ids, as their coordinators have it."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._since_ms: dict[Key, int] = {}

    def check(self) -> None:
        """Raises Violation."""
        now_ms = self._cluster.loop.now_ms
        known, self._since_ms = self._since_ms, {}
        if not self._is_calm():
            return
        # A coordinator that has lost its last records may send markers of an earlier epoch than a
        # partition has seen. It gives up then, as Kafka's does.
        lost = self._cluster.invariants.forgiven(TRANSACTIONS)
        for broker in self._cluster.brokers.values():
            for index, partition in led(broker).items():
                if index in lost:
                    continue
                state = self._cluster.state(TRANSACTIONS, index)
                if state is None or state["leader"] != broker.number:
                    continue
                for name, value in partition.shard.transactions.items():
                    limit_ms = _limit_ms(value, broker.clock.now_ms())
                    if limit_ms is None:
                        continue
                    # Which partitions have their markers changes.
                    key = broker.number, index, name, value._replace(partitions=frozenset())
                    since_ms = self._since_ms[key] = known.get(key, now_ms)
                    if now_ms - since_ms > limit_ms:
                        raise Violation(
                            f"{name} is stuck in {value.state.name} for {now_ms - since_ms} ms, "
                            f"coordinated by {broker.number}; left: {sorted(value.partitions)}"
                        )

    def _is_calm(self) -> bool:
        cluster = self._cluster
        return (
            cluster.unhealed() is None
            and not cluster.loop.network.cuts
            and cluster.loop.now_ms > cluster.stalled_until_ms
        )


def led(broker: Broker) -> dict[int, Any]:
    """The partitions of `__transaction_state` that a broker has loaded."""
    node = broker.node
    if node is None or not hasattr(node, "transactions"):
        return {}
    partitions: dict[int, Any] = node.transactions._runtime._partitions
    return {index: each for index, each in partitions.items() if each.is_active}


def _limit_ms(value: TransactionValue, wall_ms: int) -> int | None:
    """How long the transaction may stay as it is now; None: as long as it wants."""
    if value.state in PREPARED:
        return COMPLETED_WITHIN_MS
    return ABORTED_WITHIN_MS if is_timed_out(value, wall_ms) else None
