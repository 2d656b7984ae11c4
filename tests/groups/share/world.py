"""Share groups with a clock, a log, timers and a share coordinator, driven as the coordinator does
it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from tests.groups.consumer.world import START_MS, topic_id

from ottla.groups.consumer.step import SessionExpired
from ottla.groups.consumer.topics import Topic, Topics
from ottla.groups.share.group import ShareGroup
from ottla.groups.share.record_format import decode, encode
from ottla.groups.share.requests import HeartbeatRequest, HeartbeatResult
from ottla.groups.share.settings import ShareGroupSettings
from ottla.groups.share.shard import ShareGroupShard
from ottla.groups.share.step import Step
from ottla.groups.share.stored import ShareRecord
from ottla.shards.step import SetTimer

T = TypeVar("T")


def stored(shard: ShareGroupShard) -> dict[str, dict[str, Any]]:
    """All that the records say, to compare."""
    return {
        name: {
            slot: _copy(getattr(group, slot))
            for slot in ShareGroup.__slots__
            if slot not in ("checked_version", "initialized_version", "revision")
        }
        for name, group in shard.groups.items()
    }


def _copy(value: Any) -> Any:
    return dict(value) if isinstance(value, dict) else value


class World:
    """One shard; `log` has its records as bytes, and their times."""

    def __init__(self) -> None:
        self.now_ms = START_MS
        self.settings = ShareGroupSettings()
        self.topics = Topics(0, {})
        self.deleted: Counter[str] = Counter()
        """How often each topic was deleted: one that is made again has another id."""
        self.log: list[tuple[bytes, bytes | None, int]] = []
        self.timers: dict[Hashable, tuple[int, SessionExpired]] = {}
        self.shard = ShareGroupShard()

    def step(self) -> Step:
        return Step(self.now_ms, self.settings)

    def run(self, step: Step) -> list[ShareRecord]:
        """Appends and applies the step's records, then sets its timers."""
        for record in step.records:
            self.log.append((*encode(record), self.now_ms))
            self.shard.apply(record, self.now_ms)
        for timer in step.timers:
            if isinstance(timer, SetTimer):
                self.timers[timer.key] = (self.now_ms + timer.delay_ms, timer.event)
            else:
                self.timers.pop(timer.key, None)
        return step.records

    def decide(self, work: Callable[[Step], T]) -> tuple[T, list[ShareRecord]]:
        step = self.step()
        before = stored(self.shard)
        result = work(step)
        assert stored(self.shard) == before, "changed before the records are applied"
        return result, self.run(step)

    def heartbeat(self, request: HeartbeatRequest) -> tuple[HeartbeatResult, list[ShareRecord]]:
        return self.decide(lambda step: self.shard.heartbeat(request, self.topics, step))

    def set_topic(self, name: str, partition_count: int) -> list[ShareRecord]:
        """Makes the topic, gives it more partitions, or deletes it (0)."""
        by_name = dict(self.topics.by_name)
        records: list[ShareRecord] = []
        if partition_count:
            by_name[name] = Topic(topic_id(name, self.deleted[name]), partition_count)
        else:
            gone = by_name.pop(name).id
            self.deleted[name] += 1
            step = self.step()
            step.records, is_done = self.shard.topic_deleted(gone)
            assert is_done
            records = self.run(step)
        self.topics = Topics(self.topics.version + 1, by_name)
        return records

    def next_timer(self, until_ms: int) -> SessionExpired | None:
        """The next timer to expire by then; the clock moves there."""
        due = [(at, str(key), key) for key, (at, _) in self.timers.items() if at <= until_ms]
        if not due:
            self.now_ms = until_ms
            return None
        at_ms, _, key = min(due)
        self.now_ms = at_ms
        return self.timers.pop(key)[1]

    def expire(self, event: SessionExpired) -> list[ShareRecord]:
        return self.decide(lambda step: self.shard.expired(event, self.topics, step))[1]

    def replayed(self) -> ShareGroupShard:
        """Another shard that has read the log."""
        shard = ShareGroupShard()
        for key, value, timestamp_ms in self.log:
            record = decode(key, value)
            assert record is not None
            shard.apply(record, timestamp_ms)
        return shard

    def restart(self) -> None:
        self.shard = self.replayed()
        self.timers.clear()
        step = self.step()
        for group in self.shard.groups:
            self.shard.loaded(group, step)
        self.run(step)
