"""Committing a pipeline's offsets to a consumer group, beside the query and never in its way.

One thread commits what is waiting, in order, and renews the run's state while nothing is waiting.
While the broker does not answer it retries a few times, logs that once, and keeps what waits,
with a limit, until there is something new. Nothing is lost: the metadata of the last commit names
its batch, and the next start catches up from there.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ottla.pipelines.destination import Destination
from ottla.pipelines.progress.events import Offsets
from ottla.pipelines.progress.group import Commit, Group, GroupError, Partition
from ottla.pipelines.progress.offset_metadata import OffsetMetadata, Run, read_offset_metadata
from ottla.pipelines.progress.requests import SUFFIX, StopRequest, find_request
from ottla.pipelines.rejected_offsets import Told, joined
from ottla.pipelines.unknown_fields import Unknown

log: Final = logging.getLogger("ottla.pipelines")

MAX_TRIES: Final = 3
PAUSE_S: Final = 1.0
MAX_WAITING: Final = 1_000
CLOSE_WAIT_S: Final = 10
RENEW_S: Final = 10
"""How often a run's state is renewed while no batch ends."""
MIN_STATE_S: Final = 1.0
"""State alone is not committed more often than this; the end of a run is, at once."""
LOOK_S: Final = 2.0
"""How often a run looks for a request to stop."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """A batch that is done: the next offset to read of each partition, and where the rows are."""

    query: str  # the query's name, or its id where it has none
    query_id: str
    batch: int | None  # None: the run has started and no batch is done
    offsets: Offsets
    table: str | None = None
    version: int | None = None
    to: Destination | None = None
    rejected: Told = field(default_factory=dict)
    unknown: Unknown = field(default_factory=dict)
    reads_committed: frozenset[str] = frozenset()  # topics
    begins: Offsets = field(default_factory=dict)  # where its first batch began

    def commits(self, run: Run | None) -> dict[Partition, Commit]:
        """Return what to commit; the lowest partition of the first topic has the run's state."""
        metadata = OffsetMetadata(
            self.query, self.query_id, self.batch, self.table, self.version, to=self.to
        )
        of_topic = {
            topic: replace(
                metadata,
                unknown=self.unknown.get(topic),
                reads_committed=topic in self.reads_committed,
            )
            for topic in self.offsets
        }
        texts = {topic: one.text() for topic, one in of_topic.items()}
        found = {
            (topic, partition): Commit(offset, texts[topic])
            for topic, partitions in self.offsets.items()
            for partition, offset in partitions.items()
        }
        own = {
            (topic, partition): replace(
                of_topic[topic], rejected=self.rejected.get((topic, partition)), begin=begin
            )
            for topic, partition in found
            for begin in [self.begins.get(topic, {}).get(partition)]
            if begin is not None or (topic, partition) in self.rejected
        }
        if run is not None and found:
            own[self.home] = replace(own.get(self.home, of_topic[self.home[0]]), run=run)
        for key, mine in own.items():
            found[key] = Commit(found[key].offset, mine.text())
        return found

    def after(self, dropped: Delivered) -> Delivered:
        """Return the same for a commit that is also to say what an earlier batch rejected."""
        return replace(self, rejected=joined(dropped.rejected, self.rejected))

    def state_commit(self, run: Run) -> dict[Partition, Commit]:
        """Return the one commit that renews the run's state; its offset stays the same."""
        found = self.commits(run)
        return {self.home: found[self.home]} if found else {}

    @property
    def home(self) -> Partition:
        """The partition whose commits have the run's state."""
        return min((topic, number) for topic, numbers in self.offsets.items() for number in numbers)


def last_batch(group: Group, query_id: str, partitions: list[Partition]) -> int | None:
    """Return the last batch of this query that the group has, None if it has none.

    Raises GroupError where the broker does not answer.
    """
    found = [read_offset_metadata(commit.metadata) for commit in group.read(partitions).values()]
    batches = [
        metadata.batch
        for metadata in found
        if metadata is not None and metadata.query_id == query_id and metadata.batch is not None
    ]
    return max(batches, default=None)


