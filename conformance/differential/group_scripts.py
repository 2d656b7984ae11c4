"""Scripts of requests about consumer groups of the newer protocol (KIP-848)."""

from __future__ import annotations

from typing import Any, Final

from conformance.differential.session import Session

GROUP_KEYS: Final = (8, 9, 11, 12, 13, 14, 15, 16, 42, 47, 68, 69)
_HEARTBEAT, _DESCRIBE, _COMMIT, _FETCH = 68, 69, 8, 9


def beat(session: Session, member: str, epoch: int, version: int = 1, **fields: Any) -> Any:
    """A member's heartbeat; one that joins says all, another one nothing more."""
    build = session.build(_HEARTBEAT, version)
    group = session.name(fields.pop("group", "g"))
    names = fields.pop("topics", ("t",) if epoch == 0 else None)
    owned = fields.pop("owned", () if epoch == 0 else None)
    label = f"heartbeat of {member!r} in {epoch} {fields or ''}"
    if owned is not None:
        owned = tuple(
            build.TopicPartitions(topic_id=session.id_of(topic), partitions=tuple(partitions))
            for topic, partitions in owned
        )
    request = {
        "group_id": group,
        "member_id": member,
        "member_epoch": epoch,
        "rebalance_timeout": 60_000 if epoch == 0 else -1,
        "subscribed_topic_names": None if names is None else tuple(map(session.name, names)),
        "topic_partitions": owned,
    }
    return session.ask(label, build.ConsumerGroupHeartbeatRequest(**(request | fields)))


def describe(session: Session, *groups: str, version: int = 1) -> None:
    build = session.build(_DESCRIBE, version)
    for group in groups:
        request = build.ConsumerGroupDescribeRequest(group_ids=(session.name(group),))
        session.ask(f"describe {group}", request)


def commit(session: Session, member: str, epoch: int, version: int = 9, group: str = "g") -> None:
    build = session.build(_COMMIT, version)
    partition = build.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=7, committed_metadata=""
    )
    topic = {"name": session.name("t")} if version < 10 else {"topic_id": session.id_of("t")}
    request = build.OffsetCommitRequest(
        group_id=session.name(group),
        generation_id_or_member_epoch=epoch,
        member_id=member,
        topics=(build.OffsetCommitRequestTopic(partitions=(partition,), **topic),),
    )
    session.ask(f"commit {version} of {member!r} in {epoch}", request)


def fetch_offsets(session: Session, member: str | None, epoch: int, version: int = 9) -> None:
    build = session.build(_FETCH, version)
    topic = {"name": session.name("t")} if version < 10 else {"topic_id": session.id_of("t")}
    group = build.OffsetFetchRequestGroup(
        group_id=session.name("g"),
        member_id=member,
        member_epoch=epoch,
        topics=(build.OffsetFetchRequestTopics(partition_indexes=(0,), **topic),),
    )
    request = build.OffsetFetchRequest(groups=(group,))
    session.ask(f"offsets {version} of {member!r} in {epoch}", request)


def group_versions(session: Session) -> None:
    session.versions(GROUP_KEYS)


def one_member(session: Session) -> None:
    session.create("t")
    beat(session, "a", 0)
    beat(session, "a", 2)
    beat(session, "a", 1, owned=())
    beat(session, "a", 1)
    beat(session, "a", 7)
    beat(session, "b", 2)
    describe(session, "g", "h")
    describe(session, "g", version=0)
    beat(session, "a", 0)
    beat(session, "a", 2, topics=("t", "missing"))
    describe(session, "g")
    beat(session, "a", 3, topics=())
    describe(session, "g")
    beat(session, "a", -1)
    beat(session, "a", -1)
    describe(session, "g")
    beat(session, "b", 0, group="never")
    beat(session, "b", 5, group="unknown")


