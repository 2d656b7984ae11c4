"""A simulated cluster: the brokers, the tree, the network, and the observed events."""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import os
import shutil
import tempfile
import traceback
from collections import deque
from collections.abc import Callable, Coroutine
from functools import lru_cache, partial
from pathlib import Path
from random import Random
from typing import Any, Final
from zlib import crc32

from ottla.controller import layout
from ottla.coordination.tree import MAX_OPERATIONS, Limits, TreeNode
from ottla.shards.partitioning import partition_for
from simulation.broker import PORT, Broker
from simulation.disk import FullDisks, PageCache, SyncedSizes
from simulation.invariants import Invariants
from simulation.loop import VirtualLoop
from simulation.operator import Operator
from simulation.pace import Pace
from simulation.process import Process
from simulation.size import Size
from simulation.tree import Tree
from simulation.tree_session import TreeHost
from simulation.violation import Violation

TOPIC: Final = "t"
OFFSETS: Final = "__consumer_offsets"
OFFSETS_PARTITIONS: Final = 2
TRANSACTIONS: Final = "__transaction_state"
TRANSACTIONS_PARTITIONS: Final = 2
SHARE_STATES: Final = "__share_group_state"
SHARE_STATES_PARTITIONS: Final = 2
GO_ON: Final = frozenset({OFFSETS, SHARE_STATES})
"""The topics to which groups write to the end of a run."""
SHARE_LOCK_MS: Final = 1_000
"""The least that there can be."""
SHARE_LIMIT: Final = 5
STREAMS_SOURCE: Final = "in"
"""Read by the members of a streams group only."""
STREAMS_INTERNAL: Final = ("app-sums-repartition", "app-sums-changelog", "app-last-changelog")
"""The internal topics of a streams group."""
WRITTEN: Final = "w"
"""The topic that transactions write records to."""
MULTI_OPERATIONS: Final = (3, 5, 9, MAX_OPERATIONS)
"""How many operations a write to the tree may have: small ones cut plans in parts."""
KEYED: Final = "k"
"""A compacted topic."""
ALONE: Final = "s"
"""A topic with one replica."""
COMPACTED: Final = frozenset({KEYED})
SESSION_TIMEOUT_MS: Final = 3_000
LAG_MAX_MS: Final = 2_000
"""replica.lag.time.max.ms; both are those of a full run."""
TRANSACTION_TIMEOUT_MS: Final = 2_500
"""Of the producers' transactions, in a full run."""
MIN_TRANSACTION_TIMEOUT_MS: Final = 1_000
MAX_LINES: Final = 4_000
COMPACTED_SEGMENT_BYTES: Final = 800
_CUT: Final = "Cut off: "
_CUT_BELOW: Final = "though everything below"
"""Recovery cuts off what was on the disk: no fault does that."""
_BEGINS_AGAIN: Final = "begins again at offset"
"""A log lost what is after its log start, which DeleteRecords had moved."""
LOGS_FLUSH: Final = 0.5
"""How often brokers flush before they acknowledge, in runs with faults of logs."""

MEMBER_SESSION_MS: Final = 2_000
"""Of members of the consumer protocol, in a full run."""


