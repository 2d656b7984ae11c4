"""`ottla group members`: who is in a group, and which partitions each member reads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ottla.cli.client import Connection, connect
from ottla.cli.failures import unknown
from ottla.cli.group_documents import described_groups, state_name
from ottla.cli.screen import show_documents, show_table
from ottla.cli.typer_options import (
    DEFAULT_BOOTSTRAP,
    AsJson,
    Bootstrap,
    ClientConfig,
    SomeGroupNames,
)

LIST_HINT: Final = "To list all groups: ottla group list"
NO_GROUPS: Final = "No groups yet. Create one with: ottla consume TOPIC --group NAME"


def members(
    groups: SomeGroupNames = None,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    client_config: ClientConfig = None,
) -> None:
    """Show the members of groups with their partitions."""
    connection = connect(bootstrap, client_config)
    if groups:
        found = existing_groups(connection, groups)
    else:
        names = [str(group.group_id) for group in connection.groups()]
        found = described_groups(connection, names)
    documents = [members_document(name, each) for name, each in found.items()]
    show_documents(documents, show_members, as_json=as_json, none=NO_GROUPS)


def existing_groups(connection: Connection, names: Iterable[str]) -> dict[str, Any]:
    """Descriptions by name. Raises Failed that names the first missing group."""
    wanted = list(dict.fromkeys(names))
    found = described_groups(connection, wanted)
    for name in wanted:
        if name not in found:
            known = [str(group.group_id) for group in connection.groups()]
            raise unknown("group", name, known, LIST_HINT)
    return found


def members_document(name: str, description: Any) -> dict[str, Any]:
    """The group's members by client id, each with its partitions by topic."""
    return {
        "group": name,
        "state": state_name(description.state),
        "assignor": description.partition_assignor or None,
        "members": [
            {
                "member_id": member.member_id,
                "instance_id": member.group_instance_id,
                "client_id": member.client_id,
                "host": member.host,
                "assignment": assignment_of(member),
            }
            for member in sorted(
                description.members, key=lambda each: (each.client_id, each.member_id)
            )
        ],
    }


def assignment_of(member: Any) -> list[dict[str, Any]]:
    """The partitions that the member reads, by topic."""
    topics: dict[str, list[int]] = {}
    for each in member.assignment.topic_partitions if member.assignment else ():
        topics.setdefault(each.topic, []).append(each.partition)
    return [
        {"topic": topic, "partitions": sorted(partitions)}
        for topic, partitions in sorted(topics.items())
    ]


def show_members(document: dict[str, Any]) -> None:
    """Print one group's members."""
    count = len(document["members"])
    title = f"{document['group']}: {document['state']}, {count} member{'' if count == 1 else 's'}"
    if document["assignor"]:
        title += f", assignor {document['assignor']}"
    show_table(
        ["client", "host", "instance", "partitions", "member id"],
        [
            [
                each["client_id"],
                each["host"].lstrip("/"),
                each["instance_id"] or "",
                " ".join(map(topic_text, each["assignment"])) or None,
                each["member_id"],
            ]
            for each in document["members"]
        ],
        title=title,
        drop_empty=("instance",),
    )


def topic_text(assigned: dict[str, Any]) -> str:
    """`orders:0-2,5`."""
    return f"{assigned['topic']}:{ranges(assigned['partitions'])}"


def ranges(numbers: list[int]) -> str:
    """Sorted numbers with neighbours joined: `0-2,5`."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)