def heartbeats_of_version_0(session: Session) -> None:
    """The broker draws the member's id where it says none; without regular expressions."""
    session.create("t")
    beat(session, "a", 0, version=0)
    beat(session, "a", 1, version=0)
    describe(session, "g", version=0)
    beat(session, "a", 7, version=0)
    beat(session, "a", 1, version=0, topics=("t", "missing"))
    beat(session, "a", 0, version=0, instance_id="i")
    beat(session, "a", -1, version=0)
    beat(session, "", 3, version=0)
    beat(session, "", -1, version=0)
    build = session.build(_HEARTBEAT, 0)
    request = build.ConsumerGroupHeartbeatRequest(
        group_id=session.name("g"), member_id="", member_epoch=0, rebalance_timeout=60_000,
        subscribed_topic_names=(session.name("t"),), topic_partitions=(),
    )  # fmt: skip
    answer = session.ask("heartbeat of a new member", request, is_recorded=False)
    length = len(answer.member_id or "")
    session.record("a new member", [answer.error_code, answer.member_epoch, length])


def requests_that_say_too_little(session: Session) -> None:
    session.create("t")
    for fields in (
        {"member_id": ""},
        {"group_id": ""},
        {"group_id": " "},
        {"instance_id": ""},
        {"rack_id": ""},
        {"rebalance_timeout": -1},
        {"topics": None},
        {"owned": None},
        {"owned": (("t", (0,)),)},
        {"server_assignor": "other"},
        {"server_assignor": ""},
        {"subscribed_topic_regex": "("},
        {"subscribed_topic_regex": ""},
        {"topics": None, "subscribed_topic_regex": ""},
    ):
        beat(session, "a", 0, **fields)
        describe(session, "g")
    for epoch in (-2, -3):
        beat(session, "a", epoch)
    beat(session, "a", -2, instance_id="i")
    beat(session, "", 1)
    beat(session, "", -1)


def static_members(session: Session) -> None:
    session.create("t")
    beat(session, "a", 0, instance_id="i")
    # As one does that did not get the answer.
    beat(session, "a", 0, instance_id="i")
    beat(session, "b", 0, instance_id="i")
    beat(session, "b", 2, instance_id="i")
    beat(session, "a", 2)
    beat(session, "a", 2, instance_id="j")
    beat(session, "b", -2, instance_id="i")
    beat(session, "a", -2, instance_id="i")
    describe(session, "g")
    beat(session, "c", 0, instance_id="i")
    describe(session, "g")
    beat(session, "c", -1, instance_id="i")
    describe(session, "g")


def commits_and_fetches(session: Session) -> None:
    session.create("t")
    beat(session, "a", 0)
    for version in (8, 9, 10):
        for member, epoch in (("a", 2), ("a", 1), ("a", 3), ("b", 2), ("", -1), ("a", -1)):
            commit(session, member, epoch, version)
    for version in (9, 10):
        for reader, epoch in (
            ("a", 2), ("a", 1), ("a", 3), ("b", 2), (None, -1), ("", -1), ("a", -1),
        ):  # fmt: skip
            fetch_offsets(session, reader, epoch, version)
    beat(session, "a", -1)
    commit(session, "", -1)
    commit(session, "a", 2)
    commit(session, "a", 2, group="unknown")
    commit(session, "a", 2, version=8, group="unknown")


def offsets_in_transactions(session: Session) -> None:
    """What a producer commits for a member, and with which epochs (KIP-1319)."""
    session.create("t")
    producer = session.init("x")
    beat(session, "a", 0)
    beat(session, "a", 1, topics=("t", "missing"))
    for version in (4, 5, 6):
        if version == 4:
            session.add_offsets("x", producer, "g", 4)
        for member, epoch in (("a", 2), ("a", 3), ("a", 1), ("a", 4), ("b", 2), ("", -1)):
            for group in ("g", "unknown"):
                for topic in ("t", "missing"):
                    session.commit_offset(
                        "x", producer, group, topic, 7, version, member=member, generation=epoch
                    )
        producer = session.end("x", producer, 5, is_commit=True)
        session.offset("g", "t", require_stable=True)


