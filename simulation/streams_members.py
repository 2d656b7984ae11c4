"""A member of a streams group (KIP-1071), one thread of a Kafka Streams application.

It does as Kafka's Java client (StreamsMembershipManager, StreamsGroupHeartbeatRequestManager):

    heartbeats     say what it has only where that has changed, and all of it after a failure
    an assignment  is carried out beside heartbeats, which go on with what it had before: first it
                   gives active tasks up, then it takes others, and says so at once
    fenced         it gives up all tasks, and joins again with the id that it had
    refused        the application ends, and another process takes its place
    static         it may leave for a while (KIP-345): the next process with its instance id gets
                   its place. Where two have the same, the one that came second ends

Each task counts upwards, and commits that as its offset. In version 1 of the request a member also
says how far the states of its tasks are, and describes the topology when it is asked to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final, NamedTuple

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of
from simulation.connection import RETRY_S, Connections, NoAnswerError
from simulation.consumers import COORDINATOR_MOVED
from simulation.pace import Pace
from simulation.streams_describing import Describer
from simulation.streams_ledger import Answered, Life, StreamsLedger, Task
from simulation.streams_requests import (
    HEARTBEAT,
    STREAMS_GROUP,
    codes,
    commit_request,
    fetch_request,
    task_ids,
    task_offsets,
    tasks,
)
from simulation.streams_states import NOTHING_SAID, Folder, Said, States
from simulation.streams_topology import TOPIC_OF, Application

LEAVES: Final = -1
LEAVES_FOR_A_WHILE: Final = -2
BEAT_S: Final = 0.3
REBALANCE_MS: Final = 3_000
TIMEOUT_MS: Final = 1_200
"""All in a full run. As with Kafka's defaults, a request times out before the session does, so that
a member goes on after it.
"""
MIN_BEAT_S: Final = 0.1
SAYS_OFFSETS_S: Final = 0.6
"""How often a member says how far its states are, in a full run."""
LEAVES_SHARE: Final = 0.004
FOR_A_WHILE_SHARE: Final = 0.7
"""Of static members that leave."""
COMMITS_SHARE: Final = 0.3
LOST_SHARE: Final = 0.03
"""Of answers to heartbeats: the connection ended before they arrived."""
SLOW_SHARE, TOO_SLOW_SHARE = 0.2, 0.03
"""Of assignments: they take up to half of the rebalance timeout, or longer than all of it."""
FENCED: Final = frozenset({ErrorCode.unknown_member_id, ErrorCode.fenced_member_epoch})
ENDED: Final = frozenset(
    {
        ErrorCode.group_id_not_found,
        ErrorCode.invalid_request,
        ErrorCode.unreleased_instance_id,
        ErrorCode.fenced_instance_id,
    }
)
"""The application ends: its group was removed, or has another topology, or another process has its
place."""


class Tasks(NamedTuple):
    """What a member has or is to have; it never gets warm-up tasks."""

    active: frozenset[Task] = frozenset()
    standby: frozenset[Task] = frozenset()


NOTHING: Final = Tasks()


class Thread(NamedTuple):
    """Who a member is."""

    number: int
    process_id: str
    version: int
    """Of the application."""
    instance: str | None
    """Of a static member."""
    heartbeat_version: int


class Former(NamedTuple):
    """What a member was that has been removed since or has left, as this answer said."""

    life: Life
    tasks: frozenset[Task]
    answered: Answered


class _EndedError(Exception):
    """The application ends; the message says why."""


class StreamsMember:
    """One thread."""

    def __init__(
        self,
        thread: Thread,
        folder: Folder,
        application: Application,
        addresses: Mapping[int, tuple[str, int]],
        ledger: StreamsLedger,
        describer: Describer,
        now_ms: Callable[[], int],
        random: Random,
        pace: Pace,
        refused: Callable[[StreamsMember, str], None],
    ) -> None:
        """`refused` hears that the application would end."""
        self.thread = thread
        self.is_replaced = False
        """Whether another process has been started for this one: it ends once it is fenced."""
        self.stops = False
        """Whether the application is stopped: it leaves, and ends."""
        self.leaves_once = False
        """Whether it leaves, and joins again as another member: its thread was replaced."""
        self.is_asking = False
        """Whether the answer to a heartbeat is not there, or was lost."""
        self.stays = False
        """Whether it no longer leaves the group by itself, and is never slow."""
        self.member_id = ""
        self.epoch = 0
        self.has = NOTHING
        self.target: Tasks | None = None
        """What it is about to carry out."""
        self.life: Life | None = None
        self.states = States(folder, random)
        self._application = application
        self._connections = Connections(f"thread-{thread.number}", addresses)
        self._ledger = ledger
        self._describer = describer
        self._now_ms = now_ms
        self._random = random
        self._refused = refused
        self._beat_s = max(MIN_BEAT_S, pace.s(BEAT_S))
        self._rebalance_ms = pace.ms(REBALANCE_MS)
        self._timeout_ms = pace.ms(TIMEOUT_MS)
        self._says_offsets_s = pace.s(SAYS_OFFSETS_S)
        self._says_offsets_at = 0.0
        self._ready_at = 0.0
        self._said: Tasks | None = None
        """What the group last heard that it has; None: it is to be said."""
        self._positions: dict[Task, int] = {}
        """Of active tasks whose committed offset is known."""
        self._former: Former | None = None

    async def run(self) -> None:
        """Run as long as the process lives; one that is replaced, until it is fenced."""
        while True:
            try:
                await self._take_part()
            except NoAnswerError:
                self._connections.forget_coordinator(STREAMS_GROUP)
            except _EndedError as error:
                self._give_up_all()
                self.member_id = ""
                self._refused(self, str(error))
                if self.is_replaced:
                    return
            if self.stops:
                return
            await asyncio.sleep(RETRY_S)

    async def _take_part(self) -> None:
        if not self.member_id:
            self.member_id = f"{self._random.getrandbits(64):x}"
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
            await self._describer.go_on(
                self.member_id, self._connections, self._now_ms, self._timeout_ms
            )
            leaves = not self.stays and self._random.random() < LEAVES_SHARE
            if leaves or self.stops or self.leaves_once:
                self.leaves_once = False
                await self._leave()
                return
            await asyncio.sleep(self._random.random() * 0.1)

    def _begin(self) -> None:
        self.epoch, self._said, self.target = 0, None, None
        self.life = self._ledger.joins(
            self.thread.number, self.member_id, self.thread.instance or self.member_id
        )

    def _give_up_all(self) -> None:
        self.has, self.target, self._positions = NOTHING, None, {}
        if self.life is not None:
            self._ledger.ended(self.life)
        self.life = None

    # The group.

    async def _beat(self) -> None:
        assert self.life is not None
        offsets = self._says_offsets()
        says, self._said = self._said is None or self._said != self.has, self.has
        sent_ms, is_joining = self._now_ms(), self.epoch == 0
        self.is_asking = True
        try:
            broker = await self._connections.coordinator(STREAMS_GROUP)
            request = self._heartbeat(self.member_id, self.epoch, offsets, says=says)
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
            self.is_asking = False
            self.states.was_heard(offsets, joined=is_joining)
            self._heard(answer, Answered(broker, sent_ms, self._now_ms()))
        else:
            why = f"{code.name}: {answer.error_message}"
            assert code in ENDED, f"a heartbeat is refused: {why}"
            raise _EndedError(why)

    def _says_offsets(self) -> Said:
        """Nothing in version 0."""
        if self.thread.heartbeat_version == 0:
            return NOTHING_SAID
        now = asyncio.get_running_loop().time()
        if self._said is not None and now < self._says_offsets_at:
            return NOTHING_SAID
        self._says_offsets_at = now + self._says_offsets_s
        return self.states.all() if self._said is None else self.states.changed()

    def _heartbeat(
        self, member_id: str, epoch: int, offsets: Said = NOTHING_SAID, *, says: bool
    ) -> Any:
        """`says`: it says which tasks it has."""
        thread = self.thread
        build = messages_of(HEARTBEAT, thread.heartbeat_version, "request")
        fields: dict[str, Any] = {}
        if epoch == 0:
            fields = {
                "rebalance_timeout": self._rebalance_ms,
                "topology": self._application.topology(build, thread.version),
                "process_id": thread.process_id,
                "client_tags": (),
            }
        if epoch >= 0 and (epoch == 0 or says):
            fields |= {
                "active_tasks": task_ids(build, self.has.active),
                "standby_tasks": task_ids(build, self.has.standby),
                "warmup_tasks": (),
            }
        return build.StreamsGroupHeartbeatRequest(
            group_id=STREAMS_GROUP,
            member_id=member_id,
            member_epoch=epoch,
            instance_id=thread.instance,
            endpoint_information_epoch=0,
            task_offsets=task_offsets(build, offsets.offsets),
            task_end_offsets=task_offsets(build, offsets.end_offsets),
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
        if self.is_replaced:
            raise _EndedError(f"{code.name}, and another process was started")
        self._begin()

    def _heard(self, answer: Any, answered: Answered) -> None:
        life = self.life
        assert life is not None
        self.epoch = answer.member_epoch
        self._ledger.went_on(life, self.epoch, answered)
        if self.thread.heartbeat_version > 0 and answer.topology_description_required:
            self._describer.was_asked(answered)
        if answer.active_tasks is None:
            return
        target = Tasks(tasks(answer.active_tasks), tasks(answer.standby_tasks))
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
        life = self.life
        assert life is not None
        for_a_while = self.thread.instance is not None and self._random.random() < FOR_A_WHILE_SHARE
        held = frozenset(life.held)
        self._give_up_all()
        member_id, self.member_id = self.member_id, ""
        if for_a_while:
            self._ledger.leaves_for_a_while(life)
        epoch = LEAVES_FOR_A_WHILE if for_a_while else LEAVES
        sent_ms = self._now_ms()
        broker = await self._connections.coordinator(STREAMS_GROUP)
        request = self._heartbeat(member_id, epoch, says=False)
        answer = await self._connections.ask(broker, request, self._timeout_ms)
        if for_a_while and ErrorCode(answer.error_code) is ErrorCode.none and life.epoch > 0:
            self._former = Former(life, held, Answered(broker, sent_ms, self._now_ms()))

    # Offsets.

    async def _work(self) -> None:
        life = self.life
        assert life is not None
        missing = [task for task in sorted(self.has.active) if task not in self._positions]
        if missing:
            await self._fetch(life, missing)
        for task in self._positions:
            self._positions[task] += self._random.randrange(3)
        self.states.grow(self.has.active | self.has.standby)
        if self._positions and self._random.random() < COMMITS_SHARE:
            await self._commit(life)
        if self._former is not None and self.life is life and self._random.random() < 0.2:
            await self._act_late()

    async def _fetch(self, life: Life, missing: list[Task]) -> None:
        known = {task: self._ledger.known(task) for task in missing}
        answered, answer = await self._ask(fetch_request(missing))
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
        answered, answer = await self._ask(self._commit_as(life, positions))
        if answer is None:
            for task, offset in positions.items():
                self._ledger.unanswered(task, offset)
            return
        for task, code in codes(answer):
            if code is ErrorCode.none:
                self._ledger.committed(task, positions[task], answered)

    async def _act_late(self) -> None:
        """As the member that it was before it was removed or left, whose thread slept."""
        former, self._former = self._former, None
        assert former is not None
        if self.thread.instance is not None and self._random.random() < 0.5:
            await self._beat_late(former)
        elif former.tasks:
            request = self._commit_as(former.life, dict.fromkeys(former.tasks, 0))
            answered, answer = await self._ask(request)
            for task, code in () if answer is None else codes(answer):
                if code is ErrorCode.none:
                    what = f"a commit for task {task[0]}_{task[1]}"
                    self._ledger.former_succeeded(former.life, what, former.answered, answered)

    async def _beat_late(self, former: Former) -> None:
        life = former.life
        request = self._heartbeat(life.member_id, life.epoch, says=False)
        answered, answer = await self._ask(request)
        if answer is not None and ErrorCode(answer.error_code) is ErrorCode.none:
            self._ledger.former_succeeded(life, "a heartbeat", former.answered, answered)

    def _commit_as(self, life: Life, positions: Mapping[Task, int]) -> Any:
        return commit_request(life.member_id, self.thread.instance, life.epoch, positions)

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
