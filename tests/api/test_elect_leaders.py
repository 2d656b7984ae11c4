from typing import Any

import pytest

from ottla.controller.alter_partition import ProposedIsr
from ottla.controller.deletion import TopicToDelete
from ottla.controller.image import NO_LEADER
from ottla.controller.topics import NewTopic
from ottla.protocol.errors import ErrorCode

KEY = 43


@pytest.mark.parametrize("version", range(3))
async def test_every_version_returns_election_not_needed(cluster: Any, version: int) -> None:
    await cluster.create(NewTopic("t", 2, 1))
    build = cluster.request(KEY, version)
    topics = (
        build.TopicPartitions(topic="t", partitions=(0, 9)),
        build.TopicPartitions(topic="t", partitions=(1,)),
        build.TopicPartitions(topic="none", partitions=(0,)),
    )
    answer = await cluster.ask(build.ElectLeadersRequest(topic_partitions=topics))
    results = {
        (topic.topic, each.partition_id): each.error_code
        for topic in answer.replica_election_results
        for each in topic.partition_result
    }
    assert results == {
        ("t", 0): ErrorCode.election_not_needed,
        ("t", 1): ErrorCode.election_not_needed,
        ("t", 9): ErrorCode.unknown_topic_or_partition,
        ("none", 0): ErrorCode.unknown_topic_or_partition,
    }


@pytest.mark.parametrize("election_type", [0, 1])
async def test_for_all_partitions_the_reply_omits_those_that_need_no_election(
    cluster: Any, election_type: int
) -> None:
    await cluster.create(NewTopic("t", 2, 1))
    build = cluster.request(KEY, 2)
    answer = await cluster.ask(
        build.ElectLeadersRequest(election_type=election_type, topic_partitions=None)
    )
    assert answer.error_code is ErrorCode.none
    assert [each.partition_result for each in answer.replica_election_results] == [()]


async def test_an_unknown_kind_of_election_is_refused(cluster: Any) -> None:
    build = cluster.request(KEY, 2)
    answer = await cluster.ask(build.ElectLeadersRequest(election_type=7, topic_partitions=None))
    assert answer.error_code is ErrorCode.invalid_request


async def elect(cluster: Any, election_type: int) -> ErrorCode:
    build = cluster.request(KEY, 2)
    topics = (build.TopicPartitions(topic="t", partitions=(0,)),)
    answer = await cluster.ask(
        build.ElectLeadersRequest(election_type=election_type, topic_partitions=topics)
    )
    assert answer.error_code is ErrorCode.none
    code: ErrorCode = answer.replica_election_results[0].partition_result[0].error_code
    return code


class TestTwoBrokers:
    """Broker 2 is the preferred leader of t-0; broker 1, the controller, copies it."""

    @pytest.fixture(autouse=True)
    async def topic(self, cluster: Any) -> None:
        await cluster.others_are(2)
        await cluster.create(NewTopic("t", assignments=((0, (2, 1)),)))
        assert (self.state(cluster).leader, self.state(cluster).isr) == (2, (2, 1))

    def state(self, cluster: Any) -> Any:
        return cluster.image.topics["t"].partitions[0]

    async def propose(self, cluster: Any, leader: int, *isr: int) -> None:
        state, topic_id = self.state(cluster), cluster.image.topics["t"].topic_id
        epochs = tuple((each, cluster.image.brokers[each].epoch) for each in isr)
        proposal = ProposedIsr(topic_id, 0, state.leader_epoch, state.partition_epoch, epochs)
        epoch = cluster.image.brokers[leader].epoch
        (answer,) = await cluster.controller.alter_partitions(leader, epoch, [proposal])
        assert answer.code is ErrorCode.none

    async def test_the_preferred_leader_leads_once_it_is_in_sync_again(self, cluster: Any) -> None:
        await cluster.others_are()
        assert self.state(cluster).leader == 1
        assert await elect(cluster, 0) is ErrorCode.preferred_leader_not_available
        await cluster.others_are(2)
        assert await elect(cluster, 0) is ErrorCode.preferred_leader_not_available
        await self.propose(cluster, 1, 1, 2)
        epoch = self.state(cluster).leader_epoch
        assert await elect(cluster, 0) is ErrorCode.none
        assert (self.state(cluster).leader, self.state(cluster).leader_epoch) == (2, epoch + 1)
        assert await elect(cluster, 0) is ErrorCode.election_not_needed

    async def test_an_unclean_election_elects_an_out_of_sync_replica(self, cluster: Any) -> None:
        assert await elect(cluster, 1) is ErrorCode.election_not_needed
        await self.propose(cluster, 2, 2)
        await cluster.others_are()
        assert (self.state(cluster).leader, self.state(cluster).isr) == (NO_LEADER, (2,))
        assert await elect(cluster, 0) is ErrorCode.preferred_leader_not_available
        assert await elect(cluster, 1) is ErrorCode.none
        assert (self.state(cluster).leader, self.state(cluster).isr) == (1, (1,))

    async def test_without_a_live_replica_no_election_is_possible(self, cluster: Any) -> None:
        await cluster.controller.delete_topics([TopicToDelete("t")])
        await cluster.create(NewTopic("t", assignments=((0, (2,)),)))
        await cluster.others_are()
        assert await elect(cluster, 1) is ErrorCode.eligible_leaders_not_available

    async def test_a_deposed_controller_elects_none(self, cluster: Any) -> None:
        cluster.controller.resign("for the test")
        build = cluster.request(KEY, 2)
        answer = await cluster.ask(build.ElectLeadersRequest(topic_partitions=None))
        assert answer.error_code is ErrorCode.not_controller
