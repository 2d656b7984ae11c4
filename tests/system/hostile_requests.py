"""Requests of every type and version: well-formed with any content, and then spoiled."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any, Union, get_args, get_origin
from uuid import UUID

from ottla.protocol.frames import write_request
from ottla.protocol.messages import message_class
from ottla.protocol.versions import APIS, REFUSED_BELOW
from ottla.records.build import build_batch
from ottla.records.record import Record

INTEGERS = {
    "int8": 8, "int16": 16, "int32": 32, "int64": 64, "error_code": 16,
    "timedelta_i32": 32, "timedelta_i64": 64, "datetime_i64": 64,
}  # fmt: skip
TEXTS = ("", "t", "t", "t", "g", "g", "t-1", "..", "a b", "__consumer_offsets", "ü" * 300, "range")
COUNTS = (0, 1, 1, 1, 1, 2, 3)
MAX_MUTATIONS = 4


class RequestMaker:
    """Makes requests with any content that the fields can hold, often content with a meaning."""

    def __init__(self, random: Random, topic_ids: Sequence[UUID]) -> None:
        self.random = random
        self._topic_ids = topic_ids

    def of_every_version(self) -> Iterator[tuple[int, int, bytes]]:
        """Key, version and frame of one request of each type and version."""
        for api in APIS.values():
            first = max(api.min_version, REFUSED_BELOW.get(api.key, 0))
            for version in range(first, api.max_version + 1):
                request = self.message(message_class(api.key, version, "request"))
                yield api.key, version, write_request(request, self.random.getrandbits(31), "fuzz")

    def batch(self) -> bytes:
        """A record batch that a broker takes, of any compression."""
        random = self.random
        records = [
            Record(0, random.randrange(2**41), b"k" * random.randrange(3), random.randbytes(20))
            for _ in range(random.randrange(1, 5))
        ]
        idempotent: dict[str, Any] = {
            "producer_id": 7,
            "producer_epoch": 0,
            "base_sequence": random.randrange(5),
        }
        return build_batch(
            records,
            compression=random.randrange(5),
            **(idempotent if random.random() < 0.3 else {}),
        )

    def message(self, cls: Any) -> Any:
        """An instance of one of kio's message classes."""
        return cls(**{field.name: self._field(field) for field in dataclasses.fields(cls)})

    def _field(self, field: Any) -> Any:
        annotation, null_allowed = field.type, False
        if get_origin(annotation) in (Union, types.UnionType):
            null_allowed = True
            (annotation,) = (each for each in get_args(annotation) if each is not type(None))
        kafka_type = field.metadata.get("kafka_type")
        if null_allowed and self.random.random() < 0.3:
            return -1 if kafka_type == "datetime_i64" else None
        if get_origin(annotation) is tuple:
            element, count = get_args(annotation)[0], self.random.choice(COUNTS)
            return tuple(self._value(element, kafka_type) for _ in range(count))
        return self._value(annotation, kafka_type)

    def _value(self, annotation: Any, kafka_type: str | None) -> Any:
        random = self.random
        match kafka_type:
            case None:
                return self.message(annotation)
            case "string":
                return random.choice(TEXTS)
            case "records":
                return self.batch()
            case "bytes":
                return random.randbytes(random.randrange(40))
            case "bool":
                return random.random() < 0.5
            case "uuid":
                return random.choice((None, UUID(int=random.getrandbits(128)), *self._topic_ids))
            case "float64":
                return random.choice((0.0, -1.0, float("nan"), 1e300))
            case "uint16":
                return random.randrange(1 << 16)
        return self._integer(INTEGERS[kafka_type])

    def _integer(self, bits: int) -> int:
        top = 1 << (bits - 1)
        edges = (0, 0, 0, 0, 0, 1, 1, 2, 3, 10, -1, -1, -1, -2, -3, top - 1, -top)
        return self.random.choice((*edges, self.random.randrange(-top, top)))


def spoil(frame: bytes, random: Random) -> bytes:
    """The frame with some of its bytes changed; its size says the truth, most of the time."""
    body = bytearray(frame[4:])
    for _ in range(random.randrange(1, MAX_MUTATIONS + 1)):
        at = random.randrange(len(body) + 1)
        match random.randrange(5):
            case 0 if at < len(body):
                body[at] ^= 1 << random.randrange(8)
            case 1 if at < len(body):
                body[at] = random.choice((0, 1, 0x7F, 0x80, 0xFF))
            case 2:
                body[at:at] = random.randbytes(random.randrange(1, 9))
            case 3:
                del body[at : at + random.randrange(1, 9)]
            case 4:
                del body[at:]
    size = len(body) if random.random() < 0.95 else random.randrange(-(1 << 31), 1 << 31)
    return size.to_bytes(4, "big", signed=True) + bytes(body)
