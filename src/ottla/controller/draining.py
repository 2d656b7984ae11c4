"""Where to put all that lies on one broker, so that it can be taken away.

Works on plain numbers, so that a command can use it with what it knows from Metadata.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class DrainingError(ValueError):
    """The broker cannot be emptied; the text says why."""


def drained(
    broker_id: int,
    racks: Mapping[int, str | None],
    assignments: Mapping[str, Sequence[Sequence[int]]],
) -> dict[str, dict[int, tuple[int, ...]]]:
    """The target replicas of each partition that has one on `broker_id`; others are left out.

    `racks` has every live broker; `assignments` each topic's replicas by partition, without those
    that a reassignment is removing. The place in the order is kept, so a partition that the broker
    leads by preference gets the new broker as its preferred leader. The broker with the fewest
    replicas (of those in the right racks) gets each: with the fewest preferred partitions where a
    leader is to be replaced.

    Raises DrainingError.
    """
    others = sorted(number for number in racks if number != broker_id)
    replicas = dict.fromkeys(others, 0)
    leaders = dict.fromkeys(others, 0)
    for partitions in assignments.values():
        for each in partitions:
            for place, broker in enumerate(each):
                if broker in replicas:
                    replicas[broker] += 1
                    leaders[broker] += place == 0
    targets: dict[str, dict[int, tuple[int, ...]]] = {}
    for topic in sorted(assignments):
        for index, each in enumerate(assignments[topic]):
            if broker_id not in each:
                continue
            place = list(each).index(broker_id)
            free = [b for b in others if b not in each]
            if not free:
                raise DrainingError(
                    f"Broker {broker_id} cannot be drained: {topic}-{index} has replication factor "
                    f"{len(each)} (other live brokers: {len(others)}). Add a broker, or give the "
                    "topic fewer replicas."
                )
            # A rack that has no replica yet keeps the copies apart (KIP-36).
            used = {racks.get(b) for b in each if b != broker_id}
            apart = [b for b in free if racks[b] is not None and racks[b] not in used]
            load = leaders if place == 0 else replicas
            chosen = min(apart or free, key=lambda b: (load[b], replicas[b], b))
            replicas[chosen] += 1
            leaders[chosen] += place == 0
            target = (*each[:place], chosen, *each[place + 1 :])
            targets.setdefault(topic, {})[index] = target
    return targets
