"""Committing a pipeline's place to a consumer group, beside the query and never in its way.

One thread commits what is waiting, in order. When the broker is away it tries again a few times,
says so once, and keeps what waits, with a limit, until the next progress wakes it. Nothing is
lost for good: the metadata of the last commit names its batch, from which the next one catches up.
"""

from __future__ import annotations

import json
import logging
import threading
from collections import deque
from dataclasses import dataclass
from typing import Any, Final

log: Final = logging.getLogger("ottla.pipelines")

TRIES: Final = 3
PAUSE_S: Final = 1.0
MOST_WAITING: Final = 1_000
# Kafka's default for `offset.metadata.max.bytes`; a broker refuses more.
MOST_METADATA_BYTES: Final = 4_096
TIMEOUT_S: Final = 5


@dataclass(frozen=True, slots=True)
class Delivered:
    """A batch that is done: the next offset to read of each partition, and where the rows are."""

    query: str  # the query's name, or its id where it has none
    query_id: str
    batch: int
    offsets: dict[str, dict[int, int]]  # topic -> partition -> next offset
    table: str | None = None
    version: int | None = None

    def metadata(self) -> str:
        """Return what the commit says beside its offsets, as JSON: the journey reads it."""
        said: dict[str, Any] = {
            "ottla.pipeline": 1,
            "query": self.query,
            "id": self.query_id,
            "batch": self.batch,
        }
        short = json.dumps(said, separators=(",", ":"))
        if self.table is None or self.version is None:
            return short
        said["delta"] = {"table": self.table, "version": self.version}
        full = json.dumps(said, separators=(",", ":"))
        return full if len(full.encode()) <= MOST_METADATA_BYTES else short


def batch_in(metadata: str | None, query_id: str) -> int | None:
    """Return the batch that a commit's metadata names, None unless it is of this query."""
    try:
        said = json.loads(metadata or "")
    except ValueError:
        return None
    if not isinstance(said, dict) or said.get("id") != query_id:
        return None
    batch = said.get("batch")
    return batch if isinstance(batch, int) else None


class GroupCommitter:
    """Commits to one consumer group without being a member of it."""

    def __init__(self, bootstrap_servers: str, group: str) -> None:
        self._group = group
        self._servers = bootstrap_servers
        self._admin: Any = None
        self._waiting: deque[Delivered] = deque(maxlen=MOST_WAITING)
        self._changed = threading.Condition()
        self._news = 0  # counts what was put, so that a trouble waits for the next progress
        self._busy = False
        self._closed = False
        self._said = ""
        self._thread = threading.Thread(target=self._run, name=f"ottla-{group}", daemon=True)
        self._thread.start()

    def put(self, delivered: Delivered) -> None:
        """Queue a batch to commit; returns at once."""
        with self._changed:
            self._waiting.append(delivered)
            self._news += 1
            self._changed.notify_all()

    def drain(self, timeout_s: float) -> bool:
        """Wait until nothing waits or is under way; False when it took too long."""
        with self._changed:
            return self._changed.wait_for(self._idle, timeout_s)

    def close(self) -> None:
        """Stop the thread; what still waits is left for the next run to catch up."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join(2 * TIMEOUT_S)

    def last_batch(self, query_id: str, topic: str, partitions: list[int]) -> int | None:
        """Return the last batch of this query that the group was told of, None if there is none.

        Raises KafkaException where the broker does not answer.
        """
        from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

        asked = [TopicPartition(topic, partition) for partition in partitions]
        request = [ConsumerGroupTopicPartitions(self._group, asked)]
        futures = self._client().list_consumer_group_offsets(request, request_timeout=TIMEOUT_S)
        answers = futures[self._group].result().topic_partitions
        batches = [batch_in(answer.metadata, query_id) for answer in answers]
        return max((batch for batch in batches if batch is not None), default=None)

    def _client(self) -> Any:
        from confluent_kafka.admin import AdminClient

        if self._admin is None:
            self._admin = AdminClient({"bootstrap.servers": self._servers, "log_level": 0})
        return self._admin

    def _idle(self) -> bool:
        return not self._waiting and not self._busy

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if self._closed:
                    return
                self._busy = True
                news, first = self._news, self._waiting[0]
            done = self._commit(first)
            with self._changed:
                self._busy = False
                # The limit may have pushed it out while it was under way.
                if done and self._waiting and self._waiting[0] is first:
                    self._waiting.popleft()
                self._changed.notify_all()
                if not done:
                    self._wait_for_news(news)

    def _wait_for_news(self, news: int) -> None:
        """After a trouble wait for the next progress: the query is the clock of the tries."""
        self._changed.wait_for(lambda: self._closed or self._news > news)

    def _commit(self, delivered: Delivered) -> bool:
        reason = ""
        for attempt in range(TRIES):
            if attempt and self._pause():
                return False
            reason = self._try_commit(delivered)
            if not reason:
                break
        self._say(reason)
        return not reason

    def _try_commit(self, delivered: Delivered) -> str:
        """Commit once; returns what went wrong, empty when nothing did."""
        from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition

        metadata = delivered.metadata()
        offsets = [
            TopicPartition(topic, partition, offset, metadata)
            for topic, partitions in delivered.offsets.items()
            for partition, offset in partitions.items()
        ]
        request = [ConsumerGroupTopicPartitions(self._group, offsets)]
        try:
            futures = self._client().alter_consumer_group_offsets(
                request, request_timeout=TIMEOUT_S
            )
            answers = futures[self._group].result().topic_partitions
        except KafkaException as error:
            return str(error.args[0].str())
        return next((str(answer.error.str()) for answer in answers if answer.error), "")

    def _pause(self) -> bool:
        """Wait a little before the next try; True when the thread is to stop."""
        with self._changed:
            return self._changed.wait_for(lambda: self._closed, PAUSE_S)

    def _say(self, reason: str) -> None:
        """Log a trouble once, and once that it is over."""
        if reason and not self._said:
            log.warning(
                "The progress of group %s cannot be committed to %s (%s); the query goes on, "
                "and the group catches up when the broker answers",
                self._group,
                self._servers,
                reason,
            )
        elif self._said and not reason:
            log.warning("The progress of group %s is committed again", self._group)
        self._said = reason
