"""The description of a group."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from ottla.cli.rows import NOT_ASKED, NotAsked, column, only_json, row, show_rows
from ottla.cli.screen import say
from ottla.client.admin.group_states import GroupState, MemberState, group_state
from ottla.client.admin.groups import Group
from ottla.client.client import Client
from ottla.client.errors import ClientError
from ottla.client.topic_partition import TopicPartition
from ottla.journey.formatting import format_elapsed
from ottla.wording.plural import plural

if TYPE_CHECKING:
    from ottla.client.admin.losses import Loss
    from ottla.messaging.unread_times import UnreadTimes


@row
class GroupPartition:
    """One partition. Numbers are None if they are unknown; `behind_ms` is the age of the first
    record that is not read, 0 if all are.
    """

    topic: str
    partition: int
    committed_offset: int | None = column("committed")
    end_offset: int | None = column("end")
    lag: int | None
    behind_ms: int | NotAsked | None = column(
        "behind", lambda each: age(each.behind_ms), is_optional=True
    )
    offsets_error: str | None = only_json()
    client: str = column(is_optional=True, in_json=False)
    metadata: str = column(cell=lambda each: shown_metadata(each.metadata), is_optional=True)
    member_id: str | None = only_json()
    state: str = column(
        cell=lambda each: each.offsets_error or "", is_optional=True, in_json=False, default=""
    )


@row
class ShownNode:
    """As `client.admin.streams_topology.TopologyNode`."""

    subtopology: str
    node: str
    kind: str
    topics: list[str] = column(cell=lambda each: ", ".join(each.topics), is_optional=True)
    stores: list[str] = column(cell=lambda each: ", ".join(each.stores), is_optional=True)
    successors: list[str] = column(
        "goes to", cell=lambda each: ", ".join(each.successors), is_optional=True
    )


@row
class GroupDescription:
    """A group with its members and partitions; `behind_ms` is that of its oldest unread record.
    `losses`: of unread records that retention removes within a day; None if that is not known.
    `topology`: of a streams group whose application has described it.
    """

    group: str
    state: str
    type: str
    assignor: str | None
    coordinator: int | None
    members: list[MemberState]
    partitions: list[GroupPartition]
    lag: int
    losses: list[Loss] | None
    behind_ms: int | NotAsked | None = NOT_ASKED
    topology: list[ShownNode] | NotAsked = NOT_ASKED

    def show(self) -> None:
        title = f"{self.group}: {self.state}, {plural(len(self.members), 'member')}, "
        if self.partitions:
            show_rows(self.partitions, title=title + self._progress(), like=GroupPartition)
        else:
            say(title + "no partitions")
        for loss in self.losses or ():
            is_earliest = loss.goes_in_ms and not loss.is_estimate
            say(f"{loss}{' at the earliest' if is_earliest else ''}.")
        for each in self.members:
            if not each.partitions:
                say(f"no partition assigned: {each.name}")
        if not isinstance(self.topology, NotAsked):
            show_rows(self.topology, title="What the application does:", like=ShownNode)

    def _progress(self) -> str:
        is_silent = any(each.offsets_error for each in self.partitions)
        words = f"lag {self.lag:,}{' or more' if is_silent else ''}"
        uncommitted = sum(
            each.committed_offset is None and not each.offsets_error for each in self.partitions
        )
        if uncommitted:
            words += f", {plural(uncommitted, 'partition')} without a commit"
        oldest = age(self.behind_ms)
        return f"{words}, {oldest} behind" if oldest else words


def group_description(
    client: Client, group: Group, times: UnreadTimes | None = None
) -> GroupDescription:
    """Members, and each partition's committed offset, end and lag; with `times`, lag in time."""
    found = group_state(client, group)
    behind_ms: dict[TopicPartition, int] = {}
    if times is not None:
        # Imported late: only lag in time needs librdkafka.
        from ottla.messaging.unread_times import ages_ms

        committed = {each.topic_partition: each.committed_offset or 0 for each in found.partitions}
        lags = {each.topic_partition: each.lag for each in found.partitions if each.lag is not None}
        behind_ms = ages_ms(times, committed, lags, int(time.time() * 1000))
    partitions = [
        GroupPartition(
            *each.topic_partition,
            committed_offset=each.committed_offset,
            end_offset=each.end_offset,
            lag=each.lag,
            behind_ms=NOT_ASKED if times is None else behind_ms.get(each.topic_partition),
            client="" if each.member is None else each.member.name,
            metadata=each.metadata,
            offsets_error=each.offsets_error,
            member_id=None if each.member is None else each.member.member_id,
        )
        for each in found.partitions
    ]
    return GroupDescription(
        group.name,
        group.state,
        group.type,
        group.assignor,
        group.coordinator,
        found.members,
        partitions,
        found.lag,
        group_losses(client, found),
        NOT_ASKED if times is None else max(behind_ms.values(), default=None),
        _nodes(group),
    )


def _nodes(group: Group) -> list[ShownNode] | NotAsked:
    nodes = () if group.topology is None else group.topology.nodes
    if not nodes:
        return NOT_ASKED
    return [
        ShownNode(
            each.subtopology, each.name, each.kind, list(each.topics), list(each.stores),
            list(each.successors),
        )
        for each in nodes
    ]  # fmt: skip


def group_losses(client: Client, found: GroupState) -> list[Loss] | None:
    """Within a day; None where the brokers do not say."""
    # Not every command about groups needs it.
    from ottla.client.admin.losses import DAY_MS, losses_of

    positions = {
        each.topic_partition: each.committed_offset
        for each in found.partitions
        if each.committed_offset is not None and each.lag
    }
    if not positions:
        return []
    try:
        return losses_of(client, positions, DAY_MS, int(time.time() * 1000))
    except ClientError:
        return None


def age(behind_ms: int | NotAsked | None) -> str:
    """Of the first unread record; empty if it is not known, or there is none."""
    return format_elapsed(behind_ms) if isinstance(behind_ms, int) and behind_ms else ""


def shown_metadata(metadata: str) -> str:
    """The metadata of a commit; that of a pipeline as text (`ottla.pipelines` writes it)."""
    if '"ottla.pipeline"' not in metadata:
        return metadata
    try:
        document = json.loads(metadata)
        delta = document.get("delta") or {}
        version = f", delta version {delta['version']}" if "version" in delta else ""
        return f"pipeline batch {document['batch']}{version}"
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return metadata
