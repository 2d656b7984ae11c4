"""Scripts of requests about streams groups (KIP-1071)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from conformance.differential.group_settings import set_group_settings
from conformance.differential.session import Session
from ottla.protocol.errors import ErrorCode

STREAMS_KEYS: Final = (88, 89, 93)
_HEARTBEAT, _DESCRIBE, _UPDATE_DESCRIPTION = 88, 89, 93
AT_ONCE: Final = {
    "streams.initial.rebalance.delay.ms": "0",
    "streams.assignment.interval.ms": "0",
}


def configure(session: Session, settings: Mapping[str, str] = AT_ONCE) -> None:
    """Gives group `g` these settings, and waits until they are in force."""
    set_group_settings(session, {"g": settings})


def topology(
    session: Session,
    *sources: str,
    changelog: str | None = None,
    partitions: int = 0,
    epoch: int = 0,
    regex: str | None = None,
    version: int = 1,
) -> Any:
    """One subtopology."""
    build = session.build(_HEARTBEAT, version)
    infos: tuple[Any, ...] = ()
    if changelog is not None:
        name = session.name(changelog) if changelog.isalnum() else changelog
        config = build.KeyValue(key="cleanup.policy", value="compact")
        infos = (build.TopicInfo(name=name, partitions=partitions, topic_configs=(config,)),)
    subtopology = build.Subtopology(
        subtopology_id="0",
        source_topics=tuple(session.name(each) if each.isalnum() else each for each in sources),
        source_topic_regex=() if regex is None else (regex,),
        state_changelog_topics=infos,
        repartition_source_topics=(),
        copartition_groups=(),
    )
    return build.Topology(epoch=epoch, subtopologies=(subtopology,))


def tasks(session: Session, *partitions: int, version: int = 1) -> Any:
    build = session.build(_HEARTBEAT, version)
    return (build.TaskIds(subtopology_id="0", partitions=partitions),) if partitions else ()


def beat(
    session: Session,
    member: str,
    epoch: int,
    owned: Sequence[int] | None = None,
    standby: Sequence[int] = (),
    *,
    label: str = "",
    version: int = 1,
    **fields: Any,
) -> Any:
    """A member's heartbeat; one that joins says all, another one what it has, or nothing (None)."""
    build = session.build(_HEARTBEAT, version)
    joins = epoch == 0
    says = joins or owned is not None
    active = tasks(session, *(owned or ()), version=version) if says else None
    request = {
        "group_id": session.name("g"),
        "member_id": member,
        "member_epoch": epoch,
        "rebalance_timeout": 60_000 if joins else -1,
        "topology": topology(session, "t", version=version) if joins else None,
        "active_tasks": active,
        "standby_tasks": None if active is None else tasks(session, *standby, version=version),
        "warmup_tasks": None if active is None else (),
        "process_id": f"process-{member}" if joins else None,
    }
    said = build.StreamsGroupHeartbeatRequest(**(request | fields))
    return session.ask(f"streams heartbeat of {member!r} in {epoch} {label}", said)


def describe(session: Session, *groups: str, version: int = 1) -> None:
    build = session.build(_DESCRIBE, version)
    for group in groups or ("g",):
        request = build.StreamsGroupDescribeRequest(group_ids=(session.name(group),))
        session.ask(f"describe {group}", request)


def listed(session: Session) -> None:
    for state in ("stable", "empty", "not_ready"):
        request = session.build(16, 5).ListGroupsRequest(
            states_filter=(state,), types_filter=("streams",)
        )
        answer = session.ask(f"list {state}", request, is_recorded=False)
        own = [each for each in answer.groups if each.group_id == session.name("g")]
        session.record(f"listed {state}", own)


def streams_versions(session: Session) -> None:
    session.versions(STREAMS_KEYS)


def a_streams_member(session: Session) -> None:
    session.create("t")
    configure(session)
    beat(session, "a", 0)
    listed(session)
    beat(session, "a", 2, (0, 1))
    beat(session, "a", 2)
    beat(session, "a", 1, (0, 1))
    beat(session, "a", 7, (0, 1))
    beat(session, "b", 2, ())
    describe(session, "g", "h")
    beat(session, "a", 2, (0, 1, 2))
    beat(session, "a", 0)
    beat(session, "a", 2, (0, 1), rack_id="r")
    describe(session)
    beat(session, "a", -1)
    beat(session, "a", -1)
    describe(session)
    listed(session)
    beat(session, "a", 0)
    beat(session, "a", 0, topology=topology(session, "t", epoch=1), label="of another topology")
    beat(session, "a", -1)
    request = session.build(42, 2).DeleteGroupsRequest(groups_names=(session.name("g"),))
    session.ask("delete", request)
    describe(session)


