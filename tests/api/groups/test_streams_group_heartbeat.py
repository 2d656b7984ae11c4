from types import SimpleNamespace
from typing import Any

import pytest

from ottla.api.streams_group_heartbeat import MAX_OWNED, MAX_TOLD_CHARACTERS
from ottla.api.streams_topology import checked_names
from ottla.controller.image import FeaturesChanged
from ottla.groups.streams.large import MAX_AT_ONCE, MAX_TOPOLOGY_NAMES
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.runtime.slices import Slices

QUIET = {"topology": None, "rebalance_timeout": -1}


def tasks(answer: Any) -> dict[str, tuple[int, ...]]:
    return {each.subtopology_id: each.partitions for each in answer.active_tasks}


async def test_a_member_joins_works_and_leaves(api: Any) -> None:
    tag = api.struct("KeyValue", 88, 0, key="zone", value="a")
    endpoint = api.struct("Endpoint", 88, 0, host="h", port=65_535)
    answer = await api.streams_beat(rack_id="r", client_tags=(tag,), user_endpoint=endpoint)
    assert (answer.error_code, answer.error_message) == (ErrorCode.none, None)
    assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval) == ("m", 1, 5_000)
    assert tasks(answer) == {}
    (status,) = answer.status
    assert (status.status_code, "initial rebalance delay" in status.status_detail) == (5, True)
    await api.streams_assigned()
    working = await api.streams_beat(member_epoch=1, **QUIET)
    assert (working.member_epoch, tasks(working), working.status) == (2, {"0": (0, 1)}, ())
    assert (working.standby_tasks, working.warmup_tasks) == ((), ())
    (at,) = working.partitions_by_user_endpoint
    assert (at.user_endpoint.host, at.user_endpoint.port) == ("h", 65_535)
    assert [(each.topic, each.partitions) for each in at.active_partitions] == [("t", (0, 1))]
    epoch = working.endpoint_information_epoch
    owned = (api.struct("TaskIds", 88, 0, subtopology_id="0", partitions=(0, 1)),)
    same = await api.streams_beat(
        member_epoch=2, endpoint_information_epoch=epoch, active_tasks=owned, **QUIET
    )
    assert (same.active_tasks, same.partitions_by_user_endpoint) == (None, None)
    member = api.shard.streams.groups["g"].members["m"]
    assert (member.rack_id, member.client_id, member.client_host) == ("r", "client", "/127.0.0.1")
    assert (member.client_tags, member.process_id) == ((("zone", "a"),), "p")
    left = await api.streams_beat(member_epoch=-1, **QUIET)
    assert (left.error_code, left.member_epoch, left.status) == (ErrorCode.none, -1, ())
    assert api.shard.streams.groups["g"].members == {}


async def test_missing_topics_are_created(api: Any) -> None:
    topology = api.topology("t", changelogs=["c"])
    answer = await api.streams_beat(topology=topology)
    assert [each.status_detail for each in answer.status if each.status_code == 3] == [
        "Internal topics are missing: c"
    ]
    (topic,) = api.created
    assert (topic.name, topic.partitions, topic.factor, topic.configs) == ("c", 2, 2, (("k", "v"),))
    api.creation_errors = [(name, "no room") for name in "cdef"]
    again = await api.streams_beat(member_epoch=1, **QUIET)
    assert [each.status_detail for each in again.status if each.status_code == 3] == [
        "Internal topics are missing: c;"
        " Creation failed: c (no room), d (no room), e (no room) and 1 more."
    ]
    api.image.apply(api.topic_created("c", 2))
    ready = await api.streams_beat(member_epoch=1, **QUIET)
    assert [each.status_code for each in ready.status] == [5]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"group_id": ""}, "GroupId can't be empty."),
        ({"member_id": " "}, "MemberId can't be empty."),
        ({"rack_id": " "}, "RackId can't be empty."),
        ({"instance_id": " "}, "InstanceId can't be empty."),
        ({"topology": None}, "Topology must be non-null when (re-)joining."),
        ({"rebalance_timeout": -1}, "RebalanceTimeoutMs must be provided in first request."),
        ({"member_epoch": 1}, "Topology can only be provided when (re-)joining."),
        ({"member_epoch": -2}, "InstanceId can't be null."),
        ({"member_epoch": -3}, "MemberEpoch is -3, but must be greater than or equal to -2."),
        ({"standby_tasks": None}, "If one task-type is non-null, all must be non-null."),
    ],
)
async def test_what_a_request_must_say(api: Any, fields: dict[str, Any], message: str) -> None:
    answer = await api.streams_beat(**fields)
    assert (answer.error_code, answer.error_message) == (ErrorCode.invalid_request, message)


