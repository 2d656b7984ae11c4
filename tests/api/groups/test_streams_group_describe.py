from typing import Any

import pytest

from ottla.protocol.errors import ErrorCode


async def test_a_group(api: Any) -> None:
    endpoint = api.struct("Endpoint", 88, 0, host="h", port=1)
    tag = api.struct("KeyValue", 88, 0, key="zone", value="a")
    topology = api.topology("t", changelogs=["c"])
    api.image.apply(api.topic_created("c", 2))
    await api.streams_beat(topology=topology, user_endpoint=endpoint, client_tags=(tag,))
    await api.streams_assigned()
    await api.streams_beat(member_epoch=1, topology=None)
    (group,) = (await api.ask("streams_group_describe", 0, group_ids=("g", "g"))).groups
    assert (group.error_code, group.group_id, group.group_state) == (ErrorCode.none, "g", "Stable")
    assert (group.group_epoch, group.assignment_epoch) == (2, 2)
    assert group.authorized_operations == -(2**31)
    assert group.topology.epoch == 0
    (subtopology,) = group.topology.subtopologies
    assert (subtopology.subtopology_id, subtopology.source_topics) == ("0", ("t",))
    (changelog,) = subtopology.state_changelog_topics
    assert (changelog.name, changelog.partitions, changelog.replication_factor) == ("c", 2, 2)
    assert [(each.key, each.value) for each in changelog.topic_configs] == [("k", "v")]
    (member,) = group.members
    assert (member.member_id, member.member_epoch, member.process_id) == ("m", 2, "p")
    assert (member.user_endpoint.host, member.client_tags[0].key) == ("h", "zone")
    for assignment in (member.assignment, member.target_assignment):
        (active,) = assignment.active_tasks
        assert (active.subtopology_id, active.partitions) == ("0", (0, 1))
    assert not member.is_classic


async def test_authorized_operations_are_told_on_request(api: Any) -> None:
    await api.streams_beat()
    answer = await api.ask(
        "streams_group_describe", 0, group_ids=("g",), include_authorized_operations=True
    )
    assert answer.groups[0].authorized_operations == sum(1 << each for each in (3, 6, 8, 10, 11))


async def test_groups_that_are_none(api: Any) -> None:
    await api.stable()
    answer = await api.ask("streams_group_describe", 0, group_ids=("g", "h", ""))
    found = [(each.error_code, each.error_message) for each in answer.groups]
    not_found = ErrorCode.group_id_not_found
    assert found == [
        (not_found, "Group g is not a streams group."),
        (not_found, "Group h not found."),
        (ErrorCode.invalid_group_id, None),
    ]


async def test_lists_and_deletes(api: Any) -> None:
    await api.streams_beat()
    for states, types in ((("stable",), ()), ((), ("streams",)), (("assigning",), ())):
        listed = await api.ask("list_groups", 5, states_filter=states, types_filter=types)
        found = [(g.group_id, g.protocol_type, g.group_type, g.group_state) for g in listed.groups]
        assert found == (
            [] if states == ("stable",) else [("g", "streams", "streams", "Assigning")]
        )
    await api.streams_beat(member_id="n", topology=api.topology("t", epoch=0))
    deleted = await api.ask("delete_groups", 2, groups_names=("g",))
    assert deleted.results[0].error_code is ErrorCode.non_empty_group
    await api.streams_beat(member_id="n", member_epoch=-1, topology=None)
    await api.streams_beat(member_epoch=-1, topology=None)
    deleted = await api.ask("delete_groups", 2, groups_names=("g",))
    assert deleted.results[0].error_code is ErrorCode.none
    assert api.shard.streams.groups == {}


async def test_commits(api: Any) -> None:
    await api.streams_beat()
    await api.streams_assigned()
    await api.streams_beat(member_epoch=1, topology=None)

    async def codes(version: int, **fields: Any) -> list[ErrorCode]:
        answer = await api.commit(version, 7, **fields)
        return [each.error_code for each in answer.topics[0].partitions]

    mine = {"member_id": "m", "generation_id_or_member_epoch": 2}
    assert (await codes(9, **mine))[0] is ErrorCode.none
    late = mine | {"generation_id_or_member_epoch": 1}
    assert (await codes(9, **late))[0] is ErrorCode.stale_member_epoch
    early = mine | {"generation_id_or_member_epoch": 3}
    assert (await codes(9, **early))[0] is ErrorCode.stale_member_epoch
    assert (await codes(8, **mine))[0] is ErrorCode.unsupported_version
    assert (await codes(9))[0] is ErrorCode.unknown_member_id
    group = api.struct("OffsetFetchRequestGroup", 9, 9, group_id="g", topics=None)
    fetched = await api.ask("offset_fetch", 9, groups=(group,))
    assert fetched.groups[0].topics[0].partitions[0].committed_offset >= 0
    stale = api.struct(
        "OffsetFetchRequestGroup", 9, 9, group_id="g", topics=None, member_id="m", member_epoch=1
    )
    fetched = await api.ask("offset_fetch", 9, groups=(stale,))
    assert fetched.groups[0].error_code is ErrorCode.stale_member_epoch


@pytest.mark.parametrize("state", ["not_ready", "NotReady"])
async def test_groups_that_are_not_ready_are_found(api: Any, state: str) -> None:
    await api.streams_beat(topology=api.topology("missing"))
    listed = await api.ask("list_groups", 5, states_filter=(state,), types_filter=())
    assert [(each.group_id, each.group_state) for each in listed.groups] == [("g", "NotReady")]
