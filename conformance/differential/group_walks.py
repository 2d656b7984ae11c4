"""Seeded sequences of requests about consumer groups (KIP-848): members join, beat, fall behind,
leave and come back, right or wrong; they commit and fetch offsets with right and wrong epochs.

What would depend on the time or on ids that a broker draws is left out: assignments follow at once
(consumer.assignment.interval.ms=0), members have names of one letter, by which both brokers sort,
and members of several topics ask for `range`, which decides topic by topic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, Final

from conformance.differential.group_settings import set_group_settings
from conformance.differential.session import Session
from ottla.protocol.errors import ErrorCode

STEPS: Final = 30
SEEDS_OF_A_SCRIPT: Final = 10
SCRIPTS: Final = 20
TOPICS: Final = {"t": 3, "u": 2, "v": 1}
"""With their partitions."""
MEMBERS: Final = ("a", "b", "c", "d")
INSTANCES: Final = ("i", "j")
INTERVAL: Final = "consumer.assignment.interval.ms"
JOIN, LEAVE, LEAVE_FOR_A_WHILE = 0, -1, -2


@dataclass
class _Member:
    """A member as its client knows it."""

    name: str
    epoch: int = JOIN
    owned: dict[str, set[int]] = field(default_factory=dict)
    told: dict[str, set[int]] = field(default_factory=dict)
    topics: tuple[str, ...] = ()
    instance: str | None = None
    is_in: bool = False


class _Walk:
    """One group, and the requests that may come next."""

    def __init__(self, session: Session, seed: int) -> None:
        self._session = session
        self._random = Random(seed)
        self._seed = seed
        self._group = f"g{seed}"
        self._is_range = self._random.random() < 0.5
        self._regex = self._is_range and self._random.random() < 0.3
        self._topic = self._random.choice(tuple(TOPICS))
        """The only one of a group whose assignor is uniform."""
        self._members = {name: _Member(name) for name in MEMBERS}

    def run(self) -> None:
        if self._regex:
            self._subscribe_by_regex()
        for _ in range(STEPS):
            self._step()
        self._describe()

    def _step(self) -> None:
        member = self._members[self._random.choice(MEMBERS)]
        match self._random.choices(
            (
                "beat",
                "join",
                "leave",
                "subscribe",
                "wrong",
                "commit",
                "fetch",
                "describe",
                "delete",
            ),
            (14, 5, 2, 2, 4, 3, 2, 2, 1),
        )[0]:
            case "beat" if member.is_in:
                self._beat(member)
            case "beat" | "join":
                self._join(member)
            case "leave":
                self._leave(member)
            case "subscribe" if member.is_in:
                member.topics = self._topics()
                self._beat(member, topics=member.topics)
            case "wrong" | "subscribe":
                self._wrong(member)
            case "commit":
                self._commit(member)
            case "fetch":
                self._fetch(member)
            case "describe":
                self._describe()
            case "delete":
                request = self._session.build(42, 3).DeleteGroupsRequest(
                    groups_names=(self._session.name(self._group),)
                )
                self._ask("DeleteGroups", request)

    # Members.

    def _topics(self) -> tuple[str, ...]:
        if not self._is_range:
            return (self._topic,)
        count = self._random.randint(1, len(TOPICS))
        return tuple(sorted(self._random.sample(tuple(TOPICS), count)))

    def _join(self, member: _Member) -> None:
        member.topics = self._topics()
        if not member.is_in:
            is_static = self._random.random() < 0.3
            member.instance = self._random.choice(INSTANCES) if is_static else None
        member.owned = {}
        self._beat(member, JOIN, topics=member.topics)

    def _subscribe_by_regex(self) -> None:
        """The first member; resolved beside the heartbeat, and at most once in ten seconds."""
        member = self._members["a"]
        regex = f"{self._session.name('')}[tu]"
        self._beat(member, JOIN, topics=(), subscribed_topic_regex=regex)
        joined = member.epoch
        self._session.wait("the expression is resolved", partial(self._is_ahead_of, joined))
        self._beat(member)

    def _is_ahead_of(self, epoch: int) -> bool:
        """Whether the group's epoch is."""
        build = self._session.build(69, 1)
        request = build.ConsumerGroupDescribeRequest(group_ids=(self._session.name(self._group),))
        (group,) = self._session.ask("describe", request, is_recorded=False).groups
        return bool(group.group_epoch > epoch)

    def _beat(self, member: _Member, epoch: int | None = None, **fields: Any) -> None:
        """A heartbeat as a client sends it: it has given up and taken what it was told last, or it
        is not that far yet.
        """
        epoch = member.epoch if epoch is None else epoch
        if epoch == JOIN:
            fields.setdefault("owned", {})
        elif self._random.random() < 0.8:
            member.owned = member.told
            fields.setdefault("owned", member.owned)
        answer = self._heartbeat(member, epoch, **fields)
        if answer.error_code is ErrorCode.none:
            member.epoch, member.is_in = answer.member_epoch, True
            if answer.assignment is not None:
                member.told = self._words(answer.assignment.topic_partitions)
        elif answer.error_code in (ErrorCode.unknown_member_id, ErrorCode.fenced_member_epoch):
            member.is_in, member.owned, member.told = False, {}, {}

    def _leave(self, member: _Member) -> None:
        """For good, a static one also for a while; it may not have been in the group at all."""
        is_short = member.instance is not None and self._random.random() < 0.6
        self._heartbeat(member, LEAVE_FOR_A_WHILE if is_short else LEAVE)
        member.is_in, member.epoch, member.owned, member.told = False, JOIN, {}, {}

    def _wrong(self, member: _Member) -> None:
        """What a client sends that missed something, or that is no member."""
        epoch = max(1, member.epoch + self._random.choice((-2, -1, -1, 1, 7)))
        owned = self._random.choice((None, {}, member.owned, {"t": {0, 1, 2}}))
        instance = self._random.choice((member.instance, None, *INSTANCES))
        self._heartbeat(member, epoch, owned=owned, instance=instance)

    def _heartbeat(
        self,
        member: _Member,
        epoch: int,
        *,
        owned: dict[str, set[int]] | None = None,
        topics: Sequence[str] | None = None,
        instance: str | None = None,
        **fields: Any,
    ) -> Any:
        build = self._session.build(68, 1)
        instance = instance or member.instance
        listed = None
        if owned is not None:
            listed = tuple(
                build.TopicPartitions(
                    topic_id=self._session.id_of(topic), partitions=tuple(sorted(partitions))
                )
                for topic, partitions in sorted(owned.items())
            )
        is_joining = epoch == JOIN
        request = build.ConsumerGroupHeartbeatRequest(
            group_id=self._session.name(self._group),
            member_id=member.name,
            member_epoch=epoch,
            instance_id=instance,
            rebalance_timeout=300_000 if is_joining else -1,
            subscribed_topic_names=None
            if topics is None
            else tuple(map(self._session.name, topics)),
            server_assignor=("range" if self._is_range else "uniform") if is_joining else None,
            topic_partitions=listed,
            **fields,
        )
        said = f"{epoch}, topics {topics}, owns {owned}, instance {instance}"
        return self._ask(f"heartbeat of {member.name} in {said}", request)

    def _words(self, assigned: Any) -> dict[str, set[int]]:
        words = {self._session.id_of(word): word for word in TOPICS}
        found = {words[each.topic_id]: set(each.partitions) for each in assigned}
        return dict(sorted(found.items()))

    # Offsets.

    def _epoch(self, member: _Member) -> tuple[str, int]:
        """A member id and an epoch, nearly always those of the member."""
        other = max(0, member.epoch + self._random.choice((-2, -1, 1)))
        return self._random.choices(
            ((member.name, member.epoch), (member.name, other), ("", -1), ("x", 1)), (6, 3, 1, 1)
        )[0]

    def _commit(self, member: _Member) -> None:
        version = self._random.choice((9, 10))
        build = self._session.build(8, version)
        member_id, epoch = self._epoch(member)
        topic = self._random.choice((*TOPICS, "missing"))
        partition = build.OffsetCommitRequestPartition(
            partition_index=self._random.randrange(3),
            committed_offset=self._random.randrange(100),
            committed_metadata="m",
        )
        named = self._named(topic, version)
        request = build.OffsetCommitRequest(
            group_id=self._session.name(self._group),
            generation_id_or_member_epoch=epoch,
            member_id=member_id,
            topics=(build.OffsetCommitRequestTopic(partitions=(partition,), **named),),
        )
        self._ask(f"OffsetCommit {version} of {member_id!r} in {epoch}: {topic}", request)

    def _fetch(self, member: _Member) -> None:
        version = self._random.choice((9, 10))
        build = self._session.build(9, version)
        member_id, epoch = self._epoch(member)
        topics = tuple(
            build.OffsetFetchRequestTopics(
                partition_indexes=tuple(range(3)), **self._named(topic, version)
            )
            for topic in TOPICS
        )
        group = build.OffsetFetchRequestGroup(
            group_id=self._session.name(self._group),
            member_id=member_id or None,
            member_epoch=epoch,
            topics=topics,
        )
        request = build.OffsetFetchRequest(groups=(group,))
        self._ask(f"OffsetFetch {version} of {member_id!r} in {epoch}", request)

    def _named(self, topic: str, version: int) -> dict[str, Any]:
        if version >= 10:
            return {"topic_id": self._session.id_of(topic)}
        return {"name": self._session.name(topic)}

    # Asking.

    def _describe(self) -> None:
        version = self._random.choice((0, 1))
        request = self._session.build(69, version).ConsumerGroupDescribeRequest(
            group_ids=(self._session.name(self._group),)
        )
        self._ask(f"describe {version}", request)

    def _ask(self, label: str, request: Any) -> Any:
        return self._session.ask(f"seed {self._seed}: {label}", request)


def group_walks(session: Session, first: int) -> None:
    """The walks of ten seeds from the first one on."""
    seeds = range(first, first + SEEDS_OF_A_SCRIPT)
    for topic, partitions in TOPICS.items():
        session.create(topic, partitions)
    # Assignments of these groups follow at once.
    set_group_settings(session, {f"g{seed}": {INTERVAL: "0"} for seed in seeds})
    for seed in seeds:
        _Walk(session, seed).run()


GROUP_WALKS: Final = {
    f"group_walks_{first}": partial(group_walks, first=first)
    for first in range(0, SCRIPTS * SEEDS_OF_A_SCRIPT, SEEDS_OF_A_SCRIPT)
}
