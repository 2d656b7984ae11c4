"""What a pipeline tells a broker about a delivery, in the metadata of an ordinary OffsetCommit.

The metadata is JSON, so that the same pipeline works against Apache Kafka, which keeps it and
ignores it:

    {"ottla.pipeline": 1, "query": "flights", "batch": 7,
     "delta": {"table": "/data/flights", "version": 7},
     "from": 4200}

`delta` is absent or null for another kind of sink; `from`, the partition's first offset of this
micro-batch, may be absent. Anything else is some other client's metadata and no delivery.
"""

import json
from typing import Final, NamedTuple

MARK: Final = "ottla.pipeline"
MAX_NAME_CHARS: Final = 1024


class Delivery(NamedTuple):
    """One micro-batch's end: the query, its batch, the table ("" for none) and its version (-1
    for none).
    """

    query: str
    batch: int
    table: str
    version: int
    begin: int | None


def read_delivery(metadata: str | None) -> Delivery | None:
    """The delivery that a commit's metadata tells of, or None when it is no pipeline's."""
    if not metadata or MARK not in metadata:
        return None
    try:
        # confluent-kafka sends C's NUL at the end of a string along with it.
        said = json.loads(metadata.rstrip("\0"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(said, dict) or said.get(MARK) != 1:
        return None
    query, batch, delta = said.get("query"), _count(said.get("batch")), said.get("delta")
    if not isinstance(query, str) or batch is None:
        return None
    table, version = "", -1
    if isinstance(delta, dict):
        told, number = delta.get("table"), _count(delta.get("version"))
        if isinstance(told, str) and told and number is not None:
            table, version = told[:MAX_NAME_CHARS], number
    return Delivery(query[:MAX_NAME_CHARS], batch, table, version, _count(said.get("from"), 2**63))


def _count(value: object, below: int = 2**31) -> int | None:
    """A number that counts something (never a bool, never below 0 or beyond what a file entry
    holds).
    """
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < below:
        return value
    return None