class Cluster:
    """The seed decides its size and settings. `digest` covers every write to the tree, every line
    of the transcript and every event of the clients.
    """

    def __init__(
        self,
        seed: int,
        plan: Random,
        pace: Pace,
        size: Size,
        *,
        logs: bool = False,
        shares: bool = False,
        streams: bool = False,
    ) -> None:
        """`logs`: segments are small, and the cleaner and retention look at them often. `shares`:
        there is a share group; no election is unclean. `streams`: there is a streams group."""
        self.seed = seed
        self.logs = logs
        self.pace = pace
        self.size = size
        self.count = plan.choice((3, 3, 4))
        self.partitions = min(size.partitions, plan.choice((1, 2)))
        self.factor = min(self.count, plan.choice((2, 3, 3)))
        self.min_isr = plan.choice((1, 2))
        self.is_unclean = plan.random() < 0.2 and not shares
        """Whether the topic allows unclean elections, which may lose records."""
        self.flushes = plan.random() < 0.25
        """Whether leaders flush records before they acknowledge them (flush.messages=1)."""
        self.gave_up: dict[str, None] = {}
        """Partitions with no replica in sync for which the operator ran an unclean election."""
        self.written_partitions = 0
        """Of the topic `WRITTEN`; it exists in runs with transactions."""
        self.beside: dict[str, int] = {}
        """Other topics, of one partition each, that must be in sync at the end: how many replicas
        they have."""
        self.short_lived: str | None = None
        """A topic that is about to be deleted."""
        self.loop = VirtualLoop(Random(f"{seed} world"))
        self.transcript: deque[str] = deque(maxlen=MAX_LINES)
        self.digest = 0
        self.found: list[str] = []
        """The failures of the run: violations, logged errors, unhandled exceptions."""
        self.tree_written: Callable[[str, TreeNode | None], None] = lambda path, after: None
        self.broker_stepped: Callable[[Broker], None] = lambda broker: None
        """Called after each write to the tree, with the path and the node's new state."""
        self.tree = Tree(self._written)
        limits = Limits(Random(f"{seed} limits").choice(MULTI_OPERATIONS))
        self.host = TreeHost(self.loop, self.tree, pace.ms(SESSION_TIMEOUT_MS) / 1000, limits)
        self.folder = Path(tempfile.mkdtemp(prefix="simulation-", dir=memory_folder()))
        settings = self._settings(plan)
        if logs:
            self.flushes = Random(f"{seed} flushes").random() < LOGS_FLUSH
            settings |= self._settings_of_logs()
        settings |= self._settings_of_shares() if shares else {}
        settings |= self._settings_of_streams() if streams else {}
        self.brokers = {
            number: Broker(
                number, self.loop, self.host, self.folder / str(number), settings, self.note, seed
            )
            for number in range(1, self.count + 1)
        }
        self.addresses = {number: (each.host, PORT) for number, each in self.brokers.items()}
        self.operator = Operator(self.addresses, Random(f"{seed} operator"), self.note)
        self.synced = SyncedSizes(self.note)
        self.page_cache = PageCache(Random(f"{seed} page cache"))
        self.full_disks = FullDisks(Random(f"{seed} full disks"))
        for broker in self.brokers.values():
            broker.may_fail = self._have_disks_failed
            broker.before_start = partial(self._drop_lost, broker)
            broker.has_space = partial(self.full_disks.has_space, broker.host)
        self._have_logs_lost = False
        self.stalled_until_ms = 0
        """Messages that are under way may arrive as late as this."""
        self._aheads_ms = [0]
        """Every difference that a wall clock ever had."""
        self.invariants = Invariants(
            self.brokers,
            self._unclean_allowed,
            self.note,
            self.synced.synced_bytes if self.flushes else None,
            COMPACTED,
        )
        self._by_host = {broker.host: broker for broker in self.brokers.values()}
        self._errors = _ErrorLog(self.found, f"{self.folder}/", self._may_say)
        self._tasks: dict[asyncio.Task[None], None] = {}
        self.loop.stepped = self._stepped
        self.loop.set_exception_handler(self._on_exception)

    def _settings(self, plan: Random) -> dict[str, str]:
        return {
            "min.insync.replicas": str(self.min_isr),
            "replica.lag.time.max.ms": str(self.pace.ms(LAG_MAX_MS)),
            "replica.fetch.wait.max.ms": str(min(500, self.pace.ms(LAG_MAX_MS) // 2)),
            "replica.fetch.backoff.ms": str(self.pace.ms(1_000)),
            "log.flush.offset.checkpoint.interval.ms": "2000",
            "zookeeper.session.timeout.ms": str(self.pace.ms(SESSION_TIMEOUT_MS)),
            "offsets.topic.num.partitions": str(OFFSETS_PARTITIONS),
            "offsets.topic.replication.factor": str(self.factor),
            "transaction.state.log.num.partitions": str(TRANSACTIONS_PARTITIONS),
            "transaction.state.log.replication.factor": str(self.factor),
            "transaction.state.log.min.isr": str(self.min_isr),
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": str(self.pace.ms(1_000)),
            "offsets.retention.check.interval.ms": str(self.pace.ms(1_000)),
            "group.min.session.timeout.ms": "100",
            "group.initial.rebalance.delay.ms": "200",
            "group.consumer.min.session.timeout.ms": "1",
            "group.consumer.session.timeout.ms": str(self.pace.ms(MEMBER_SESSION_MS)),
            "group.consumer.min.heartbeat.interval.ms": "1",
            "group.consumer.heartbeat.interval.ms": "100",
            "group.consumer.assignment.interval.ms": str(self.pace.ms(300)),
            "auto.leader.rebalance.enable": str(plan.random() < 0.5).lower(),
            "leader.imbalance.check.interval.seconds": "5",
            **({"log.flush.interval.messages": "1"} if self.flushes else {}),
        }

    def _settings_of_logs(self) -> dict[str, str]:
        return {
            "log.flush.interval.messages": "1" if self.flushes else str((1 << 63) - 1),
            "log.initial.task.delay.ms": "50",
            # A copy of a log with gaps takes several fetches, which begin anywhere.
            "replica.fetch.max.bytes": "600",
            "log.cleaner.backoff.ms": str(self.pace.ms(600)),
            "log.retention.check.interval.ms": str(self.pace.ms(1_000)),
            "log.flush.offset.checkpoint.interval.ms": str(self.pace.ms(2_000)),
        }

    def _settings_of_shares(self) -> dict[str, str]:
        return {
            "share.coordinator.state.topic.num.partitions": str(SHARE_STATES_PARTITIONS),
            "share.coordinator.state.topic.replication.factor": str(self.factor),
            "share.coordinator.state.topic.min.isr": str(self.min_isr),
            "share.coordinator.snapshot.update.records.per.snapshot": "4",
            "share.coordinator.cold.partition.snapshot.interval.ms": str(self.pace.ms(2_000)),
            "group.share.min.session.timeout.ms": "1",
            "group.share.session.timeout.ms": str(self.pace.ms(MEMBER_SESSION_MS)),
            "group.share.min.heartbeat.interval.ms": "1",
            "group.share.heartbeat.interval.ms": "100",
            "group.share.assignment.interval.ms": str(self.pace.ms(300)),
            "group.share.initialize.retry.interval.ms": str(self.pace.ms(1_000)),
            "group.share.min.record.lock.duration.ms": str(SHARE_LOCK_MS),
            "group.share.record.lock.duration.ms": str(SHARE_LOCK_MS),
            "group.share.delivery.count.limit": str(SHARE_LIMIT),
        }

    def _settings_of_streams(self) -> dict[str, str]:
        return {
            "default.replication.factor": str(self.factor),
            "group.streams.min.session.timeout.ms": "1",
            "group.streams.session.timeout.ms": str(self.pace.ms(MEMBER_SESSION_MS)),
            "group.streams.min.heartbeat.interval.ms": "1",
            "group.streams.heartbeat.interval.ms": "100",
            "group.streams.assignment.interval.ms": str(self.pace.ms(300)),
            "group.streams.initial.rebalance.delay.ms": str(self.pace.ms(400)),
            "group.streams.num.standby.replicas": "1",
        }

    def settings_of_topic(self, *, is_compacted: bool = False) -> dict[str, str]:
        """For a topic with small segments; underscores stand for dots."""
        given = {"segment_ms": str(self.pace.ms(1_600)), "file_delete_delay_ms": "200"}
        if is_compacted:
            given |= {
                # A copy has fewer records, so one of its segments has several of the original's.
                "internal_segment_bytes": str(COMPACTED_SEGMENT_BYTES),
                "cleanup_policy": "compact",
                "min_cleanable_dirty_ratio": "0.01",
                "delete_retention_ms": str(self.pace.ms(800)),
            }
        return given

    def open(self) -> None:
        """Start to observe the brokers' logs and the tree's sessions."""
        logging.getLogger("ottla").addHandler(self._errors)
        self.loop.driver.context.run(self.host.watch_sessions)

    def close(self) -> None:
        """Kill all brokers and delete their files."""
        logging.getLogger("ottla").removeHandler(self._errors)
        for broker in self.brokers.values():
            broker.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    # Observed events.

    def note(self, text: str) -> None:
        """Write a line of the transcript."""
        # The folder has another name in each run.
        line = f"{self.loop.now_ms:6} ms  {text.replace(f'{self.folder}/', '')}"
        self.observe(line)
        self.transcript.append(line)

    def observe(self, event: object) -> None:
        """Add an event to the digest: every run of the seed must repeat it."""
        self.digest = crc32(repr(event).encode(), self.digest)

    def fail(self, text: str) -> None:
        """Record a failure; the run ends after this step."""
        self.found.append(text)

    def _written(self, path: str, before: TreeNode | None, after: TreeNode | None) -> None:
        self.observe((path, after))
        if path.endswith("/state") and after is not None:
            self.note(f"tree: {path.split('/')[3]}-{path.split('/')[5]} {after.data.decode()}")
        elif before is None or after is None:
            self.note(f"tree: {path} {'deleted' if after is None else 'created'}")
        try:
            self.invariants.written(path, after)
        except Violation as error:
            # Not raised: the broker that writes would catch it.
            self.fail(str(error))
        self.tree_written(path, after)

    def _stepped(self, process: Process) -> None:
        broker = self._by_host.get(process.host)
        if broker is not None and broker.process is process:
            self.invariants.stepped(broker)
            self.broker_stepped(broker)
        if self.found:
            raise Violation(self.found[0])

    def _on_exception(self, loop: Any, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, Violation | AssertionError):
            self.fail(str(error) or repr(error))
        else:
            task = context.get("task") or context.get("future")
            self.fail(f"{context.get('message')}: {error!r} {task!r}")

    def _unclean_allowed(self, partition: str) -> bool:
        is_of_topic = partition.rpartition("-")[0] == TOPIC
        return (self.is_unclean and is_of_topic) or partition in self.gave_up

    # Clocks.

    @property
    def has_set_clocks(self) -> bool:
        """Whether the brokers' wall clocks have ever differed."""
        return any(self._aheads_ms)

    def set_clock(self, number: int, ahead_ms: int) -> None:
        """The wall clock of a broker jumps."""
        self.brokers[number].clock.ahead_ms = ahead_ms
        self._aheads_ms.append(ahead_ms)

    @property
    def clock_spread_ms(self) -> int:
        """How far apart two wall clocks, or one at two times, ever were."""
        return max(self._aheads_ms) - min(self._aheads_ms)

    @property
    def transaction_timeout_ms(self) -> int:
        """Of the producers' transactions."""
        return max(MIN_TRANSACTION_TIMEOUT_MS, self.pace.ms(TRANSACTION_TIMEOUT_MS))

    # Disks.

    def _have_disks_failed(self) -> bool:
        return self.full_disks.were_full or self.synced.have_failed

    def _drop_lost(self, broker: Broker) -> None:
        """A broker is about to start: what a failed sync lost is gone."""
        self.logs_cut(broker, self.synced.drop_lost(broker.folder))

    def logs_cut(self, broker: Broker, cut: list[str]) -> None:
        """A broker that is down lost the ends of some logs."""
        for line in cut:
            self.note(f"{broker.name} lost {line}")
        if cut:
            self._have_logs_lost = True
            self.invariants.power_lost(broker.number)

    def _may_say(self, error: str) -> bool:
        """Whether a fault explains a logged error."""
        if self._have_disks_failed() and _is_of_disk(error):
            return True
        if not self._have_logs_lost:
            return False
        return _BEGINS_AGAIN in error or (_CUT in error and _CUT_BELOW not in error)

    # State.

    def state(self, topic: str, index: int) -> dict[str, Any] | None:
        """A partition's state in the tree."""
        node = self.tree.nodes.get(layout.state_path(topic, index))
        return None if node is None else json.loads(node.data)

    def states(self) -> dict[str, dict[str, Any] | None]:
        """The states, by name, of all partitions that must be fully in sync at the end."""
        found = {f"{TOPIC}-{index}": self.state(TOPIC, index) for index in range(self.partitions)}
        for topic, count in (
            (OFFSETS, OFFSETS_PARTITIONS),
            (TRANSACTIONS, TRANSACTIONS_PARTITIONS),
            (SHARE_STATES, SHARE_STATES_PARTITIONS),
            (WRITTEN, self.written_partitions),
            *((topic, 1) for topic in self.beside),
        ):
            for index in range(count):
                state = self.state(topic, index)
                if state is not None:
                    found[f"{topic}-{index}"] = state
        return found

    def coordinator_of(self, group: str) -> int:
        """The broker that coordinates the group; -1 if none does."""
        state = self.state(OFFSETS, partition_for(group, OFFSETS_PARTITIONS))
        return -1 if state is None else int(state["leader"])

    def number_of(self, process: Process) -> int:
        """The broker with this process."""
        return self._by_host[process.host].number

    def is_behind(self, number: int) -> bool:
        """Whether the broker runs and has yet to learn of an election of one of its partitions."""
        node = self.brokers[number].node
        if node is None:
            return False
        states = self.tree.nodes
        for partition in node.partitions:
            state = states.get(layout.state_path(partition.topic, partition.index))
            if state is not None and partition.leader_epoch < _leader_epoch(state.data):
                return True
        return False

    def others_in_sync(self, number: int) -> bool:
        """Whether every partition with several replicas has another one in sync, so that this
        broker may fail."""
        return all(
            state is not None and set(state["isr"]) - {number}
            for name, state in self.states().items()
            if self.factor_of(name) > 1
        )

    def factor_of(self, partition: str) -> int:
        """How many replicas a partition has, by its name."""
        return self.beside.get(partition.rpartition("-")[0], self.factor)

    def unhealed(self) -> str | None:
        """What is still wrong; None when every broker serves and every partition is in sync."""
        for name, state in self.states().items():
            if state is None:
                return f"{name} has no state"
            if state["leader"] == -1:
                return f"{name} has no leader: {state}"
            if len(state["isr"]) < self.factor_of(name):
                return f"{name} has replicas out of sync: {state}"
        for broker in self.brokers.values():
            if broker.failure is not None:
                raise Violation(f"{broker.name} ended itself: {broker.failure}")
            if not broker.is_up or broker.is_paused or broker.is_leaving:
                return f"{broker.name} is not up"
            if not self.loop.network.accepts(self.addresses[broker.number]):
                return f"{broker.name} takes no connections yet"
        return None

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start a task in the simulation's own process."""
        task = self.loop.create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)
        return task

    def now_ms(self) -> int:
        return self.loop.now_ms


def memory_folder() -> str | None:
    """A folder on a memory file system; None means the system's default."""
    folder = Path("/dev/shm")
    return str(folder) if folder.is_dir() else None


@lru_cache(maxsize=1_000)
def _leader_epoch(state: bytes) -> int:
    return int(json.loads(state)["leader_epoch"])


def _is_of_disk(text: str) -> bool:
    """The line names a full disk, as one write or the next one meets it, or one that fails."""
    return "the disk may be full" in text or any(
        os.strerror(each) in text for each in (errno.ENOSPC, errno.EIO)
    )


class _ErrorLog(logging.Handler):
    """Collects logged errors: a broker logs one only for a bug or a failed disk."""

    def __init__(self, found: list[str], folder: str, may_say: Callable[[str], bool]) -> None:
        """`folder`: left out of messages, because it differs from run to run. `may_say`: whether a
        fault explains the message."""
        super().__init__(logging.ERROR)
        self._found = found
        self._folder = folder
        self._may_say = may_say

    def emit(self, record: logging.LogRecord) -> None:
        cause = ""
        message = record.getMessage().replace(self._folder, "")
        if record.exc_info is None and self._may_say(message):
            return
        if record.exc_info is not None and record.exc_info[1] is not None:
            error = record.exc_info[1]
            where = traceback.extract_tb(error.__traceback__)[-1]
            cause = f": {error!r} at {Path(where.filename).name}:{where.lineno}"
        self._found.append(f"logged: {message}{cause}")
