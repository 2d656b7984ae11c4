"""All transactional clients of a simulated cluster: those that commit offsets and those that write
records."""

from __future__ import annotations

from simulation.cluster import Cluster
from simulation.transfers import Transfers
from simulation.writers import Writers


class TransactionalClients:
    """Starts the clients, stops them, and judges what they saw."""

    def __init__(self, cluster: Cluster) -> None:
        self.writers = Writers(cluster)
        self._parts: tuple[Transfers | Writers, ...] = (Transfers(cluster), self.writers)

    @property
    def committed(self) -> int:
        """How many transactions are known to be committed."""
        return sum(sum(each.committed) for each in self._parts)

    @property
    def progress(self) -> list[int]:
        """The same for each transactional id."""
        return [count for each in self._parts for count in each.committed]

    def have_gone_on(self, before: list[int]) -> bool:
        """Each transactional id has committed since the progress was `before`, unless lost records
        may prevent it."""
        known = iter(before)
        return all(
            each.is_forgiven or now > count
            for each in self._parts
            for now, count in zip(each.committed, known, strict=False)
        )

    def start(self) -> None:
        for each in self._parts:
            each.start()

    def stop(self) -> None:
        """Producers end their transactions."""
        for each in self._parts:
            each.stop()

    @property
    def have_stopped(self) -> bool:
        """After `stop`: all producers that are alive have ended their transactions."""
        return all(each.have_stopped for each in self._parts)

    async def settle(self) -> None:
        """After `stop`: no transaction may be stuck. Raises Violation."""
        for each in self._parts:
            await each.settle()

    def judge(self) -> None:
        """Raises Violation for the first anomaly."""
        for each in self._parts:
            each.judge()
