"""A record of each partition by which a query knows its log again.

Brokers that lost records (an unclean election, a loss of power) or that were set back to a backup
give the offsets of these to new ones. Spark reads by offsets alone, without leader epochs
(KIP-320), and would leave the new ones out. They have later timestamps: so a checkpoint keeps the
first record with the newest timestamp of each partition, and asks for it again.

`<checkpoint>/ottla-landmarks.json`, one JSON object:

    {"version": 1, "topics": {"<name>": {"id": "<topic id>",
     "records": {"<partition>": [<offset>, <timestamp in ms>]}}}}

Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from ottla.pipelines.checkpoint.document import Document

FILE: Final = "ottla-landmarks.json"

Landmarks: TypeAlias = "Mapping[int, tuple[int, int]]"
"""Offset and timestamp of a record, by partition."""


@dataclass(frozen=True, slots=True)
class Known:
    """The landmarks of a topic with this id."""

    topic_id: str
    records: dict[int, tuple[int, int]]


def replaced_from(known: Landmarks, now: Landmarks) -> dict[int, int]:
    """Return from where on partitions are known to have other records.

    `now`: the first record that has the timestamp of the known one or a later one. Up to the known
    record there was none with a later timestamp. Where the record is gone (retention, compaction),
    nothing is known.
    """
    return {
        partition: now[partition][0]
        for partition, (offset, timestamp) in known.items()
        if partition in now and now[partition][0] <= offset and now[partition][1] > timestamp
    }


def _build(topics: dict[str, Known]) -> dict[str, Any]:
    return {
        "topics": {
            name: {"id": one.topic_id, "records": one.records} for name, one in topics.items()
        }
    }


def _parse(document: dict[str, Any]) -> dict[str, Known]:
    return {
        str(name): Known(
            str(one["id"]),
            {int(part): (int(at), int(ms)) for part, (at, ms) in one["records"].items()},
        )
        for name, one in document["topics"].items()
    }


LANDMARKS: Final = Document(
    FILE,
    _parse,
    _build,
    if_damaged="Delete it: then it is not noticed if the brokers have lost records until now",
)
