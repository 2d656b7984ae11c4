"""A member of a streams group (KIP-1071), one thread of a Kafka Streams application.

It does as Kafka's Java client (StreamsMembershipManager, StreamsGroupHeartbeatRequestManager):

    heartbeats     say what it has only where that has changed, and all of it after a failure
    an assignment  is carried out beside heartbeats, which go on with what it had before: first it
                   gives active tasks up, then it takes others, and says so at once
    fenced         it gives up all tasks, and joins again with the id that it had
    refused        the application ends, and another process takes its place

Each task counts upwards, and commits that as its offset.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import Any, Final, NamedTuple

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of
from simulation.connection import RETRY_S, Connections, NoAnswerError
from simulation.consumers import COORDINATOR_MOVED
from simulation.pace import Pace
from simulation.streams_ledger import Answered, Life, StreamsLedger, Task
from simulation.streams_topology import TOPIC_OF, Application

STREAMS_GROUP: Final = "app"
HEARTBEAT: Final = 88
OFFSET_COMMIT: Final = 8
OFFSET_FETCH: Final = 9
COMMIT_VERSION: Final = 9
"""The first one in which members have epochs."""
LEAVES: Final = -1
BEAT_S: Final = 0.3
REBALANCE_MS: Final = 3_000
TIMEOUT_MS: Final = 1_200
"""All in a full run. As with Kafka's defaults, a request times out before the session does, so that
a member goes on after it.
"""
MIN_BEAT_S: Final = 0.1
LEAVES_SHARE: Final = 0.004
COMMITS_SHARE: Final = 0.3
LOST_SHARE: Final = 0.03
"""Of answers to heartbeats: the connection ended before they arrived."""
SLOW_SHARE, TOO_SLOW_SHARE = 0.2, 0.03
"""Of assignments: they take up to half of the rebalance timeout, or longer than all of it."""
FENCED: Final = frozenset({ErrorCode.unknown_member_id, ErrorCode.fenced_member_epoch})
ENDED: Final = frozenset({ErrorCode.group_id_not_found, ErrorCode.invalid_request})
"""The application ends: its group was removed, or has another topology."""


class Tasks(NamedTuple):
    """What a member has or is to have; it never gets warm-up tasks."""

    active: frozenset[Task] = frozenset()
    standby: frozenset[Task] = frozenset()


NOTHING: Final = Tasks()


class Former(NamedTuple):
    """What a member was that has been removed since, as this answer said."""

    life: Life
    tasks: frozenset[Task]
    answered: Answered


class _EndedError(Exception):
    """The application ends; the message says why."""


class StreamsMember:
    """One thread."""

    def __init__(
        self,
        number: int,
        process_id: str,
        application: Application,
        version: int,
        addresses: Mapping[int, tuple[str, int]],
        ledger: StreamsLedger,
        now_ms: Callable[[], int],
        random: Random,
        pace: Pace,
        refused: Callable[[StreamsMember, str], None],
    ) -> None:
        """`version` is that of the application. `refused` hears that the application would end."""
        self.number = number
        self.process_id = process_id
        self.version = version
        self.stays = False
        """Whether it no longer leaves the group by itself, and is never slow."""
        self.member_id = ""
        self.epoch = 0
        self.has = NOTHING
        self.target: Tasks | None = None
        """What it is about to carry out."""
        self.life: Life | None = None
        self._application = application
        self._connections = Connections(f"thread-{number}", addresses)
        self._ledger = ledger
        self._now_ms = now_ms
        self._random = random
        self._refused = refused
        self._beat_s = max(MIN_BEAT_S, pace.s(BEAT_S))
        self._rebalance_ms = pace.ms(REBALANCE_MS)
        self._timeout_ms = pace.ms(TIMEOUT_MS)
        self._ready_at = 0.0
        self._said: Tasks | None = None
        """What the group last heard that it has; None: it is to be said."""
        self._positions: dict[Task, int] = {}
        """Of active tasks whose committed offset is known."""
        self._former: Former | None = None

    async def run(self) -> None:
        """Run as long as the process lives."""
        while True:
            try:
                await self._take_part()
            except NoAnswerError:
                self._connections.forget_coordinator(STREAMS_GROUP)
            except _EndedError as error:
                self._give_up_all()
                self.member_id = ""
                self._refused(self, str(error))
            await asyncio.sleep(RETRY_S)

    async def _take_part(self) -> None:
        if not self.member_id:
            self.member_id = f"{self._random.getrandbits(64):x}"
            self._former = None
            self._begin()
        loop, beat_at = asyncio.get_running_loop(), 0.0
        while True:
            if loop.time() >= beat_at:
                beat_at = loop.time() + self._beat_s
                await self._beat()
            if self.target is not None and loop.time() >= self._ready_at:
                self._reconcile(self.target)
                beat_at = 0.0
                continue
            await self._work()
            if not self.stays and self._random.random() < LEAVES_SHARE:
                await self._leave()
                return
            await asyncio.sleep(self._random.random() * 0.1)

    def _begin(self) -> None:
        self.epoch, self._said, self.target = 0, None, None
        self.life = self._ledger.joins(self.number, self.member_id)

    def _give_up_all(self) -> None:
        self.has, self.target, self._positions = NOTHING, None, {}
        if self.life is not None:
            self._ledger.ended(self.life)
        self.life = None

    # The group.

    async def _beat(self) -> None:
        assert self.life is not None
        says, self._said = self._said is None or self._said != self.has, self.has
        sent_ms = self._now_ms()
        try:
            broker = await self._connections.coordinator(STREAMS_GROUP)
            request = self._heartbeat(self.epoch, says=says)
            answer = await self._connections.ask(broker, request, self._timeout_ms)
        except NoAnswerError:
            self._failed()
            return
        code = ErrorCode(answer.error_code)
        if code in COORDINATOR_MOVED or self._random.random() < LOST_SHARE:
            self._failed()
        elif code in FENCED:
            self._fenced(code, Answered(broker, sent_ms, self._now_ms()))
        elif code is ErrorCode.none:
            self._heard(answer, Answered(broker, sent_ms, self._now_ms()))
        else:
            why = f"{code.name}: {answer.error_message}"
            assert code in ENDED, f"a heartbeat is refused: {why}"
            raise _EndedError(why)

    def _heartbeat(self, epoch: int, *, says: bool) -> Any:
        build = messages_of(HEARTBEAT, 0, "request")
        fields: dict[str, Any] = {}
        if epoch == 0:
            fields = {
                "rebalance_timeout": self._rebalance_ms,
                "topology": self._application.topology(build, self.version),
                "process_id": self.process_id,
                "client_tags": (),
            }
        if epoch >= 0 and (epoch == 0 or says):
            fields |= {
                "active_tasks": _task_ids(build, self.has.active),
                "standby_tasks": _task_ids(build, self.has.standby),
                "warmup_tasks": (),
            }
        return build.StreamsGroupHeartbeatRequest(
            group_id=STREAMS_GROUP,
            member_id=self.member_id,
            member_epoch=epoch,
            endpoint_information_epoch=0,
            **fields,
        )

    def _failed(self) -> None:
        self._connections.forget_coordinator(STREAMS_GROUP)
        self._said = None

    def _fenced(self, code: ErrorCode, answered: Answered) -> None:
        assert self.life is not None
        if code is ErrorCode.unknown_member_id and self.epoch > 0:
            self._former = Former(self.life, frozenset(self.life.held), answered)
        self._give_up_all()
        self._begin()

    def _heard(self, answer: Any, answered: Answered) -> None:
        life = self.life
        assert life is not None
        self.epoch = answer.member_epoch
        self._ledger.went_on(life, self.epoch, answered)
        if answer.active_tasks is None:
            return
        target = Tasks(_tasks(answer.active_tasks), _tasks(answer.standby_tasks))
        assert not answer.warmup_tasks, "no warm-up task is ever assigned"
        self._ledger.told(life, target.active, answered)
        # What it was told before and has not taken, it will not take any more.
        self._ledger.gave_up(life, life.held - target.active - self.has.active)
        if target == self.has:
            self.target = None
            return
        self.target = target
        self._ready_at = asyncio.get_running_loop().time() + self._takes_s()

    def _takes_s(self) -> float:
        """How long it works on an assignment."""
        drawn, timeout_s = self._random.random(), self._rebalance_ms / 1000
        if drawn < TOO_SLOW_SHARE and not self.stays:
            return 1.3 * timeout_s
        return self._random.random() * (0.5 * timeout_s if drawn < SLOW_SHARE else 0.1)

    def _reconcile(self, target: Tasks) -> None:
        assert self.life is not None
        for task in sorted(self.has.active - target.active):
            self._positions.pop(task, None)
        self.has, self.target = target, None
        self._ledger.gave_up(self.life, self.life.held - target.active)

    async def _leave(self) -> None:
        self._give_up_all()
        request = self._heartbeat(LEAVES, says=False)
        self.member_id = ""
        broker = await self._connections.coordinator(STREAMS_GROUP)
        await self._connections.ask(broker, request, self._timeout_ms)

    # Offsets.

    async def _work(self) -> None:
        life = self.life
        assert life is not None
        missing = [task for task in sorted(self.has.active) if task not in self._positions]
        if missing:
            await self._fetch(life, missing)
        for task in self._positions:
            self._positions[task] += self._random.randrange(3)
        if self._positions and self._random.random() < COMMITS_SHARE:
            await self._commit(life)
        if self._former is not None and self.life is life and self._random.random() < 0.2:
            await self._commit_late()

    async def _fetch(self, life: Life, tasks: list[Task]) -> None:
        build = messages_of(OFFSET_FETCH, 7, "request")
        request = build.OffsetFetchRequest(
            group_id=STREAMS_GROUP,
            topics=tuple(
                build.OffsetFetchRequestTopic(
                    name=TOPIC_OF[name],
                    partition_indexes=tuple(number for each, number in tasks if each == name),
                )
                for name in sorted({name for name, _ in tasks})
            ),
            require_stable=True,
        )
        known = {task: self._ledger.known(task) for task in tasks}
        answered, answer = await self._ask(request)
        if answer is None or ErrorCode(answer.error_code) is not ErrorCode.none:
            return
        names = {topic: name for name, topic in TOPIC_OF.items()}
        for topic in answer.topics:
            for each in topic.partitions:
                task = names[topic.name], each.partition_index
                if ErrorCode(each.error_code) is ErrorCode.none:
                    offset = max(0, each.committed_offset)
                    self._ledger.fetched(life, task, offset, known[task], answered)
                    self._positions[task] = offset

    async def _commit(self, life: Life) -> None:
        positions = dict(self._positions)
        answered, answer = await self._ask(self._commit_request(self.epoch, positions))
        if answer is None:
            for task, offset in positions.items():
                self._ledger.unanswered(task, offset)
            return
        for task, code in _codes(answer):
            if code is ErrorCode.none:
                self._ledger.committed(task, positions[task], answered)

    async def _commit_late(self) -> None:
        """As the member that it was before it was removed, whose thread slept."""
        former, self._former = self._former, None
        assert former is not None
        if not former.tasks:
            return
        request = self._commit_request(former.life.epoch, dict.fromkeys(former.tasks, 0))
        answered, answer = await self._ask(request)
        for task, code in () if answer is None else _codes(answer):
            if code is ErrorCode.none:
                self._ledger.former_committed(former.life, task, former.answered, answered)

    def _commit_request(self, epoch: int, positions: Mapping[Task, int]) -> Any:
        build = messages_of(OFFSET_COMMIT, COMMIT_VERSION, "request")
        return build.OffsetCommitRequest(
            group_id=STREAMS_GROUP,
            generation_id_or_member_epoch=epoch,
            member_id=self.member_id,
            group_instance_id=None,
            topics=tuple(
                build.OffsetCommitRequestTopic(
                    name=TOPIC_OF[name],
                    partitions=tuple(
                        build.OffsetCommitRequestPartition(
                            partition_index=number,
                            committed_offset=offset,
                            committed_leader_epoch=-1,
                            committed_metadata="",
                        )
                        for (each, number), offset in sorted(positions.items())
                        if each == name
                    ),
                )
                for name in sorted({name for name, _ in positions})
            ),
        )

    async def _ask(self, request: Any) -> tuple[Answered, Any]:
        """The answer is None if there is none."""
        sent_ms, broker = self._now_ms(), -1
        try:
            broker = await self._connections.coordinator(STREAMS_GROUP)
            answer = await self._connections.ask(broker, request, self._timeout_ms)
        except NoAnswerError:
            self._connections.forget_coordinator(STREAMS_GROUP)
            answer = None
        return Answered(broker, sent_ms, self._now_ms()), answer


def _task_ids(build: Any, tasks: Iterable[Task]) -> tuple[Any, ...]:
    numbers: dict[str, list[int]] = {}
    for name, number in sorted(tasks):
        numbers.setdefault(name, []).append(number)
    return tuple(
        build.TaskIds(subtopology_id=name, partitions=tuple(each)) for name, each in numbers.items()
    )


def _tasks(told: Iterable[Any]) -> frozenset[Task]:
    return frozenset((each.subtopology_id, number) for each in told for number in each.partitions)


def _codes(answer: Any) -> list[tuple[Task, ErrorCode]]:
    names = {topic: name for name, topic in TOPIC_OF.items()}
    return [
        ((names[topic.name], each.partition_index), ErrorCode(each.error_code))
        for topic in answer.topics
        for each in topic.partitions
    ]
