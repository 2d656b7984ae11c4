"""What the transcripts (`conversion_*.txt`) do not show: limits."""

from uuid import UUID

import pytest

from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.member import Member as ClassicMember
from ottla.groups.classic.requests import JoinRequest
from ottla.groups.classic_members import Joining, joining
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.member import ClassicMetadata
from ottla.groups.consumer.settings import ConsumerGroupSettings
from ottla.groups.consumer.step import Step
from ottla.groups.consumer.topics import Topic, Topics
from ottla.groups.conversion import check_upgrade, downgraded, may_downgrade, upgraded
from ottla.groups.embedded_protocol import write_assignment
from ottla.protocol.errors import ApiError, ErrorCode

TOPICS = Topics(1, {"t": Topic(UUID(int=1), 4)})
SUBSCRIPTION = b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff"


def classic_group(size: int) -> ClassicGroup:
    group = ClassicGroup("g", 0)
    group.generation = 3
    for number in range(size):
        member = ClassicMember(
            f"m{number}", None, "c", "h", 60_000, 45_000, "consumer", {"range": SUBSCRIPTION}
        )
        member.assignment = write_assignment(0, [("t", [number])])
        group.add(member)
    group.protocol_name = "range"
    return group


def refusal(group: ClassicGroup, settings: ConsumerGroupSettings, topics: Topics = TOPICS) -> str:
    def upgrade() -> None:
        check_upgrade(group, settings)
        upgraded(group, topics)

    with pytest.raises(ApiError) as refused:
        upgrade()
    assert refused.value.code is ErrorCode.group_id_not_found
    return str(refused.value.message)


def test_a_group_that_is_too_large_stays_a_classic_one() -> None:
    small = ConsumerGroupSettings(max_size=2)
    assert "exceeds the consumer group maximum size" in refusal(classic_group(3), small)
    said = refusal(classic_group(300), ConsumerGroupSettings())
    assert "are more than 600 together" in said
    check_upgrade(classic_group(290), ConsumerGroupSettings())
    consumers, _ = upgraded(classic_group(290), TOPICS)
    assert consumers.classic_count == 290


def test_what_few_members_have_counts_too() -> None:
    many = Topics(1, {"t": Topic(UUID(int=1), 20_000)})
    group = classic_group(2)
    group.members["m1"].assignment = write_assignment(0, [("t", range(13_000))])
    assert "are more than 600 together" in refusal(group, ConsumerGroupSettings(), many)
    group.members["m1"].assignment = write_assignment(0, [("t", range(1, 10_000))])
    consumers, _ = upgraded(group, many)
    both = _with(consumers, "n")
    gone = {"n": both.members["n"]}
    assert may_downgrade(both, gone, ConsumerGroupSettings())
    both.targets["m1"] = {UUID(int=1): frozenset(range(13_000))}
    assert not may_downgrade(both, gone, ConsumerGroupSettings())


def test_a_topic_that_is_named_again_and_again_is_not_read() -> None:
    again = b"\0\0" + (60_000).to_bytes(4, "big") + b"\0\1t" * 60_000 + b"\xff" * 4
    group = classic_group(2)
    group.members["m1"].protocols["range"] = again
    assert "have 180,0" in refusal(group, ConsumerGroupSettings())
    consumers, _ = upgraded(classic_group(2), TOPICS)
    both = _with(consumers, "n")
    gone = {"n": both.members["n"]}
    assert may_downgrade(both, gone, ConsumerGroupSettings())
    classic = ClassicMetadata(45_000, (("range", again),))
    both.members["m1"] = both.members["m1"]._replace(classic=classic)
    assert not may_downgrade(both, gone, ConsumerGroupSettings())


def test_who_goes_last_decides() -> None:
    consumers, _ = upgraded(classic_group(2), TOPICS)
    native = consumers.members["m0"]._replace(member_id="n", classic=None)
    settings = ConsumerGroupSettings()
    assert not may_downgrade(consumers, {"m0": consumers.members["m0"]}, settings)
    for settings, expected in (
        (ConsumerGroupSettings(), True),
        (ConsumerGroupSettings(migration_policy="downgrade"), True),
        (ConsumerGroupSettings(migration_policy="upgrade"), False),
        (ConsumerGroupSettings(max_classic_size=1), False),
    ):
        both = _with(consumers, native.member_id)
        gone = {"n": both.members["n"]}
        assert may_downgrade(both, gone, settings) is expected


def _with(group: ConsumerGroup, member_id: str) -> ConsumerGroup:
    copy = group.copied()
    copy.members[member_id] = copy.members["m0"]._replace(member_id=member_id, classic=None)
    return copy


def test_the_way_back_has_the_same_members_and_assignments() -> None:
    before = classic_group(3)
    consumers, _ = upgraded(before, TOPICS)
    made = downgraded(consumers, (), TOPICS, 7)
    value = made.records[-1].value
    again = ClassicGroup.from_stored("g", value)  # type: ignore[arg-type]
    assert (again.generation, again.protocol_name, again.leader_id) == (3, "range", "m0")
    assert {name: each.assignment for name, each in again.members.items()} == {
        name: each.assignment for name, each in before.members.items()
    }


def test_a_classic_member_of_a_consumer_group_has_limited_metadata() -> None:
    consumers, _ = upgraded(classic_group(1), TOPICS)
    again = b"\0\0" + (90_000).to_bytes(4, "big") + b"\0\1t" * 90_000 + b"\xff" * 4

    def join(metadata: bytes) -> object:
        request = JoinRequest(
            "token", "g", "m0", None, "", "c", "h", 45_000, 60_000, "consumer",
            (("range", metadata),),
        )  # fmt: skip
        return joining(consumers, request, Step(0, ConsumerGroupSettings()))

    assert isinstance(join(SUBSCRIPTION), Joining)
    with pytest.raises(ApiError) as refused:
        join(again)
    assert refused.value.code is ErrorCode.invalid_request
