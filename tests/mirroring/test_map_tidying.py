"""What the target refuses of the entries that are deleted, without a cluster."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError

from ottla.client.topic_partition import TopicPartition
from ottla.messaging.librdkafka import LibrdkafkaError
from ottla.mirroring import map_tidying
from ottla.mirroring.clusters import Side
from ottla.mirroring.map_tidying import MapTidying
from ottla.mirroring.topic_plan import SourceTopic

PARTITION = TopicPartition("t", 0)


class FullProducer:
    """Its queue has place for one record, and the first one is refused."""

    def __init__(self, refuses: bool) -> None:
        self.refuses = refuses
        self.queued: list[Any] = []

    def produce(self, *_: Any, on_delivery: Any, **__: Any) -> None:
        if self.queued:
            raise BufferError
        self.queued.append(on_delivery)

    def poll(self, _within_s: float) -> int:
        error = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED) if self.refuses else None
        self.refuses = False
        for delivered in self.queued:
            delivered(error, None)
        self.queued.clear()
        return 0

    def flush(self, within_s: float) -> int:
        return self.poll(within_s)


@pytest.mark.parametrize("refuses", [False, True])
def test_the_first_refusal_is_not_forgotten(refuses: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def asked() -> Any:
        yield

    monkeypatch.setattr(map_tidying, "first_offsets", lambda _source, some: dict.fromkeys(some, 9))
    source: Any = SimpleNamespace(asked=asked)
    reader: Any = SimpleNamespace(
        maps={PARTITION: None},
        may_be_tidied=lambda _partition: True,
        forget_before=lambda _partition, _offset: [0, 3, 6],
    )
    tidying: Any = MapTidying(source, Side("h:1", {}, "target"), "map", reader)
    tidying._producer = FullProducer(refuses)
    mirrored = {"t": SourceTopic("t", None, 1)}
    if refuses:
        with pytest.raises(LibrdkafkaError, match="cannot tidy the offset map at the target"):
            tidying.tidy(mirrored)
    assert tidying.tidy(mirrored) == 3
