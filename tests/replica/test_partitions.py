from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.replica.partitions import Partitions

ID = UUID(int=5)


def partition(topic: str = "t", index: int = 0, topic_id: UUID = ID) -> Any:
    return SimpleNamespace(topic=topic, index=index, topic_id=topic_id)


@pytest.fixture
def partitions() -> Partitions:
    made = Partitions()
    for index in range(3):
        made.add(partition(index=index))
    made.add(partition("u", 0, UUID(int=6)))
    return made


def test_found_by_name_and_by_id(partitions: Partitions) -> None:
    assert partitions.find("t", 1) is partitions.find(ID, 1) is partitions.get("t", 1)
    assert partitions.topics() == ["t", "u"]
    assert [each.index for each in partitions.of_topic("t")] == [0, 1, 2]
    assert len(partitions) == len(list(partitions)) == 4


@pytest.mark.parametrize(
    ("topic", "index", "code"),
    [
        ("none", 0, ErrorCode.unknown_topic_or_partition),
        ("t", 3, ErrorCode.unknown_topic_or_partition),
        ("t", -1, ErrorCode.unknown_topic_or_partition),
        (UUID(int=9), 0, ErrorCode.unknown_topic_id),
        (None, 0, ErrorCode.unknown_topic_id),
        (ID, 3, ErrorCode.unknown_topic_or_partition),
    ],
)
def test_unknown_partitions(
    partitions: Partitions, topic: Any, index: int, code: ErrorCode
) -> None:
    with pytest.raises(ApiError) as refused:
        partitions.find(topic, index)
    assert refused.value.code is code


def test_a_removed_topic_is_gone_by_name_and_by_id(partitions: Partitions) -> None:
    assert [each.index for each in partitions.of_topic("t")] == [0, 1, 2]
    for each in partitions.of_topic("t"):
        partitions.remove(each)
    assert partitions.get("t", 0) is None
    with pytest.raises(ApiError):
        partitions.find(ID, 0)
    assert partitions.of_topic("t") == []
    assert len(partitions) == 1


def test_a_topic_is_removed_with_its_last_partition() -> None:
    topic_id = UUID(int=9)
    partitions = Partitions()
    both: list[Any] = [SimpleNamespace(topic="u", index=each, topic_id=topic_id) for each in (0, 1)]
    for each in both:
        partitions.add(each)
    partitions.remove(both[0])
    assert partitions.get("u", 0) is None
    assert partitions.find(topic_id, 1) is both[1]
    partitions.remove(both[1])
    assert partitions.topics() == []
    with pytest.raises(ApiError):
        partitions.find(topic_id, 1)


@pytest.mark.parametrize(
    ("topic", "index", "code"),
    [
        ("elsewhere", 1, ErrorCode.not_leader_or_follower),
        (UUID(int=8), 1, ErrorCode.not_leader_or_follower),
        ("elsewhere", 2, ErrorCode.unknown_topic_or_partition),
        (UUID(int=8), -1, ErrorCode.unknown_topic_or_partition),
        ("none", 0, ErrorCode.unknown_topic_or_partition),
        (UUID(int=9), 0, ErrorCode.unknown_topic_id),
    ],
)
def test_partitions_on_other_brokers(topic: Any, index: int, code: ErrorCode) -> None:
    known: Any = SimpleNamespace(partitions=(None, None))
    image: Any = SimpleNamespace(
        topic={"elsewhere": known}.get, topic_by_id={UUID(int=8): known}.get
    )
    with pytest.raises(ApiError) as raised:
        Partitions(lambda: image).find(topic, index)
    assert raised.value.code is code
