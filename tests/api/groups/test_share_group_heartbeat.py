from typing import Any

import pytest

from ottla.controller.image import FeaturesChanged
from ottla.groups.share.requests import HeartbeatRequest
from ottla.protocol.errors import ErrorCode

from .conftest import TOPIC_ID

QUIET = {"subscribed_topic_names": None}


async def test_a_member_joins_and_leaves(api: Any) -> None:
    answer = await api.share_beat(rack_id="r")
    assert (answer.error_code, answer.error_message) == (ErrorCode.none, None)
    assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval) == ("m", 2, 5_000)
    assert answer.assignment.topic_partitions == ()
    alive = await api.share_beat(member_epoch=2, **QUIET)
    assert (alive.error_code, alive.member_epoch, alive.assignment) == (ErrorCode.none, 2, None)
    member = api.shard.share.groups["g"].members["m"]
    assert (member.rack_id, member.client_id, member.client_host) == ("r", "client", "/127.0.0.1")
    left = await api.share_beat(member_epoch=-1, **QUIET)
    assert (left.error_code, left.member_epoch) == (ErrorCode.none, -1)
    assert api.shard.share.groups["g"].members == {}


async def test_a_member_reads_what_has_state(api: Any) -> None:
    await api.share_beat()
    await api.begin_share_states("g", {TOPIC_ID: (0, 1)})
    answer = await api.share_beat(member_epoch=2, **QUIET)
    (topic,) = answer.assignment.topic_partitions
    assert (answer.member_epoch, topic.topic_id, topic.partitions) == (3, TOPIC_ID, (0, 1))
    fenced = await api.share_beat(member_epoch=9)
    assert fenced.error_code is ErrorCode.fenced_member_epoch
    assert "greater member epoch (9)" in fenced.error_message


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"group_id": ""}, "GroupId can't be empty."),
        ({"member_id": ""}, "Invalid member id in the request."),
        ({"member_id": "m" * 37}, "Invalid member id in the request."),
        ({"rack_id": " "}, "RackId can't be empty."),
        (QUIET, "SubscribedTopicNames must be set in first request."),
        ({"subscribed_topic_names": ()}, "SubscribedTopicNames must be set in first request."),
        ({"member_epoch": -2}, "MemberEpoch is invalid."),
        ({"subscribed_topic_names": tuple(map(str, range(10_001)))}, "has 10,001 names"),
    ],
)
async def test_what_a_request_must_say(api: Any, fields: dict[str, Any], message: str) -> None:
    answer = await api.share_beat(**fields)
    assert answer.error_code is ErrorCode.invalid_request
    assert message in answer.error_message


async def test_a_cluster_without_share_groups(api: Any) -> None:
    api.image.apply(FeaturesChanged({}, 1))
    answer = await api.share_beat()
    assert answer.error_code is ErrorCode.unsupported_version
    assert "share.version" in answer.error_message
    described = await api.ask("share_group_describe", 1, group_ids=("g",))
    assert described.groups[0].error_code is ErrorCode.unsupported_version


async def test_a_new_coordinator_knows_the_members(api: Any) -> None:
    assert (await api.share_beat()).member_epoch == 2
    index = api.groups.partition_for("g")
    api.runtime.elected(index)
    assert (await api.share_beat(member_epoch=2, **QUIET)).error_code is ErrorCode.none


async def test_many_partitions_are_told_in_turns(api: Any) -> None:
    api.image.apply(api.topic_created("large", 200_000))
    await api.share_beat(subscribed_topic_names=("large",))
    topic = api.image.topic("large")
    await api.begin_share_states("g", {topic.topic_id: range(200_000)})
    request = HeartbeatRequest("g", "m", 2, "client", "/127.0.0.1")
    assert (await api.groups.share.heartbeat(request)).epoch == 3
    answer = await api.share_beat(member_epoch=3, subscribed_topic_names=("large",))
    assert len(answer.assignment.topic_partitions[0].partitions) == 200_000
    assert api.turns >= 1
