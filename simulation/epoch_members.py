"""A member of a group of the consumer protocol (KIP-848). Its history is that of a classic member.

It sends heartbeats with what it owns, gives up partitions when it is told to, and reads those that
it is given from the committed offsets. An answer that does not come is asked for again in the same
epoch. What it is told counts as an assignment of its epoch: no two members may have a partition in
one epoch. After a commit without a response it joins as a new member, as a classic one.
"""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar, Final
from uuid import UUID

from faults.history import Assigned, Revoked, Synced

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of
from simulation.connection import NoAnswerError, RefusedError
from simulation.consumers import COORDINATOR_MOVED, GROUP, Member, check

HEARTBEAT: Final = 68
LEAVES_FOR_A_WHILE: Final = -2
LEAVES: Final = -1
NOT_CHANGED: Final = -1
LATE_S: Final = 3.0


class EpochMember(Member):
    """One consumer; see `Member`."""

    COMMIT_VERSION: ClassVar[int] = 9
    HAS_GENERATIONS: ClassVar[bool] = False

    _topic_id: UUID | None = None
    _says_all = False
    """After a request without an answer: it may have moved the member on, and told it so."""
    _last_id = ""
    _former_id = ""
    """The member that this one was before it had to join as another."""

    async def _take_part(self) -> None:
        if not self._member_id:
            self._member_id = f"{self._random.getrandbits(64):x}"
            self._former_id, self._last_id = self._last_id, self._member_id
        self._generation = 0
        beat_at = 0.0
        late_at = asyncio.get_running_loop().time() + self._random.random() * LATE_S
        while True:
            now = asyncio.get_running_loop().time()
            if self._former_id and now >= late_at:
                await self._commit_late()
            if now >= beat_at:
                beat_at = now + self._heartbeat_s
                if await self._beat():
                    # The coordinator waits for this: it hears at once what was given up.
                    beat_at = now
            await self._poll()
            if self._random.random() < 0.5:
                await self._commit()
            if not self.stays and self._random.random() < 0.008:
                await self._leave()
                return
            await asyncio.sleep(self._random.random() * 0.2)

    async def _commit_late(self) -> None:
        """As the member that it was, whose thread slept: the coordinator must refuse it."""
        epoch, positions = self._former
        if positions:
            mine, self._member_id = self._member_id, self._former_id
            await self._send_commit(epoch, positions)
            self._member_id = mine
        self._former, self._former_id = (-1, {}), ""

    async def _beat(self) -> bool:
        """Whether partitions were given up."""
        sent_ms = self._now_ms()
        try:
            broker = await self._connections.coordinator(GROUP)
            by_deposed = self._observer.is_deposed(GROUP, broker)
            answer = await self._connections.ask(broker, self._heartbeat_request(), 1_500)
            code = ErrorCode(answer.error_code)
            if code in COORDINATOR_MOVED:
                raise RefusedError(code)
        except (NoAnswerError, RefusedError):
            self.forget_coordinator()
            self._says_all = True
            return False
        check(code)
        self._says_all = False
        self._generation = answer.member_epoch
        if answer.assignment is None:
            return False
        partitions: tuple[int, ...] = ()
        for topic in answer.assignment.topic_partitions:
            self._topic_id = topic.topic_id
            partitions = tuple(topic.partitions)
        told = Synced(
            self._now_ms(), self.number, self._generation, partitions, by_deposed, sent_ms
        )
        self._note(told)
        given_up = await self._give_up(set(self._positions) - set(partitions))
        await self._take(tuple(each for each in partitions if each not in self._positions))
        return given_up

    def _heartbeat_request(self) -> Any:
        build = messages_of(HEARTBEAT, 1, "request")
        owned: tuple[Any, ...] = ()
        if self._positions:
            owned = (
                build.TopicPartitions(
                    topic_id=self._topic_id, partitions=tuple(sorted(self._positions))
                ),
            )
        says_all = self._says_all or self._generation == 0
        return build.ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=self._member_id,
            member_epoch=self._generation,
            instance_id=self._instance,
            rebalance_timeout=self._rebalance_ms if says_all else NOT_CHANGED,
            subscribed_topic_names=(self._topic,) if says_all else None,
            topic_partitions=owned,
        )

    async def _give_up(self, partitions: set[int]) -> bool:
        if not partitions:
            return False
        if self._random.random() < 0.7:
            await self._commit()
        self._note(Revoked(self._now_ms(), self.number, tuple(sorted(partitions))))
        lost = {each: self._positions.pop(each) for each in sorted(partitions)}
        if self._random.random() < 0.2:
            # As a consumer whose thread slept: another member may have them by now.
            await asyncio.sleep(self._random.random() * 0.5)
            await self._send_commit(self._generation, lost)
        return True

    async def _take(self, partitions: tuple[int, ...]) -> None:
        if not partitions:
            return
        by_deposed = self._observer.is_deposed(GROUP, await self._connections.coordinator(GROUP))
        self._note(Assigned(self._now_ms(), self.number, partitions, by_deposed))
        found = await self._committed_positions(partitions)
        for partition, position in found.items():
            self._positions[partition] = self._committed[partition] = position
            self._connections.epoch_seen(self._topic, partition, position.epoch)

    async def _leave(self) -> None:
        for_a_while = self._instance is not None and self._random.random() < 0.5
        epoch, self._generation = self._generation, LEAVES_FOR_A_WHILE if for_a_while else LEAVES
        request = self._heartbeat_request()
        # A late commit has the member's last epoch: with none, it would be that of an
        # administrator, which an empty group takes.
        self._generation = epoch
        self._member_id = ""
        await self._ask(request)
