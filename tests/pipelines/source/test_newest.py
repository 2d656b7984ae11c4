"""The newest records of a topic, parsed without Spark."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ottla.pipelines.kafka.brokers import TopicState, look_up
from ottla.pipelines.kafka.settings import KafkaSettings
from ottla.pipelines.source.judge import Sample
from ottla.pipelines.source.newest import newest_ranges, parse_newest

SCHEMA = "id BIGINT NOT NULL"


def state(**held: tuple[int, int]) -> TopicState:
    numbers = {int(name[1:]): offsets for name, offsets in held.items()}
    return TopicState(
        "t",
        "id",
        {number: first for number, (first, _) in numbers.items()},
        {number: end for number, (_, end) in numbers.items()},
    )


@pytest.mark.parametrize(
    ("held", "first"),
    [
        ({}, {}),
        ({"p0": (5, 5)}, {}),
        ({"p0": (0, 7)}, {0: 0}),
        ({"p0": (10, 400)}, {0: 300}),
        ({"p0": (0, 400), "p1": (0, 400)}, {0: 350, 1: 350}),
        ({"p0": (0, 400), "p1": (3, 13), "p2": (9, 9)}, {0: 310, 1: 3}),
    ],
)
def test_the_last_records_of_each_partition(
    held: dict[str, tuple[int, int]], first: dict[int, int]
) -> None:
    asked = state(**held)
    assert newest_ranges(asked) == (first, {number: asked.latest[number] for number in first})


def test_of_more_partitions_than_records_some_are_read() -> None:
    first, _ = newest_ranges(state(**{f"p{number}": (0, 9) for number in range(300)}))
    assert len(first) == 100


def test_plain_text_keys_beside_a_schema_of_objects(
    bootstrap: str, new_topic: Callable[..., str], produce: Callable[..., None]
) -> None:
    name, kafka = new_topic(), KafkaSettings(bootstrap)
    produce(name, [(f"N{number}", '{"id": 1}') for number in range(150)])

    def parsed(schema: str | None, key_schema: str | None) -> Sample | str:
        return parse_newest(kafka, look_up(kafka, [name]).topics[name], schema, key_schema)

    wrong, right = parsed(SCHEMA, "tail STRING"), parsed(SCHEMA, "string")
    assert isinstance(wrong, Sample)
    assert isinstance(right, Sample)
    reason = "key is not a JSON object of the schema"
    assert (wrong.records, wrong.parsed, wrong.reasons) == (100, 0, ((reason, 100),))
    assert (right.records, right.parsed, right.reasons) == (100, 100, ())
    assert parsed("registry", None) == "the schema is in a registry"
    assert parsed("id BIGNIT", None) == "BIGNIT is no type; did you mean BIGINT?"


def test_an_empty_topic(bootstrap: str, new_topic: Callable[..., str]) -> None:
    name, kafka = new_topic(), KafkaSettings(bootstrap)
    sample = parse_newest(kafka, look_up(kafka, [name]).topics[name], SCHEMA, None)
    assert isinstance(sample, Sample)
    assert (sample.records, sample.parsed) == (0, 0)
