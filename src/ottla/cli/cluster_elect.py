"""`ottla cluster elect`: elects leaders (KIP-460), as `kafka-leader-election.sh` does.

A preferred election moves leadership back to the first replica, if that one is in sync. An unclean
one gives a partition without a leader one that is not in sync: what only the others have is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final

import typer

from ottla.cli.client import Connection, connect
from ottla.cli.failures import EXIT_FAILED, UsageFailed
from ottla.cli.offsets import partitions_of
from ottla.cli.plural import plural
from ottla.cli.polling import poll_until
from ottla.cli.screen import ask, note, show_json, show_table
from ottla.cli.typer_options import (
    DEFAULT_BOOTSTRAP,
    AsJson,
    Bootstrap,
    ClientConfig,
    DryRun,
    OfPartition,
    SomeTopicNames,
    Yes,
)
from ottla.client.admin.elections import elect_leaders
from ottla.client.topic_partition import TopicPartition

SETTLE_TIMEOUT_S: Final = 5.0
LOOK_PAUSE_S: Final = 0.1

Unclean = Annotated[
    bool,
    typer.Option(
        "--unclean",
        help="Elect a replica that is not in sync where there is no leader. Loses records.",
    ),
]


def elect(
    topics: SomeTopicNames = None,
    partition: OfPartition = None,
    unclean: Unclean = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    client_config: ClientConfig = None,
) -> None:
    """Give partitions their preferred leaders again, or with --unclean any leader at all."""
    if unclean and not topics:
        raise UsageFailed(
            "--unclean needs topics: it loses records.",
            "To see which partitions are offline: ottla cluster describe",
        )
    if partition and len(topics or ()) != 1:
        raise UsageFailed("--partition needs one topic.")
    connection = connect(bootstrap, client_config)
    known = connection.existing_topics(topics) if topics else connection.topics()
    states = {key: known[key[0]].partitions[key[1]] for key in partitions_of(known, partition)}
    wanted = to_elect(states, unclean=unclean)
    if not wanted:
        none = "a leader" if unclean else "its preferred leader"
        if as_json:
            show_json([])
        else:
            note(f"Nothing to elect: each of {plural(len(states), 'partition')} has {none}.")
        return
    if unclean and not dry_run and not yes:
        question = (
            f"Elect replicas that are not in sync for {plural(len(wanted), 'partition')}, and lose "
            "what they do not have?"
        )
        if not ask(question, what_else="To elect without confirmation, add --yes."):
            note("Nothing was changed.")
            raise typer.Exit(EXIT_FAILED)
    why: dict[TopicPartition, str] = {}
    if not dry_run:
        failed = elect_leaders(connection.client, wanted, unclean=unclean)
        why = {each: refusal.reason for each, refusal in failed.items()}
    after = {} if dry_run else settled(connection, wanted, why)
    documents = [
        {
            "topic": key[0],
            "partition": key[1],
            "preferred": preferred(state),
            "before": leader_of(state),
            "after": after.get(key, leader_of(state)),
            "error": why.get(key),
        }
        for key, state in wanted.items()
    ]
    if as_json:
        show_json(documents)
    else:
        show_table(
            ["topic", "partition", "preferred", "leader before", "leader now", ""],
            [[*list(each.values())[:-1], each["error"] or ""] for each in documents],
            drop_empty=("",),
        )
        if dry_run:
            note("Nothing was changed (--dry-run).")
    if unclean and not dry_run:
        for key, state in wanted.items():
            if key not in why and after.get(key) not in (None, *state.isrs):
                note(loss(key, after[key], state.isrs))
    if why:
        raise typer.Exit(EXIT_FAILED)


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
