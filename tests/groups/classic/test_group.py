"""What must always hold, whatever members do and in whatever order.

A machine of clients that join, sync, beat, commit, leave, vanish and come back as Hypothesis likes,
against a model of who may own what; and after every step the state rebuilt from the records is
compared with the living one. By chance alone clients hardly ever agree on a generation, so one
rule lets them do what sensible clients do.
"""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.groups.in_memory import all_in_memory

from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.requests import (
    HeartbeatRequest,
    JoinRequest,
    JoinResult,
    LeavingMember,
    SyncRequest,
    SyncResult,
)
from ottla.groups.classic.state import EMPTY, PREPARING_REBALANCE, PREVIOUS_STATES, STABLE
from ottla.groups.offsets.commit import CommitRequest, OffsetToCommit
from ottla.groups.records import decode, encode
from ottla.groups.settings import GroupSettings
from ottla.groups.shard import GroupShard
from ottla.groups.step import Step, TimerEvent, TimerKey
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.shards.step import SetTimer

PARTITIONS = 4
SETTINGS = GroupSettings(min_session_timeout_ms=1, max_size=4)


@dataclass
class Client:
    """What one process knows: its id and generation, and what it was given to read."""

    name: str
    instance_id: str | None
    member_id: str = ""
    generation: int = -1
    leads: tuple[str, ...] = ()
    owns: frozenset[int] = frozenset()
    waits: set[str] = field(default_factory=set)
    """Which of its requests were not answered yet."""


clients = st.integers(0, 4)


