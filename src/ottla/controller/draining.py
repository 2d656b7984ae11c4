"""Where to move the replicas of one broker, so that it can be removed.

Works on plain numbers, so that a command can use it with what Metadata returns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

MAX_NAMED: Final = 3


class DrainingError(ValueError):
    """The broker cannot be drained; the message gives the reason."""


def drained(
    broker_id: int,
    racks: Mapping[int, str | None],
    assignments: Mapping[str, Sequence[Sequence[int]]],
) -> dict[str, dict[int, tuple[int, ...]]]:
    """The target replicas of each partition that has one on `broker_id`; others are left out.

    `racks` has every live broker; `assignments` has each topic's replicas by partition, without
    those that a reassignment is removing. The new broker takes the same position in the list, so it
    becomes the preferred leader where the drained broker was. The choice is the broker with the
    fewest replicas among those in suitable racks; for a preferred leader, the one with the fewest
    preferred partitions.

    Raises DrainingError.
    """
    others = sorted(number for number in racks if number != broker_id)
    replicas = dict.fromkeys(others, 0)
    leaders = dict.fromkeys(others, 0)
    for partitions in assignments.values():
        for each in partitions:
            for position, broker in enumerate(each):
                if broker in replicas:
                    replicas[broker] += 1
                    leaders[broker] += position == 0
    targets: dict[str, dict[int, tuple[int, ...]]] = {}
    stuck: dict[str, int] = {}
    for topic in sorted(assignments):
        for index, each in enumerate(assignments[topic]):
            if broker_id not in each:
                continue
            position = list(each).index(broker_id)
            free = [b for b in others if b not in each]
            if not free:
                stuck[topic] = stuck.get(topic, 0) + 1
                continue
            # A rack without a replica of the partition keeps the copies apart (KIP-36).
            used = {racks.get(b) for b in each if b != broker_id}
            apart = [b for b in free if racks[b] is not None and racks[b] not in used]
            load = leaders if position == 0 else replicas
            chosen = min(apart or free, key=lambda b: (load[b], replicas[b], b))
            replicas[chosen] += 1
            leaders[chosen] += position == 0
            target = (*each[:position], chosen, *each[position + 1 :])
            targets.setdefault(topic, {})[index] = target
    if stuck:
        topics = [f"{topic} ({count})" for topic, count in list(stuck.items())[:MAX_NAMED]]
        more = f" and {len(stuck) - MAX_NAMED} more topics" if len(stuck) > MAX_NAMED else ""
        raise DrainingError(
            f"broker {broker_id} cannot be drained: partitions of {', '.join(topics)}{more} have "
            f"replicas on every other live broker ({', '.join(map(str, others)) or 'none'})."
        )
    return targets