def streams_requests_of_version_0(session: Session) -> None:
    """Without what KIP-1331 added."""
    session.create("t")
    configure(session)
    beat(session, "a", 0, version=0)
    beat(session, "b", 0, version=0)
    beat(session, "a", 2, (0, 1), version=0)
    beat(session, "a", 2, (0,), version=0)
    beat(session, "b", 3, (), version=0)
    describe(session, "g", "h", version=0)
    beat(session, "b", 7, (1,), version=0)
    beat(session, "a", -1, version=0)
    describe(session, version=0)


def streams_topology_descriptions(session: Session) -> None:
    """Apache Kafka takes them with a plug-in only: see `known`."""
    session.create("t")
    configure(session)
    beat(session, "a", 0)
    build = session.build(_UPDATE_DESCRIPTION, 0)
    source = build.TopologyDescriptionNode(
        name="source", node_type=1, source_topics=(session.name("t"),), stores=(), successors=()
    )
    said = build.TopologyDescription(
        subtopologies=(build.TopologyDescriptionSubtopology(subtopology_id="0", nodes=(source,)),),
        global_stores=(),
    )
    for group, member, epoch in (
        ("g", "a", 0), ("g", "a", 1), ("g", "b", 0), ("h", "a", 0), ("g", "", 0),
    ):  # fmt: skip
        request = build.StreamsGroupTopologyDescriptionUpdateRequest(
            group_id=session.name(group),
            member_id=member,
            topology_epoch=epoch,
            topology_description=said,
        )
        session.ask(f"topology of {group} by {member!r} in {epoch}", request)
    beat(session, "a", 2, (0, 1))
    describe(session)


def streams_members_share(session: Session) -> None:
    """Tasks go from one to the other once they are given up."""
    session.create("t", 4)
    configure(session)
    beat(session, "a", 0)
    beat(session, "b", 0)
    beat(session, "a", 2, (0, 1, 2, 3))
    beat(session, "b", 3, ())
    beat(session, "a", 2, (0, 1, 2))
    beat(session, "a", 2, (0, 1))
    beat(session, "b", 3, ())
    describe(session)
    beat(session, "c", 0)
    beat(session, "b", 3, (2, 3))
    beat(session, "b", 3, (2,))
    beat(session, "c", 4, ())
    beat(session, "a", 3, (0, 1))
    describe(session)
    beat(session, "c", -1)
    beat(session, "b", 4, (2,))
    describe(session)


def streams_standby_tasks(session: Session) -> None:
    session.create("t")
    session.create("c")
    configure(session, AT_ONCE | {"streams.num.standby.replicas": "1"})
    stateful = topology(session, "t", changelog="c")
    beat(session, "a", 0, topology=stateful)
    beat(session, "b", 0, topology=stateful)
    beat(session, "a", 2, (0, 1))
    beat(session, "a", 2, (0,))
    beat(session, "b", 3, (), (0,))
    beat(session, "a", 3, (0,))
    beat(session, "b", 3, (1,), (0,))
    describe(session)
    beat(session, "b", -1)
    beat(session, "a", 3, (0,), (1,))
    beat(session, "a", 3, (0,))
    beat(session, "a", 4, (0,))
    describe(session)


