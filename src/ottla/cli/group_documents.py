"""The description of a consumer group: the document that `--json` prints."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException

from ottla.cli.client import Connection
from ottla.cli.failures import Failed
from ottla.cli.group_coordinator import why_no_coordinator
from ottla.cli.offsets import LATEST, Partition, shown_offsets
from ottla.cli.screen import say, show_table
from ottla.journey.formatting import elapsed_said


def state_name(state: Any) -> str:
    """`stable`, `empty`, `preparing rebalancing` ..."""
    return str(state.name).lower().replace("_", " ")


def committed_offsets(connection: Connection, group: str) -> dict[Partition, Any]:
    """What the group has committed: librdkafka's TopicPartition (offset, metadata) of each."""
    futures = connection.admin.list_consumer_group_offsets(
        [ConsumerGroupTopicPartitions(group)], request_timeout=connection.answer_timeout_s
    )
    answer = connection.wait(futures[group], f"read the offsets of group {group!r}")
    return {
        (each.topic, each.partition): each for each in answer.topic_partitions if each.offset >= 0
    }


def described_groups(connection: Connection, names: Sequence[str]) -> dict[str, Any]:
    """librdkafka's descriptions by name, without the groups that do not exist."""
    if not names:
        return {}
    connection.metadata()  # fails sooner, and says more, if no broker answers
    futures = connection.admin.describe_consumer_groups(
        list(names), request_timeout=connection.answer_timeout_s
    )
    found: dict[str, Any] = {}
    for name in names:
        error = futures[name].exception(connection.answer_timeout_s + 1)
        if (
            isinstance(error, KafkaException)
            and error.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND
        ):
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


def group_document(connection: Connection, name: str, description: Any) -> dict[str, Any]:
    """Members, and each partition's committed offset, end and lag."""
    committed = committed_offsets(connection, name)
    owners = {
        (each.topic, each.partition): member
        for member in description.members
        for each in (member.assignment.topic_partitions if member.assignment else ())
    }
    topics = connection.topics()
    keys = sorted({*committed, *owners})
    living = [key for key in keys if key[0] in topics and key[1] in topics[key[0]].partitions]
    (ends,), why = shown_offsets(connection, living, LATEST)
    partitions: list[dict[str, Any]] = []
    for key in keys:
        at, end, owner = committed.get(key), ends.get(key), owners.get(key)
        partitions.append(
            {
                "topic": key[0],
                "partition": key[1],
                "committed_offset": at.offset if at else None,
                "end_offset": end,
                "lag": max(0, end - at.offset) if at and end is not None else None,
                "offsets_error": why.get(key),
                "metadata": (at.metadata or "") if at else "",
                "member_id": owner.member_id if owner else None,
            }
        )
    return {
        "group": name,
        "state": state_name(description.state),
        "type": str(description.type.name).lower(),
        "assignor": description.partition_assignor or None,
        "coordinator": description.coordinator.id if description.coordinator else None,
        "members": [
            {
                "member_id": member.member_id,
                "instance_id": member.group_instance_id,
                "client_id": member.client_id,
                "host": member.host,
                "partitions": sum(1 for owner in owners.values() if owner is member),
            }
            for member in description.members
        ],
        "partitions": partitions,
        "lag": sum(each["lag"] or 0 for each in partitions),
    }


def show_group(document: dict[str, Any]) -> None:
    """Print one group."""
    members = {member["member_id"]: member for member in document["members"]}
    count = len(members)
    silent = any(each["offsets_error"] for each in document["partitions"])
    or_more = " or more" if silent else ""
    title = (
        f"{document['group']}: {document['state']}, {count} member{'' if count == 1 else 's'}, "
        f"lag {document['lag']:,}{or_more}{behind(document)}"
    )
    show_table(
        ["topic", "partition", "committed", "end", "lag", "behind", "client", "metadata", "state"],
        [
            [
                each["topic"],
                each["partition"],
                each["committed_offset"],
                each["end_offset"],
                each["lag"],
                age(each.get("behind_ms")),
                client_name(members.get(each["member_id"])),
                shown_metadata(each["metadata"]),
                each["offsets_error"] or "",
            ]
            for each in document["partitions"]
        ],
        title=title,
        drop_empty=("behind", "client", "metadata", "state"),
    )
    idle = [member for member in members.values() if not member["partitions"]]
    for member in idle:
        say(f"no partition assigned: {client_name(member)}")


def behind(document: dict[str, Any]) -> str:
    """The age of the group's first unread record for the title, if there is one."""
    oldest = age(document.get("behind_ms"))
    return f", {oldest} behind" if oldest else ""


def age(behind_ms: int | None) -> str:
    """Of the first unread record; empty if it is not known, or there is none."""
    return elapsed_said(behind_ms) if behind_ms else ""


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


def client_name(member: dict[str, Any] | None) -> str:
    """`client-id@host`, or nothing for a partition without a consumer."""
    return f"{member['client_id']}@{member['host'].lstrip('/')}" if member else ""
