"""`ottla cluster elect`: elects leaders (KIP-460), as `kafka-leader-election.sh` does.

A preferred election moves leadership back to the first replica, if that one is in sync. An unclean
one gives a partition without a leader one that is not in sync: what only the others have is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import click

from ottla.cli.client import Connection
from ottla.cli.command import command
from ottla.cli.confirmation import confirm
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.failures import EXIT_FAILED, UsageFailed
from ottla.cli.offsets import partitions_of
from ottla.cli.options import AS_JSON, DRY_RUN, OF_PARTITION, YES, topics_argument
from ottla.cli.plural import plural
from ottla.cli.polling import poll_until
from ottla.cli.rows import column, emit, row
from ottla.cli.screen import note
from ottla.client.admin.elections import elect_leaders
from ottla.client.topic_partition import TopicPartition

SETTLE_TIMEOUT_S: Final = 5.0
LOOK_PAUSE_S: Final = 0.1


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
    connection = cluster.connection
    known = connection.existing_topics(topics) if topics else connection.topics()
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
            what_else="To elect without confirmation, add --yes.",
            refused="Nothing was changed.",
        )
    why: dict[TopicPartition, str] = {}
    if not dry_run:
        failed = elect_leaders(connection.client, wanted, unclean=unclean)
        why = {each: refusal.reason for each, refusal in failed.items()}
    after = {} if dry_run else settled(connection, wanted, why)
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
            if key not in why and after.get(key) not in (None, *state.isrs):
                note(loss(key, after[key], state.isrs))
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


def preferred(state: Any) -> int:
    """The first replica."""
    return int(state.replicas[0])


def leader_of(state: Any) -> int | None:
    return state.leader if state.leader >= 0 else None


def to_elect(states: Mapping[TopicPartition, Any], *, unclean: bool) -> dict[TopicPartition, Any]:
    """The partitions without a leader, or those that another than the preferred one leads."""
    if unclean:
        return {key: state for key, state in states.items() if leader_of(state) is None}
    return {key: state for key, state in states.items() if leader_of(state) != preferred(state)}


def settled(
    connection: Connection, wanted: Mapping[TopicPartition, Any], why: Mapping[TopicPartition, str]
) -> dict[TopicPartition, int | None]:
    """The leaders once the broker that responds knows the new ones, which takes a moment."""

    def look() -> dict[TopicPartition, int | None]:
        topics = connection.topics()
        # A topic may have been deleted in the meantime.
        return {
            key: leader_of(topics[key[0]].partitions[key[1]]) if key[0] in topics else None
            for key in wanted
        }

    def is_changed(now: Mapping[TopicPartition, int | None]) -> bool:
        return all(now[key] != leader_of(state) for key, state in wanted.items() if key not in why)

    return poll_until(look, is_changed, within_s=SETTLE_TIMEOUT_S, pause_s=LOOK_PAUSE_S)
