"""Seeded sequences of requests about streams groups (KIP-1071): members, static and not, join,
beat, fall behind, leave and come back, right or wrong, and say how far they are with their tasks.

What would depend on the time is left out: assignments follow at once. Nobody names the instance id
of another member: see `known.CLAIMED`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any, Final

from conformance.differential.group_settings import set_group_settings
from conformance.differential.session import Session
from ottla.protocol.errors import ErrorCode

STEPS: Final = 30
SEEDS_OF_A_SCRIPT: Final = 10
FIRST_SEEDS: Final = range(0, 200, SEEDS_OF_A_SCRIPT)
FIRST_OF_MORE: Final = 100
"""The first seed with more than two members."""
PARTITIONS: Final = 3
MEMBERS: Final = ("a", "b")
MORE_MEMBERS: Final = ("a", "e", "i", "m")
"""Their ids lie in different bins of Java's hash table, also with a later generation: two in one
bin have an order in Kafka that depends on all members before (`ottla.groups.streams.java_order`).
"""
INSTANCES: Final = ("i", "j", "k", "l")
PROCESSES: Final = {"a": "pppl", "b": "qqqu", "e": "qqqu", "i": "pqqt", "m": "xxyp"}
"""Of each member, mostly the first one."""
HEARTBEAT, DESCRIBE = 88, 89
JOIN, LEAVE, LEAVE_FOR_A_WHILE = 0, -1, -2
_Owned = tuple[tuple[int, ...], tuple[int, ...]]
"""Active and standby tasks of the one subtopology."""
NOTHING: Final[_Owned] = ((), ())


@dataclass
class _Member:
    """A member as its client knows it."""

    name: str
    epoch: int = JOIN
    owned: _Owned = NOTHING
    told: _Owned = NOTHING
    instance: str | None = None
    is_in: bool = False
    generation: int = 0
    """A static member comes back under another id."""

    @property
    def member_id(self) -> str:
        return f"{self.name}{self.generation}"


class _Walk:
    """One group, and the requests that may come next."""

    def __init__(self, session: Session, seed: int, members: Sequence[str]) -> None:
        self._session = session
        self._random = Random(seed)
        self._seed = seed
        self._group = f"g{seed}"
        self._members = {name: _Member(name) for name in members}

    def run(self) -> None:
        for _ in range(STEPS):
            self._step()
        self._describe()

    def _step(self) -> None:
        member = self._members[self._random.choice(tuple(self._members))]
        match self._random.choices(
            ("beat", "join", "leave", "wrong", "commit", "describe", "delete"),
            (16, 4, 3, 4, 3, 2, 1),
        )[0]:
            case "beat" if member.is_in:
                self._beat(member)
            case "beat" | "join":
                self._join(member)
            case "leave":
                self._leave(member)
            case "wrong":
                self._wrong(member)
            case "commit":
                self._commit(member)
            case "describe":
                self._describe()
            case "delete":
                request = self._session.build(42, 3).DeleteGroupsRequest(
                    groups_names=(self._session.name(self._group),)
                )
                self._ask("DeleteGroups", request)

    # Members.

    def _join(self, member: _Member) -> None:
        """Also one that is in; a static one only if it has left: see `known.CLAIMED`."""
        if member.is_in and member.instance is not None:
            self._beat(member)
            return
        if not member.is_in and member.instance is None and self._random.random() < 0.5:
            member.instance = INSTANCES[list(self._members).index(member.name)]
        if not member.is_in and member.instance is not None and self._random.random() < 0.5:
            member.generation += 1
        member.owned = NOTHING
        process = self._random.choice(PROCESSES[member.name])
        self._beat(
            member,
            JOIN,
            process_id=process,
            rack_id=self._random.choice((None, None, "r", "s")),
            user_endpoint=self._random.choice((None, self._endpoint(member))),
        )

    def _endpoint(self, member: _Member) -> Any:
        return self._session.build(HEARTBEAT, 1).Endpoint(host=member.name, port=1)

    def _beat(self, member: _Member, epoch: int | None = None, **fields: Any) -> None:
        """A heartbeat as a client sends it: it has given up and taken what it was told last, or it
        is not that far yet.
        """
        epoch = member.epoch if epoch is None else epoch
        owned: _Owned | None = None
        if epoch == JOIN:
            owned = NOTHING
        elif self._random.random() < 0.8:
            owned = member.owned = member.told
        if epoch != JOIN and self._random.random() < 0.2:
            # Kafka forgets those of the heartbeat that makes the group.
            fields["task_offsets"] = self._offsets()
        answer = self._heartbeat(member, epoch, owned, **fields)
        if answer.error_code is ErrorCode.none:
            member.epoch, member.is_in = answer.member_epoch, True
            if answer.active_tasks is not None:
                member.told = _numbers(answer.active_tasks), _numbers(answer.standby_tasks)
        elif answer.error_code is not ErrorCode.invalid_request:
            member.is_in, member.owned, member.told = False, NOTHING, NOTHING
            if member.instance is not None:
                # Else Kafka would refuse it: it would claim its own place.
                self._heartbeat(member, LEAVE_FOR_A_WHILE)

    def _leave(self, member: _Member) -> None:
        """For good, a static one also for a while; it may not have been in the group at all."""
        is_short = member.instance is not None and self._random.random() < 0.7
        self._heartbeat(member, LEAVE_FOR_A_WHILE if is_short else LEAVE)
        if not is_short:
            member.instance = None
        member.is_in, member.epoch, member.owned, member.told = False, JOIN, NOTHING, NOTHING

    def _wrong(self, member: _Member) -> None:
        """What a client sends that missed something, or that is no member."""
        epoch = max(1, member.epoch + self._random.choice((-2, -1, -1, 1, 7)))
        owned = self._random.choice((None, NOTHING, member.owned, ((0, 1, 2), ()), ((7,), ())))
        instance = self._random.choice((member.instance, None, "unknown"))
        self._heartbeat(member, epoch, owned, instance_id=instance)

    def _heartbeat(
        self,
        member: _Member,
        epoch: int,
        owned: _Owned | None = None,
        *,
        label: str = "",
        **fields: Any,
    ) -> Any:
        build = self._session.build(HEARTBEAT, 1)
        is_joining = epoch == JOIN
        request = {
            "group_id": self._session.name(self._group),
            "member_id": member.member_id,
            "member_epoch": epoch,
            "instance_id": member.instance,
            "rebalance_timeout": 300_000 if is_joining else -1,
            "topology": self._topology() if is_joining else None,
            "active_tasks": None if owned is None else self._tasks(owned[0]),
            "standby_tasks": None if owned is None else self._tasks(owned[1]),
            "warmup_tasks": None if owned is None else (),
        }
        said = build.StreamsGroupHeartbeatRequest(**(request | fields))
        told = f"{epoch}, owns {owned}, {sorted(fields)} {label}"
        return self._ask(f"heartbeat of {member.member_id} ({member.instance}) in {told}", said)

    def _tasks(self, numbers: Sequence[int]) -> Any:
        build = self._session.build(HEARTBEAT, 1)
        return (build.TaskIds(subtopology_id="0", partitions=tuple(numbers)),) if numbers else ()

    def _offsets(self) -> Any:
        build = self._session.build(HEARTBEAT, 1)
        numbers = [number for number in range(PARTITIONS) if self._random.random() < 0.5]
        return tuple(
            build.TaskOffset(
                subtopology_id="0", partition=number, offset=self._random.randrange(100)
            )
            for number in numbers
        )

    def _topology(self) -> Any:
        build = self._session.build(HEARTBEAT, 1)
        changelog = build.TopicInfo(name=self._session.name("c"), partitions=0, topic_configs=())
        subtopology = build.Subtopology(
            subtopology_id="0",
            source_topics=(self._session.name("t"),),
            source_topic_regex=(),
            state_changelog_topics=(changelog,),
            repartition_source_topics=(),
            copartition_groups=(),
        )
        return build.Topology(epoch=0, subtopologies=(subtopology,))

    # Offsets.

    def _commit(self, member: _Member) -> None:
        other = max(0, member.epoch + self._random.choice((-2, -1, 1)))
        member_id, epoch = self._random.choices(
            ((member.member_id, member.epoch), (member.member_id, other), ("", -1), ("x", 1)),
            (6, 3, 1, 1),
        )[0]
        build = self._session.build(8, 9)
        partition = build.OffsetCommitRequestPartition(
            partition_index=self._random.randrange(PARTITIONS),
            committed_offset=self._random.randrange(100),
            committed_metadata="m",
        )
        topic = build.OffsetCommitRequestTopic(
            name=self._session.name("t"), partitions=(partition,)
        )
        request = build.OffsetCommitRequest(
            group_id=self._session.name(self._group),
            generation_id_or_member_epoch=epoch,
            member_id=member_id,
            topics=(topic,),
        )
        self._ask(f"OffsetCommit of {member_id!r} in {epoch}", request)

    # Asking.

    def _describe(self) -> None:
        request = self._session.build(DESCRIBE, 1).StreamsGroupDescribeRequest(
            group_ids=(self._session.name(self._group),)
        )
        self._ask("describe", request)

    def _ask(self, label: str, request: Any) -> Any:
        return self._session.ask(f"seed {self._seed}: {label}", request)


def _numbers(tasks: Any) -> tuple[int, ...]:
    return tuple(sorted(number for each in tasks for number in each.partitions))


def _settings(number: int) -> dict[str, str]:
    """Assignments follow at once; every other group has standby tasks."""
    return {
        "streams.initial.rebalance.delay.ms": "0",
        "streams.num.standby.replicas": str(number % 2),
        "streams.assignment.interval.ms": "0",
    }


def streams_walks(session: Session, first: int) -> None:
    """The walks of ten seeds from the first one on: those from 100 on with more members."""
    members = MEMBERS if first < FIRST_OF_MORE else MORE_MEMBERS
    seeds = range(first, first + SEEDS_OF_A_SCRIPT)
    for topic in ("t", "c"):
        session.create(topic, PARTITIONS)
    set_group_settings(session, {f"g{seed}": _settings(at) for at, seed in enumerate(seeds)})
    for seed in seeds:
        _Walk(session, seed, members).run()


STREAMS_WALKS: Final = {
    f"streams_walks_{first}": partial(streams_walks, first=first) for first in FIRST_SEEDS
}
