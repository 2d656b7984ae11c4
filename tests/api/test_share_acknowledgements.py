"""What a request says of a partition in two places is not lost."""

from types import SimpleNamespace
from typing import Any
from uuid import UUID

from ottla.api.share_acknowledgements import acknowledgements
from ottla.replica.share_session import TopicPartition
from ottla.runtime.slices import Slices
from ottla.share.share_partition import AckBatch

TOPIC = UUID(int=7)


def named(index: int, first: int, last: int, *types: int) -> Any:
    batch = SimpleNamespace(first_offset=first, last_offset=last, acknowledge_types=types)
    part = SimpleNamespace(partition_index=index, acknowledgement_batches=(batch,))
    return SimpleNamespace(topic_id=TOPIC, partitions=(part,))


async def test_a_partition_that_is_named_twice() -> None:
    topics = (named(0, 0, 4, 1), named(0, 5, 9, 2), named(1, 0, 0, 1), named(1, 1, 1, 9))
    said, refused = await acknowledgements(
        SimpleNamespace(topics=topics),
        renews=False,
        context=SimpleNamespace(version=1),  # type: ignore[arg-type]
        slices=Slices(),
    )
    assert said == {TopicPartition(TOPIC, 0): [AckBatch(0, 4, (1,)), AckBatch(5, 9, (2,))]}
    assert list(refused) == [TopicPartition(TOPIC, 1)]
