"""Scripts of requests about share groups (KIP-932), and of those between brokers about them."""

from __future__ import annotations

from typing import Any, Final

from conformance.differential.session import UNKNOWN_TOPIC, Session
from conformance.differential.sharing import (
    ACCEPT,
    DESCRIBE,
    FETCHES_MS,
    GAP,
    LAST_EPOCH,
    OPENS_MS,
    REJECT,
    RELEASE,
    RENEW,
    Sharing,
)
from ottla.protocol.kafka_uuid import uuid_text

SHARE_KEYS: Final = (76, 77, 78, 79, 83, 84, 85, 86, 87, 90, 91, 92)
INITIALIZE, READ, WRITE, DELETE, SUMMARY = 83, 84, 85, 86, 87


def share_versions(session: Session) -> None:
    session.versions(SHARE_KEYS)


def a_share_member(session: Session) -> None:
    session.create("t", 1)
    sharing = Sharing(session)
    sharing.describe()
    sharing.beat("", 0)
    sharing.beat("a", 1)
    sharing.beat("a", -1)
    sharing.beat("a", -2)
    epoch = sharing.join("a")
    sharing.beat("a", epoch)
    sharing.beat("a", epoch + 1)
    sharing.beat("a", epoch - 1)
    sharing.beat("b", epoch)
    sharing.beat("a", epoch, ())
    sharing.beat("a", epoch, ("t", "missing"))
    sharing.describe()
    sharing.delete()
    sharing.beat("a", -1)
    sharing.beat("a", -1)
    sharing.describe()
    sharing.delete()
    sharing.describe()
    sharing.delete()


def share_members(session: Session) -> None:
    """As many as there are partitions. Which one a member gives up when another one comes depends
    in Kafka on the order of a HashSet, and so on the topic's id, which the broker draws: how many
    each has is compared, and what they have together.
    """
    session.create("t", 2)
    sharing = Sharing(session)
    first = sharing.join("a")
    has: dict[str, set[int]] = {}

    def beat(member: str, epoch: int) -> int:
        answer = sharing.beat(member, epoch, is_recorded=False)
        if answer.assignment is not None:
            has[member] = {
                number
                for topic in answer.assignment.topic_partitions
                for number in topic.partitions
            }
        counts = sorted((name, len(its)) for name, its in has.items())
        session.record(f"{member} in {epoch}", [answer.error_code, answer.member_epoch, counts])
        return int(answer.member_epoch)

    second = beat("b", 0)
    first = beat("a", first)
    beat("b", second)
    session.record("together", sorted(set().union(*has.values())))
    build = session.build(DESCRIBE, 1)
    request = build.ShareGroupDescribeRequest(group_ids=(sharing.group,))
    (group,) = session.ask("describe", request, is_recorded=False).groups
    session.record("state", [group.group_state, group.group_epoch, group.assignment_epoch])
    sharing.beat("b", -1)
    sharing.beat("a", first)
    sharing.describe()


def share_groups_and_others(session: Session) -> None:
    """A group is of one type."""
    session.create("t", 1)
    sharing = Sharing(session)
    sharing.join("a")
    build = session.build(68, 1)
    request = build.ConsumerGroupHeartbeatRequest(
        group_id=sharing.group, member_id="x", member_epoch=0, rebalance_timeout=60_000,
        subscribed_topic_names=(session.name("t"),), topic_partitions=(),
    )  # fmt: skip
    session.ask("heartbeat of a consumer", request)
    request = session.build(69, 1).ConsumerGroupDescribeRequest(group_ids=(sharing.group,))
    session.ask("describe as consumer group", request)
    request = session.build(15, 6).DescribeGroupsRequest(groups=(sharing.group,))
    session.ask("describe as classic group", request)


