"""Consumer groups: which there are, and the description of one."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from typing import Any, Final

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException

from ottla.cli.client import Connection
from ottla.cli.failures import Failed, unknown
from ottla.cli.group.unread_times import UnreadTimes, ages_ms
from ottla.cli.group_coordinator import why_no_coordinator
from ottla.cli.offsets import LATEST, shown_offsets
from ottla.cli.plural import plural
from ottla.cli.rows import NOT_ASKED, NotAsked, column, only_json, row, show_rows
from ottla.cli.screen import say
from ottla.client.topic_partition import TopicPartition
from ottla.journey.formatting import elapsed_said

LIST_HINT: Final = "To list all groups: ottla group list"
MOVING: Final = frozenset(
    {
        KafkaError.NOT_COORDINATOR,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
    }
)
MOVING_PAUSE_S: Final = 0.1
NO_GROUPS: Final = "No groups yet. Create one with: ottla consume TOPIC --group NAME"


def state_name(state: Any) -> str:
    """`stable`, `empty`, `preparing rebalancing` ..."""
    return str(state.name).lower().replace("_", " ")


def committed(connection: Connection, group: str) -> dict[TopicPartition, Any]:
    """What the group has committed: librdkafka's TopicPartition (offset, metadata) of each."""
    futures = connection.admin.list_consumer_group_offsets(
        [ConsumerGroupTopicPartitions(group)], request_timeout=connection.answer_timeout_s
    )
    answer = connection.wait(futures[group], f"read the offsets of group {group!r}")
    return {
        TopicPartition(each.topic, each.partition): each
        for each in answer.topic_partitions
        if each.offset >= 0
    }


def committed_offsets(connection: Connection, group: str) -> dict[TopicPartition, int]:
    """The offsets that the group has committed."""
    return {key: at.offset for key, at in committed(connection, group).items()}


def described_groups(connection: Connection, names: Sequence[str]) -> dict[str, Any]:
    """librdkafka's descriptions by name, without the groups that do not exist."""
    if not names:
        return {}
    connection.metadata()  # fails sooner, and says more, if no broker answers
    futures = _descriptions(connection, names)
    found: dict[str, Any] = {}
    for name in names:
        if _code(futures[name], connection) == KafkaError.GROUP_ID_NOT_FOUND:
            continue
        try:
            description = connection.wait(futures[name], f"describe group {name!r}")
        except Failed as failure:
            reason = why_no_coordinator(connection, name)
            raise failure if reason is None else Failed(failure.message, reason) from None
        # Before KIP-1043 a broker describes an unknown group as a dead one.
        if state_name(description.state) != "dead":
            found[name] = description
    return found


def _descriptions(connection: Connection, names: Sequence[str]) -> dict[str, Any]:
    """Asked again while coordinators move, for as long as an answer may take: librdkafka does not.
    Where nobody has committed yet, the first request creates `__consumer_offsets`.
    """
    until = time.monotonic() + connection.answer_timeout_s
    while True:
        futures: dict[str, Any] = connection.admin.describe_consumer_groups(
            list(names), request_timeout=connection.answer_timeout_s
        )
        is_moving = any(_code(future, connection) in MOVING for future in futures.values())
        if not is_moving or time.monotonic() > until:
            return futures
        time.sleep(MOVING_PAUSE_S)


def _code(future: Any, connection: Connection) -> int | None:
    """The error code with which a future ends, None without one."""
    error = future.exception(connection.answer_timeout_s + 1)
    return int(error.args[0].code()) if isinstance(error, KafkaException) else None


def no_active_members(group: str, description: Any) -> None:
    """Raises Failed while members of the group are active: brokers refuse changes then."""
    count = len(description.members)
    if not count:
        return
    readers = "1 member is" if count == 1 else f"{count} members are"
    raise Failed(
        f"{readers} reading as group {group!r} now.",
        f"Stop the consumers first. To list them: ottla group describe {group}",
    )


def existing_groups(connection: Connection, names: Iterable[str]) -> dict[str, Any]:
    """Descriptions by name. Raises Failed that names the first missing group."""
    wanted = list(dict.fromkeys(names))
    found = described_groups(connection, wanted)
    for name in wanted:
        if name not in found:
            known = [str(group.group_id) for group in connection.groups()]
            raise unknown("group", name, known, LIST_HINT)
    return found


