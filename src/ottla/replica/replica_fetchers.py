"""Which fetcher copies which partition: num.replica.fetchers loops for each leader.

A fetcher starts with its first partition and ends with its last; so does its connection.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final, NamedTuple

from ottla.config.broker import BrokerConfig
from ottla.controller.image import NO_LEADER
from ottla.network.peers import Peers
from ottla.replica.partition import Partition
from ottla.replica.replica_fetcher import ReplicaFetcher, Truncated, Truncations
from ottla.replica.replica_session import Key
from ottla.replica.throttle import Quota, Throttle
from ottla.runtime.background import RESTART_AFTER_MS
from ottla.runtime.clock import Clock

logger = logging.getLogger("ottla.replication")

PARTITIONS_A_SLICE: Final = 100


class FetcherId(NamedTuple):
    """A leader, and the number of one of its fetchers."""

    leader: int
    number: int


class ReplicaFetchers:
    """All partitions that this broker copies. Use only from the event loop's thread."""

    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock,
        peers: Peers,
        *,
        broker_epoch: Callable[[], int],
        truncated: Truncated,
    ) -> None:
        """`broker_epoch` is that of this broker's registration."""
        self.truncations = Truncations()
        """What was truncated here because the leader does not have it."""
        self.throttle = Throttle(
            config.id,
            lambda: config.follower_replication_throttled_rate,
            replication_quota(config),
            clock.monotonic_ms,
        )
        self._config = config
        self._clock = clock
        self._peers = peers
        self._broker_epoch = broker_epoch
        self._truncated = truncated
        self._fetchers: dict[FetcherId, ReplicaFetcher] = {}
        self._tasks: dict[FetcherId, asyncio.Task[None]] = {}
        self._ending: dict[asyncio.Task[None], None] = {}
        self._assigned: dict[Key, FetcherId] = {}
        self._closed = False

    def __len__(self) -> int:
        """The number of copied partitions."""
        return len(self._assigned)

    def follow(self, partition: Partition) -> None:
        """Copy from the leader in the partition's state; stop copying from its previous leader at
        once.
        """
        if self._closed:
            return
        assert partition.state is not None
        leader = partition.state.leader
        assert leader not in (NO_LEADER, self._config.id), partition.state
        key = partition.topic_id, partition.index
        wanted = FetcherId(leader, self._number(key))
        if self._assigned.get(key, wanted) != wanted:
            self.unfollow(partition)
        self._assigned[key] = wanted
        self._fetcher(wanted).follow(partition)

    def unfollow(self, partition: Partition) -> None:
        """Stop copying it: this broker leads, there is no leader, or the partition is deleted."""
        key = partition.topic_id, partition.index
        assigned = self._assigned.pop(key, None)
        if assigned is None:
            return
        fetcher = self._fetchers[assigned]
        fetcher.unfollow(key)
        if not len(fetcher):
            self._end(assigned)

    async def resize(self) -> None:
        """num.replica.fetchers may have changed: moves the partitions to their fetchers
        (AbstractFetcherManager.resizeThreadPool).
        """
        moved = [
            each
            for fetcher in self._fetchers.values()
            for each in fetcher.partitions
            if self._assigned[each.topic_id, each.index].number
            != self._number((each.topic_id, each.index))
        ]
        for number, partition in enumerate(moved, start=1):
            if number % PARTITIONS_A_SLICE == 0:
                await asyncio.sleep(0)
            # Otherwise it has gone, or another broker leads, since the slice before.
            if (partition.topic_id, partition.index) in self._assigned:
                self.follow(partition)

    def _number(self, key: Key) -> int:
        return (key[0].int + key[1]) % self._config.num_replica_fetchers

    def _fetcher(self, wanted: FetcherId) -> ReplicaFetcher:
        fetcher = self._fetchers.get(wanted)
        if fetcher is None:
            peer = self._peers.peer(wanted.leader, _purpose(wanted))
            fetcher = ReplicaFetcher(
                self._config,
                self._clock,
                wanted.leader,
                peer,
                self.throttle,
                self.truncations,
                broker_epoch=self._broker_epoch,
                truncated=self._truncated,
            )
            self._fetchers[wanted] = fetcher
            self._run(wanted, fetcher)
        return fetcher

    def _run(self, which: FetcherId, fetcher: ReplicaFetcher) -> None:
        def ended(task: asyncio.Task[None]) -> None:
            if not task.cancelled():
                self._failed(which, fetcher, task.exception())

        task = asyncio.get_running_loop().create_task(fetcher.run())
        self._tasks[which] = task
        task.add_done_callback(ended)

    def _failed(
        self, which: FetcherId, fetcher: ReplicaFetcher, error: BaseException | None
    ) -> None:
        """Our own bug, logged in full. Replication pauses for a moment, and longer for the one
        partition that it affected; it does not stop until the next start.
        """
        failed = fetcher.working_on
        logger.error(
            "copying from broker %d failed%s; restarting in %d ms",
            which.leader,
            f" at {failed.partition.topic}-{failed.partition.index}" if failed else "",
            RESTART_AFTER_MS,
            exc_info=error,
        )
        loop = asyncio.get_running_loop()
        loop.call_later(RESTART_AFTER_MS / 1000, self._restart, which, fetcher)

    def _restart(self, which: FetcherId, fetcher: ReplicaFetcher) -> None:
        if self._fetchers.get(which) is not fetcher:
            return  # there was nothing left to copy from there
        self._peers.drop(which.leader, _purpose(which))
        fetcher.restart(self._peers.peer(which.leader, _purpose(which)))
        self._run(which, fetcher)

    def _end(self, which: FetcherId) -> None:
        del self._fetchers[which]
        task = self._tasks.pop(which)
        self._ending[task] = None
        task.add_done_callback(self._ending.pop)
        task.cancel()
        self._peers.drop(which.leader, _purpose(which))

    async def close(self) -> None:
        """End all fetchers."""
        self._closed = True
        for which in list(self._fetchers):
            self._end(which)
        self._assigned.clear()
        await asyncio.gather(*self._ending, return_exceptions=True)


def replication_quota(config: BrokerConfig) -> Quota:
    """A quota with the broker's settings."""
    return Quota(
        config.replication_quota_window_num, config.replication_quota_window_size_seconds * 1000
    )


def leader_throttle(config: BrokerConfig, clock: Clock) -> Throttle:
    """The throttle for the traffic that leaders here send."""
    return Throttle(
        config.id,
        lambda: config.leader_replication_throttled_rate,
        replication_quota(config),
        clock.monotonic_ms,
    )


def _purpose(which: FetcherId) -> str:
    return f"fetcher-{which.number}"
