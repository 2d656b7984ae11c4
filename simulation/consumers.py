"""A member of a classic consumer group. It writes a history in the form of `faults`.

It joins, reads its assigned partitions from the committed offsets, commits, and rejoins when the
coordinator asks for it. The group's leader assigns each partition to one member. After a commit
without a response it rejoins as a new member: the request may still be in flight, and must not take
effect between later commits. After a rebalance it sometimes sends a late commit of the generation
before, as a consumer whose thread slept would: the coordinator must refuse it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, ClassVar, Final, NamedTuple

from faults.history import Assigned, Committed, Polled, Revoked, Synced

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of
from simulation.clients import Note, Observer, epochs_from, fetch, values_from
from simulation.connection import RETRY_S, Connections, NoAnswerError, RefusedError
from simulation.pace import Pace

OFFSET_COMMIT: Final = 8
OFFSET_FETCH: Final = 9
JOIN_GROUP: Final = 11
HEARTBEAT: Final = 12
LEAVE_GROUP: Final = 13
JOIN_GROUP_VERSION: Final = 9
"""From 9 on, a static leader that comes back learns that it leads (KIP-814). Before, nobody notices
new partitions from then on."""
SYNC_GROUP: Final = 14
GROUP: Final = "g"
PROTOCOL: Final = "range"
SESSION_MS: Final = 2_000
REBALANCE_MS: Final = 3_000
HEARTBEAT_S: Final = 0.3
"""All in a full run."""
MIN_HEARTBEAT_S: Final = 0.15
POLL_MS: Final = 150
NO_ANSWER: Final = "no answer"
COORDINATOR_MOVED: Final = frozenset(
    {
        ErrorCode.not_coordinator,
        ErrorCode.coordinator_not_available,
        ErrorCode.coordinator_load_in_progress,
    }
)


class Position(NamedTuple):
    """Where a member reads a partition."""

    offset: int
    """The next offset to read."""
    epoch: int
    """The leader epoch of the record before, -1 if unknown. It is committed with the offset: the
    next member that reads the partition does not ask a leader of an earlier epoch (KIP-320)."""


START: Final = Position(0, -1)


class Membership(NamedTuple):
    """The response to JoinGroup."""

    generation: int
    leads: bool
    skips_assignment: bool
    """The leader is a static member that came back: the assignment stays (KIP-814)."""
    members: tuple[str, ...]


class Member:
    """One consumer. `instance` makes it a static member (KIP-345)."""

    COMMIT_VERSION: ClassVar[int] = 7
    HAS_GENERATIONS: ClassVar[bool] = True
    """All members are in the same one, from which on commits of former ones are refused."""

    def __init__(
        self,
        number: int,
        topic: str,
        addresses: Mapping[int, tuple[str, int]],
        note: Note,
        now_ms: Callable[[], int],
        random: Random,
        partitions: Callable[[], int],
        observer: Observer,
        pace: Pace,
        instance: str | None = None,
    ) -> None:
        self.number = number
        self.stays = False
        """Whether the member no longer leaves the group by itself."""
        self._topic = topic
        self._connections = Connections(f"member-{number}", addresses)
        self._note = note
        self._now_ms = now_ms
        self._random = random
        self._partitions = partitions
        self._observer = observer
        self._instance = instance
        self._session_ms = pace.ms(SESSION_MS)
        self._rebalance_ms = pace.ms(REBALANCE_MS)
        self._heartbeat_s = max(MIN_HEARTBEAT_S, pace.s(HEARTBEAT_S))
        self._member_id = ""
        self._generation = -1
        self._former: tuple[int, dict[int, Position]] = (-1, {})
        """The last generation with partitions, and the positions at its end."""
        self._positions: dict[int, Position] = {}
        """Of each assigned partition."""
        self._committed: dict[int, Position] = {}
        self.unanswered: Callable[[], None] | None = None
        """Notes the commit that has no response yet. A process that is killed cannot."""
        self._assigned_count: int | None = None
        """How many partitions the topic had at its last assignment as the group's leader."""

    async def run(self) -> None:
        """Run as long as the process lives."""
        while True:
            try:
                await self._take_part()
            except NoAnswerError:
                self._connections.forget_coordinator(GROUP)
            except RefusedError as error:
                self._refused(error.code)
            self._revoke()
            await asyncio.sleep(RETRY_S)

    def _refused(self, code: ErrorCode) -> None:
        if code in COORDINATOR_MOVED:
            self._connections.forget_coordinator(GROUP)
        elif code in (ErrorCode.unknown_member_id, ErrorCode.fenced_instance_id):
            self._member_id = ""
            # The coordinator has not stored this member, and perhaps not its assignment either.
            self._assigned_count = None

    def _revoke(self) -> None:
        if self._positions:
            self._note(Revoked(self._now_ms(), self.number, tuple(self._positions)))
            self._former = self._generation, self._positions
        self._positions = {}

    async def _take_part(self) -> None:
        joined = await self._join()
        self._generation = joined.generation
        count: int | None = self._partitions()
        if joined.skips_assignment:
            # It may have missed new partitions. A new process knows of none and joins again.
            count = self._assigned_count
        elif joined.leads:
            self._assigned_count = count
        sent_ms = self._now_ms()
        partitions, by_deposed = await self._sync(joined, self._partitions())
        now_ms, generation = self._now_ms(), joined.generation
        self._note(Synced(now_ms, self.number, generation, partitions, by_deposed, sent_ms))
        by_deposed = self._observer.is_deposed(GROUP, await self._connections.coordinator(GROUP))
        self._note(Assigned(now_ms, self.number, partitions, by_deposed))
        if self._former[0] < self._generation and self._random.random() < 0.2:
            await self._commit_late()
        self._positions = await self._committed_positions(partitions)
        self._committed = dict(self._positions)
        for partition, position in self._positions.items():
            self._connections.epoch_seen(self._topic, partition, position.epoch)
        heartbeat_at = 0.0
        while True:
            now = asyncio.get_running_loop().time()
            if now >= heartbeat_at:
                heartbeat_at = now + self._heartbeat_s
                await self._heartbeat()
            await self._poll()
            if self._random.random() < 0.5:
                await self._commit()
            if not self.stays and self._random.random() < 0.008:
                await self._leave()
                return
            if joined.leads and count != self._partitions():
                return
            await asyncio.sleep(self._random.random() * 0.2)

    async def _join(self) -> Membership:
        build = messages_of(JOIN_GROUP, JOIN_GROUP_VERSION, "request")
        protocol = build.JoinGroupRequestProtocol(name=PROTOCOL, metadata=self._subscription())
        while True:
            request = build.JoinGroupRequest(
                group_id=GROUP,
                session_timeout=self._session_ms,
                rebalance_timeout=self._rebalance_ms,
                member_id=self._member_id,
                group_instance_id=self._instance,
                protocol_type="consumer",
                protocols=(protocol,),
            )
            answer = await self._ask(request, 2 * self._rebalance_ms)
            code = ErrorCode(answer.error_code)
            if code is ErrorCode.member_id_required:
                self._member_id = answer.member_id
                continue
            check(code)
            self._member_id = answer.member_id
            members = tuple(each.member_id for each in answer.members)
            leads = answer.leader == answer.member_id
            return Membership(answer.generation_id, leads, answer.skip_assignment, members)

    def _subscription(self) -> bytes:
        topic = self._topic.encode()
        return b"\0\0" + (1).to_bytes(4, "big") + len(topic).to_bytes(2, "big") + topic + b"\0" * 4

    async def _sync(self, joined: Membership, count: int) -> tuple[tuple[int, ...], bool]:
        """The assignment, and whether a coordinator that had been replaced returned it."""
        build = messages_of(SYNC_GROUP, 3, "request")
        assignments = ()
        if joined.leads and not joined.skips_assignment:
            owned: dict[str, list[int]] = {member: [] for member in joined.members}
            for partition in range(count):
                owned[joined.members[partition % len(joined.members)]].append(partition)
            assignments = tuple(
                build.SyncGroupRequestAssignment(
                    member_id=member, assignment=json.dumps(partitions).encode()
                )
                for member, partitions in owned.items()
            )
        request = build.SyncGroupRequest(
            group_id=GROUP,
            generation_id=joined.generation,
            member_id=self._member_id,
            group_instance_id=self._instance,
            assignments=assignments,
        )
        broker = await self._connections.coordinator(GROUP)
        by_deposed = self._observer.is_deposed(GROUP, broker)
        answer = await self._connections.ask(broker, request, 2 * self._rebalance_ms)
        check(ErrorCode(answer.error_code))
        return tuple(json.loads(bytes(answer.assignment) or b"[]")), by_deposed

    async def committed(self, partitions: tuple[int, ...]) -> dict[int, int]:
        """The group's committed offsets, 0 without one. Raises NoAnswerError, RefusedError."""
        found = await self._committed_positions(partitions)
        return {partition: position.offset for partition, position in found.items()}

    async def _committed_positions(self, partitions: tuple[int, ...]) -> dict[int, Position]:
        if not partitions:
            return {}
        build = messages_of(OFFSET_FETCH, 7, "request")
        topic = build.OffsetFetchRequestTopic(name=self._topic, partition_indexes=partitions)
        request = build.OffsetFetchRequest(group_id=GROUP, topics=(topic,), require_stable=True)
        answer = await self._ask(request)
        check(ErrorCode(answer.error_code))
        found = {}
        for each in answer.topics[0].partitions:
            check(ErrorCode(each.error_code))
            found[int(each.partition_index)] = (
                Position(int(each.committed_offset), int(each.committed_leader_epoch))
                if each.committed_offset >= 0
                else START
            )
        return found

    def forget_coordinator(self) -> None:
        """The coordinator returned an error or no response: look it up again."""
        self._connections.forget_coordinator(GROUP)

    async def _heartbeat(self) -> None:
        build = messages_of(HEARTBEAT, 3, "request")
        request = build.HeartbeatRequest(
            group_id=GROUP,
            generation_id=self._generation,
            member_id=self._member_id,
            group_instance_id=self._instance,
        )
        code = ErrorCode((await self._ask(request)).error_code)
        if code is ErrorCode.rebalance_in_progress and self._random.random() < 0.7:
            await self._commit()
        check(code)

    async def _poll(self) -> None:
        for partition, (offset, _) in list(self._positions.items()):
            try:
                code, batches = await fetch(
                    self._connections, self._topic, partition, offset, max_wait_ms=POLL_MS
                )
            except NoAnswerError:
                code, batches = ErrorCode.leader_not_available, []
            if code is ErrorCode.offset_out_of_range:
                self._positions[partition] = START
            elif code is not ErrorCode.none:
                self._connections.forget_leader(self._topic, partition)
            for header, _ in batches:
                self._observer.read(
                    self._topic, partition, header.base_offset, header.next_offset, header.crc
                )
            found = values_from(batches, offset)
            if found:
                epochs = epochs_from(batches, found[0][0])
                self._positions[partition] = Position(found[-1][0] + 1, epochs[-1])
                now_ms = self._now_ms()
                self._note(Polled(now_ms, self.number, partition, tuple(found), epochs))

    async def _commit(self) -> None:
        positions = {
            partition: position
            for partition, position in self._positions.items()
            if position != self._committed.get(partition)
        }
        if positions:
            codes = await self._send_commit(self._generation, positions)
            for partition, position in positions.items():
                # A coordinator that does not know a new partition yet refuses it alone, and the
                # next commit carries it again.
                if codes[partition] is not ErrorCode.unknown_topic_or_partition:
                    check(codes[partition])
                    self._committed[partition] = position

    async def _commit_late(self) -> None:
        """Commit what the generation before had read, as if the request had been delayed."""
        generation, positions = self._former
        self._former = -1, {}
        if positions:
            await asyncio.sleep(self._random.random() * 0.1)
            await self._send_commit(generation, positions)

    async def _send_commit(
        self, generation: int, positions: Mapping[int, Position]
    ) -> dict[int, ErrorCode]:
        """Return the response to each partition. Raises NoAnswerError."""
        build = messages_of(OFFSET_COMMIT, self.COMMIT_VERSION, "request")
        topic = build.OffsetCommitRequestTopic(
            name=self._topic,
            partitions=tuple(
                build.OffsetCommitRequestPartition(
                    partition_index=partition,
                    committed_offset=position.offset,
                    committed_leader_epoch=position.epoch,
                    committed_metadata="",
                )
                for partition, position in positions.items()
            ),
        )
        request = build.OffsetCommitRequest(
            group_id=GROUP,
            generation_id_or_member_epoch=generation,
            member_id=self._member_id,
            group_instance_id=self._instance,
            topics=(topic,),
        )
        offsets = tuple((partition, each.offset) for partition, each in positions.items())
        sent_ms = self._now_ms()

        def note(error: str | None, these: tuple[tuple[int, int], ...]) -> None:
            now_ms = self._now_ms()
            said = generation if self.HAS_GENERATIONS else -1
            self._note(Committed(now_ms, sent_ms, self.number, these, error, said))

        outcomes: dict[str | None, tuple[tuple[int, int], ...]] = {NO_ANSWER: offsets}
        self.unanswered = lambda: note(NO_ANSWER, offsets)
        try:
            answer = await self._ask(request)
            codes = {
                int(each.partition_index): ErrorCode(each.error_code)
                for each in answer.topics[0].partitions
            }
            outcomes = {
                None if code is ErrorCode.none else code.name: tuple(
                    each for each in offsets if codes[each[0]] is code
                )
                for code in codes.values()
            }
        except NoAnswerError:
            self._member_id = ""
            raise
        finally:
            self.unanswered = None
            for error, these in outcomes.items():
                note(error, these)
        return codes

    async def _leave(self) -> None:
        build = messages_of(LEAVE_GROUP, 3, "request")
        me = build.MemberIdentity(member_id=self._member_id, group_instance_id=self._instance)
        self._member_id = ""
        await self._ask(build.LeaveGroupRequest(group_id=GROUP, members=(me,)))

    async def _ask(self, request: Any, timeout_ms: int = 1_500) -> Any:
        broker = await self._connections.coordinator(GROUP)
        return await self._connections.ask(broker, request, timeout_ms)


def check(code: ErrorCode) -> None:
    """Raises RefusedError."""
    if code is not ErrorCode.none:
        raise RefusedError(code)
