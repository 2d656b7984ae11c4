"""Waits for the other instances of a mirror at the source's end."""

from __future__ import annotations

import time
from collections.abc import Container, Mapping
from typing import Final

from ottla.client.topic_partition import TopicPartition
from ottla.mirroring import events
from ottla.mirroring.clusters import SideClient
from ottla.mirroring.committed_positions import committed_positions
from ottla.mirroring.events import Event, Tell
from ottla.mirroring.identity import replaced_topics
from ottla.mirroring.position import Position
from ottla.mirroring.reach import reach
from ottla.mirroring.spec import MirrorSpec
from ottla.mirroring.told_once import ToldOnce
from ottla.mirroring.topic_plan import TopicPlan

WAITING_NOTE_S: Final = 5.0


class SourceEnd:
    """For one thread, which owns both clients."""

    def __init__(
        self, spec: MirrorSpec, source: SideClient, target: SideClient, tell: Tell
    ) -> None:
        self._spec = spec
        self._source = source
        self._target = target
        self._tell_once = ToldOnce(tell)
        self._gone: set[str] = set()
        """Topics at the target that the source has no more."""
        self._waiting_since_s: float | None = None

    def is_reached(
        self,
        until: Mapping[TopicPartition, int],
        held: Mapping[TopicPartition, Position],
        out: Container[str],
        plan: TopicPlan,
    ) -> bool:
        """Whether every partition is mirrored up to there, or is not mirrored on. `held`: what
        this instance has committed; `out`: the topics that it has left out. Raises ClientError.
        """
        left = {
            each: end
            for each, end in until.items()
            if each.topic not in out
            and each.topic not in self._gone
            and (each not in held or held[each].offset < end)
        }
        if not left.keys().isdisjoint(held):
            return False
        if not left:
            return True
        found = reach(left, committed_positions(self._target, self._spec.name), plan.mirrored)
        for topic in found.left_out:
            text = f"Topic {topic} is not mirrored on: another instance has left it out."
            self._tell_once(Event(events.LEFT_OUT, text, {"topic": topic}))
        # A topic that is refused has been said.
        missing = {
            name: topic
            for topic in found.unplanned
            if (name := topic.removeprefix(self._spec.prefix)) not in plan.refused
        }
        if missing:
            gone = set(replaced_topics(self._source, dict.fromkeys(missing)))
            self._gone |= {topic for name, topic in missing.items() if name in gone}
        behind = [
            *found.behind,
            *(each for each in left if each.topic in set(missing.values()) - self._gone),
        ]
        self._note_waiting(behind)
        return not behind

    def _note_waiting(self, behind: list[TopicPartition]) -> None:
        now_s = time.monotonic()
        if not behind:
            self._waiting_since_s = None
        elif self._waiting_since_s is None:
            self._waiting_since_s = now_s
        elif now_s - self._waiting_since_s >= WAITING_NOTE_S:
            self._waiting_since_s = now_s
            others = f" and {len(behind) - 1:,} others" if len(behind) > 1 else ""
            text = f"Waiting for another instance, which mirrors {behind[0]}{others} ..."
            self._tell_once(Event(events.WAITING, text))
