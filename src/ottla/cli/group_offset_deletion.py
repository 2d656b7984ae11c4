"""`ottla group delete-offsets`: forgets what a group has committed for topics (KIP-496)."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from ottla.cli.client import Connection, connect
from ottla.cli.failures import EXIT_FAILED, Failed, UsageFailed
from ottla.cli.group_documents import committed_offsets
from ottla.cli.group_members import existing_groups
from ottla.cli.group_reset import choose_partitions
from ottla.cli.offsets import Partition
from ottla.cli.plural import plural
from ottla.cli.screen import ask, note, say, show_json, show_table
from ottla.cli.typer_options import (
    DEFAULT_BOOTSTRAP,
    AsJson,
    Bootstrap,
    ClientConfig,
    DryRun,
    GroupName,
    GroupTopics,
    Yes,
)


def delete_offsets(
    group: GroupName,
    topic: GroupTopics = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    client_config: ClientConfig = None,
) -> None:
    """Delete a group's committed offsets of topics. No member may be subscribed to them."""
    if not topic:
        raise UsageFailed(
            "no topic given.",
            f"For example: ottla group delete-offsets {group} --topic TOPIC. "
            f"To delete the group: ottla group delete {group}",
        )
    connection = connect(bootstrap, client_config)
    existing_groups(connection, [group])
    committed = {key: at.offset for key, at in committed_offsets(connection, group).items()}
    chosen = [
        key for key in choose_partitions(connection, group, topic, committed) if key in committed
    ]
    if not chosen:
        raise Failed(
            f"group {group!r} has no committed offsets there.",
            f"To see what it has: ottla group describe {group}",
        )
    documents = [
        {"topic": key[0], "partition": key[1], "committed_offset": committed[key]} for key in chosen
    ]
    if not as_json:
        show_table(["topic", "partition", "committed"], [list(each.values()) for each in documents])
    if not dry_run:
        question = f"Delete {plural(len(chosen), 'committed offset')} of group {group}?"
        if not yes and not ask(question, what_else="To delete without confirmation: --yes"):
            note("Nothing was deleted.")
            raise typer.Exit(EXIT_FAILED)
        delete_at_coordinator(connection, group, chosen)
    if as_json:
        show_json({"group": group, "deleted": not dry_run, "partitions": documents})
    elif dry_run:
        note("Nothing was deleted (--dry-run).")
    else:
        say(f"Deleted {plural(len(chosen), 'committed offset')} of group {group}.")


def delete_at_coordinator(
    connection: Connection, group: str, partitions: Sequence[Partition]
) -> None:
    """Deletes the offsets. Raises Failed that names the first partition whose offset is kept, and
    ClientError.
    """
    # Imported late: the other commands about groups need no messages of Kafka's.
    from ottla.client.admin import groups
    from ottla.client.errors import RefusedError
    from ottla.protocol.errors import ErrorCode

    for kept, code in groups.delete_offsets(connection.client, group, partitions).items():
        doing = f"delete offsets of group {group!r}"
        if code is ErrorCode.group_subscribed_to_topic:
            raise Failed(
                f"cannot {doing}: its members are subscribed to {kept.topic}.",
                f"Stop the consumers first. To list them: ottla group members {group}",
            )
        raise RefusedError(f"{doing} for {kept}", code)
