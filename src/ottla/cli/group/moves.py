"""Moving a group's offsets: the plan that `--dry-run` shows, and its execution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ottla.cli.confirmation import confirm
from ottla.cli.existing import check_partition, existing_topics
from ottla.cli.failures import Failed, UsageFailed
from ottla.cli.rows import emit, row
from ottla.cli.screen import note, show_table
from ottla.client.admin.committed_offsets import Commit, commits_of
from ottla.client.admin.groups import SHARE, Group
from ottla.client.admin.offset_moves import Move, commit_moves, consequence, moved_topics
from ottla.client.admin.share_offsets import share_commits_of
from ottla.client.client import Client
from ottla.client.topic_partition import TopicPartition


@row
class MovedGroup:
    """A plan; `applied`: not with --dry-run."""

    group: str
    applied: bool
    partitions: Sequence[Move]

    def show(self) -> None:
        show_table(
            ["topic", "partition", "from", "to"],
            [[each.topic, each.partition, each.before, each.after] for each in self.partitions],
        )
        for each in self.partitions:
            if each.note:
                note(f"{each.topic}-{each.partition}: {each.note}")
        if what := consequence(self.partitions):
            note(what)
        if not self.applied:
            note("Nothing was changed (--dry-run).")


def is_share_group(group: Group | None) -> bool:
    return group is not None and group.type == SHARE


def offsets_of(client: Client, name: str, group: Group | None) -> dict[TopicPartition, Commit]:
    """What the group has committed; of a share group, where it stands. `group`: None for one that
    does not exist.
    """
    if is_share_group(group):
        return share_commits_of(client, name)
    return commits_of(client, name)


def choose_partitions(
    client: Client,
    group: str,
    given: Sequence[str],
    committed: Mapping[TopicPartition, object],
) -> list[TopicPartition]:
    """The partitions of `--topic TOPIC[:0,1]`, or all for which the group has committed offsets."""
    if not given:
        leaders = client.metadata(sorted({key.topic for key in committed})).leaders
        chosen = sorted(key for key in committed if key in leaders)
        if not chosen:
            raise Failed(
                f"group {group!r} has no committed offsets, so --topic is needed.",
                f"For example: ottla group reset {group} --topic TOPIC --to-earliest",
            )
        return chosen
    found: dict[TopicPartition, None] = {}
    for word in given:
        name, colon, listed = word.partition(":")
        topic = existing_topics(client, [name])[name]
        for text in listed.split(",") if colon else map(str, sorted(topic.partitions)):
            if not text.isdecimal():
                raise UsageFailed(
                    f"--topic must be TOPIC or TOPIC:0,1, not {word!r}.",
                    f"For example: --topic {name}:0",
                )
            check_partition(topic, int(text))
            found[TopicPartition(name, int(text))] = None
    return list(found)


def move_group(
    client: Client,
    group: str,
    moves: Sequence[Move],
    *,
    dry_run: bool,
    as_json: bool,
    is_share: bool = False,
) -> None:
    """Carry out the plan, unless `dry_run`, and print it. Raises Failed."""
    if not dry_run:
        commit_moves(client, group, moves, is_share=is_share)
    emit(MovedGroup(group, not dry_run, moves), as_json=as_json)


def confirm_moves(group: str, moves: Sequence[Move]) -> None:
    """Ask before several topics are moved of which none was named; a no ends the command.

    Raises UsageFailed without a terminal.
    """
    topics = moved_topics(moves)
    question = f"Move {group} on {len(topics)} topics ({', '.join(topics)})?"
    if what := consequence(moves):
        question += f" {what}"
    confirm(
        question,
        yes=len(topics) < 2,
        what_else=f"For one topic add --topic {topics[0]}, for all add --yes." if topics else "",
    )
