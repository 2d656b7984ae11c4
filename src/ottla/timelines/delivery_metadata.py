"""A pipeline's report about a delivery, in the metadata of an ordinary OffsetCommit.

The metadata is JSON, so that the same pipeline works with Apache Kafka, which stores and ignores
it:

    {"ottla.pipeline": 1, "query": "flights", "batch": 7,
     "delta": {"table": "/data/flights", "version": 7},
     "from": 4200}

`delta` is absent or null for other sinks. `from`, the partition's first offset in this micro-batch,
may be absent. Any other metadata is another client's, and not a delivery.
"""

import json
from typing import Final, NamedTuple

MARK: Final = "ottla.pipeline"
MAX_NAME_CHARS: Final = 1024


class DeliveredBatch(NamedTuple):
    """One finished micro-batch: the query, its batch, the table ("" for none) and its version (-1
    for none).
    """

    query: str
    batch: int
    table: str
    version: int
    begin: int | None


def read_delivery(metadata: str | None) -> DeliveredBatch | None:
    """The delivery in a commit's metadata, or None if it is not a pipeline's."""
    if not metadata or MARK not in metadata:
        return None
    try:
        # confluent-kafka includes the NUL at the end of the C string.
        fields = json.loads(metadata.rstrip("\0"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict) or fields.get(MARK) != 1:
        return None
    query, batch, delta = fields.get("query"), _count(fields.get("batch")), fields.get("delta")
    if not isinstance(query, str) or batch is None:
        return None
    table, version = "", -1
    if isinstance(delta, dict):
        name, number = delta.get("table"), _count(delta.get("version"))
        if isinstance(name, str) and name and number is not None:
            table, version = name[:MAX_NAME_CHARS], number
    return DeliveredBatch(
        query[:MAX_NAME_CHARS], batch, table, version, _count(fields.get("from"), 2**63)
    )


def _count(value: object, below: int = 2**31) -> int | None:
    """A non-negative number (not a bool) that fits into a file entry."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < below:
        return value
    return None
