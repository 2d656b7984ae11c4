from pathlib import Path

import pytest

from ottla.pipelines.file.problem import FileError
from ottla.pipelines.file.read import read_text
from ottla.pipelines.spec.pipeline import TopicSinkSpec

SOURCE = """
[source]
bootstrap_servers = "localhost:9092"
topic = "flights"
[source.kafka]
"client.id" = "late"
[delivery]
checkpoint = "./checkpoints/late"
"""


def read(sink: str) -> TopicSinkSpec:
    (one,) = read_text(Path("/pipelines/late.toml"), SOURCE + sink, {}).pipelines
    assert one.sink.topic is not None
    assert one.sink.target == f"topic {one.sink.topic.topic}"
    return one.sink.topic


def problems(sink: str) -> list[str]:
    with pytest.raises(FileError) as raised:
        read(sink)
    return list(map(str, raised.value.problems))


def test_the_smallest_sink_is_on_the_cluster_of_the_source() -> None:
    found = read('[sink]\ntopic = "late"')
    assert found.kafka.for_librdkafka() == {
        "bootstrap.servers": "localhost:9092",
        "client.id": "late",
    }
    assert (found.key, found.value, found.headers, found.producer) == (None, None, None, ())


def test_every_field_is_read() -> None:
    found = read(
        """
        [sink]
        topic = "late"
        bootstrap_servers = ["one:9092", "two:9092"]
        key = "carrier"
        value = "struct(carrier, delay)"
        headers = "headers"
        [sink.kafka]
        "client.id" = "writer"
        "compression.type" = "zstd"
        """
    )
    assert found.kafka.for_librdkafka() == {
        "bootstrap.servers": "one:9092,two:9092",
        "client.id": "writer",
    }
    assert found.producer == (("compression.type", "zstd"),)
    assert (found.key, found.value) == ("carrier", "struct(carrier, delay)")
    assert found.headers == "headers"


def test_all_problems_are_found_at_once() -> None:
    found = problems(
        """
        max_rejects = 3
        [sink]
        topic = "no topic"
        kye = "carrier"
        partition_by = "carrier"
        [sink.kafka]
        "group.id" = "mine"
        """
    )
    assert len(found) == 5
    text = "\n".join(found)
    assert "sink.topic: 'no topic' is no topic's name" in text
    assert "sink.kye: there is no such field; did you mean 'key'?" in text
    assert "sink.partition_by: is for tables" in text
    assert "sink.kafka: kafka= cannot take group.id" in text
    assert "delivery.max_rejects: is for tables" in text
