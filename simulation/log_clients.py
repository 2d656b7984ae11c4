"""The clients of runs with faults of logs: of a compacted topic and of one with one replica."""

from __future__ import annotations

from typing import Final

from simulation.cluster import ALONE, KEYED, Cluster
from simulation.keyed_clients import KeyedClients
from simulation.workload import Workload

KEYED_FACTOR: Final = 2
"""So there is always a broker without a copy, to which the partition can move."""


class LogClients:
    """Creates their topics, starts them, and judges what they saw."""

    def __init__(self, cluster: Cluster, workload: Workload) -> None:
        self.keyed = KeyedClients(cluster)
        self._cluster = cluster
        self._workload = workload

    @property
    def gaps(self) -> int:
        """How often a reader met a gap of the compacted topic."""
        return self.keyed.ledger.gaps

    async def start(self) -> None:
        """Create the topics and start the clients."""
        cluster = self._cluster
        for topic, factor in ((KEYED, KEYED_FACTOR), (ALONE, 1)):
            config = cluster.settings_of_topic(is_compacted=topic == KEYED)
            await cluster.operator.create(topic, 1, factor, **config)
            cluster.beside[topic] = factor
        self.keyed.start()
        self._alone, self._end_alone = self._workload.write_alone(ALONE, None)

    def stop(self) -> None:
        """The producers end; see `have_stopped`."""
        self.keyed.stop()
        self._alone.stopping = True

    @property
    def progress(self) -> list[int]:
        """How many records each producer has had acknowledged."""
        return [self.keyed.acknowledged, self._alone.acknowledged]

    @property
    def have_stopped(self) -> bool:
        return self.keyed.has_stopped and self._alone.has_stopped
