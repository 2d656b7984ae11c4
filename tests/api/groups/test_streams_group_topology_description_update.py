from typing import Any

import pytest

from ottla.controller.image import FeaturesChanged
from ottla.protocol.errors import ErrorCode

UPDATE = "streams_group_topology_description_update"


def node(api: Any, name: str, kind: int, **fields: Any) -> Any:
    return api.struct("TopologyDescriptionNode", 93, 0, name=name, node_type=kind, **fields)


def description(api: Any, *nodes: Any, stores: tuple[Any, ...] = ()) -> Any:
    part = api.struct("TopologyDescriptionSubtopology", 93, 0, subtopology_id="0", nodes=nodes)
    return api.struct("TopologyDescription", 93, 0, subtopologies=(part,), global_stores=stores)


async def update(api: Any, said: Any, **fields: Any) -> Any:
    request = {"group_id": "g", "member_id": "m", "topology_epoch": 0, "topology_description": said}
    return await api.ask(UPDATE, 0, **(request | fields))


async def described(api: Any, *, is_asked: bool = True) -> Any:
    answer = await api.ask(
        "streams_group_describe", 1, group_ids=("g",), include_topology_description=is_asked
    )
    return answer.groups[0]


async def test_a_description_is_asked_for_and_shown(api: Any) -> None:
    former = await api.streams_beat(0)
    assert former.error_code is ErrorCode.none
    joined = await api.streams_beat(1)
    assert joined.topology_description_required
    group = await described(api)
    assert (group.topology_description_status, group.topology_description) == (1, None)
    source = node(api, "in", 1, source_topics=("t", "t"), stores=("x",), successors=("count",))
    count = node(api, "count", 2, sink_topic="x", stores=("c",), successors=("out",))
    sink = node(api, "out", 3, sink_topic="r", source_topics=("x",))
    store = api.struct("TopologyDescriptionGlobalStore", 93, 0, source=source, processor=count)
    answer = await update(api, description(api, source, count, sink, stores=(store,)))
    assert (answer.error_code, answer.error_message) == (ErrorCode.none, None)
    assert not (await api.streams_beat(1)).topology_description_required
    group = await described(api)
    assert group.topology_description_status == 3
    (part,) = group.topology_description.subtopologies
    # Each node has only what its kind has.
    assert [
        (each.name, each.node_type, each.source_topics, each.sink_topic, each.stores)
        for each in part.nodes
    ] == [("in", 1, ("t",), None, ()), ("count", 2, (), None, ("c",)), ("out", 3, (), "r", ())]
    (shown,) = group.topology_description.global_stores
    assert (shown.source.name, shown.processor.successors) == ("in", ("out",))
    group = await described(api, is_asked=False)
    assert (group.topology_description_status, group.topology_description) == (0, None)


@pytest.mark.parametrize(
    ("fields", "code", "message"),
    [
        ({"member_id": " "}, ErrorCode.invalid_request, "MemberId can't be empty."),
        ({"group_id": ""}, ErrorCode.invalid_request, "GroupId can't be empty."),
        ({"group_id": "h"}, ErrorCode.group_id_not_found, "Group h not found."),
        ({"member_id": "n"}, ErrorCode.unknown_member_id, "Member n is not a member of group g."),
    ],
)
async def test_refused(api: Any, fields: dict[str, Any], code: ErrorCode, message: str) -> None:
    await api.streams_beat(1)
    answer = await update(api, description(api), **fields)
    assert answer.error_code is code
    assert message in answer.error_message


async def test_what_a_description_may_be(api: Any) -> None:
    await api.streams_beat(1)
    wrong = await update(api, description(api, node(api, "n", 4)))
    assert (wrong.error_code, wrong.error_message) == (
        ErrorCode.invalid_request,
        "Unknown topology node type: 4",
    )
    sink = node(api, "n", 3)
    store = api.struct("TopologyDescriptionGlobalStore", 93, 0, source=sink, processor=sink)
    wrong = await update(api, description(api, stores=(store,)))
    assert wrong.error_message == "Global store must be composed of a source and a processor node."


@pytest.mark.parametrize(
    "fields",
    [
        {"stores": tuple(f"{n}{'n' * 30_000}" for n in range(9)), "node_type": 2},
        {"successors": tuple(map(str, range(10_001)))},
        {"source_topics": tuple(f"{n}" + "\u20ac" * 10_000 for n in range(9))},
    ],
    ids=["characters", "names", "bytes"],
)
async def test_one_that_is_too_large(api: Any, fields: dict[str, Any]) -> None:
    await api.streams_beat(1)
    one = {"name": "n", "node_type": 1} | fields
    answer = await update(
        api, description(api, api.struct("TopologyDescriptionNode", 93, 0, **one))
    )
    assert answer.error_code is ErrorCode.streams_topology_description_update_failed
    assert answer.error_message == (
        "The description is too large; it may have 10,000 names and 262,144 bytes."
    )
    assert api.shard.streams.groups["g"].undescribable_epoch == 0
    many = await update(api, description(api, *(node(api, "n", 1) for _ in range(10_001))))
    assert many.error_code is ErrorCode.streams_topology_description_update_failed


async def test_a_cluster_without_streams_groups(api: Any) -> None:
    api.image.apply(FeaturesChanged({}, 1))
    answer = await update(api, description(api))
    assert answer.error_code is ErrorCode.unsupported_version