def records_of_a_share_group(session: Session) -> None:
    """They are acquired, and accepted, released, rejected or forgotten."""
    session.create("t", 1)
    sharing = Sharing(session)
    sharing.join("a")
    for member in ("a", "b"):
        sharing.open(member)
    sharing.produce("0", "1", "2", "3")
    sharing.produce("4", "5")
    sharing.fetch("a", wait_ms=FETCHES_MS)
    sharing.fetch("b")
    sharing.acknowledge("a", [(0, 0, ACCEPT), (1, 1, RELEASE), (2, 2, REJECT)])
    sharing.fetch("b", wait_ms=FETCHES_MS)
    sharing.acknowledge("b", [(1, 1, ACCEPT)])
    sharing.acknowledge("a", [(3, 5, ACCEPT, RELEASE, GAP)])
    sharing.fetch("b", wait_ms=FETCHES_MS)
    sharing.offsets("t")
    sharing.fetch("b", [(4, 4, ACCEPT)])
    sharing.offsets("t")


def a_fetch_that_releases(session: Session) -> None:
    """It may get what it releases, or the next one does: in Kafka the read of a ShareFetch runs
    beside the write of its acknowledgements. What comes together is compared.
    """
    session.create("t", 1)
    sharing = Sharing(session)
    sharing.join("a")
    sharing.open("a")
    sharing.produce("0", "1", "2")
    sharing.fetch("a", wait_ms=FETCHES_MS)
    for acks in ([(0, 0, RELEASE)], [(1, 2, ACCEPT, RELEASE)]):
        released = sum(each == RELEASE for _, _, *types in acks for each in types)
        found = sharing.fetch("a", acks, is_recorded=False)
        if sum(last - first + 1 for first, last in found) < released:
            found += sharing.fetch("a", wait_ms=FETCHES_MS, is_recorded=False)
        session.record(f"released by {acks}, and come again", found)
    sharing.acknowledge("a", [(0, 0, ACCEPT), (2, 2, ACCEPT)])
    sharing.fetch("a")
    sharing.offsets("t")


def acknowledgements_that_make_no_sense(session: Session) -> None:
    session.create("t", 1)
    sharing = Sharing(session)
    sharing.join("a")
    for member in ("a", "b"):
        sharing.open(member)
    sharing.produce("0", "1", "2", "3")
    sharing.fetch("a", wait_ms=FETCHES_MS)
    sharing.acknowledge("b", [(0, 0, ACCEPT)])
    wrong: list[list[tuple[int, ...]]] = [
        [(0, 1, 5)],
        [(0, 1, -1)],
        [(0, 1)],
        [(0, 3, ACCEPT, ACCEPT)],
        [(2, 1, ACCEPT)],
        [(1, 2, ACCEPT), (0, 0, ACCEPT)],
        [(0, 1, ACCEPT), (1, 2, ACCEPT)],
        [(7, 8, ACCEPT)],
        [(0, 0, RENEW)],
    ]
    for acks in wrong:
        sharing.acknowledge("a", acks)
        sharing.fetch("a", acks)
    sharing.acknowledge("a", [(0, 0, RENEW)], version=1)
    sharing.acknowledge("a", [(0, 0, RENEW)], is_renew_ack=True)
    sharing.acknowledge("a", [(0, 0, ACCEPT)], is_renew_ack=True)
    sharing.acknowledge("a", [(0, 0, ACCEPT)])
    sharing.acknowledge("a", [(0, 0, ACCEPT)])
    sharing.acknowledge("a", [(0, 3, ACCEPT)])
    sharing.acknowledge("a", [(1, 3, ACCEPT)])


