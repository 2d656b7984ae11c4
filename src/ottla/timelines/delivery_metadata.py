"""A pipeline's report about a delivery, in the metadata of an ordinary OffsetCommit.

The metadata is JSON, so that the same pipeline works with Apache Kafka, which stores and ignores
it:

    {"ottla.pipeline": 1, "query": "flights", "batch": 7,
     "delta": {"table": "/data/flights", "version": 7},
     "sink": {"kind": "delta", "place": "/data/flights", "version": 7, "rows": "upsert", ...},
     "from": 4200}

`delta` is absent or null for other sinks. `sink` says more (see `destination.py`), and is absent in
the commits of earlier versions; its `version` is that of the Delta table, or the number of the list
of a folder of files. `from`, the partition's first offset in this micro-batch, may be absent.
`rejects` says which offsets the batch rejected (see `rejected_offsets.py`), and is absent where it
rejected none. `unknown` says which fields of the values the pipeline's schema lacks
(`{"did": "drop", "fields": ["delay_min"]}`), as far as the run has seen some. `isolation` is
"read_committed" if the batch is without records of aborted transactions. Any other metadata is
another client's, and not a delivery.

A pipeline keeps two notes in groups that read nothing: a request to stop
(`{"ottla.stop": 1, ...}`), and the state of a run that has no query yet, whose `id` is empty.
"""

import json
import zlib
from typing import Any, Final, NamedTuple

from ottla.timelines.destination import DELTA, Destination, read_destination
from ottla.timelines.rejected_offsets import RejectedOffsets, read_rejected

MARK: Final = "ottla.pipeline"
MAX_CHECKPOINT: Final = 255
"""What a timeline has room for."""
STOP_MARK: Final = "ottla.stop"
MAX_NAME_CHARS: Final = 1024
MAX_UNKNOWN_FIELDS: Final = 20
READ_COMMITTED: Final = "read_committed"
DID: Final = ("drop", "keep", "reject")


class UnknownFields(NamedTuple):
    """What becomes of the fields that a pipeline's schema lacks, and the fields that it has seen:
    "x", "n.x" in an object, "a[].x" in a list of objects, "m{}.x" in a map of objects.
    """

    did: str
    fields: tuple[str, ...]


class DeliveredBatch(NamedTuple):
    """One finished micro-batch: the query, its batch, where its rows went (`Destination.text`, ""
    for unknown) and the version there (-1 for none). `checkpoint`: a number for the query's id.
    """

    query: str
    batch: int
    table: str
    version: int
    begin: int | None
    rejected: RejectedOffsets | None = None
    unknown: UnknownFields | None = None
    reads_committed: bool = False
    checkpoint: int = 0


def read_delivery(metadata: str | None) -> DeliveredBatch | None:
    """The delivery in a commit's metadata, or None if it is not a pipeline's."""
    fields = pipeline_fields(metadata)
    if fields is None:
        return None
    query, batch, delta = fields.get("query"), _count(fields.get("batch")), fields.get("delta")
    if not isinstance(query, str) or batch is None:
        return None
    sink = fields.get("sink")
    to, version = read_destination(sink), None
    if to is not None and isinstance(sink, dict):
        version = _count(sink.get("version"))
    elif isinstance(delta, dict):
        name, version = delta.get("table"), _count(delta.get("version"))
        if isinstance(name, str) and name and version is not None:
            to = Destination(DELTA, name[:MAX_NAME_CHARS])
    table = "" if to is None else to.text()
    version = -1 if to is None or version is None else version
    return DeliveredBatch(
        query[:MAX_NAME_CHARS],
        batch,
        table,
        version,
        _count(fields.get("from"), 2**63),
        read_rejected(fields.get("rejects")),
        _read_unknown(fields.get("unknown")),
        fields.get("isolation") == READ_COMMITTED,
        _checkpoint(fields.get("id")),
    )


def _checkpoint(query_id: object) -> int:
    """A number of 1 to MAX_CHECKPOINT for the query's id, which Spark keeps in the checkpoint; 0 if
    the commit does not say it. Different numbers are of different checkpoints.
    """
    if not isinstance(query_id, str) or not query_id:
        return 0
    return zlib.crc32(query_id.encode("utf-8", "surrogatepass")) % MAX_CHECKPOINT + 1


def _read_unknown(said: object) -> UnknownFields | None:
    """What the `unknown` of a commit says, or None if it says nothing of the kind."""
    if not isinstance(said, dict):
        return None
    did, fields = said.get("did"), said.get("fields")
    if did not in DID or not isinstance(fields, list):
        return None
    names = tuple(
        name[:MAX_NAME_CHARS] for name in fields[:MAX_UNKNOWN_FIELDS] if isinstance(name, str)
    )
    return UnknownFields(did, names) if names else None


def is_note(metadata: str | None) -> bool:
    """Whether a commit is a pipeline's note about a run, and the group reads nothing."""
    if _fields(metadata, STOP_MARK) is not None:
        return True
    fields = pipeline_fields(metadata)
    return fields is not None and fields.get("id") == "" and "run" in fields


def pipeline_fields(metadata: str | None) -> dict[str, Any] | None:
    """The JSON of a pipeline's commit, None for any other metadata."""
    return _fields(metadata, MARK)


def _fields(metadata: str | None, mark: str) -> dict[str, Any] | None:
    """The JSON of a pipeline's commit with this mark, None for any other metadata."""
    if not metadata or mark not in metadata:
        return None
    try:
        # confluent-kafka includes the NUL at the end of the C string.
        fields = json.loads(metadata.rstrip("\0"))
    except (ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) and fields.get(mark) == 1 else None


def _count(value: object, below: int = 2**31) -> int | None:
    """A non-negative number (not a bool) that fits into a file entry."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < below:
        return value
    return None
