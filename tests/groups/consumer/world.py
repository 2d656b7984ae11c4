"""Consumer groups with a clock, a log, timers and clients, driven as the coordinator does it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Any
from uuid import UUID

from ottla.groups.consumer.assignors.spec import Partitions
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.record_format import decode, encode
from ottla.groups.consumer.requests import HeartbeatRequest, HeartbeatResult
from ottla.groups.consumer.settings import ConsumerGroupSettings
from ottla.groups.consumer.shard import ConsumerGroupShard
from ottla.groups.consumer.step import Step, TimerEvent
from ottla.groups.consumer.stored import ConsumerRecord
from ottla.groups.consumer.topics import Topic, Topics
from ottla.shards.step import SetTimer

START_MS = 1_000_000


def stored(shard: ConsumerGroupShard) -> dict[str, dict[str, Any]]:
    """All that the records say, to compare."""
    return {
        name: {
            slot: _copy(getattr(group, slot))
            for slot in ConsumerGroup.__slots__
            if slot not in ("checked_version", "partition_count", "regex_version", "revision")
        }
        for name, group in shard.groups.items()
    }


def _copy(value: Any) -> Any:
    return dict(value) if isinstance(value, dict) else value


class World:
    """One shard; `log` has its records as bytes."""

    def __init__(self) -> None:
        self.now_ms = START_MS
        self.settings = ConsumerGroupSettings()
        self.topics = Topics(0, {})
        self.deleted: Counter[str] = Counter()
        """How often each topic was deleted: one that is made again has another id."""
        self.log: list[tuple[bytes, bytes | None]] = []
        self.timers: dict[Hashable, tuple[int, TimerEvent]] = {}
        self.shard = ConsumerGroupShard()

    def step(self) -> Step:
        return Step(self.now_ms, self.settings)

    def run(self, step: Step) -> list[ConsumerRecord]:
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

    def set_topic(self, name: str, partition_count: int) -> None:
        """Makes the topic, gives it more partitions, or deletes it (0)."""
        by_name = dict(self.topics.by_name)
        if partition_count:
            by_name[name] = Topic(topic_id(name, self.deleted[name]), partition_count)
        else:
            del by_name[name]
            self.deleted[name] += 1
        self.topics = Topics(self.topics.version + 1, by_name)

    def heartbeat(self, request: HeartbeatRequest) -> tuple[HeartbeatResult, list[ConsumerRecord]]:
        step = self.step()
        before = stored(self.shard)
        result = self.shard.heartbeat(request, self.topics, step)
        assert stored(self.shard) == before, "changed before the records are applied"
        return result, self.run(step)

    def next_timer(self, until_ms: int) -> TimerEvent | None:
        """The next timer to expire by then; the clock moves there."""
        due = [(at, str(key), key) for key, (at, _) in self.timers.items() if at <= until_ms]
        if not due:
            self.now_ms = until_ms
            return None
        at_ms, _, key = min(due)
        self.now_ms = at_ms
        return self.timers.pop(key)[1]

    def expire(self, event: TimerEvent) -> list[ConsumerRecord]:
        step = self.step()
        self.shard.expired(event, self.topics, step)
        return self.run(step)

    def replayed(self) -> ConsumerGroupShard:
        """Another shard that has read the log."""
        shard = ConsumerGroupShard()
        for key, value in self.log:
            record = decode(key, value)
            assert record is not None
            shard.apply(record)
        return shard

    def restart(self) -> None:
        self.shard = self.replayed()
        self.timers.clear()
        step = self.step()
        for group_id in self.shard.groups:
            self.shard.loaded(group_id, step)
        self.run(step)


def topic_id(name: str, life: int = 0) -> UUID:
    return UUID(bytes=bytes((life,)) + name.encode().rjust(15, b"\0"))


def named(partitions: Partitions) -> str:
    """As `t-0,1 u-2`."""
    parts = [
        f"{topic.bytes[1:].strip(bytes(1)).decode()}-{','.join(map(str, sorted(each)))}"
        for topic, each in sorted(partitions.items())
    ]
    return " ".join(parts) or "nothing"
