"""Moving a group's offsets: the plan that `--dry-run` shows, and its execution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition

from ottla.cli.client import Connection, explain
from ottla.cli.failures import Failed, UsageFailed
from ottla.cli.offsets import Partition, end_offsets, first_offsets, offsets_at
from ottla.cli.plural import plural
from ottla.cli.positions import parse_time
from ottla.cli.screen import ask, note, show_json, show_table


@dataclass(frozen=True, slots=True)
class Target:
    """The requested target; exactly one field is set."""

    earliest: bool = False
    latest: bool = False
    offset: int | None = None
    time: str | None = None
    shift: int | None = None
    at_ms: int | None = None


def parse_target(target: Target, group: str, now_ms: int) -> Target:
    """The target with its time in ms. Raises UsageFailed unless exactly one is given."""
    options = {
        "--to-earliest": target.earliest or None,
        "--to-latest": target.latest or None,
        "--to-offset": target.offset,
        "--to-time": target.time,
        "--shift-by": target.shift,
    }
    given = [name for name, value in options.items() if value is not None]
    if len(given) != 1:
        raise UsageFailed(
            f"{' and '.join(given)} exclude each other." if given else "no target given.",
            f"Give one of {', '.join(options)}: ottla group reset {group} --to-earliest --dry-run",
        )
    if target.time is not None:
        return replace(target, at_ms=parse_time("--to-time", target.time, now_ms))
    return target


def choose_partitions(
    connection: Connection,
    group: str,
    given: Sequence[str] | None,
    committed: Mapping[Partition, int],
) -> list[Partition]:
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
    found: dict[Partition, None] = {}
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
            found[name, int(text)] = None
    return list(found)


def plan(
    connection: Connection,
    target: Target,
    partitions: Sequence[Partition],
    committed: Mapping[Partition, int],
) -> list[dict[str, Any]]:
    """Each partition with its old and new offset; new offsets are limited to the log's range."""
    first, end = first_offsets(connection, partitions), end_offsets(connection, partitions)
    by_time: dict[Partition, int] = {}
    if target.at_ms is not None:
        by_time = offsets_at(connection, partitions, target.at_ms)
    moves: list[dict[str, Any]] = []
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
    connection: Connection, wanted: Mapping[Partition, int], committed: Mapping[Partition, int]
) -> list[dict[str, Any]]:
    """The same for a given offset of each partition."""
    partitions = sorted(wanted)
    first, end = first_offsets(connection, partitions), end_offsets(connection, partitions)
    return [move(key, committed.get(key), wanted[key], first[key], end[key]) for key in partitions]


def move(
    key: Partition, before: int | None, after: int, first: int, end: int, remark: str = ""
) -> dict[str, Any]:
    """One partition of a plan, with the new offset inside its log."""
    kept = min(max(after, first), end)
    if kept != after:
        edge = "first offset" if kept > after else "end"
        remark = f"{after} is outside the log; moved to its {edge}, {kept}."
    return {"topic": key[0], "partition": key[1], "before": before, "after": kept, "note": remark}


def carry_out(
    connection: Connection,
    group: str,
    moves: Sequence[Mapping[str, Any]],
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Commit the plan, unless `dry_run`, and print it. Raises Failed."""
    if not dry_run:
        apply(connection, group, moves)
    if as_json:
        show_json({"group": group, "applied": not dry_run, "partitions": moves})
    else:
        show_moves(moves, dry_run=dry_run)


def moved_topics(moves: Sequence[Mapping[str, Any]]) -> list[str]:
    """The topics of which a partition gets another offset."""
    return sorted({move["topic"] for move in moves if move["before"] != move["after"]})


def consequence(moves: Sequence[Mapping[str, Any]]) -> str:
    """What the group's next members read again or never read, in a sentence; `""` for nothing.

    Offsets are counted: on a compacted topic, or one with transactions, there are fewer records.
    """
    steps = [move["after"] - move["before"] for move in moves if move["before"] is not None]
    again = -sum(step for step in steps if step < 0)
    skipped = sum(step for step in steps if step > 0)
    parts = [f"{plural(again, 'record')} read again"] if again else []
    parts += [f"{plural(skipped, 'record')} skipped"] if skipped else []
    return f"{' and '.join(parts)}." if parts else ""


def confirm(group: str, moves: Sequence[Mapping[str, Any]]) -> bool:
    """Ask before several topics are moved of which none was named.

    Raises UsageFailed without a terminal.
    """
    topics = moved_topics(moves)
    if len(topics) < 2:
        return True
    question = f"Move {group} on {len(topics)} topics ({', '.join(topics)})?"
    if what := consequence(moves):
        question += f" {what}"
    return ask(question, what_else=f"For one topic add --topic {topics[0]}, for all add --yes.")


def show_moves(moves: Sequence[Mapping[str, Any]], *, dry_run: bool) -> None:
    """Print a plan, and what was changed of it."""
    show_table(
        ["topic", "partition", "from", "to"],
        [[each["topic"], each["partition"], each["before"], each["after"]] for each in moves],
    )
    for each in moves:
        if each["note"]:
            note(f"{each['topic']}-{each['partition']}: {each['note']}")
    if what := consequence(moves):
        note(what)
    if dry_run:
        note("Nothing was changed (--dry-run).")


def apply(connection: Connection, group: str, moves: Sequence[Mapping[str, Any]]) -> None:
    """Commit the plan. Raises Failed that names the partitions which could not be moved."""
    partitions = [TopicPartition(move["topic"], move["partition"], move["after"]) for move in moves]
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
