from typing import Any

import pytest

from ottla.protocol.errors import ErrorCode

from .conftest import TOPIC_ID


@pytest.mark.parametrize("version", range(2))
async def test_a_group(api: Any, version: int) -> None:
    await api.beat(instance_id="i", rack_id="r")
    answer = await api.ask("consumer_group_describe", version, group_ids=("g", "g"))
    (group,) = answer.groups
    assert (group.error_code, group.group_id, group.group_state) == (ErrorCode.none, "g", "Stable")
    assert (group.group_epoch, group.assignment_epoch, group.assignor_name) == (2, 2, "uniform")
    assert group.authorized_operations == -(2**31)
    (member,) = group.members
    assert (member.member_id, member.instance_id, member.rack_id) == ("m", "i", "r")
    assert (member.member_epoch, member.client_id) == (2, "client")
    assert (member.client_host, member.subscribed_topic_names) == ("/127.0.0.1", ("t",))
    assert member.subscribed_topic_regex == ""
    for assignment in (member.assignment, member.target_assignment):
        (topic,) = assignment.topic_partitions
        assert (topic.topic_id, topic.topic_name, topic.partitions) == (TOPIC_ID, "t", (0, 1))
    if version >= 1:
        assert member.member_type == 1


async def test_authorized_operations_are_told_on_request(api: Any) -> None:
    await api.beat()
    answer = await api.ask(
        "consumer_group_describe", 1, group_ids=("g",), include_authorized_operations=True
    )
    assert answer.groups[0].authorized_operations == sum(1 << each for each in (3, 6, 8, 10, 11))


async def test_groups_that_are_none(api: Any) -> None:
    await api.stable()
    answer = await api.ask("consumer_group_describe", 1, group_ids=("g", "h", ""))
    found = [(each.error_code, each.error_message) for each in answer.groups]
    not_found = ErrorCode.group_id_not_found
    assert found == [
        (not_found, "Group g is not a consumer group."),
        (not_found, "Group h not found."),
        (ErrorCode.invalid_group_id, None),
    ]


async def test_other_requests_about_such_a_group(api: Any) -> None:
    epoch = (await api.beat()).member_epoch
    described = await api.ask("describe_groups", 6, groups=("g",))
    (group,) = described.groups
    assert group.error_code is ErrorCode.group_id_not_found
    assert group.error_message == "Group g is not a classic group."
    (older,) = (await api.ask("describe_groups", 5, groups=("g",))).groups
    assert (older.error_code, older.group_state) == (ErrorCode.none, "Dead")
    (listed,) = (await api.ask("list_groups", 5, types_filter=("Consumer",))).groups
    assert (listed.group_id, listed.group_type, listed.group_state) == ("g", "consumer", "Stable")
    assert (await api.ask("list_groups", 5, types_filter=("classic",))).groups == ()
    error = (await api.ask("delete_groups", 2, groups_names=("g",))).results[0].error_code
    assert error is ErrorCode.non_empty_group
    joined = await api.join(9, protocol_type="connect")
    assert joined.error_code is ErrorCode.inconsistent_group_protocol
    left = await api.ask(
        "leave_group", 5, group_id="g",
        members=(api.struct("MemberIdentity", 13, 5, member_id="other"),),
    )  # fmt: skip
    assert left.members[0].error_code is ErrorCode.unknown_member_id
    beaten = await api.ask("heartbeat", 4, group_id="g", generation_id=epoch, member_id="m")
    assert beaten.error_code is ErrorCode.unknown_member_id


async def test_commits_and_fetches_say_the_member_s_epoch(api: Any) -> None:
    epoch = (await api.beat()).member_epoch
    member = {"member_id": "m", "generation_id_or_member_epoch": epoch}
    codes = []
    for version, changes in (
        (9, {}),
        (10, {}),
        (10, {"generation_id_or_member_epoch": epoch + 1}),
        (9, {"member_id": "other"}),
        (8, {}),
    ):
        answer = await api.commit(version, 5, **(member | changes))
        codes.append(answer.topics[0].partitions[0].error_code)
    assert codes == [
        ErrorCode.none,
        ErrorCode.none,
        ErrorCode.stale_member_epoch,
        ErrorCode.unknown_member_id,
        ErrorCode.unsupported_version,
    ]
    for fields, code in (
        ({"member_id": "m", "member_epoch": epoch}, ErrorCode.none),
        ({}, ErrorCode.none),
        ({"member_id": "m", "member_epoch": epoch - 1}, ErrorCode.stale_member_epoch),
        ({"member_id": "n", "member_epoch": epoch}, ErrorCode.unknown_member_id),
    ):
        for version in (9, 10):
            topic = api.struct(
                "OffsetFetchRequestTopics", 9, version,
                name="t", topic_id=TOPIC_ID, partition_indexes=(0,),
            )  # fmt: skip
            for topics in ((topic,), None):
                group = api.struct(
                    "OffsetFetchRequestGroup", 9, version, group_id="g", topics=topics, **fields
                )
                answer = await api.ask("offset_fetch", version, groups=(group,))
                assert answer.groups[0].error_code is code
                if code is ErrorCode.none:
                    assert answer.groups[0].topics[0].partitions[0].committed_offset == 5