class Groups(RuleBasedStateMachine):
    """One group, two dynamic clients, and three static ones of which two share an instance id."""

    def __init__(self) -> None:
        super().__init__()
        instances = (None, None, "i", "j", "j")
        self.clients = [Client(f"c{n}", instance) for n, instance in enumerate(instances)]
        self.now_ms = 0
        self.shard = GroupShard()
        self.before: Any = None
        self.shard.loaded(self.step())
        self.records: list[tuple[bytes, bytes | None]] = []
        self.timers: dict[Hashable, tuple[int, TimerEvent]] = {}
        self.refusing = False
        self.number = 0
        self.highest_stored = 0
        self.owners: dict[tuple[int, int], str] = {}
        """Generation and partition to the one member that was given it."""

    def step(self) -> Step:
        self.before = all_in_memory(self.shard)
        return Step(self.now_ms, SETTINGS)

    def run(self, step: Step) -> None:
        """As the runtime does it."""
        if step.records:
            assert all_in_memory(self.shard) == self.before, (
                "changed before the records are applied"
            )
            if self.refusing:
                if step.when_refused is not None:
                    later = self.step()
                    step.when_refused(later, ErrorCode.not_coordinator)
                    self.run(later)
                raise ApiError(ErrorCode.not_coordinator)
        for record in step.records:
            self.records.append(encode(record))
            self.shard.apply(record, len(self.records) - 1, self.now_ms, None)
        for timer in step.timers:
            if isinstance(timer, SetTimer):
                self.timers[timer.key] = (self.now_ms + timer.delay_ms, timer.event)
            else:
                self.timers.pop(timer.key, None)
        for client, result in step.replies:
            self.answered(client, result)
        if step.when_appended is not None:
            later = self.step()
            step.when_appended(later)
            self.run(later)

    def answered(self, client: Client, result: Any) -> None:
        if isinstance(result, SyncResult):
            client.waits.discard("sync")
            client.owns = frozenset()
            if result.error is ErrorCode.none:
                client.owns = frozenset(result.assignment)
                for partition in client.owns:
                    who = client.instance_id or client.member_id
                    owner = self.owners.setdefault((client.generation, partition), who)
                    assert owner == who, "two owners in one generation"
            return
        assert isinstance(result, JoinResult)
        client.waits.discard("join")
        if result.error is ErrorCode.none:
            client.generation, client.member_id = result.generation, result.member_id
            leads = result.leader == result.member_id and not result.skip_assignment
            client.leads = tuple(member.member_id for member in result.members) if leads else ()
        elif result.error is ErrorCode.member_id_required:
            client.member_id = result.member_id
        elif result.error in (ErrorCode.unknown_member_id, ErrorCode.fenced_instance_id):
            client.member_id, client.generation = "", -1

    @rule(number=clients, version=st.sampled_from([3, 8, 9]), protocols=st.booleans())
    def join(self, number: int, version: int, protocols: bool) -> None:
        client = self.clients[number]
        if client.waits:
            return
        self.number += 1
        client.waits.add("join")
        client.owns = frozenset()
        request = JoinRequest(
            token=client,
            group="g",
            member_id=client.member_id,
            group_instance_id=client.instance_id,
            new_member_id=f"{client.name}-{self.number}",
            client_id=client.name,
            client_host="/::1",
            session_timeout_ms=100,
            rebalance_timeout_ms=200,
            protocol_type="consumer",
            protocols=(("range", b"\0\0\0\0\0\1\0\1t"), *((("sticky", b""),) * protocols)),
            requires_known_member_id=version >= 4,
            supports_skip_assignment=version >= 9,
        )
        step = self.step()
        self.shard.join(request, step)
        try:
            self.run(step)
        except ApiError as error:
            self.answered(client, JoinResult(error.code, client.member_id))

    @rule(number=clients)
    def sync(self, number: int) -> None:
        client = self.clients[number]
        if client.waits or client.generation < 0:
            return
        client.waits.add("sync")
        assignments: dict[str, bytes] = {}
        for partition in range(PARTITIONS if client.leads else 0):
            member_id = client.leads[partition % len(client.leads)]
            assignments[member_id] = assignments.get(member_id, b"") + bytes([partition])
        step = self.step()
        request = SyncRequest(
            client, "g", client.generation, client.member_id, client.instance_id,
            "consumer", "range", assignments,
        )  # fmt: skip
        self.shard.sync(request, step)
        try:
            self.run(step)
        except ApiError as error:
            self.answered(client, SyncResult(error.code))

    @rule(number=clients)
    def beat(self, number: int) -> None:
        client = self.clients[number]
        step = self.step()
        request = HeartbeatRequest("g", client.generation, client.member_id, client.instance_id)
        error = self.shard.heartbeat(request, step)
        self.run(step)
        if error in (ErrorCode.none, ErrorCode.rebalance_in_progress):
            group = self.group()
            assert group is not None
            assert client.member_id in group.members
            assert client.generation == group.generation

    @rule(number=clients, partition=st.integers(0, PARTITIONS - 1))
    def commit(self, number: int, partition: int) -> None:
        client, group = self.clients[number], self.group()
        request = CommitRequest(
            "g", client.generation, client.member_id, client.instance_id, -1,
            (OffsetToCommit("t", None, partition, self.number, -1, client.name),), True,
        )  # fmt: skip
        step = self.step()
        try:
            self.shard.commit(request, step)
        except ApiError:
            assert not step.records
            return
        if group is not None and client.generation >= 0:
            assert client.generation == group.generation, "a former generation commits"
            assert client.member_id in group.members, "one who is no member commits"
            assert group.state in (STABLE, PREPARING_REBALANCE)
        else:
            assert group is None or group.state is EMPTY
        with suppress(ApiError):
            self.run(step)

    @rule(number=clients)
    def leave(self, number: int) -> None:
        client = self.clients[number]
        if client.waits:
            return
        step = self.step()
        leaving = [LeavingMember(client.member_id, client.instance_id)]
        self.shard.leave("g", leaving, step)
        with suppress(ApiError):
            self.run(step)
        client.member_id, client.generation = "", -1

    @rule(number=clients)
    def vanish(self, number: int) -> None:
        """A process ends; a static one comes back without its id."""
        client = self.clients[number] = replace(self.clients[number])
        client.member_id, client.generation, client.waits = "", -1, set()

    @rule(wait_ms=st.sampled_from([1, 50, 100, 250]))
    def time_passes(self, wait_ms: int) -> None:
        end_ms = self.now_ms + wait_ms
        for _ in range(1_000):
            due = min(self.timers.items(), key=lambda item: item[1][0], default=None)
            if due is None or due[1][0] > end_ms:
                break
            key, (due_ms, event) = due
            del self.timers[key]
            self.now_ms = max(self.now_ms, due_ms)
            step = self.step()
            self.shard.expired(event, step)
            with suppress(ApiError):
                self.run(step)
        else:
            pytest.fail("timers without end")
        self.now_ms = end_ms

    @rule(order=st.permutations(range(4)), most=st.integers(1, 4))
    def sensible_clients_go_on(self, order: list[int], most: int) -> None:
        for _ in range(3):
            for number in order[:most]:
                self.join(number, 9, False)
            self.time_passes(1)
            for number in order[:most]:
                self.sync(number)

    @rule(refusing=st.booleans())
    def the_log_fails_or_not(self, refusing: bool) -> None:
        self.refusing = refusing

    @rule()
    def sweep(self) -> None:
        step = self.step()
        self.shard.remove_expired(step)
        with suppress(ApiError):
            self.run(step)
        if not self.shard.groups:
            # The next group of this name begins with generation 1 again.
            self.owners.clear()

    def group(self) -> ClassicGroup | None:
        return self.shard.groups.get("g")

    def members(self) -> set[str]:
        group = self.group()
        return set() if group is None else set(group.members)

    @invariant()
    def the_records_are_the_state(self) -> None:
        again = GroupShard()
        for encoded, content in self.records:
            record = decode(encoded, content)
            assert record is not None
            again.apply(record, 0, self.now_ms, None)
        assert dict(again.offsets.all()) == dict(self.shard.offsets.all())
        assert again.groups.keys() == self.shard.groups.keys()
        for group_id, living in self.shard.groups.items():
            kept = again.groups[group_id]
            assert kept.stored == living.stored
            if living.state in (EMPTY, STABLE):
                assert self.stored(kept) == self.stored(living)

    @staticmethod
    def stored(group: ClassicGroup) -> Any:
        members = sorted(group.members.values(), key=lambda member: member.member_id)
        return (
            group.state,
            group.generation,
            group.protocol_name,
            group.leader_id,
            group.subscribed,
            group.static_members,
            [(one.member_id, one.group_instance_id, one.assignment) for one in members],
        )

    @invariant()
    def the_group_is_whole(self) -> None:
        group = self.group()
        if group is None:
            return
        waiting = [member for member in group.members.values() if member.join_token is not None]
        assert group.awaiting_join == len(waiting)
        assert (group.state is EMPTY) <= (not group.members)
        assert group.state in PREVIOUS_STATES
        assert group.leader_id is None or group.leader_id in group.members
        assert set(group.static_members.values()) <= set(group.members)
        assert not group.pending_members.keys() & group.members.keys()
        assert group.pending_sync.keys() <= group.members.keys()
        counted: dict[str, int] = {}
        for member in group.members.values():
            for name in member.protocols:
                counted[name] = counted.get(name, 0) + 1
        assert group.supported == counted
        if group.state is PREPARING_REBALANCE:
            assert TimerKey("join", "g") in self.timers, "nobody ends this rebalance"
        for member in group.members.values():
            assert TimerKey("heartbeat", "g", member.member_id) in self.timers or (
                member.is_waiting
            ), "a member that never expires"

    @invariant()
    def stored_generations_grow(self) -> None:
        group = self.group()
        if group is None or group.stored is None:
            self.highest_stored = 0
            return
        assert group.stored.generation >= self.highest_stored
        assert group.generation >= group.stored.generation
        self.highest_stored = group.stored.generation


TestGroups = Groups.TestCase
TestGroups.settings = settings(max_examples=150, stateful_step_count=30, deadline=None)
