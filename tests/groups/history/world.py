"""A shard with a clock, timers and the history that comes of what it notes."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, TypeVar

from tests.groups.consumer.world import topic_id

from ottla.groups.classic.requests import JoinRequest, LeavingMember, SyncRequest
from ottla.groups.consumer.requests import HeartbeatRequest
from ottla.groups.consumer.settings import ConsumerGroupSettings
from ottla.groups.consumer.topics import Topic, Topics
from ottla.groups.embedded_protocol import write_assignment
from ottla.groups.history.fold import Document, Histories
from ottla.groups.settings import GroupSettings
from ottla.groups.shard import GroupShard
from ottla.groups.share.requests import HeartbeatRequest as ShareHeartbeat
from ottla.groups.share.settings import ShareGroupSettings
from ottla.groups.step import Step
from ottla.groups.streams.requests import HeartbeatRequest as StreamsHeartbeat
from ottla.groups.streams.settings import StreamsGroupSettings
from ottla.groups.streams.tasks import Partitions
from ottla.shards.step import SetTimer

T = TypeVar("T")
SUBSCRIPTION = b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff"
SESSION_MS, REBALANCE_MS = 10_000, 60_000


class World:
    """Steps are carried out as `coordinator_partition` does it, with nothing to wait for."""

    def __init__(self, **settings: Any) -> None:
        self.now_ms = 1_000_000
        self.settings = GroupSettings(initial_rebalance_delay_ms=0, **settings)
        self.topics = Topics(0, {})
        consumers = ConsumerGroupSettings(assignment_interval_ms=0)
        shares = ShareGroupSettings(assignment_interval_ms=0)
        self.streams = StreamsGroupSettings(assignment_interval_ms=0, initial_rebalance_delay_ms=0)
        self.shard = GroupShard(
            lambda: self.topics, lambda _: consumers, lambda _: shares, lambda _: self.streams
        )
        self.timers: dict[Hashable, tuple[int, Any]] = {}
        self.replies: dict[Any, Any] = {}
        self.histories = Histories(lambda wanted: self._names.get(wanted))
        self.entries: list[Document] = []
        self._names: dict[Any, str] = {}
        self._epochs: dict[str, int] = {}
        self.decide(self.shard.loaded)

    def set_topic(self, name: str, partition_count: int) -> None:
        topic = Topic(topic_id(name), partition_count)
        self._names[topic.id] = name
        by_name = dict(self.topics.by_name) | {name: topic}
        self.topics = Topics(self.topics.version + 1, by_name)

    def decide(self, work: Callable[[Step], T]) -> T:
        step = Step(self.now_ms, self.settings)
        result = work(step)
        self._carry_out(step)
        return result

    def _carry_out(self, step: Step) -> None:
        for record in step.records:
            self.shard.apply(record, 0, self.now_ms, None)
        for timer in step.timers:
            if isinstance(timer, SetTimer):
                self.timers[timer.key] = (self.now_ms + timer.delay_ms, timer.event)
            else:
                self.timers.pop(timer.key, None)
        self.replies |= dict(step.replies)
        for event in step.committed:
            self.entries += self.histories.fold(event)
        if step.when_appended is not None:
            self.decide(step.when_appended)

    def advance(self, ms: int) -> None:
        """The clock, with the timers that expire meanwhile."""
        until_ms = self.now_ms + ms
        while self.timers:
            key = min(self.timers, key=lambda each: self.timers[each][0])
            if self.timers[key][0] > until_ms:
                break
            self.now_ms, event = self.timers.pop(key)
            self.decide(partial(self.shard.expired, event))
        self.now_ms = until_ms

    def whys(self) -> list[list[str]]:
        """Of each entry the causes, and forgets the entries."""
        found = [[cause["why"] for cause in entry["causes"]] for entry in self.entries]
        self.entries = []
        return found

    # Classic members.

    def join(self, member_id: str, *, is_known: bool = False, **changes: Any) -> None:
        """A static member without its id, unless that `is_known` to it."""
        request = JoinRequest(
            token=f"join {member_id}",
            group="g",
            member_id="" if changes.get("group_instance_id") and not is_known else member_id,
            group_instance_id=None,
            new_member_id=member_id,
            client_id=f"client-{member_id}",
            client_host="/10.0.0.7",
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            protocol_type="consumer",
            protocols=(("range", SUBSCRIPTION),),
        )._replace(**changes)
        if member_id not in self._members() and request.group_instance_id is None:
            self.decide(lambda step: self.shard.join(request._replace(member_id=""), step))
        self.decide(lambda step: self.shard.join(request, step))
        self.advance(0)

    def _members(self) -> Any:
        group = self.shard.groups.get("g")
        return () if group is None else group.members

    def sync(self, **assigned: int) -> None:
        """Everybody gets these partitions of `t` from the leader: how many each."""
        group = self.shard.groups["g"]
        first, assignments = 0, {}
        for member_id, count in assigned.items():
            numbers = range(first, first + count)
            assignments[member_id] = write_assignment(0, [("t", numbers)])
            first += count
        leader = group.leader_id
        for member_id in sorted(group.members, key=lambda each: each == leader):
            brought = assignments if member_id == leader else {}
            request = SyncRequest(
                f"sync {member_id}", "g", group.generation, member_id, None, None, None, brought
            )
            self.decide(partial(self.shard.sync, request))

    def leave(self, *members: LeavingMember) -> None:
        self.decide(lambda step: self.shard.leave("g", members, step))

    # Members of the other kinds.

    def beat(self, member_id: str, epoch: int | None = None, **said: Any) -> Any:
        """A heartbeat of a consumer group's member, in its own epoch."""
        known = self._epochs.get(member_id, 0)
        request = HeartbeatRequest(
            group="g",
            member_id=member_id,
            epoch=known if epoch is None else epoch,
            client_id=f"client-{member_id}",
            client_host="/10.0.0.7",
            **said,
        )
        result: Any = self.decide(lambda step: self.shard.consumer_heartbeat(request, 1, step))
        self._epochs[member_id] = result.epoch
        return result

    def share_beat(self, member_id: str, epoch: int | None = None, **said: Any) -> Any:
        """A heartbeat of a share group's member, in its own epoch."""
        known = self._epochs.get(member_id, 0)
        request = ShareHeartbeat(
            group="g",
            member_id=member_id,
            epoch=known if epoch is None else epoch,
            client_id=f"client-{member_id}",
            client_host="/10.0.0.7",
            **said,
        )
        result: Any = self.decide(lambda step: self.shard.share_heartbeat(request, step))
        self._epochs[member_id] = result.epoch
        return result

    def streams_beat(
        self,
        member_id: str,
        epoch: int | None = None,
        *,
        has: Partitions | None = None,
        **said: Any,
    ) -> Any:
        """A heartbeat of a streams group's member, in its own epoch, which has these tasks."""
        known = self._epochs.get(member_id, 0)
        request = StreamsHeartbeat(
            group="g",
            member_id=member_id,
            epoch=known if epoch is None else epoch,
            client_id=f"client-{member_id}",
            client_host="/10.0.0.7",
            active=has or {},
            standby={},
            warmup={},
            **said,
        )
        result: Any = self.decide(lambda step: self.shard.streams_heartbeat(request, step))
        self._epochs[member_id] = result.epoch
        return result
