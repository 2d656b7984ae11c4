"""Which fetcher copies which partition: num.replica.fetchers loops for each leader.

A fetcher begins with its first partition and ends with its last; so does its connection.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, NamedTuple

from ottla.broker.background import ANEW_AFTER_MS
from ottla.broker.partition import Partition
from ottla.broker.replica_fetcher import ReplicaFetcher, Truncations
from ottla.broker.replica_session import Key
from ottla.broker.throttle import Quota, Throttle
from ottla.controller.image import NO_LEADER

if TYPE_CHECKING:
    from ottla.broker.node import Node

logger = logging.getLogger("ottla.replication")


class FetcherId(NamedTuple):
    """A leader, and which of the fetchers for it."""

    leader: int
    number: int


class ReplicaFetchers:
    """All that this broker copies. For the event loop's thread alone."""

    def __init__(self, node: Node) -> None:
        config = node.config
        self.truncations = Truncations()
        """What was cut off here because the leader does not have it."""
        self.throttle = Throttle(
            config.id,
            lambda: config.follower_replication_throttled_rate,
            replication_quota(node),
            node.clock.monotonic_ms,
        )
        self._node = node
        self._fetchers: dict[FetcherId, ReplicaFetcher] = {}
        self._tasks: dict[FetcherId, asyncio.Task[None]] = {}
        self._ending: dict[asyncio.Task[None], None] = {}
        self._placed: dict[Key, FetcherId] = {}
        self._closed = False

    def __len__(self) -> int:
        """Partitions that are copied."""
        return len(self._placed)

    def follow(self, partition: Partition) -> None:
        """Copies from the leader that the partition's state names; at once from another, where it
        was copied from one before.
        """
        if self._closed:
            return
        assert partition.state is not None
        leader = partition.state.leader
        assert leader not in (NO_LEADER, self._node.config.id), partition.state
        key = partition.topic_id, partition.index
        number = (key[0].int + key[1]) % self._node.config.num_replica_fetchers
        wanted = FetcherId(leader, number)
        if self._placed.get(key, wanted) != wanted:
            self.unfollow(partition)
        self._placed[key] = wanted
        self._fetcher(wanted).follow(partition)

    def unfollow(self, partition: Partition) -> None:
        """Copies it no more: it leads, has no leader, or is gone."""
        key = partition.topic_id, partition.index
        placed = self._placed.pop(key, None)
        if placed is None:
            return
        fetcher = self._fetchers[placed]
        fetcher.unfollow(key)
        if not len(fetcher):
            self._end(placed)

    def _fetcher(self, wanted: FetcherId) -> ReplicaFetcher:
        fetcher = self._fetchers.get(wanted)
        if fetcher is None:
            peer = self._node.peers.peer(wanted.leader, _purpose(wanted))
            fetcher = ReplicaFetcher(
                self._node, wanted.leader, peer, self.throttle, self.truncations
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
        """Our own bug: said in full. It costs a moment, and longer for the one partition that it
        struck; not replication until the next start.
        """
        failed = fetcher.working_on
        logger.error(
            "copying from broker %d failed%s; begun anew in %d ms",
            which.leader,
            f" at {failed.partition.topic}-{failed.partition.index}" if failed else "",
            ANEW_AFTER_MS,
            exc_info=error,
        )
        loop = asyncio.get_running_loop()
        loop.call_later(ANEW_AFTER_MS / 1000, self._begin_anew, which, fetcher)

    def _begin_anew(self, which: FetcherId, fetcher: ReplicaFetcher) -> None:
        if self._fetchers.get(which) is not fetcher:
            return  # there was nothing left to copy from there
        self._node.peers.drop(which.leader, _purpose(which))
        fetcher.begin_anew(self._node.peers.peer(which.leader, _purpose(which)))
        self._run(which, fetcher)

    def _end(self, which: FetcherId) -> None:
        del self._fetchers[which]
        task = self._tasks.pop(which)
        self._ending[task] = None
        task.add_done_callback(self._ending.pop)
        task.cancel()
        self._node.peers.drop(which.leader, _purpose(which))

    async def close(self) -> None:
        """Ends all fetchers."""
        self._closed = True
        for which in list(self._fetchers):
            self._end(which)
        self._placed.clear()
        await asyncio.gather(*self._ending, return_exceptions=True)


def replication_quota(node: Node) -> Quota:
    """A quota as the broker's settings have it."""
    config = node.config
    return Quota(
        config.replication_quota_window_num, config.replication_quota_window_size_seconds * 1000
    )


def leader_throttle(node: Node) -> Throttle:
    """The throttle of what leaders here send; `node.leader_throttle`."""
    config = node.config
    return Throttle(
        config.id,
        lambda: config.leader_replication_throttled_rate,
        replication_quota(node),
        node.clock.monotonic_ms,
    )


def _purpose(which: FetcherId) -> str:
    return f"fetcher-{which.number}"
