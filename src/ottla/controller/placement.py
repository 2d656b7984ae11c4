"""Which brokers get the replicas of new partitions.

The rules of Kafka's AdminUtils.assignReplicasToBrokers: first replicas go round the brokers from a
starting point, and the others follow at a distance that grows with each round, so that the
followers of one leader are spread over many brokers. Brokers of different racks alternate in the
round (KIP-36), so the replicas of a partition are in different racks if there are enough.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Sequence
from itertools import chain, islice

from ottla.controller.image import BrokerImage
from ottla.protocol.errors import ApiError, ErrorCode


def place(
    brokers: Sequence[BrokerImage], partitions: int, factor: int, first: int, start: int
) -> tuple[tuple[int, ...], ...]:
    """The replicas of `partitions` new partitions; the first one has the number `first`.

    `start` is any number; it chooses the first broker, so that small topics do not all start on
    the same one. Raises INVALID_REPLICATION_FACTOR.
    """
    if factor <= 0:
        raise _unplaceable(
            factor,
            f"Invalid replication factor {factor}: the replication factor must be positive.",
        )
    if factor > len(brokers):
        raise _unplaceable(
            factor,
            f"The target replication factor of {factor} cannot be reached because only "
            f"{len(brokers)} broker(s) are registered.",
        )
    ring = _rack_alternated(brokers)
    racks = {broker.broker_id: broker.rack for broker in brokers}
    turn, distances = len(ring), max(len(ring) - 1, 1)
    # Seven brokers have 42 different placements, and a topic may have 10,000 partitions.
    known: dict[tuple[int, int], tuple[int, ...]] = {}
    placed = []
    for partition in range(first, first + partitions):
        turns = (start + partition) % turn, (start + partition // turn) % distances
        replicas = known.get(turns)
        if replicas is None:
            replicas = known[turns] = _replicas(ring, racks, factor, *turns)
        placed.append(replicas)
    return tuple(placed)


def check_assignment(
    replicas: Sequence[int], possible: Container[int], factor: int | None = None
) -> None:
    """Raise INVALID_REPLICA_ASSIGNMENT unless these brokers can hold one partition.

    `possible` are the brokers to choose from: the registered ones, and existing replicas. `factor`
    is the replication factor of the topic's other partitions.
    """
    begin = "The manual partition assignment includes"
    if not replicas:
        raise _bad_assignment(f"{begin} an empty replica list.")
    for broker in sorted(replicas):
        if broker not in possible:
            raise _bad_assignment(f"{begin} broker {broker}, but no such broker is registered.")
        if list(replicas).count(broker) > 1:
            raise _bad_assignment(f"{begin} the broker {broker} more than once.")
    if factor is not None and len(replicas) != factor:
        raise _bad_assignment(
            f"{begin} a partition with {len(replicas)} replica(s), but this is not consistent "
            f"with previous partitions, which have {factor} replica(s)."
        )


def check_active(partition: int, replicas: Sequence[int], shutting_down: Collection[int]) -> None:
    """Raise INVALID_REPLICA_ASSIGNMENT if no broker could lead the new partition."""
    if all(broker in shutting_down for broker in replicas):
        raise _bad_assignment(
            "All brokers specified in the manual partition assignment for partition "
            f"{partition} are fenced or in controlled shutdown."
        )


def _bad_assignment(message: str) -> ApiError:
    return ApiError(ErrorCode.invalid_replica_assignment, message)


def _unplaceable(factor: int, reason: str) -> ApiError:
    return ApiError(
        ErrorCode.invalid_replication_factor,
        f"Unable to replicate the partition {factor} time(s): {reason}",
    )


def _rack_alternated(brokers: Sequence[BrokerImage]) -> list[int]:
    """Broker numbers, one of each rack in turn."""
    racks: dict[str, list[int]] = {}
    for broker in sorted(brokers, key=lambda each: each.broker_id):
        racks.setdefault(broker.rack or "", []).append(broker.broker_id)
    ring: list[int] = []
    longest = max(map(len, racks.values()))
    for turn in range(longest):
        ring.extend(racks[rack][turn] for rack in sorted(racks) if turn < len(racks[rack]))
    return ring


def _replicas(
    ring: Sequence[int], racks: dict[int, str | None], factor: int, position: int, shift: int
) -> tuple[int, ...]:
    leader = ring[position]
    chosen, used = [leader], {racks[leader]}
    all_racks = len(set(racks.values()))
    others = (
        ring[(position + 1 + (shift + step) % (len(ring) - 1)) % len(ring)]
        for step in range(len(ring) - 1)
    )
    # Racks without a replica of the partition come first; the order of the round decides the rest.
    later: list[int] = []
    while len(chosen) < factor and len(used) < all_racks:
        broker = next(others)
        if racks[broker] in used:
            later.append(broker)
        else:
            used.add(racks[broker])
            chosen.append(broker)
    chosen += islice(chain(later, others), factor - len(chosen))
    return tuple(chosen)