def requests_of_classic_members(session: Session) -> None:
    session.create("t")
    beat(session, "a", 0)
    group = session.name("g")
    for version in (5, 6):
        request = session.build(15, version).DescribeGroupsRequest(groups=(group,))
        session.ask(f"describe as classic {version}", request)
    build = session.build(12, 4)
    request = build.HeartbeatRequest(group_id=group, generation_id=2, member_id="a")
    session.ask("classic heartbeat", request)
    build = session.build(13, 5)
    beat(session, "s", 0, instance_id="i")
    for identity in (
        {"member_id": "b"},
        {"member_id": "", "group_instance_id": "j"},
        {"member_id": "a", "group_instance_id": "i"},
        {"member_id": "", "group_instance_id": "i"},
    ):
        leaving = build.MemberIdentity(**identity)
        session.ask("classic leave", build.LeaveGroupRequest(group_id=group, members=(leaving,)))
    build = session.build(14, 5)
    request = build.SyncGroupRequest(group_id=group, generation_id=2, member_id="a")
    session.ask("classic sync", request)
    build = session.build(11, 9)
    protocol = build.JoinGroupRequestProtocol(
        name="range", metadata=b"\0\0\0\0\0\0\xff\xff\xff\xff"
    )
    request = build.JoinGroupRequest(
        group_id=group, session_timeout=10_000, rebalance_timeout=10_000, member_id="",
        protocol_type="connect", protocols=(protocol,),
    )  # fmt: skip
    session.ask("classic join of another type", request)
    request = session.build(42, 2).DeleteGroupsRequest(groups_names=(group,))
    session.ask("delete", request)
    build = session.build(47, 0)
    partition = build.OffsetDeleteRequestPartition(partition_index=0)
    topic = build.OffsetDeleteRequestTopic(name=session.name("t"), partitions=(partition,))
    session.ask("delete offsets", build.OffsetDeleteRequest(group_id=group, topics=(topic,)))
    beat(session, "a", -1)
    session.ask("delete offsets", build.OffsetDeleteRequest(group_id=group, topics=(topic,)))
    beat(session, "b", 0)
    beat(session, "c", 0)
    build = session.build(13, 5)
    members = tuple(build.MemberIdentity(member_id=each) for each in ("b", "c", "b", "d"))
    session.ask("classic leave of all", build.LeaveGroupRequest(group_id=group, members=members))
    describe(session, "g")
    request = session.build(42, 2).DeleteGroupsRequest(groups_names=(group,))
    session.ask("delete", request)
    describe(session, "g")


def _client(name: str) -> bytes:
    """What a classic consumer subscribes to: a topic, and no partition yet."""
    topic = name.encode()
    subscription = b"\0\1\0\0\0\1" + len(topic).to_bytes(2, "big") + topic
    return subscription + b"\xff\xff\xff\xff" + bytes(4)


def conversion(session: Session) -> None:
    """A classic member in a consumer group, which is a classic group without the other one."""
    session.create("t")
    group = session.name("g")
    beat(session, "a", 0)
    build = session.build(11, 9)
    protocol = build.JoinGroupRequestProtocol(name="range", metadata=_client(session.name("t")))
    request = build.JoinGroupRequest(
        group_id=group, session_timeout=10_000, rebalance_timeout=10_000, member_id="m",
        protocol_type="consumer", protocols=(protocol,),
    )  # fmt: skip
    answer = session.ask("classic join", request)
    generation = answer.generation_id
    build = session.build(12, 4)
    for epoch in (generation - 1, generation, generation + 1):
        beats = build.HeartbeatRequest(group_id=group, generation_id=epoch, member_id="m")
        session.ask(f"classic heartbeat {epoch - generation:+}", beats)
    build = session.build(14, 5)
    for name in ("range", "other"):
        syncs = build.SyncGroupRequest(
            group_id=group, generation_id=generation, member_id="m", protocol_type="consumer",
            protocol_name=name, assignments=(),
        )  # fmt: skip
        session.ask(f"classic sync {name}", syncs)
    beat(session, "a", -1)
    build = session.build(12, 4)
    beats = build.HeartbeatRequest(group_id=group, generation_id=generation, member_id="m")
    session.ask("classic heartbeat in a classic group", beats)