def epochs_of_share_sessions(session: Session) -> None:
    session.create("t", 1)
    sharing = Sharing(session)
    sharing.join("a")
    sharing.acknowledge("a", [(0, 0, ACCEPT)])
    sharing.acknowledge("a", [(0, 0, ACCEPT)], epoch=0)
    sharing.fetch("a", epoch=1)
    sharing.fetch("a", epoch=LAST_EPOCH)
    sharing.open("a")
    sharing.produce("0", "1")
    for epoch in (7, 2, -2):
        sharing.fetch("a", epoch=epoch)
        sharing.acknowledge("a", [(0, 0, ACCEPT)], epoch=epoch)
    sharing.fetch("a", wait_ms=FETCHES_MS)
    sharing.fetch("a", [(0, 0, ACCEPT)], epoch=0)
    # A session that ends has its records released.
    sharing.acknowledge("a", [(0, 0, ACCEPT)], epoch=LAST_EPOCH)
    sharing.open("b")
    sharing.fetch("b")
    sharing.offsets("t")


def limits_of_share_fetches(session: Session) -> None:
    """How many records come at once, and how often each."""
    session.create("t", 1)
    sharing = Sharing(session, delivery_count_limit="3")
    sharing.join("a")
    sharing.open("a")
    for first in range(0, 9, 3):
        sharing.produce(*(str(each) for each in range(first, first + 3)))
    for mode in (0, 1):
        for count in (1, 4):
            found = sharing.fetch("a", max_records=count, share_acquire_mode=mode)
            sharing.acknowledge("a", [(first, last, RELEASE) for first, last in found])
    for _ in range(4):
        found = sharing.fetch("a")
        sharing.acknowledge("a", [(first, last, RELEASE) for first, last in found])
    sharing.offsets("t")
    for count in (0, -1):
        sharing.fetch("a", max_records=count)


def a_share_group_reads_committed(session: Session) -> None:
    """Open transactions hold back what is behind them, aborted ones do not come."""
    session.create("t", 1)
    topic = ("t", 0)
    groups = [
        Sharing(session, group, isolation_level=level)
        for group, level in (("g", "read_committed"), ("h", "read_uncommitted"))
    ]
    for sharing in groups:
        sharing.join("a")
        sharing.open("a")
    one, other = session.init("one"), session.init("other")
    session.produce("one", one, topic, ["0", "1"])
    groups[0].produce("2")
    session.produce("other", other, topic, ["3"])
    groups[0].fetch("a")
    groups[1].fetch("a", wait_ms=FETCHES_MS)
    session.end("other", other, is_commit=False)
    groups[0].fetch("a")
    session.end("one", one)
    for sharing in groups:
        for _ in range(2):
            found = sharing.fetch("a", wait_ms=OPENS_MS)
            sharing.acknowledge("a", [(first, last, ACCEPT) for first, last in found])
        sharing.offsets("t")


def offsets_of_share_groups(session: Session) -> None:
    session.create("t", 1)
    session.create("u", 1)
    sharing = Sharing(session)
    for version in (0, 1):
        sharing.offsets("t", version=version)
    sharing.alter_offset("t", 0)
    sharing.delete_offsets("t")
    sharing.join("a")
    sharing.produce("0", "1", "2")
    for version in (0, 1):
        sharing.offsets("t", "u", "missing", version=version)
        sharing.offsets(version=version)
    sharing.alter_offset("t", 1)
    sharing.delete_offsets("t")
    sharing.beat("a", -1)
    sharing.alter_offset("t", 1)
    sharing.alter_offset("u", 0)
    sharing.alter_offset("missing", 0)
    sharing.alter_offset("t", 0, partition=5)
    sharing.offsets("t", "u")
    sharing.delete_offsets("u")
    sharing.delete_offsets("u")
    sharing.delete_offsets("missing")
    sharing.offsets("t", "u")


