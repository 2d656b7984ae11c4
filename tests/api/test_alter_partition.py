from typing import Any
from uuid import UUID

import pytest

from ottla.controller.topics import NewTopic
from ottla.protocol.errors import ErrorCode

KEY = 56


class Asker:
    """Broker 1 leads both partitions of t, alone."""

    def __init__(self, cluster: Any, version: int = 3) -> None:
        self.cluster, self.version = cluster, version
        self.build = cluster.request(KEY, version)
        self.topic_id = cluster.image.topics["t"].topic_id
        self.epoch = cluster.image.brokers[1].epoch

    def partition(self, index: int = 0, isr: tuple[int, ...] = (1,), **but: int) -> Any:
        epochs = (
            tuple(
                self.build.BrokerState(broker_id=broker, broker_epoch=self.epoch) for broker in isr
            )
            if self.version >= 3
            else ()
        )
        given = {"new_isr_with_epochs": epochs} if self.version >= 3 else {"new_isr": isr}
        known = {"leader_epoch": 0, "partition_epoch": 0}
        return self.build.PartitionData(partition_index=index, **given, **(known | but))

    async def ask(self, *partitions: Any, topic_id: UUID | None = None, **but: int) -> Any:
        topic = self.build.TopicData(topic_id=topic_id or self.topic_id, partitions=partitions)
        known = {"broker_id": 1, "broker_epoch": self.epoch}
        return await self.cluster.ask(
            self.build.AlterPartitionRequest(topics=(topic,), **(known | but))
        )


@pytest.mark.parametrize("version", [2, 3])
async def test_the_current_state_is_returned(cluster: Any, version: int) -> None:
    await cluster.create(NewTopic("t", 2, 1))
    asker = Asker(cluster, version)
    answer = await asker.ask(asker.partition(0), asker.partition(1))
    assert answer.error_code is ErrorCode.none
    (topic,) = answer.topics
    assert topic.topic_id == asker.topic_id
    for index, each in enumerate(topic.partitions):
        assert (each.partition_index, each.error_code) == (index, ErrorCode.none)
        assert (each.leader_id, each.leader_epoch, tuple(each.isr)) == (1, 0, (1,))
        assert each.partition_epoch == cluster.image.topics["t"].partitions[index].partition_epoch


async def test_each_partition_has_its_own_error(cluster: Any) -> None:
    await cluster.create(NewTopic("t", 2, 1))
    asker = Asker(cluster)
    answer = await asker.ask(
        asker.partition(0, isr=(1, 2)), asker.partition(1, partition_epoch=5), asker.partition(7)
    )
    assert [each.error_code for each in answer.topics[0].partitions] == [
        ErrorCode.invalid_request,
        ErrorCode.not_controller,
        ErrorCode.unknown_topic_or_partition,
    ]
    answer = await asker.ask(asker.partition(), topic_id=UUID(int=7))
    assert answer.topics[0].partitions[0].error_code is ErrorCode.unknown_topic_id


async def test_the_sender_must_be_registered_in_its_current_incarnation(cluster: Any) -> None:
    await cluster.create(NewTopic("t", 1, 1))
    asker = Asker(cluster)
    for but, code in (
        ({"broker_id": 9}, ErrorCode.broker_id_not_registered),
        ({"broker_epoch": asker.epoch - 1}, ErrorCode.stale_broker_epoch),
    ):
        answer = await asker.ask(asker.partition(), **but)
        assert (answer.error_code, tuple(answer.topics)) == (code, ())


async def test_only_the_controller_decides(cluster: Any) -> None:
    await cluster.create(NewTopic("t", 1, 1))
    asker = Asker(cluster)
    cluster.controller.resign("for the test")
    assert (await asker.ask(asker.partition())).error_code is ErrorCode.not_controller
