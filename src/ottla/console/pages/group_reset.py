"""Moving what a group has committed: first the plan, which changes nothing, then what it says."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Final

from starlette.responses import Response

from ottla.client.admin.committed_offsets import Commit, commits_of
from ottla.client.admin.groups import SHARE, Group, delete_group, described_groups
from ottla.client.admin.offset_moves import (
    Move,
    Target,
    commit_moves,
    consequence,
    plan,
    plan_to,
)
from ottla.client.admin.share_offsets import share_commits_of
from ottla.client.client import Client
from ottla.client.topic_partition import TopicPartition
from ottla.console.errors import BadFormError, ConflictError, NotFoundError
from ottla.console.templates import address
from ottla.console.visit import Visit
from ottla.messaging.positions import parse_time
from ottla.wording.plural import plural

TARGETS: Final = ("earliest", "latest", "time", "offset", "shift")
MAX_SHOWN: Final = 500
MAX_SHIFT: Final = 2**62
LINE: Final = re.compile(r"(\S+) (\d{1,10}) (\d{1,19}|-) (\d{1,19})", re.ASCII)


def planned(visit: Visit) -> Response:
    """The plan of the form on a group's page, to be confirmed."""
    group = idle_group(visit)
    committed = committed_by(visit.client, group)
    partitions = chosen_partitions(visit, group, committed)
    moves = plan(visit.client, target_of(visit), partitions, committed)
    return visit.page(
        "group_reset.html",
        group=group,
        moves=moves[:MAX_SHOWN],
        more=len(moves) - MAX_SHOWN,
        changed=sum(each.before != each.after for each in moves),
        what=consequence(moves),
        stays=group.topology.what_stays if group.topology else "",
        written=written_moves(moves),
    )


def applied(visit: Visit) -> Response:
    """Commits the offsets that the plan has shown. Raises ConflictError if a member has joined,
    what is committed has changed, or a log does not reach so far any more.
    """
    group = idle_group(visit)
    wanted = read_moves(visit.form.get("moves", ""))
    committed = committed_by(visit.client, group)
    for key, (before, _) in wanted.items():
        present = committed[key].offset if key in committed else None
        if present != before:
            raise ConflictError(
                f"{key} is at {present} by now, not at {before}: somebody has committed since the "
                "plan was made.",
                "Nothing was changed. Make the plan again.",
            )
    moves = plan_to(visit.client, {key: after for key, (_, after) in wanted.items()}, committed)
    for each in moves:
        if each.after != wanted[TopicPartition(each.topic, each.partition)][1]:
            raise ConflictError(
                f"the log of {each.topic}-{each.partition} has changed since the plan was made: "
                f"{each.note}",
                "Nothing was changed. Make the plan again.",
            )
    commit_moves(visit.client, group.name, moves, is_share=group.type == SHARE)
    return visit.go(
        address("/group", name=group.name),
        f"Moved {plural(len(moves), 'partition')} of {group.name}. {consequence(moves)}".strip(),
    )


def deleted(visit: Visit) -> Response:
    """Deletes the group with what it has committed, once its name was typed."""
    group = idle_group(visit)
    if visit.form.get("typed", "") != group.name:
        raise BadFormError(
            f"to delete {group.name}, type its name, not {visit.form.get('typed', '')!r}.",
            "Nothing was deleted.",
        )
    delete_group(visit.client, group.name)
    return visit.go("/groups", f"Deleted group {group.name}.")


def idle_group(visit: Visit) -> Group:
    """The group of the form. Raises ConflictError while it has members: brokers refuse changes
    then.
    """
    name = visit.form.get("name", "")
    group = described_groups(visit.client, [name]).get(name)
    if group is None:
        raise NotFoundError(f"there is no group {name!r}.", "All groups are listed under Groups.")
    if group.members:
        raise ConflictError(
            f"{plural(len(group.members), 'member')} of group {name!r} "
            f"{'is' if len(group.members) == 1 else 'are'} reading now.",
            "Stop the consumers first. Nothing was changed.",
        )
    return group


def committed_by(client: Client, group: Group) -> Mapping[TopicPartition, Commit]:
    """Of a share group, where it stands."""
    if group.type == SHARE:
        return share_commits_of(client, group.name)
    return commits_of(client, group.name)


def chosen_partitions(
    visit: Visit, group: Group, committed: Mapping[TopicPartition, object]
) -> list[TopicPartition]:
    """All that the group has committed, or those of a topic. Of a streams group what others write:
    what it writes for itself would be processed beside what it reads again. Raises BadFormError.
    """
    topic = visit.text("topic")
    if topic:
        return topic_partitions(visit.client, topic)
    if group.topology is not None and group.topology.sources:
        found = sorted(visit.client.metadata(group.topology.sources).leaders)
        if not found:
            raise NotFoundError("the topics that the group reads are not there any more.")
        return found
    leaders = visit.client.metadata(sorted({key.topic for key in committed})).leaders
    found = sorted(key for key in committed if key in leaders)
    if not found:
        raise BadFormError("the group has committed nothing, so a topic has to be named.")
    return found


def topic_partitions(client: Client, topic: str) -> list[TopicPartition]:
    found = sorted(client.metadata([topic]).leaders)
    if not found:
        raise NotFoundError(f"there is no topic {topic!r}.", "Nothing was changed.")
    return found


def target_of(visit: Visit) -> Target:
    """Where the form says. Raises BadFormError, and PositionError."""
    kind, value = visit.text("to"), visit.text("value")
    if kind == "earliest":
        return Target(earliest=True)
    if kind == "latest":
        return Target(latest=True)
    if kind not in TARGETS:
        raise BadFormError(f"to must be one of {', '.join(TARGETS)}, not {kind!r}.")
    if not value:
        raise BadFormError(f"give the {kind} to move to.", "For example: 15m, 42, -100")
    if kind == "time":
        return Target(at_ms=parse_time("The time", value, int(time.time() * 1000)))
    number = visit.number("value", 0 if kind == "offset" else -MAX_SHIFT, MAX_SHIFT)
    return Target(offset=number) if kind == "offset" else Target(shift=number)


def written_moves(moves: list[Move]) -> str:
    """For the form that confirms them: `topic partition before after` lines."""
    return "\n".join(
        f"{each.topic} {each.partition} {'-' if each.before is None else each.before} {each.after}"
        for each in moves
    )


def read_moves(text: str) -> dict[TopicPartition, tuple[int | None, int]]:
    """The reverse: the old and the new offset of each. Raises BadFormError."""
    found: dict[TopicPartition, tuple[int | None, int]] = {}
    for line in text.splitlines():
        matched = LINE.fullmatch(line)
        if matched is None:
            raise BadFormError(f"{line!r} is no part of a plan.", "Make the plan again.")
        topic, partition, before, after = matched.groups()
        found[TopicPartition(topic, int(partition))] = (
            None if before == "-" else int(before),
            int(after),
        )
    if not found:
        raise BadFormError("the plan is empty.", "Make the plan again.")
    return found