def streams_static_members(session: Session) -> None:
    """One that leaves for a while, comes back under another id, and two that claim one place."""
    session.create("t", 4)
    configure(session)
    beat(session, "a", 0, instance_id="one", process_id="p")
    beat(session, "b", 0, instance_id="two", process_id="q")
    beat(session, "a", 2, (0, 1), instance_id="one")
    beat(session, "a", 2, (0, 1))
    beat(session, "b", 3, (), instance_id="two")
    # Not before: see `known.CLAIMED`.
    beat(session, "c", 0, instance_id="one", process_id="p", label="claims it")
    beat(session, "a", 0, instance_id="one", process_id="p", label="again")
    beat(session, "a", 3, (0, 1), instance_id="one")
    beat(session, "c", 3, (), instance_id="two")
    beat(session, "c", 3, (), instance_id="three")
    beat(session, "a", -2, instance_id="two")
    beat(session, "a", -2, instance_id="three")
    beat(session, "a", -2, instance_id="one")
    describe(session)
    beat(session, "a", 3, (0, 1), instance_id="one")
    beat(session, "d", 0, instance_id="one", process_id="p", label="takes its place")
    beat(session, "a", 3, (0, 1), instance_id="one")
    beat(session, "a", 3, (0, 1))
    beat(session, "a", -2, instance_id="one")
    beat(session, "a", -1, instance_id="one")
    beat(session, "d", -2, instance_id="one")
    beat(session, "d", 0, instance_id="one", process_id="r", label="of another process")
    beat(session, "b", 3, (2, 3), instance_id="two")
    describe(session)
    beat(session, "b", -2, instance_id="two")
    beat(session, "b", 0, instance_id="two", process_id="q", rack_id="r", label="of a rack")
    beat(session, "b", 0, instance_id="two", process_id="q", label="again")
    beat(session, "e", 0, process_id="s")
    beat(session, "e", 0, process_id="s", instance_id="three", label="is static now")
    beat(session, "e", 0, process_id="s", instance_id="four", label="by another id")
    describe(session)
    beat(session, "e", -2, instance_id="four")
    beat(session, "f", 0, process_id="s", instance_id="three", label="of the first id")
    beat(session, "e", 0, process_id="s", instance_id="four", label="comes back itself")
    describe(session)
    beat(session, "d", -1, instance_id="one")
    beat(session, "b", -1)
    describe(session)


def a_claimed_place(session: Session) -> None:
    """Another process claims the place of a static member that has tasks to give up."""
    session.create("t", 4)
    configure(session)
    beat(session, "a", 0, instance_id="one")
    beat(session, "b", 0, process_id="q")
    beat(session, "c", 0, instance_id="one", label="claims it")
    beat(session, "a", 2, (0, 1), instance_id="one")
    describe(session)


def streams_task_offsets(session: Session) -> None:
    """How far members are with their tasks, and who gets the standby task then."""
    session.create("t")
    session.create("c")
    configure(session, AT_ONCE | {"streams.num.standby.replicas": "1"})
    stateful = topology(session, "t", changelog="c")

    def at(*offsets: int) -> Any:
        build = session.build(_HEARTBEAT, 1)
        return tuple(
            build.TaskOffset(subtopology_id="0", partition=number, offset=offset)
            for number, offset in enumerate(offsets)
        )

    beat(session, "a", 0, topology=stateful)
    beat(session, "b", 0, topology=stateful, task_offsets=at(3))
    beat(session, "a", 2, (0, 1), task_offsets=at(5, 6), task_end_offsets=at(7, 8, 9))
    beat(session, "a", 2, (0,), (1,), task_offsets=at(1) + at(2))
    beat(session, "a", 2, (0,), (1,), task_offsets=())
    beat(session, "b", 3, (), (0,))
    beat(session, "b", 3, (1,), (0,), task_end_offsets=at(4))
    describe(session)
    beat(session, "c", 0, topology=stateful, task_offsets=at(50, 60))
    beat(session, "b", -1)
    beat(session, "a", 4, (0,), (1,))
    beat(session, "c", 4, (), ())
    describe(session)


def streams_topics_that_are_missing(session: Session) -> None:
    configure(session)
    beat(session, "a", 0, topology=topology(session, "t", changelog="c"))
    describe(session)
    listed(session)
    session.create("t")
    beat(session, "a", 2, ())

    def has_tasks() -> bool:
        build = session.build(_HEARTBEAT, 1)
        request = build.StreamsGroupHeartbeatRequest(
            group_id=session.name("g"), member_id="a", member_epoch=0, rebalance_timeout=60_000,
            topology=topology(session, "t", changelog="c"), process_id="process-a",
            active_tasks=(), standby_tasks=(), warmup_tasks=(),
        )  # fmt: skip
        answer = session.ask("joins again", request, is_recorded=False)
        return answer.error_code is ErrorCode.none and bool(answer.active_tasks)

    session.wait("the changelog is made", has_tasks)
    build = session.build(32, 4)
    asked = build.DescribeConfigsResource(
        resource_type=2, resource_name=session.name("c"), configuration_keys=("cleanup.policy",)
    )
    session.ask("the changelog", build.DescribeConfigsRequest(resources=(asked,)))


