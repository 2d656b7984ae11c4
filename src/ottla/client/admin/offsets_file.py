"""Offsets of a group as text, in the format of Kafka's kafka-consumer-groups.sh (KIP-175):

    topic,partition,offset

one line for each partition, without a head, quoted as CSV where a name needs it. So a file of
`--export` there is one of `ottla group import` here, and the other way round.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping

from ottla.client.topic_partition import TopicPartition
from ottla.wording.errors import ReportedError

EXAMPLE = "Each line must be TOPIC,PARTITION,OFFSET, as `ottla group export` prints them."


class OffsetsFileError(ReportedError):
    """A line that has no offset. The text names it."""

    is_usage = True


def offsets_text(offsets: Mapping[TopicPartition, int]) -> str:
    """The lines of these offsets, by topic and partition."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows([*key, offset] for key, offset in sorted(offsets.items()))
    return out.getvalue()


def read_offsets(lines: Iterable[str]) -> dict[TopicPartition, int]:
    """The offsets of such lines, without empty ones. Raises OffsetsFileError."""
    found: dict[TopicPartition, int] = {}
    for number, row in enumerate(csv.reader(lines), start=1):
        if not row:
            continue
        if len(row) != 3 or not all(word.isascii() and word.isdecimal() for word in row[1:]):
            raise OffsetsFileError(f"line {number} is {','.join(row)!r}.", EXAMPLE)
        key = TopicPartition(row[0], int(row[1]))
        if key in found:
            raise OffsetsFileError(f"line {number} names {key} a second time.", EXAMPLE)
        found[key] = int(row[2])
    if not found:
        raise OffsetsFileError("there are no offsets to import.", EXAMPLE)
    return found
