"""Looks after topics and groups in a thread, so that no record waits for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from ottla.client.errors import ClientError
from ottla.messaging.librdkafka import LibrdkafkaError
from ottla.mirroring import events
from ottla.mirroring.clusters import Side
from ottla.mirroring.events import Event, Tell
from ottla.mirroring.group_offsets import GroupOffsets
from ottla.mirroring.group_switch import GroupSwitch, Switched
from ottla.mirroring.map_reader import MapReader
from ottla.mirroring.map_tidying import MapTidying
from ottla.mirroring.names import map_topic_of
from ottla.mirroring.patterns import Patterns
from ottla.mirroring.position import Origin
from ottla.mirroring.spec import MirrorSpec
from ottla.mirroring.told_once import ToldOnce
from ottla.mirroring.topic_plan import TopicPlan
from ottla.mirroring.topics import TopicWork

TICK_S: Final = 0.2
TIDY_EVERY_S: Final = 300.0


class Keeper:
    """`begin`, then `start` and `stop` in turn, and `end`. Between `start` and `stop` its thread
    owns its clients; before and after, the caller's thread.
    """

    def __init__(
        self, spec: MirrorSpec, source: Side, target: Side, patterns: Patterns, tell: Tell
    ) -> None:
        self._spec = spec
        self._target_side = target
        self._patterns = patterns
        self._tell = tell
        self._source = source.client()
        self._target = target.client()
        self._work = TopicWork(
            spec,
            self._source,
            self._target,
            patterns.topic,
            patterns.excluded,
            self._read_map,
            tell,
        )
        self._reader: MapReader | None = None
        self._groups: GroupOffsets | None = None
        self._tidying: MapTidying | None = None
        self._stopping = threading.Event()
        self._executor: ThreadPoolExecutor | None = None
        self._work_ahead: Future[None] | None = None
        self._failures: dict[str, ToldOnce] = {}
        """Those since the work succeeded last, by its name."""
        self.plan = TopicPlan()
        """The newest; replaced, never changed."""
        self.looks_after_groups = False
        """Set by the mirror: one instance does."""

    def begin(self) -> TopicPlan:
        """Makes what the mirror needs at the target, and plans. Raises ClientError."""
        self._work.make_map_topic()
        self.plan = self._work.refresh()
        return self.plan

    def start(self) -> None:
        """Goes on in a thread."""
        self._stopping.clear()
        self._executor = ThreadPoolExecutor(1, "ottla-mirror-keeper")
        self._work_ahead = self._executor.submit(self._look_after)

    def check(self) -> None:
        """Raises what ended the thread: our own bug."""
        if self._work_ahead is not None and self._work_ahead.done():
            self._work_ahead.result()

    def _look_after(self) -> None:
        topics_at = time.monotonic() + self._spec.refresh_every_s
        groups_at = tidied_at = 0.0
        while not self._stopping.wait(TICK_S):
            now = time.monotonic()
            if now >= topics_at:
                topics_at = now + self._spec.refresh_every_s
                self.attempt("topics", self._refresh)
            if now >= groups_at and self.looks_after_groups:
                groups_at = now + self._spec.groups_every_s
                self.attempt("groups", self.keep_groups_up)
            if now >= tidied_at and self.looks_after_groups:
                tidied_at = now + TIDY_EVERY_S
                self.attempt("map", self.tidy_map)

    def _refresh(self) -> None:
        self.plan = self._work.refresh()

    def attempt(self, what: str, work: Callable[[], object]) -> None:
        """What fails is said, once until it succeeds, and tried again at the next turn."""
        failures = self._failures.setdefault(what, ToldOnce(self._tell))
        try:
            work()
        except (ClientError, LibrdkafkaError) as error:
            failures(Event(events.WAITING, f"Trying again: {error.message}"))
        else:
            failures.forget()

    def keep_groups_up(self) -> None:
        """Sets the offsets of groups once. Raises ClientError and LibrdkafkaError."""
        if self._spec.groups:
            self._group_offsets().keep_up(self.plan.mirrored)

    def tidy_map(self) -> int:
        """Deletes entries of the map that the source's retention has made useless. Raises
        ClientError and LibrdkafkaError.
        """
        groups = self._group_offsets()
        groups.read_map()
        assert self._tidying is not None
        return self._tidying.tidy(self.plan.mirrored)

    def _read_map(self) -> dict[str, Origin | None]:
        """The source's topics that are in the map, and where they are from if that is known."""
        self._group_offsets().read_map()
        assert self._reader is not None
        return self._reader.topics()

    def switch(self, group: str, out: Collection[str]) -> Switched:
        """Sets the offsets of one group for good, if they can be set now. `out`: topics at the
        target that are not mirrored on. Raises ClientError and LibrdkafkaError.
        """
        # A topic may have been created again since.
        self._refresh()
        switching = GroupSwitch(
            self._spec, self._source, self._target, self._group_offsets(), self._tell
        )
        return switching.switch(group, self.plan, out)

    def _group_offsets(self) -> GroupOffsets:
        if self._groups is None:
            topic = map_topic_of(self._spec.name)
            self._reader = MapReader(self._target_side, topic)
            self._tidying = MapTidying(self._source, self._target_side, topic, self._reader)
            self._groups = GroupOffsets(
                self._spec,
                self._source,
                self._target,
                self._reader,
                self._patterns.group,
                self._tell,
            )
        return self._groups

    def stop(self) -> None:
        """Ends the thread, and waits for it: each of its requests has a limit."""
        self._stopping.set()
        if self._executor is not None:
            self._executor.shutdown()
            self._executor = self._work_ahead = None

    def end(self) -> None:
        """Closes all."""
        self.stop()
        if self._reader is not None:
            self._reader.close()
        self._source.close()
        self._target.close()
