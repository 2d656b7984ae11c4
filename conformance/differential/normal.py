"""Answers in a form in which two brokers can be compared.

Ids get names in the order in which they appear; times, wording, addresses and throttling are left
out. Records are decoded: offset, producer, sequence, value, and the kind of a marker.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from ottla.protocol.errors import ErrorCode
from ottla.protocol.internal_topics import OFFSETS_TOPIC
from ottla.records.control import read_end_marker
from ottla.records.header import iterate_headers
from ottla.records.iterate import iterate_records

LEFT_OUT: Final = frozenset(
    {
        "throttle_time",
        "error_message",
        "acknowledge_error_message",
        "batch_index_error_message",
        "node_endpoints",
        "host",
        "port",
    }
)
TIMES: Final = frozenset(
    {"log_append_time", "last_timestamp", "transaction_start_time", "timestamp"}
)
_NO_TIME: Final = (-1, None)


class Names:
    """Names for the ids that one broker has chosen."""

    def __init__(self) -> None:
        self._producers: dict[int, str] = {}
        self._topics: dict[UUID, str] = {}

    def producer(self, producer_id: int) -> str:
        """`P1` for the first one that is seen."""
        if producer_id < 0:
            return str(producer_id)
        return self._producers.setdefault(producer_id, f"P{len(self._producers) + 1}")

    def topic(self, topic_id: UUID) -> str:
        """`T1` for the first one that is seen."""
        return self._topics.setdefault(topic_id, f"T{len(self._topics) + 1}")

    def normal(self, value: Any, field: str = "") -> Any:
        """A message, or a part of one, as mappings, lists and plain values."""
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            content = {
                each.name: self.normal(getattr(value, each.name), each.name)
                for each in dataclasses.fields(value)
                if each.name not in LEFT_OUT
            }
            if content.get("topic") == OFFSETS_TOPIC:
                # They depend on the groups' names.
                content["partitions"] = len(content["partitions"])
            if content.get("aborted_transactions"):
                # Kafka bounds the list by its offset index: transactions may be in it that begin
                # after all that is returned.
                end = content["last_stable_offset"]
                content["aborted_transactions"] = [
                    each for each in content["aborted_transactions"] if each["first_offset"] < end
                ]
            return content
        if isinstance(value, tuple | list):
            parts = [self.normal(each, field) for each in value]
            # Neither broker promises an order.
            return sorted(parts, key=repr)
        if field == "records":
            return self._records(bytes(value or b""))
        if field == "producer_id":
            return self.producer(int(value))
        if field in TIMES:
            return value if value in _NO_TIME else "a time"
        if isinstance(value, UUID):
            return self.topic(value)
        if isinstance(value, int) and field.endswith("error_code"):
            return ErrorCode(value).name
        return value

    def _records(self, data: bytes) -> list[Mapping[str, Any]]:
        batches: list[Mapping[str, Any]] = []
        position = 0
        for header in iterate_headers(data):
            batch = data[position : position + header.size_bytes]
            position += header.size_bytes
            common = {
                "offset": header.base_offset,
                "producer": self.producer(header.producer_id),
                "epoch": header.producer_epoch,
                "sequence": header.base_sequence,
                "transactional": header.is_transactional,
            }
            if header.is_control:
                marker = read_end_marker(batch)
                batches.append({**common, "marker": None if marker is None else marker.type.name})
            else:
                values = [(each.value or b"").decode() for each in iterate_records(batch, header)]
                batches.append({**common, "values": values})
        return batches


def differences(one: Any, other: Any, path: str = "") -> list[str]:
    """Where two normalised answers differ: `path: one, other`."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        found = []
        for name in sorted({*one, *other}):
            where = f"{path}.{name}" if path else name
            if name not in one or name not in other:
                missing = "the second" if name in one else "the first"
                found.append(f"{where}: {missing} has none")
            else:
                found += differences(one[name], other[name], where)
        return found
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return [
            each
            for n, (mine, theirs) in pairs
            for each in differences(mine, theirs, f"{path}[{n}]")
        ]
    return [] if one == other else [f"{path}: {one!r}, {other!r}"]
