from typing import Any

from ottla.protocol.errors import ErrorCode

from .conftest import TOPIC_ID


async def test_a_group(api: Any) -> None:
    await api.share_beat(rack_id="r")
    await api.begin_share_states("g", {TOPIC_ID: (0, 1)})
    await api.share_beat(member_epoch=2)
    answer = await api.ask("share_group_describe", 1, group_ids=("g", "g"))
    (group,) = answer.groups
    assert (group.error_code, group.group_id, group.group_state) == (ErrorCode.none, "g", "Stable")
    assert (group.group_epoch, group.assignment_epoch, group.assignor_name) == (3, 3, "simple")
    assert group.authorized_operations == -(2**31)
    (member,) = group.members
    assert (member.member_id, member.rack_id, member.member_epoch) == ("m", "r", 3)
    assert (member.client_id, member.client_host) == ("client", "/127.0.0.1")
    assert member.subscribed_topic_names == ("t",)
    (topic,) = member.assignment.topic_partitions
    assert (topic.topic_id, topic.topic_name, topic.partitions) == (TOPIC_ID, "t", (0, 1))


async def test_authorized_operations_are_told_on_request(api: Any) -> None:
    await api.share_beat()
    answer = await api.ask(
        "share_group_describe", 1, group_ids=("g",), include_authorized_operations=True
    )
    assert answer.groups[0].authorized_operations == sum(1 << each for each in (3, 6, 8, 10, 11))


async def test_groups_that_are_none(api: Any) -> None:
    await api.stable()
    answer = await api.ask("share_group_describe", 1, group_ids=("g", "h", ""))
    found = [(each.error_code, each.error_message) for each in answer.groups]
    not_found = ErrorCode.group_id_not_found
    assert found == [
        (not_found, "Group g is not a share group."),
        (not_found, "Group h not found."),
        (ErrorCode.invalid_group_id, None),
    ]


async def test_other_requests_about_such_a_group(api: Any) -> None:
    await api.share_beat()
    (group,) = (await api.ask("describe_groups", 6, groups=("g",))).groups
    assert group.error_code is ErrorCode.group_id_not_found
    assert group.error_message == "Group g is not a classic group."
    (listed,) = (await api.ask("list_groups", 5, types_filter=("Share",))).groups
    assert (listed.group_id, listed.group_type, listed.group_state, listed.protocol_type) == (
        "g", "share", "Stable", "share",
    )  # fmt: skip
    assert (await api.ask("list_groups", 5, types_filter=("consumer",))).groups == ()
    (refused,) = (await api.ask("delete_groups", 2, groups_names=("g",))).results
    assert refused.error_code is ErrorCode.non_empty_group
    assert (await api.join(9)).error_code is ErrorCode.inconsistent_group_protocol
