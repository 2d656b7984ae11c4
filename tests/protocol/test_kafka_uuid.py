"""Ids as Kafka writes them."""

from random import Random
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.protocol.kafka_uuid import random_uuid, uuid_from_text, uuid_text


def test_ids_are_unique_and_never_start_with_a_dash() -> None:
    random = Random(7)
    found = [random_uuid(random) for _ in range(2_000)]
    assert len(set(found)) == len(found)
    assert {each.version for each in found} == {4}
    assert {len(uuid_text(each)) for each in found} == {22}
    assert not any(uuid_text(each).startswith("-") for each in found)


def test_a_seed_gives_the_same_ids() -> None:
    assert random_uuid(Random(7)) == random_uuid(Random(7))


def test_the_text_is_parsed_back() -> None:
    found = UUID("0b7d8bd8-6b9b-4d1f-8a43-7f6f2a1f0c11")
    assert uuid_text(found) == "C32L2GubTR-KQ39vKh8MEQ"
    assert uuid_from_text(uuid_text(found)) == found
    with pytest.raises(ValueError):
        uuid_from_text("short")


@given(st.uuids())
def test_every_id_round_trips(value: UUID) -> None:
    text = uuid_text(value)
    assert len(text) == 22
    assert uuid_from_text(text) == value
