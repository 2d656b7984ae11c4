"""The targets of a reassignment, from the options of `ottla cluster reassign`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ottla.cli.failures import Failed, UsageFailed, unknown
from ottla.cli.plural import plural
from ottla.cli.topic.assignment import read_assignment
from ottla.controller.spreading import SpreadingError, spread

Targets = dict[str, dict[int, tuple[int, ...]]]
Replicas = Mapping[str, Sequence[Sequence[int]]]
"""Each topic's replicas by partition."""


def read_brokers(text: str | None) -> list[int] | None:
    """`1,2,3` as numbers. Raises UsageFailed."""
    if text is None:
        return None
    words = [word.strip() for word in text.split(",")]
    if not all(word.isascii() and word.isdecimal() for word in words):
        raise UsageFailed(f"--brokers must be broker ids, not {text!r}.", "For example: 1,2,3")
    return sorted({int(word) for word in words})


def check_places(assignments: Replicas, targets: Mapping[str, Mapping[int, object]]) -> None:
    """Raises Failed for a topic or partition that does not exist."""
    for topic, partitions in targets.items():
        if topic not in assignments:
            raise unknown("topic", topic, assignments, "To list all topics: ottla topic list")
        count = len(assignments[topic])
        for index in partitions:
            if index >= count:
                raise Failed(f"topic {topic!r} has partitions 0 to {count - 1}, not {index}.")


def check_brokers(
    targets: Mapping[str, Mapping[int, Sequence[int]]],
    wanted: Sequence[int],
    live: Mapping[int, object],
) -> None:
    """Raises Failed for a broker that is not there: it could not copy anything."""
    named = {broker for each in targets.values() for row in each.values() for broker in row}
    for number in sorted(named | set(wanted)):
        if number not in live:
            raise unknown(
                "live broker",
                str(number),
                map(str, sorted(live)),
                "To list all brokers: ottla cluster describe",
            )


def assigned(
    text: str,
    topic: str,
    partition: Sequence[int] | None,
    assignments: Replicas,
) -> Targets:
    """The targets of `--assign`: of all partitions, or of the named ones in that order."""
    rows = read_assignment(text)
    places = list(partition or range(len(assignments[topic])))
    if len(rows) != len(places):
        raise UsageFailed(
            f"--assign names the brokers of {plural(len(rows), 'partition')}, "
            f"but {len(places)} {'is' if len(places) == 1 else 'are'} to be moved.",
            "Name as many with --partition N, or the brokers of all partitions.",
        )
    targets = {topic: dict(zip(places, map(tuple, rows), strict=True))}
    check_places(assignments, targets)
    return targets


def spread_out(
    topics: Sequence[str],
    partition: Sequence[int] | None,
    assignments: Replicas,
    live: Mapping[int, str | None],
    brokers: Sequence[int] | None,
    factor: int | None,
) -> Targets:
    """The targets of `--brokers` and `--replication-factor`."""
    targets: Targets = {}
    racks = dict(live)
    for topic in dict.fromkeys(topics):
        if partition:
            check_places(assignments, {topic: dict.fromkeys(partition)})
        places = sorted(set(partition or range(len(assignments[topic]))))
        try:
            found = spread(
                [assignments[topic][index] for index in places],
                list(live) if brokers is None else brokers,
                racks,
                factor=factor,
                even=brokers is not None,
            )
        except SpreadingError as error:
            raise Failed(f"topic {topic!r}: {error}") from None
        targets[topic] = {places[at]: replicas for at, replicas in found.items()}
    return targets