def streams_requests_that_say_too_little(session: Session) -> None:
    session.create("t")
    configure(session)
    build = session.build(_HEARTBEAT, 1)
    tag = build.KeyValue(key="zone", value="a")
    for fields in (
        {"member_id": ""},
        {"group_id": ""},
        {"group_id": " "},
        {"rack_id": ""},
        {"instance_id": ""},
        {"rebalance_timeout": -1},
        {"topology": None},
        {"active_tasks": None},
        {"active_tasks": tasks(session, 0)},
        {"standby_tasks": tasks(session, 0)},
        {"warmup_tasks": tasks(session, 0)},
        {"topology": topology(session, "t", regex="t.*")},
        {"topology": topology(session, "t", changelog="c", partitions=3)},
        {"topology": topology(session, "__consumer_offsets")},
        {"topology": topology(session, "t", changelog="a b")},
        {"topology": topology(session)},
        {"client_tags": (tag,), "rack_id": "r"},
    ):
        beat(session, "a", 0, label=str(sorted(fields)), **fields)
        describe(session)
    for epoch in (-2, -3):
        beat(session, "a", epoch)
    beat(session, "", 1)
    beat(session, "", -1)


def streams_groups_and_others(session: Session) -> None:
    session.create("t")
    configure(session)
    beat(session, "a", 0)
    group = session.name("g")
    classic = session.build(15, 6).DescribeGroupsRequest(groups=(group,))
    session.ask("describe as classic", classic)
    consumers = session.build(68, 1).ConsumerGroupHeartbeatRequest(
        group_id=group, member_id="m", member_epoch=0, rebalance_timeout=1_000,
        subscribed_topic_names=(session.name("t"),), topic_partitions=(),
    )  # fmt: skip
    session.ask("a consumer's heartbeat", consumers)
    session.ask(
        "a classic heartbeat",
        session.build(12, 4).HeartbeatRequest(group_id=group, generation_id=2, member_id="a"),
    )
    build = session.build(11, 9)
    protocol = build.JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\0" + b"\xff" * 4)
    join = build.JoinGroupRequest(
        group_id=group, session_timeout=10_000, rebalance_timeout=10_000, member_id="",
        protocol_type="consumer", protocols=(protocol,),
    )  # fmt: skip
    session.ask("a classic join", join)
    delete = session.build(42, 2).DeleteGroupsRequest(groups_names=(group,))
    session.ask("delete", delete)
    build = session.build(47, 0)
    partition = build.OffsetDeleteRequestPartition(partition_index=0)
    topic = build.OffsetDeleteRequestTopic(name=session.name("t"), partitions=(partition,))
    deletion = build.OffsetDeleteRequest(group_id=group, topics=(topic,))
    session.ask("delete offsets", deletion)
    for version in (8, 9):
        for member, epoch in (("a", 2), ("a", 1), ("a", 3), ("b", 2), ("", -1), ("a", -1)):
            _commit(session, member, epoch, version)
    beat(session, "a", -1)
    session.ask("delete offsets of an empty group", deletion)
    _commit(session, "", -1, 9)
    session.ask("delete an empty group", delete)
    describe(session)


def _commit(session: Session, member: str, epoch: int, version: int) -> None:
    build = session.build(8, version)
    partition = build.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=7, committed_metadata=""
    )
    topic = build.OffsetCommitRequestTopic(name=session.name("t"), partitions=(partition,))
    request = build.OffsetCommitRequest(
        group_id=session.name("g"),
        generation_id_or_member_epoch=epoch,
        member_id=member,
        topics=(topic,),
    )
    session.ask(f"commit {version} of {member!r} in {epoch}", request)


STREAMS_SCRIPTS: Final = (
    streams_versions,
    a_streams_member,
    streams_requests_of_version_0,
    streams_topology_descriptions,
    streams_members_share,
    streams_standby_tasks,
    streams_static_members,
    a_claimed_place,
    streams_task_offsets,
    streams_topics_that_are_missing,
    streams_requests_that_say_too_little,
    streams_groups_and_others,
)
