"""A share group in a script (KIP-932): its members, their sessions, and requests in short."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from conformance.differential.group_settings import set_group_settings
from conformance.differential.session import NOBODY, Session
from ottla.protocol.errors import ErrorCode

HEARTBEAT, DESCRIBE, FETCH, ACKNOWLEDGE = 76, 77, 78, 79
DESCRIBE_OFFSETS, ALTER_OFFSETS, DELETE_OFFSETS = 90, 91, 92
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
LAST_EPOCH: Final = -1
"""It ends a session."""
SETTINGS: Final = {"share.auto.offset.reset": "earliest", "share.assignment.interval.ms": "0"}
OPENS_MS: Final = 500
FETCHES_MS: Final = 3_000
Acks = Sequence[tuple[int, ...]]
"""First offset, last offset, and one type for all or one for each."""


def member_id(member: str) -> str:
    """Kafka's members have UUIDs; these sort as their names do."""
    return f"{member * 21}Q" if member else ""


class Sharing:
    """One group that reads partition 0 of a topic."""

    def __init__(
        self, session: Session, group: str = "g", topic: str = "t", **settings: str
    ) -> None:
        """In names of settings, underscores stand for dots."""
        self.session = session
        self.topic = topic
        self.group = session.name(group)
        self._epochs: dict[str, int] = {}
        """Of the next request in each session."""
        more = {f"share.{name.replace('_', '.')}": value for name, value in settings.items()}
        set_group_settings(session, {group: SETTINGS | more})

    # Members.

    def beat(
        self,
        member: str,
        epoch: int,
        topics: Sequence[str] | None = None,
        *,
        is_recorded: bool = True,
    ) -> Any:
        """One that joins reads the topic, unless it says otherwise."""
        build = self.session.build(HEARTBEAT, 1)
        topics = (self.topic,) if topics is None and epoch == 0 else topics
        request = build.ShareGroupHeartbeatRequest(
            group_id=self.group,
            member_id=member_id(member),
            member_epoch=epoch,
            subscribed_topic_names=None
            if topics is None
            else tuple(map(self.session.name, topics)),
        )
        label = f"share heartbeat of {member!r} in {epoch} {topics or ''}"
        return self.session.ask(label, request, is_recorded=is_recorded)

    def join(self, member: str) -> int:
        """The epoch of the member once it has partitions: their states are made beside that."""
        epoch = int(self.beat(member, 0).member_epoch)

        def has_partitions() -> bool:
            nonlocal epoch
            answer = self.beat(member, epoch, is_recorded=False)
            epoch = answer.member_epoch
            return answer.assignment is not None and bool(answer.assignment.topic_partitions)

        self.session.wait(f"{member} has partitions", has_partitions)
        self.describe()
        return epoch

    def describe(self) -> None:
        build = self.session.build(DESCRIBE, 1)
        request = build.ShareGroupDescribeRequest(group_ids=(self.group,))
        self.session.ask("describe share group", request)

    # Records.

    def produce(self, *values: str) -> None:
        self.session.produce(
            None, NOBODY, (self.topic, 0), values, sequence=-1, is_transactional=False
        )

    def open(self, member: str) -> None:
        """A session, while there is no record: what the first fetch reads is made ready by then."""
        self.fetch(member, wait_ms=OPENS_MS, is_recorded=False)

    def fetch(
        self,
        member: str,
        acks: Acks = (),
        *,
        wait_ms: int = 0,
        version: int = 2,
        epoch: int | None = None,
        is_recorded: bool = True,
        **fields: Any,
    ) -> list[tuple[int, int]]:
        """A ShareFetch; the offsets that were acquired."""
        build = self.session.build(FETCH, version)
        sent = self._epochs.get(member, 0) if epoch is None else epoch
        given = {"max_wait": wait_ms, "min_bytes": 1, "max_bytes": 1 << 20, "max_records": 500}
        request = build.ShareFetchRequest(
            group_id=self.group,
            member_id=member_id(member),
            share_session_epoch=sent,
            topics=self._topics(build, "Fetch", acks) if sent == 0 or acks else (),
            forgotten_topics_data=(),
            **(given | {"batch_size": 500} | fields),
        )
        label = f"share fetch {version} of {member} {list(acks)} {fields or ''}"
        answer = self.session.ask(label, request, is_recorded=is_recorded)
        self._answered(member, sent, answer)
        return [
            (each.first_offset, each.last_offset)
            for topic in answer.responses
            for part in topic.partitions
            for each in part.acquired_records
        ]

    def acknowledge(
        self,
        member: str,
        acks: Acks,
        *,
        version: int = 2,
        epoch: int | None = None,
        **fields: Any,
    ) -> None:
        """A ShareAcknowledge."""
        build = self.session.build(ACKNOWLEDGE, version)
        sent = self._epochs.get(member, 1) if epoch is None else epoch
        request = build.ShareAcknowledgeRequest(
            group_id=self.group,
            member_id=member_id(member),
            share_session_epoch=sent,
            topics=self._topics(build, "Acknowledge", acks) if acks else (),
            **fields,
        )
        label = f"share acknowledge {version} of {member} {list(acks)} {fields or ''}"
        self._answered(member, sent, self.session.ask(label, request))

    def _answered(self, member: str, sent: int, answer: Any) -> None:
        if answer is None or ErrorCode(answer.error_code) is not ErrorCode.none:
            return
        if sent == LAST_EPOCH:
            self._epochs.pop(member, None)
        else:
            self._epochs[member] = sent + 1

    def _topics(self, build: Any, kind: str, acks: Acks) -> tuple[Any, ...]:
        batches = tuple(
            build.AcknowledgementBatch(
                first_offset=first, last_offset=last, acknowledge_types=tuple(types)
            )
            for first, last, *types in acks
        )
        part = getattr(build, f"{kind}Partition")(
            partition_index=0, acknowledgement_batches=batches
        )
        topic_id = self.session.id_of(self.topic)
        return (getattr(build, f"{kind}Topic")(topic_id=topic_id, partitions=(part,)),)

    # Offsets.

    def offsets(self, *topics: str, version: int = 1) -> None:
        build = self.session.build(DESCRIBE_OFFSETS, version)
        wanted = tuple(
            build.DescribeShareGroupOffsetsRequestTopic(
                topic_name=self.session.name(topic), partitions=(0,)
            )
            for topic in topics
        )
        group = build.DescribeShareGroupOffsetsRequestGroup(group_id=self.group, topics=wanted)
        request = build.DescribeShareGroupOffsetsRequest(groups=(group,))
        self.session.ask(f"share offsets {version} of {topics}", request)

    def alter_offset(self, topic: str, offset: int, partition: int = 0) -> None:
        build = self.session.build(ALTER_OFFSETS, 0)
        part = build.AlterShareGroupOffsetsRequestPartition(
            partition_index=partition, start_offset=offset
        )
        wanted = build.AlterShareGroupOffsetsRequestTopic(
            topic_name=self.session.name(topic), partitions=(part,)
        )
        request = build.AlterShareGroupOffsetsRequest(group_id=self.group, topics=(wanted,))
        self.session.ask(f"alter share offset of {topic}-{partition} to {offset}", request)

    def delete_offsets(self, topic: str) -> None:
        build = self.session.build(DELETE_OFFSETS, 0)
        wanted = build.DeleteShareGroupOffsetsRequestTopic(topic_name=self.session.name(topic))
        request = build.DeleteShareGroupOffsetsRequest(group_id=self.group, topics=(wanted,))
        self.session.ask(f"delete share offsets of {topic}", request)

    def delete(self) -> None:
        request = self.session.build(42, 2).DeleteGroupsRequest(groups_names=(self.group,))
        self.session.ask("delete share group", request)
