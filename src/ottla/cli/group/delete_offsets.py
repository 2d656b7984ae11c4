"""`ottla group delete-offsets`: forgets what a group has committed for topics (KIP-496)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.cli.command import command
from ottla.cli.confirmation import confirm
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.failures import Failed, UsageFailed
from ottla.cli.group.existing import existing_groups, no_active_members
from ottla.cli.group.moves import choose_partitions, is_share_group, offsets_of
from ottla.cli.options import AS_JSON, DRY_RUN, GROUP_TOPICS, YES, group_argument
from ottla.cli.rows import column, emit, row, show_rows
from ottla.cli.screen import note, say
from ottla.client.admin.committed_offsets import delete_offsets as forget_offsets
from ottla.client.admin.share_offsets import delete_share_offsets
from ottla.client.client import Client
from ottla.client.errors import Needs, RefusedError
from ottla.client.topic_partition import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.wording.plural import plural


@row
class DeletedOffset:
    topic: str
    partition: int
    committed_offset: int = column("committed")


@row
class DeletedOffsets:
    """`deleted`: not with --dry-run."""

    group: str
    deleted: bool
    partitions: list[DeletedOffset]

    def show(self) -> None:
        if self.deleted:
            say(
                f"Deleted {plural(len(self.partitions), 'committed offset')} of group {self.group}."
            )
        else:
            note("Nothing was deleted (--dry-run).")


@command()
@group_argument()
@GROUP_TOPICS
@DRY_RUN
@YES
@AS_JSON
@cluster_options
def delete_offsets(
    cluster: Cluster, group: str, topic: Sequence[str], dry_run: bool, yes: bool, as_json: bool
) -> None:
    """Delete a group's committed offsets of topics. No member may be subscribed to them."""
    if not topic:
        raise UsageFailed(
            "no topic given.",
            f"For example: ottla group delete-offsets {group} --topic TOPIC. "
            f"To delete the group: ottla group delete {group}",
        )
    client = cluster.client
    found = existing_groups(client, [group])[group]
    is_share = is_share_group(found)
    if is_share and any(":" in word for word in topic):
        raise UsageFailed(
            "a share group forgets whole topics.",
            f"For example: ottla group delete-offsets {group} --topic {topic[0].partition(':')[0]}",
        )
    committed = offsets_of(client, group, found)
    chosen = [key for key in choose_partitions(client, group, topic, committed) if key in committed]
    if not chosen:
        raise Failed(
            f"group {group!r} has no committed offsets there.",
            f"To see what it has: ottla group describe {group}",
        )
    rows = [DeletedOffset(*key, committed[key].offset) for key in chosen]
    if not as_json:
        show_rows(rows)
    if not dry_run:
        confirm(
            f"Delete {plural(len(chosen), 'committed offset')} of group {group}?",
            yes=yes,
            refused="Nothing was deleted.",
        )
        if is_share:
            no_active_members(found)
            delete_share_topics(client, group, chosen)
        else:
            delete_at_coordinator(client, group, chosen)
    emit(DeletedOffsets(group, not dry_run, rows), as_json=as_json)


def delete_share_topics(client: Client, group: str, partitions: Sequence[TopicPartition]) -> None:
    """A share group forgets whole topics. Raises Failed and ClientError."""
    topics = list(dict.fromkeys(each.topic for each in partitions))
    for topic, code in delete_share_offsets(client, group, topics).items():
        doing = f"delete offsets of group {group!r} for {topic}"
        raise RefusedError(doing, code, None, Needs("Read", topic))


def delete_at_coordinator(client: Client, group: str, partitions: Sequence[TopicPartition]) -> None:
    """Deletes the offsets. Raises Failed that names the first partition whose offset is kept, and
    ClientError.
    """
    for kept, code in forget_offsets(client, group, partitions).items():
        doing = f"delete offsets of group {group!r}"
        if code is ErrorCode.group_subscribed_to_topic:
            raise Failed(
                f"cannot {doing}: its members are subscribed to {kept.topic}.",
                f"Stop the consumers first. To list them: ottla group members {group}",
            )
        raise RefusedError(f"{doing} for {kept}", code, None, Needs("Read", kept.topic))