def chosen_groups(connection: Connection, names: Sequence[str]) -> dict[str, Any]:
    """Descriptions by name of these groups, or of all if none is named. Raises Failed."""
    if names:
        return existing_groups(connection, names)
    return described_groups(connection, [str(group.group_id) for group in connection.groups()])


@row
class GroupMember:
    """`partitions`: how many it reads."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: int


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
class GroupDescription:
    """A group with its members and partitions; `behind_ms` is that of its oldest unread record."""

    group: str
    state: str
    type: str
    assignor: str | None
    coordinator: int | None
    members: list[GroupMember]
    partitions: list[GroupPartition]
    lag: int
    behind_ms: int | NotAsked | None = NOT_ASKED

    def show(self) -> None:
        is_silent = any(each.offsets_error for each in self.partitions)
        title = (
            f"{self.group}: {self.state}, {plural(len(self.members), 'member')}, "
            f"lag {self.lag:,}{' or more' if is_silent else ''}"
        )
        oldest = age(self.behind_ms)
        if oldest:
            title += f", {oldest} behind"
        show_rows(self.partitions, title=title, like=GroupPartition)
        for each in self.members:
            if not each.partitions:
                say(f"no partition assigned: {client_name(each)}")


def group_description(
    connection: Connection, name: str, description: Any, times: UnreadTimes | None = None
) -> GroupDescription:
    """Members, and each partition's committed offset, end and lag; with `times`, lag in time."""
    at = committed(connection, name)
    owners = {
        TopicPartition(each.topic, each.partition): member
        for member in description.members
        for each in (member.assignment.topic_partitions if member.assignment else ())
    }
    topics = connection.topics()
    keys = sorted({*at, *owners})
    living = [
        key for key in keys if key.topic in topics and key.partition in topics[key.topic].partitions
    ]
    (ends,), why = shown_offsets(connection, living, LATEST)
    lags = {key: max(0, ends[key] - at[key].offset) for key in keys if key in at and key in ends}
    behind_ms: dict[TopicPartition, int] = {}
    if times is not None:
        offsets = {key: place.offset for key, place in at.items()}
        behind_ms = ages_ms(times, offsets, lags, int(time.time() * 1000))
    partitions = [
        GroupPartition(
            *key,
            committed_offset=at[key].offset if key in at else None,
            end_offset=ends.get(key),
            lag=lags.get(key),
            behind_ms=NOT_ASKED if times is None else behind_ms.get(key),
            client=client_name(owners[key]) if key in owners else "",
            metadata=(at[key].metadata or "") if key in at else "",
            offsets_error=why.get(key),
            member_id=owners[key].member_id if key in owners else None,
        )
        for key in keys
    ]
    return GroupDescription(
        name,
        state_name(description.state),
        str(description.type.name).lower(),
        description.partition_assignor or None,
        description.coordinator.id if description.coordinator else None,
        [
            GroupMember(
                member.member_id,
                member.group_instance_id,
                member.client_id,
                member.host,
                sum(1 for owner in owners.values() if owner is member),
            )
            for member in description.members
        ],
        partitions,
        sum(lags.values()),
        NOT_ASKED if times is None else max(behind_ms.values(), default=None),
    )


def age(behind_ms: int | NotAsked | None) -> str:
    """Of the first unread record; empty if it is not known, or there is none."""
    return elapsed_said(behind_ms) if isinstance(behind_ms, int) and behind_ms else ""


def shown_metadata(metadata: str) -> str:
    """The metadata of a commit; that of a pipeline as text (`ottla.pipelines` writes it)."""
    if '"ottla.pipeline"' not in metadata:
        return metadata
    try:
        document = json.loads(metadata)
        delta = document.get("delta") or {}
        version = f", delta version {delta['version']}" if "version" in delta else ""
        return f"pipeline batch {document['batch']}{version}"
    except (ValueError, KeyError, TypeError, AttributeError):
        return metadata


def client_name(member: Any) -> str:
    """`client-id@host`."""
    return f"{member.client_id}@{member.host.lstrip('/')}"