def conversion_of_a_classic_group(session: Session) -> None:
    """A member of the newer protocol joins a classic group, and leaves it again. The ids of
    classic members are drawn, and who gives up which partition depends on them: how many each has
    is compared.
    """
    session.create("t")
    group = session.name("g")
    build = session.build(11, 3)
    protocol = build.JoinGroupRequestProtocol(name="range", metadata=_client(session.name("t")))
    request = build.JoinGroupRequest(
        group_id=group, session_timeout=10_000, rebalance_timeout=10_000, member_id="",
        protocol_type="consumer", protocols=(protocol,),
    )  # fmt: skip
    joined = session.ask("classic join", request, is_recorded=False)
    session.record("classic join", [joined.error_code, joined.generation_id, joined.protocol_name])
    classic = joined.member_id
    build = session.build(14, 3)
    topic = session.name("t").encode()
    assigned = b"\0\1\0\0\0\1" + len(topic).to_bytes(2, "big") + topic
    both = assigned + b"\0\0\0\2" + bytes(4) + b"\0\0\0\1" + b"\xff\xff\xff\xff"
    given = build.SyncGroupRequestAssignment(member_id=classic, assignment=both)
    request = build.SyncGroupRequest(
        group_id=group,
        generation_id=joined.generation_id,
        member_id=classic,
        assignments=(given,),
    )
    session.ask("classic sync", request, is_recorded=False)

    def classic_beat(label: str) -> None:
        request = session.build(12, 4).HeartbeatRequest(
            group_id=group, generation_id=joined.generation_id, member_id=classic
        )
        session.ask(f"classic heartbeat {label}", request)

    def described(label: str) -> None:
        request = session.build(69, 1).ConsumerGroupDescribeRequest(group_ids=(group,))
        (found,) = session.ask("describe", request, is_recorded=False).groups
        members = sorted(
            (
                each.member_type,
                each.member_epoch,
                sum(len(topic.partitions) for topic in each.assignment.topic_partitions),
                sum(len(topic.partitions) for topic in each.target_assignment.topic_partitions),
            )
            for each in found.members
        )
        state = [found.error_code, found.group_state, found.group_epoch, found.assignment_epoch]
        session.record(f"described {label}", [*state, found.assignor_name, members])

    classic_beat("alone")
    described("as a classic group")
    beat(session, "a", 0, topics=("t",), server_assignor="other")
    beat(session, "a", 5)
    answer = beat(session, "a", 0)
    described("with both")
    classic_beat("beside another one")
    beat(session, "a", answer.member_epoch)
    request = session.build(15, 5).DescribeGroupsRequest(groups=(group,))
    session.ask("describe as classic", request)
    beat(session, "a", -1)
    described("without the other one")
    classic_beat("alone again")
    build = session.build(13, 5)
    leaving = build.MemberIdentity(member_id=classic)
    request = build.LeaveGroupRequest(group_id=group, members=(leaving,))
    session.ask("classic leave", request, is_recorded=False)
    # An empty group becomes one of either kind.
    beat(session, "b", 0)
    described("of another member")


GROUP_SCRIPTS: Final = (
    conversion,
    conversion_of_a_classic_group,
    group_versions,
    one_member,
    heartbeats_of_version_0,
    requests_that_say_too_little,
    static_members,
    commits_and_fetches,
    offsets_in_transactions,
    requests_of_classic_members,
)