class GroupCommitter:
    """Commits to one consumer group without being a member of it.

    With `run` it keeps that run's state there too; `on_stop` is then called, once and in a thread
    of its own, when someone asks this run to stop.
    """

    def __init__(
        self,
        group: Group,
        *,
        run: Run | None = None,
        on_stop: Callable[[StopRequest], None] | None = None,
    ) -> None:
        self.group = group
        self.run = run
        self._on_stop = on_stop
        self._companion: Group | None = None
        self._waiting: deque[Delivered] = deque()  # at most MAX_WAITING
        self._last: Delivered | None = None
        self._changed = threading.Condition()
        self._changes = 0  # counts puts and updates: a failed commit waits for the next one
        self._state_changed = False
        self._state_at_s = self._looked_at_s = 0.0  # monotonic
        self._is_busy = self._is_closed = False
        self._logged = ""
        self._thread = threading.Thread(target=self._loop, name=f"ottla-{group.name}", daemon=True)
        self._thread.start()

    def put(self, delivered: Delivered) -> None:
        """Queue a batch to commit; returns at once."""
        with self._changed:
            if len(self._waiting) == MAX_WAITING:
                dropped = self._waiting.popleft()
                self._waiting[0] = self._waiting[0].after(dropped)
            self._waiting.append(delivered)
            self._notify()

    def update(self, **changes: Any) -> None:
        """Change fields of the run's state, which is committed soon after; returns at once."""
        with self._changed:
            if self.run is not None:
                self.run = replace(self.run, **changes)
                self._state_changed = True
                self._notify()

    def drain(self, timeout_s: float) -> bool:
        """Wait until everything is committed; False when that took too long."""
        with self._changed:
            return self._changed.wait_for(self._is_idle, timeout_s)

    @property
    def is_failing(self) -> bool:
        """Whether the last commit failed, which was logged."""
        return bool(self._logged)

    def close(self) -> None:
        """Stop the thread; the next run catches up with what still waits."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        if self._thread is not threading.current_thread():
            self._thread.join(CLOSE_WAIT_S)

    def _notify(self) -> None:
        self._changes += 1
        self._changed.notify_all()

    def _is_idle(self) -> bool:
        has_state = self._state_changed and self._last is not None
        return not self._waiting and not self._is_busy and not has_state

    def _state_due_s(self) -> float | None:
        """When to commit the state next; None if there is none to commit."""
        if self.run is None or self._last is None:
            return None
        if self.run.has_ended:
            return 0.0 if self._state_changed else None
        return self._state_at_s + (MIN_STATE_S if self._state_changed else RENEW_S)

    def _look_due_s(self) -> float | None:
        return None if self._on_stop is None else self._looked_at_s + LOOK_S

    def _wait_s(self) -> float | None:
        dues = [due for due in (self._state_due_s(), self._look_due_s()) if due is not None]
        return max(0.0, min(dues) - time.monotonic()) if dues else None

    def _wait_for_work(self, seen: int) -> None:
        """Wait for a batch, a change since `seen`, or until something is due."""
        self._changed.wait_for(
            lambda: self._waiting or self._is_closed or self._changes != seen, self._wait_s()
        )

    def _loop(self) -> None:
        try:
            self._work()
        finally:
            # In this thread, which alone uses them. A process may run query after query.
            for group in (self.group, self._companion):
                if group is not None:
                    group.close()

    def _work(self) -> None:
        seen = -1
        while True:
            with self._changed:
                self._wait_for_work(seen)
                if self._is_closed:
                    return
                seen = changes = self._changes
                first = self._waiting[0] if self._waiting else None
                due_s = self._state_due_s()
                is_due = due_s is not None and due_s <= time.monotonic()
                self._is_busy = first is not None or is_due
            is_done = True
            if first is not None:
                is_done = self._commit_batch(first)
            elif is_due:
                is_done = self._commit_state()
            self._look_for_request()
            with self._changed:
                self._is_busy = False
                self._changed.notify_all()
                if not is_done:
                    self._wait_for_change(changes)

    def _wait_for_change(self, changes: int) -> None:
        """After a failed commit, wait for the next batch, or to renew the state."""
        limit_s = RENEW_S if self.run is not None else None
        self._changed.wait_for(lambda: self._is_closed or self._changes > changes, limit_s)

    def _commit_batch(self, first: Delivered) -> bool:
        run = self._taken_run()
        is_done = self._commit(first.commits(run))
        with self._changed:
            if is_done:
                self._last = first
                # The limit may have pushed it out of the queue while it was under way.
                if self._waiting and self._waiting[0] is first:
                    self._waiting.popleft()
            else:
                self._state_changed = run is not None
        return is_done

    def _commit_state(self) -> bool:
        run = self._taken_run()
        assert run is not None
        assert self._last is not None
        is_done = self._commit(self._last.state_commit(run))
        with self._changed:
            self._state_changed = self._state_changed or not is_done
        return is_done

    def _taken_run(self) -> Run | None:
        """Return the state as of now; what changes after this is committed the next time."""
        with self._changed:
            if self.run is None:
                return None
            self._state_at_s = time.monotonic()
            self._state_changed = False
            self.run = replace(self.run, seen_ms=int(time.time() * 1_000))
            return self.run

    def _commit(self, commits: dict[Partition, Commit]) -> bool:
        reason = ""
        for attempt in range(MAX_TRIES):
            if attempt and self._pause():
                return False
            reason = self._try_commit(commits)
            if not reason:
                break
        self._log(reason)
        return not reason

    def _try_commit(self, commits: dict[Partition, Commit]) -> str:
        """Commit once; returns the reason where it failed, otherwise an empty text."""
        try:
            self.group.commit(commits)
        except GroupError as error:
            return str(error)
        return ""

    def _pause(self) -> bool:
        """Wait a little before the next try; True when the thread is to stop."""
        with self._changed:
            return self._changed.wait_for(lambda: self._is_closed, PAUSE_S)

    def _look_for_request(self) -> None:
        due_s = self._look_due_s()
        last = self._last
        if self._on_stop is None or due_s is None or due_s > time.monotonic() or last is None:
            return
        self._looked_at_s = time.monotonic()
        assert self.run is not None
        try:
            self._companion = self._companion or self.group.companion(SUFFIX)
            request = find_request(self._companion, last.home)
            if request is None:
                return
            self._companion.delete()
        except GroupError as error:
            # The commits log a broker that does not answer.
            log.debug("The group %s.%s cannot be read: %s", self.group.name, SUFFIX, error)
            return
        if request.run == self.run.id:
            on_stop, self._on_stop = self._on_stop, None
            # In another thread: stopping a query takes time, and its end is committed meanwhile.
            threading.Thread(target=on_stop, args=(request,), daemon=True).start()

    def _log(self, reason: str) -> None:
        """Log once that commits fail, and once that they succeed again."""
        if reason and not self._logged:
            log.warning(
                "The progress of group %s cannot be committed to %s (%s); the query continues, "
                "and the group catches up when the broker answers",
                self.group.name,
                self.group.bootstrap_servers,
                reason,
            )
        elif self._logged and not reason:
            log.warning("The progress of group %s is committed again", self.group.name)
        self._logged = reason
