"""Messages of one key in other partitions than the explained message's. Pure.

A key is in several partitions where programs with different partitioners write it (Java's default
is murmur2, librdkafka's crc32), or where the topic got more partitions. Kafka orders the messages
of one partition only.

    "key_elsewhere": null, or {"messages": [{"partition", "offset", "timestamp_ms", "why"}, ...]:
                     the newest of each other partition, and why it is there, as in
                     `partition_chosen`; "not_searched": partitions, of which some or all messages
                     were not read; "removed": partitions without the key, from which messages
                     were removed, or may have been}
"""

from collections.abc import Sequence
from typing import NamedTuple

from ottla.journey.moment import Document
from ottla.journey.partitioner import explain_choice
from ottla.journey.words.partition import format_choice
from ottla.timelines.destination import Destination


class Hit(NamedTuple):
    """A message with the key."""

    partition: int
    offset: int
    timestamp_ms: int


class KeyElsewhere(NamedTuple):
    """The newest message of the key in each other partition that has one.

    `not_searched`: partitions in which none was found, but not all messages were read. `removed`:
    those in which none is left, but may have been.
    """

    messages: tuple[Hit, ...]
    not_searched: tuple[int, ...]
    removed: tuple[int, ...] = ()

    def document(self, key: bytes, partition_count: int) -> Document:
        return {
            "messages": [
                {
                    **hit._asdict(),
                    "why": format_choice(explain_choice(key, hit.partition, partition_count)),
                }
                for hit in self.messages
            ],
            "not_searched": list(self.not_searched),
            "removed": list(self.removed),
        }


def is_asked(to: Destination) -> bool:
    """Whether messages of other partitions may change the row of a message.

    Without `order_by` they cannot: the pipeline's query fails at a key that is in two partitions.
    """
    return to.by_message_key and to.rows != "append" and to.order == "timestamp"


def across_partitions(
    row: Document, to: Destination, elsewhere: KeyElsewhere | None, partition_count: int
) -> Document:
    """What is true of the `row` (see `table_rows`), which was told from one partition of the topic.

    Adds "also_in": partitions that have messages of the key, too, so that it is not known what
    became of the row; "unless_in": partitions which may have some, or may have had.
    """
    if not is_asked(to) or partition_count == 1 or row["did"] == "skipped":
        return row | {"also_in": [], "unless_in": []}
    if elsewhere is None:
        return seen_across(row, [], [])
    also_in = sorted(hit.partition for hit in elsewhere.messages)
    return seen_across(row, also_in, sorted({*elsewhere.not_searched, *elsewhere.removed}))


def seen_across(row: Document, also_in: Sequence[int], not_searched: Sequence[int]) -> Document:
    """The row, of whose key these other partitions have messages, or may have or have had some."""
    if not also_in:
        return row | {"also_in": [], "unless_in": list(not_searched)}
    # One of them may have been there before, or have come after.
    is_version = row["did"] == "opened" and row["then"] != "gone"  # a tombstone may close one
    did = row["did"] if is_version or row["did"] == "replaced" else None
    unknown = {"did": did, "of": None, "then": None, "by": None}
    return row | unknown | {"also_in": list(also_in), "unless_in": []}
