"""Moving a group's offsets: the plan that `--dry-run` shows, and its execution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException
from confluent_kafka import TopicPartition as PartitionAt

from ottla.cli.client import Connection, explain
from ottla.cli.confirmation import confirm
from ottla.cli.failures import Failed, UsageFailed
from ottla.cli.offsets import end_offsets, first_offsets, offsets_at
from ottla.cli.plural import plural
from ottla.cli.rows import column, emit, only_json, row, show_rows
from ottla.cli.screen import note
from ottla.client.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class Target:
    """The requested target; exactly one field is set."""

    earliest: bool = False
    latest: bool = False
    offset: int | None = None
    at_ms: int | None = None
    shift: int | None = None


@row
class Move:
    """A partition of a plan."""

    topic: str
    partition: int
    before: int | None = column("from")
    after: int = column("to")
    note: str = only_json()


@row
class MovedGroup:
    """A plan; `applied`: not with --dry-run."""

    group: str
    applied: bool
    partitions: Sequence[Move]

    def show(self) -> None:
        show_rows(self.partitions, like=Move)
        for each in self.partitions:
            if each.note:
                note(f"{each.topic}-{each.partition}: {each.note}")
        if what := consequence(self.partitions):
            note(what)
        if not self.applied:
            note("Nothing was changed (--dry-run).")


def choose_partitions(
    connection: Connection,
    group: str,
    given: Sequence[str],
    committed: Mapping[TopicPartition, int],
) -> list[TopicPartition]:
    """The partitions of `--topic TOPIC[:0,1]`, or all for which the group has committed offsets."""
    topics = connection.topics()
    if not given:
        chosen = sorted(key for key in committed if key[0] in topics)
        if not chosen:
            raise Failed(
                f"group {group!r} has no committed offsets, so --topic is needed.",
                f"For example: ottla group reset {group} --topic TOPIC --to-earliest",
            )
        return chosen
    found: dict[TopicPartition, None] = {}
    for word in given:
        name, colon, listed = word.partition(":")
        topic = connection.existing_topics([name])[name]
        for text in listed.split(",") if colon else map(str, sorted(topic.partitions)):
            if not text.isdecimal():
                raise UsageFailed(
                    f"--topic must be TOPIC or TOPIC:0,1, not {word!r}.",
                    f"For example: --topic {name}:0",
                )
            if int(text) not in topic.partitions:
                last = len(topic.partitions) - 1
                raise Failed(f"topic {name!r} has partitions 0 to {last}, not {text}.")
            found[TopicPartition(name, int(text))] = None
    return list(found)


def plan(
    connection: Connection,
    target: Target,
    partitions: Sequence[TopicPartition],
    committed: Mapping[TopicPartition, int],
) -> list[Move]:
    """Each partition with its old and new offset; new offsets are limited to the log's range."""
    first, end = first_offsets(connection, partitions), end_offsets(connection, partitions)
    by_time: dict[TopicPartition, int] = {}
    if target.at_ms is not None:
        by_time = offsets_at(connection, partitions, target.at_ms)
    moves: list[Move] = []
    for key in partitions:
        before = committed.get(key)
        remark = ""
        if target.earliest:
            after = first[key]
        elif target.latest:
            after = end[key]
        elif target.at_ms is not None:
            after = by_time[key]
        elif target.offset is not None:
            after = target.offset
        else:
            assert target.shift is not None
            after = (first[key] if before is None else before) + target.shift
            if before is None:
                remark = f"no offset was committed; shifted from the first offset, {first[key]}."
        moves.append(move(key, before, after, first[key], end[key], remark))
    return moves


def plan_to(
    connection: Connection,
    wanted: Mapping[TopicPartition, int],
    committed: Mapping[TopicPartition, int],
) -> list[Move]:
    """The same for a given offset of each partition."""
    partitions = sorted(wanted)
    first, end = first_offsets(connection, partitions), end_offsets(connection, partitions)
    return [move(key, committed.get(key), wanted[key], first[key], end[key]) for key in partitions]


def move(
    key: TopicPartition, before: int | None, after: int, first: int, end: int, remark: str = ""
) -> Move:
    """One partition of a plan, with the new offset inside its log."""
    kept = min(max(after, first), end)
    if kept != after:
        edge = "first offset" if kept > after else "end"
        remark = f"{after} is outside the log; moved to its {edge}, {kept}."
    return Move(*key, before, kept, remark)


def move_group(
    connection: Connection, group: str, moves: Sequence[Move], *, dry_run: bool, as_json: bool
) -> None:
    """Commit the plan, unless `dry_run`, and print it. Raises Failed."""
    if not dry_run:
        apply(connection, group, moves)
    emit(MovedGroup(group, not dry_run, moves), as_json=as_json)


def moved_topics(moves: Sequence[Move]) -> list[str]:
    """The topics of which a partition gets another offset."""
    return sorted({move.topic for move in moves if move.before != move.after})


def consequence(moves: Sequence[Move]) -> str:
    """What the group's next members read again or never read, in a sentence; `""` for nothing.

    Offsets are counted: on a compacted topic, or one with transactions, there are fewer records.
    """
    steps = [move.after - move.before for move in moves if move.before is not None]
    again = -sum(step for step in steps if step < 0)
    skipped = sum(step for step in steps if step > 0)
    parts = [f"{plural(again, 'record')} read again"] if again else []
    parts += [f"{plural(skipped, 'record')} skipped"] if skipped else []
    return f"{' and '.join(parts)}." if parts else ""


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
        refused="Nothing was changed.",
    )


def apply(connection: Connection, group: str, moves: Sequence[Move]) -> None:
    """Commit the plan. Raises Failed that names the partitions which could not be moved."""
    partitions = [PartitionAt(move.topic, move.partition, move.after) for move in moves]
    futures = connection.admin.alter_consumer_group_offsets(
        [ConsumerGroupTopicPartitions(group, partitions)],
        request_timeout=connection.answer_timeout_s,
    )
    answer = connection.wait(futures[group], f"move the offsets of group {group!r}")
    failed = [each for each in answer.topic_partitions if each.error is not None]
    if failed:
        error = failed[0].error
        reason = error.args[0] if isinstance(error, KafkaException) else error
        names = ", ".join(f"{each.topic}-{each.partition}" for each in failed)
        raise Failed(f"not moved: {names}: {explain(reason)}")
