"""Where reading starts in each partition."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ottla.client.admin.offsets import end_offsets, first_offsets, offsets_at
from ottla.client.client import Client
from ottla.client.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class Start:
    """A position in every partition: the first record, the end, or the first record at a time
    (ms).
    """

    kind: str
    at_ms: int = 0

    @property
    def reset(self) -> str:
        """The nearest value of librdkafka's auto.offset.reset."""
        return "latest" if self.kind == "end" else "earliest"


def start_offsets(
    client: Client, start: Start, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """The offset of that position in each partition."""
    if start.kind == "beginning":
        return first_offsets(client, partitions)
    if start.kind == "end":
        return end_offsets(client, partitions)
    return offsets_at(client, partitions, start.at_ms)