async def test_tasks_of_one_that_joins(api: Any) -> None:
    owned = (api.struct("TaskIds", 88, 0, subtopology_id="0", partitions=(0,)),)
    for name in ("active", "standby", "warmup"):
        answer = await api.streams_beat(**{f"{name}_tasks": owned})
        assert answer.error_message == (
            f"{name.capitalize()}Tasks must be empty when (re-)joining."
        )


@pytest.mark.parametrize(
    ("names", "numbers"), [(MAX_TOPOLOGY_NAMES + 1, 0), (1, MAX_OWNED + 1), (11, MAX_OWNED // 10)]
)
async def test_a_member_may_not_have_more_than_there_can_be(
    api: Any, names: int, numbers: int
) -> None:
    owned = tuple(
        api.struct("TaskIds", 88, 0, subtopology_id=str(name), partitions=tuple(range(numbers)))
        for name in range(names)
    )
    answer = await api.streams_beat(member_epoch=1, standby_tasks=owned, **QUIET)
    assert answer.error_code is ErrorCode.invalid_request
    assert "100,000 tasks of 10,000 subtopologies" in answer.error_message


async def test_a_static_member_comes_back(api: Any) -> None:
    await api.streams_beat(instance_id="i")
    await api.streams_assigned()
    working = await api.streams_beat(member_epoch=1, instance_id="i", **QUIET)
    taken = await api.streams_beat(member_id="n", instance_id="i")
    assert (taken.error_code, taken.member_id) == (ErrorCode.unreleased_instance_id, "")
    away = await api.streams_beat(member_epoch=-2, instance_id="i", **QUIET)
    assert (away.error_code, away.member_id, away.member_epoch) == (ErrorCode.none, "m", -2)
    back = await api.streams_beat(member_id="n", instance_id="i")
    assert (back.member_id, back.member_epoch) == ("n", working.member_epoch)
    assert tasks(back) == tasks(working) == {"0": (0, 1)}
    fenced = await api.streams_beat(member_epoch=2, instance_id="i", **QUIET)
    assert fenced.error_code is ErrorCode.fenced_instance_id


async def test_offsets_of_tasks(api: Any) -> None:
    def at(*offsets: tuple[str, int, int]) -> Any:
        names = ("subtopology_id", "partition", "offset")
        return tuple(
            api.struct("TaskOffset", 88, 1, **dict(zip(names, each, strict=True)))
            for each in offsets
        )

    said = await api.streams_beat(1, task_offsets=at(("0", 1, 7), ("0", 0, 2)))
    assert (said.task_offset_interval, said.acceptable_recovery_lag) == (60_000, 10_000)
    former = await api.streams_beat(0, task_end_offsets=at(("0", 1, 9)))
    assert (former.task_offset_interval, former.acceptable_recovery_lag) == (60_000, 0)
    (group,) = (await api.ask("streams_group_describe", 1, group_ids=("g",))).groups
    (member,) = group.members
    assert [(each.partition, each.offset) for each in member.task_offsets] == [(0, 2), (1, 7)]
    assert [(each.partition, each.offset) for each in member.task_end_offsets] == [(1, 9)]
    assert group.assignor_name == "sticky"
    twice = await api.streams_beat(1, task_offsets=at(("0", 1, 7), ("0", 1, 7)))
    assert twice.error_message == (
        "Task offsets contain a duplicate entry for subtopology 0 and partition 1."
    )
    many = await api.streams_beat(1, task_offsets=at(*(("0", n, 0) for n in range(10_001))))
    assert many.error_message == "Task offsets are 10001; at most 10000 are allowed."
    long = await api.streams_beat(1, task_offsets=at(*(("n" * n, 0, 0) for n in range(1_000))))
    assert (
        long.error_message == "Task offsets name subtopologies with more than 100,000 characters."
    )


async def test_tags(api: Any) -> None:
    def tagged(*names: str) -> Any:
        return tuple(api.struct("KeyValue", 88, 0, key=name, value="") for name in names)

    twice = await api.streams_beat(client_tags=tagged("a", "a"))
    assert twice.error_message == "ClientTags have the same name twice."
    many = await api.streams_beat(client_tags=tagged(*map(str, range(101))))
    assert many.error_message == "ClientTags are 101; at most 100 are allowed."


@pytest.mark.parametrize(
    ("topics", "message"),
    [
        (("__consumer_offsets", "t"), "Use of Kafka internal topics __consumer_offsets in a"),
        (("t", "a b", "c d"), "Topic names a b,c d are not valid topic names."),
        (tuple(f"t{n}" for n in range(10_001)), "The topology names more than 10,000"),
    ],
)
async def test_what_a_topology_may_name(api: Any, topics: tuple[str, ...], message: str) -> None:
    answer = await api.streams_beat(topology=api.topology(*topics))
    assert answer.error_code is ErrorCode.streams_invalid_topology
    assert answer.error_message.startswith(message)


async def test_empty_copartition_groups_count(api: Any) -> None:
    topology = api.topology("t")
    nothing = api.struct("CopartitionGroup", 88, 0)
    topology.subtopologies[0].copartition_groups = (nothing,) * MAX_TOPOLOGY_NAMES
    answer = await api.streams_beat(topology=topology)
    assert answer.error_message.startswith("The topology names more than 10,000")


async def test_what_names_too_much_is_not_looked_into() -> None:
    """To look at the names of a request of 8 MB would take a second."""
    unread = [object()] * (MAX_TOPOLOGY_NAMES + 1)
    subtopology = SimpleNamespace(
        source_topics=(),
        source_topic_regex=(),
        repartition_sink_topics=(),
        repartition_source_topics=(),
        state_changelog_topics=unread,
        copartition_groups=(),
    )
    with pytest.raises(ApiError, match="names more than 10,000"):
        await checked_names(SimpleNamespace(subtopologies=(subtopology,)), Slices())


async def test_no_text_is_longer_than_clients_can_read(api: Any) -> None:
    names = tuple(f"{n} {'x' * 200}" for n in range(1_000))
    answer = await api.streams_beat(topology=api.topology(*names))
    assert answer.error_code is ErrorCode.streams_invalid_topology
    assert len(answer.error_message) == MAX_TOLD_CHARACTERS + 3
    api.creation_errors = [("c", "x" * 100_000)]
    answer = await api.streams_beat(topology=api.topology("t", changelogs=["c"]))
    assert max(len(each.status_detail) for each in answer.status) == MAX_TOLD_CHARACTERS + 3


async def test_a_cluster_without_streams_groups(api: Any) -> None:
    api.image.apply(FeaturesChanged({}, 1))
    answer = await api.streams_beat()
    assert answer.error_code is ErrorCode.unsupported_version
    assert "streams.version" in answer.error_message
    described = await api.ask("streams_group_describe", 0, group_ids=("g",))
    assert described.groups[0].error_code is ErrorCode.unsupported_version


async def test_groups_of_other_types_are_refused(api: Any) -> None:
    await api.share_beat()
    answer = await api.streams_beat()
    assert (answer.error_code, answer.error_message) == (
        ErrorCode.group_id_not_found,
        "Group g is not a streams group.",
    )


async def test_a_streams_group_refuses_other_members(api: Any) -> None:
    await api.streams_beat()
    assert (await api.beat()).error_message == "Group g is not a consumer group."
    assert (await api.share_beat()).error_message == "Group g is not a share group."
    assert (await api.join(9)).error_code is ErrorCode.inconsistent_group_protocol
    described = await api.ask("describe_groups", 6, groups=("g",))
    assert described.groups[0].error_message == "Group g is not a classic group."


async def test_a_group_that_only_has_offsets_becomes_one(api: Any) -> None:
    await api.commit(9, 7)
    assert (await api.streams_beat()).error_code is ErrorCode.none
    index = api.groups.partition_for("g")
    api.runtime.elected(index)
    alive = await api.streams_beat(member_epoch=1, **QUIET)
    assert alive.error_code is ErrorCode.none
    assert "g" not in api.shard.groups


async def test_an_empty_one_becomes_classic(api: Any) -> None:
    await api.streams_beat()
    await api.streams_beat(member_epoch=-1, **QUIET)
    assert (await api.join(9)).error_code is ErrorCode.member_id_required
    assert (list(api.shard.groups), list(api.shard.streams.groups)) == (["g"], [])


async def test_a_large_group_decides_in_a_thread(api: Any) -> None:
    api.image.apply(api.topic_created("large", 3 * MAX_AT_ONCE))
    assert (await api.streams_beat(topology=api.topology("large"))).error_code is ErrorCode.none
    assert api.shard.streams.groups["g"].soft.is_delayed
    await api.streams_assigned()
    answer = await api.streams_beat(member_epoch=1, **QUIET)
    assert len(tasks(answer)["0"]) == 3 * MAX_AT_ONCE
    assert api.turns >= 1
