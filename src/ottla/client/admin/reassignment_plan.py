"""Which brokers are to hold the replicas of topics: spread over some, or as many as wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ottla.client.admin.reassignments import Replicas
from ottla.client.errors import ClientError
from ottla.controller.spreading import SpreadingError, spread
from ottla.wording.errors import unknown

Targets = dict[str, dict[int, tuple[int, ...]]]


def check_partitions(assignments: Replicas, targets: Mapping[str, Mapping[int, object]]) -> None:
    """Raises ClientError for a topic or partition that does not exist."""
    for topic, partitions in targets.items():
        if topic not in assignments:
            raise unknown(
                ClientError, "topic", topic, assignments, "To list all topics: ottla topic list"
            )
        count = len(assignments[topic])
        for index in partitions:
            if index >= count:
                raise ClientError(f"topic {topic!r} has partitions 0 to {count - 1}, not {index}.")


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
            check_partitions(assignments, {topic: dict.fromkeys(partition)})
        indexes = sorted(set(partition or range(len(assignments[topic]))))
        try:
            found = spread(
                [assignments[topic][index] for index in indexes],
                list(live) if brokers is None else brokers,
                racks,
                factor=factor,
                even=brokers is not None,
            )
        except SpreadingError as error:
            raise ClientError(f"topic {topic!r}: {error}") from None
        targets[topic] = {indexes[at]: replicas for at, replicas in found.items()}
    return targets