class _States:
    """Requests to the share coordinator, as brokers send them."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def _ask(self, key: int, version: int, name: str, struct: str, topic: str, **part: Any) -> None:
        session = self._session
        build = session.build(key, version)
        if "state_batches" in part:
            part["state_batches"] = tuple(
                build.StateBatch(
                    first_offset=first, last_offset=last, delivery_state=state, delivery_count=count
                )
                for first, last, state, count in part["state_batches"]
            )
        topic_id = session.id_of(topic) if topic != "missing" else UNKNOWN_TOPIC
        data = getattr(build, struct)(
            topic_id=topic_id, partitions=(build.PartitionData(**{"partition": 0} | part),)
        )
        group = part.pop("group", "g")
        request = getattr(build, f"{name}Request")(group_id=session.name(group), topics=(data,))
        session.ask(f"{name} {version} {topic} {part}", request, as_broker=True)

    def initialize(self, epoch: int, start: int, topic: str = "t", **more: Any) -> None:
        self._ask(
            INITIALIZE, 0, "InitializeShareGroupState", "InitializeStateData", topic,
            state_epoch=epoch, start_offset=start, **more,
        )  # fmt: skip

    def read(self, leader_epoch: int, topic: str = "t", **more: Any) -> None:
        self._ask(
            READ, 0, "ReadShareGroupState", "ReadStateData", topic,
            leader_epoch=leader_epoch, **more,
        )  # fmt: skip

    def write(self, epoch: int, leader_epoch: int, start: int, *batches: Any, **more: Any) -> None:
        for version in (0, 1):
            self._ask(
                WRITE, version, "WriteShareGroupState", "WriteStateData", more.get("topic", "t"),
                state_epoch=epoch, leader_epoch=leader_epoch, start_offset=start,
                delivery_complete_count=1, state_batches=batches,
            )  # fmt: skip

    def summary(self, topic: str = "t", **more: Any) -> None:
        for version in (0, 1):
            self._ask(
                SUMMARY, version, "ReadShareGroupStateSummary", "ReadStateSummaryData", topic,
                leader_epoch=-1, **more,
            )  # fmt: skip

    def delete(self, topic: str = "t", **more: Any) -> None:
        self._ask(DELETE, 0, "DeleteShareGroupState", "DeleteStateData", topic, **more)


def states_between_brokers(session: Session) -> None:
    session.create("t", 1)
    session.create("u", 1)
    states = _States(session)
    key = f"{session.name('g')}:{uuid_text(session.id_of('t'))}:0"
    request = session.build(10, 6).FindCoordinatorRequest(key_type=2, coordinator_keys=(key,))
    # It makes the topic.
    session.ask("FindCoordinator of a share partition", request, is_recorded=False, as_broker=True)
    request = session.build(10, 6).FindCoordinatorRequest(
        key_type=2, coordinator_keys=(f"{session.name('g')}:no:0", f"{session.name('g')}:x")
    )
    session.ask("FindCoordinator of a share partition that cannot be", request, as_broker=True)
    states.summary()
    states.read(0)
    states.write(0, 0, 0)
    states.delete()
    states.initialize(2, 5)
    states.summary()
    states.read(3)
    states.read(-1)
    states.read(2)
    states.write(2, 3, 6, (6, 7, 2, 1), (8, 8, 0, 2))
    states.read(3)
    states.write(1, 3, 6)
    states.write(2, 2, 6)
    # Kafka takes a later state epoch, too.
    states.write(2, 3, 7, (8, 9, 4, 1))
    states.write(-1, 3, 7)
    states.write(3, -1, 7)
    states.initialize(-1, 0, "u")
    states.read(3)
    states.summary()
    states.initialize(1, 0)
    states.initialize(3, 1)
    states.read(3)
    for partition in (-1, 7):
        states.initialize(1, 0, partition=partition)
        states.read(0, partition=partition)
        states.delete(partition=partition)
    states.initialize(1, 0, "missing")
    states.read(0, "missing")
    states.summary("missing")
    states.delete()
    states.delete()
    states.summary()
    states.read(3)


SHARE_SCRIPTS: Final = (
    share_versions,
    a_share_member,
    share_members,
    share_groups_and_others,
    records_of_a_share_group,
    a_fetch_that_releases,
    acknowledgements_that_make_no_sense,
    epochs_of_share_sessions,
    limits_of_share_fetches,
    a_share_group_reads_committed,
    offsets_of_share_groups,
    states_between_brokers,
)
