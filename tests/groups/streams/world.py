"""Streams groups with a clock, a log, timers and topics, driven as the coordinator does it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from tests.groups.consumer.world import START_MS, topic_id

from ottla.groups.consumer.topics import Topic, Topics
from ottla.groups.streams.group import StreamsGroup
from ottla.groups.streams.record_format import decode, encode
from ottla.groups.streams.requests import HeartbeatRequest, HeartbeatResult
from ottla.groups.streams.settings import StreamsGroupSettings
from ottla.groups.streams.shard import StreamsGroupShard
from ottla.groups.streams.step import Step, TimerEvent
from ottla.groups.streams.stored import StreamsRecord
from ottla.groups.streams.topology import Subtopology, TopicInfo, Topology
from ottla.shards.step import SetTimer

T = TypeVar("T")


def subtopology(
    name: str,
    sources: str,
    *,
    changelogs: str = "",
    sinks: str = "",
    repartitions: str = "",
) -> Subtopology:
    """Topics by comma; a repartition topic may have its number after a colon."""

    def infos(text: str) -> tuple[TopicInfo, ...]:
        found = []
        for each in filter(None, text.split(",")):
            topic, _, number = each.partition(":")
            found.append(TopicInfo(topic, int(number or 0), 0, ()))
        return tuple(found)

    def names(text: str) -> tuple[str, ...]:
        return tuple(filter(None, text.split(",")))

    return Subtopology(
        name, names(sources), (), infos(changelogs), names(sinks), infos(repartitions), ()
    )


PLAIN = Topology(0, (subtopology("0", "t"),))
"""Reads `t`, and keeps nothing."""
COUNTS = Topology(
    0, (subtopology("0", "t", sinks="r"), subtopology("1", "", changelogs="c", repartitions="r"))
)
"""Reads `t` and counts by another key."""
STATEFUL = Topology(0, (subtopology("0", "t", changelogs="c"),))
"""Reads `t` and keeps a state."""


def stored(shard: StreamsGroupShard) -> dict[str, dict[str, Any]]:
    """All that the records say, to compare."""
    return {
        name: {
            slot: _copy(getattr(group, slot))
            for slot in StreamsGroup.__slots__
            if slot not in ("soft", "revision")
        }
        for name, group in shard.groups.items()
    }


def _copy(value: Any) -> Any:
    return dict(value) if isinstance(value, dict) else value


class World:
    """One shard; `log` has its records as bytes."""

    def __init__(self) -> None:
        self.now_ms = START_MS
        self.settings = StreamsGroupSettings()
        self.topics = Topics(0, {})
        self.log: list[tuple[bytes, bytes | None]] = []
        self.timers: dict[Hashable, tuple[int, TimerEvent]] = {}
        self.shard = StreamsGroupShard()

    def step(self) -> Step:
        return Step(self.now_ms, self.settings)

    def run(self, step: Step) -> list[StreamsRecord]:
        """Appends and applies the step's records, then sets its timers."""
        for record in step.records:
            self.log.append(encode(record))
            self.shard.apply(record)
        for timer in step.timers:
            if isinstance(timer, SetTimer):
                self.timers[timer.key] = (self.now_ms + timer.delay_ms, timer.event)
            else:
                self.timers.pop(timer.key, None)
        return step.records

    def decide(self, work: Callable[[Step], T]) -> tuple[T, list[StreamsRecord]]:
        step = self.step()
        before = stored(self.shard)
        result = work(step)
        assert stored(self.shard) == before, "changed before the records are applied"
        return result, self.run(step)

    def heartbeat(self, request: HeartbeatRequest) -> tuple[HeartbeatResult, list[StreamsRecord]]:
        decided, records = self.decide(
            lambda step: self.shard.heartbeat(request, self.topics, step)
        )
        self.shard.keep(request.group, decided.soft)
        return decided.result, records

    def set_topic(self, name: str, partition_count: int) -> None:
        """Makes the topic, gives it more partitions, or deletes it (0)."""
        by_name = dict(self.topics.by_name)
        if partition_count:
            by_name[name] = Topic(topic_id(name, 0), partition_count)
        else:
            del by_name[name]
        self.topics = Topics(self.topics.version + 1, by_name)

    def next_timer(self, until_ms: int) -> TimerEvent | None:
        """The next timer to expire by then; the clock moves there."""
        due = [(at, str(key), key) for key, (at, _) in self.timers.items() if at <= until_ms]
        if not due:
            self.now_ms = until_ms
            return None
        at_ms, _, key = min(due)
        self.now_ms = at_ms
        return self.timers.pop(key)[1]

    def expire(self, event: TimerEvent) -> list[StreamsRecord]:
        return self.decide(lambda step: self.shard.expired(event, step))[1]

    def replayed(self) -> StreamsGroupShard:
        """Another shard that has read the log."""
        shard = StreamsGroupShard()
        for key, value in self.log:
            record = decode(key, value)
            assert record is not None
            shard.apply(record)
        return shard

    def restart(self) -> None:
        self.shard = self.replayed()
        self.timers.clear()
        step = self.step()
        for group in self.shard.groups:
            self.shard.loaded(group, step)
        self.run(step)
