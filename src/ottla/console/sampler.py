"""Fills the history of a console, in a thread of its own beside the pages.

A sample asks for the commits of all groups and the ends of all partitions. A cluster for which that
takes long is asked less often, so that the sampling has at most a tenth of one thread's time. The
age of the first unread record is read for the groups alone whose pages are open.
"""

from __future__ import annotations

import time
from collections import Counter
from contextlib import suppress
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Final

from ottla.client.admin.committed_offsets import all_commits
from ottla.client.admin.lags import computed_lags
from ottla.client.admin.offsets import LATEST, known_offsets
from ottla.client.topic_partition import TopicPartition
from ottla.console.access import Access
from ottla.console.history import MAX_SERIES, History
from ottla.wording.errors import ReportedError

if TYPE_CHECKING:
    from ottla.messaging.unread_times import UnreadTimes

EVERY_S: Final = 10.0
SHARE: Final = 10
"""The pause after a sample is at least so many times as long as the sample took."""
LEAST_PAUSE_S: Final = 1.0
MAX_PAUSE_S: Final = 300.0
STOP_WITHIN_S: Final = 5.0
WATCHED_FOR_S: Final = 120.0
MAX_WATCHED: Final = 20
MAX_AGED: Final = 200
"""Partitions of a group, the most behind, whose first unread record is read."""
LAG: Final = "lag"
AGE: Final = "age"
END: Final = "end"


class Sampler:
    """Start it, and stop it."""

    def __init__(self, access: Access, history: History) -> None:
        self.history = history
        self._access = access
        self._stopping = Event()
        self._wanted = Event()
        self._lock = Lock()
        self._watched: dict[str, float] = {}
        self._times: UnreadTimes | None = None
        self._ends: dict[TopicPartition, int] = {}
        """As they were last known."""
        self._thread = Thread(target=self._loop, name="console-history", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._wanted.set()
        if self._thread.is_alive():
            self._thread.join(STOP_WITHIN_S)

    def watch(self, group: str) -> None:
        """Somebody looks at this group: its lag in time is wanted."""
        with self._lock:
            is_new = group not in self._watched
            self._watched[group] = time.monotonic()
            while len(self._watched) > MAX_WATCHED:
                del self._watched[min(self._watched, key=self._watched.__getitem__)]
        if is_new:
            self._wanted.set()

    def _loop(self) -> None:
        # The first page does not wait for the first sample.
        self._stopping.wait(LEAST_PAUSE_S)
        while not self._stopping.is_set():
            began_s = time.monotonic()
            self._wanted.clear()
            # The cluster may be away, or refuse: the pages say so, the charts have a gap.
            with suppress(ReportedError):
                self.sample()
            took_s = time.monotonic() - began_s
            # Who opens pages of groups one after the other has no more asked than this.
            least_s = min(took_s * SHARE, MAX_PAUSE_S) + LEAST_PAUSE_S
            if not self._stopping.wait(least_s):
                self._wanted.wait(max(0.0, EVERY_S - took_s - least_s))
        if self._times is not None:
            self._times.close()

    def sample(self) -> None:
        """One sample. Raises ClientError, and LibrdkafkaError."""
        now_ms = int(time.time() * 1000)
        with self._access.client() as client:
            commits = all_commits(client)
            metadata = client.metadata()
            leaders = metadata.leaders
            led = [key for key in leaders if leaders[key] >= 0]
            (ends,), _ = known_offsets(client, led, LATEST, known=metadata)
        # A leader that is away takes no end away: a sum without it would fall, and rise again as if
        # all its records were new.
        before = {key: self._ends[key] for key in leaders if key in self._ends}
        ends = self._ends = before | ends
        lags, topics = Counter[str](), Counter[str]()
        for each in computed_lags(commits.by_group, ends):
            lags[each.group] += each.lag
        for key, end in ends.items():
            topics[key.topic] += end
        unknown = leaders.keys() - ends.keys()
        for topic in {key.topic for key in unknown}:
            topics.pop(topic, None)
        for group, its in commits.by_group.items():
            if not unknown.isdisjoint(its):
                lags.pop(group, None)
        ages = {}
        for group in self._looked_at():
            at = commits.by_group.get(group, {})
            behind = {key: max(0, ends[key] - at[key].offset) for key in at if key in ends}
            age_ms = self._age_ms({key: at[key].offset for key in behind}, behind, now_ms)
            if age_ms is not None:
                ages[group] = age_ms
        largest = {
            LAG: dict(lags.most_common(MAX_SERIES)),
            END: dict(topics.most_common(MAX_SERIES)),
            AGE: ages,
        }
        self.history.add(now_ms, largest)

    def _looked_at(self) -> list[str]:
        """The groups whose pages are open."""
        now_s = time.monotonic()
        with self._lock:
            for group in [*self._watched]:
                if now_s - self._watched[group] > WATCHED_FOR_S:
                    del self._watched[group]
            return [*self._watched]

    def _age_ms(
        self, at: dict[TopicPartition, int], lags: dict[TopicPartition, int], now_ms: int
    ) -> int | None:
        """The age of the oldest first unread record; None if it is not known."""
        # Librdkafka is imported once somebody looks at a group.
        from ottla.messaging.unread_times import UnreadTimes, ages_ms

        worst = sorted(lags, key=lambda key: -lags[key])[:MAX_AGED]
        if self._times is None:
            self._times = UnreadTimes(self._access.settings)
        found = ages_ms(self._times, at, {key: lags[key] for key in worst}, now_ms)
        return max(found.values(), default=None)
