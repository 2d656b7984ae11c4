"""What confluent-kafka gives as the metadata of commits that another client has made."""

from __future__ import annotations

import random
from collections.abc import Callable

from ottla.client.admin.committed_offsets import commit_offsets
from ottla.client.client import Client
from ottla.client.topic_partition import TopicPartition
from ottla.pipelines.kafka.brokers import Brokers
from ottla.pipelines.kafka.committed import read_document
from ottla.pipelines.kafka.settings import read_settings
from ottla.pipelines.progress.group import Group
from ottla.pipelines.progress.offset_metadata import OffsetMetadata, read_offset_metadata
from ottla.pipelines.sinks.topic.task import Mark, mark_of, read_mark

COUNT = 200


def use_the_heap() -> None:
    """Leave bytes that are no UTF-8 in pieces of many sizes, and free them."""
    held = [bytes([random.randrange(128, 256)]) * size for size in range(1, 400) for _ in range(6)]
    random.shuffle(held)


def test_metadata_of_other_clients_is_read_to_its_end(
    bootstrap: str, new_topic: Callable[..., str]
) -> None:
    topic, group = new_topic(COUNT), "committed-by-others"
    texts = {
        number: OffsetMetadata("q" * (number + 1), "id", number).text() for number in range(COUNT)
    }
    offsets = {TopicPartition(topic, number): 0 for number in range(COUNT)}
    with Client(bootstrap) as client:
        named = {partition: texts[partition.partition] for partition in offsets}
        assert commit_offsets(client, group, offsets, named) == {}

    asked = Group({"bootstrap.servers": bootstrap}, group)
    for read in (asked.read_all, lambda: asked.read([(topic, number) for number in texts])):
        use_the_heap()
        found = read()
        assert [
            number
            for number, text in texts.items()
            if read_offset_metadata(found[topic, number].metadata) != read_offset_metadata(text)
        ] == []
    asked.close()


def test_marks_that_another_client_copied_are_read_to_their_end(
    bootstrap: str, new_topic: Callable[..., str]
) -> None:
    topic, group = new_topic(COUNT), "marks-copied-by-others"
    offsets = {TopicPartition(topic, number): 0 for number in range(COUNT)}
    with Client(bootstrap) as client:
        marks = {
            partition: mark_of(partition.partition, 1, "e" * partition.partition)
            for partition in offsets
        }
        assert commit_offsets(client, group, offsets, marks) == {}

    use_the_heap()
    found = Brokers(read_settings(bootstrap)).committed(group, topic, range(COUNT))
    assert sorted(map(read_mark, found)) == [Mark(n, "e" * n) for n in range(COUNT)]


def test_what_follows_a_document_means_nothing() -> None:
    assert read_document('{"a": 1}\x11\u00e9{') == {"a": 1}
    others = ("", "text", "[]", "1", '{"a": ', "[" * 100_000)
    assert [read_document(text) for text in others] == [None] * len(others)
