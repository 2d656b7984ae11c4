"""`ottla cluster elect`: elects leaders (KIP-460), as `kafka-leader-election.sh` does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import click

from ottla.cli.command import command
from ottla.cli.confirmation import confirm
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.existing import existing_topics, partitions_of
from ottla.cli.failures import EXIT_FAILED, UsageFailed
from ottla.cli.options import AS_JSON, DRY_RUN, OF_PARTITION, YES, topics_argument
from ottla.cli.rows import column, emit, row
from ottla.cli.screen import note
from ottla.client.admin.elections import (
    elect_leaders,
    leader_of,
    preferred,
    settled_leaders,
    to_elect,
)
from ottla.client.topic_partition import TopicPartition
from ottla.wording.plural import plural


@row
class Election:
    """The leader of a partition before and after; `error` is why there was no election."""

    topic: str
    partition: int
    preferred: int
    before: int | None = column("leader before")
    after: int | None = column("leader now")
    error: str | None = column("", lambda each: each.error or "", is_optional=True)


@command()
@topics_argument(required=False)
@OF_PARTITION
@click.option(
    "--unclean",
    is_flag=True,
    help="Elect a replica that is not in sync where there is no leader. Loses records.",
)
@DRY_RUN
@YES
@AS_JSON
@cluster_options
def elect(
    cluster: Cluster,
    topics: Sequence[str],
    partition: Sequence[int],
    unclean: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Give partitions their preferred leaders again, or with --unclean any leader at all."""
    if unclean and not topics:
        raise UsageFailed(
            "--unclean needs topics: it loses records.",
            "To see which partitions are offline: ottla cluster describe",
        )
    if partition and len(topics) != 1:
        raise UsageFailed("--partition needs one topic.")
    client = cluster.client
    known = existing_topics(client, topics) if topics else client.metadata().topics
    states = {key: known[key[0]].partitions[key[1]] for key in partitions_of(known, partition)}
    wanted = to_elect(states, unclean=unclean)
    if not wanted:
        none = "a leader" if unclean else "its preferred leader"
        each = f"each of {plural(len(states), 'partition')} has {none}"
        emit([], as_json=as_json, none=f"Nothing to elect: {each}.")
        return 0
    if unclean and not dry_run:
        confirm(
            f"Elect replicas that are not in sync for {plural(len(wanted), 'partition')}, and lose "
            "what they do not have?",
            yes=yes,
        )
    why: dict[TopicPartition, str] = {}
    if not dry_run:
        failed = elect_leaders(client, wanted, unclean=unclean)
        why = {each: refusal.reason for each, refusal in failed.items()}
    after = {} if dry_run else settled_leaders(client, wanted, why)
    rows = [
        Election(
            *key,
            preferred(state),
            leader_of(state),
            after.get(key, leader_of(state)),
            why.get(key),
        )
        for key, state in wanted.items()
    ]
    emit(rows, as_json=as_json)
    if dry_run and not as_json:
        note("Nothing was changed (--dry-run).")
    if unclean and not dry_run:
        for key, state in wanted.items():
            if key not in why and after.get(key) not in (None, *state.in_sync):
                note(loss(key, after[key], state.in_sync))
    return EXIT_FAILED if why else 0


def loss(key: TopicPartition, leader: int | None, in_sync: Iterable[int]) -> str:
    """What an unclean election costs. `in_sync`: who was in sync; newer Kafkas do not say."""
    others = sorted(in_sync)
    missing = "The records that it does not have are lost."
    if others:
        named = f"broker{'s' if others[1:] else ''} {' and '.join(map(str, others))}"
        verb = "have" if others[1:] else "has"
        missing = f"The records that only {named} {verb} are lost."
    return f"{key[0]}-{key[1]}: broker {leader}, the leader now, was not in sync. {missing}"
