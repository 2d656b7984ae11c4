"""Where the replicas of a topic go when they are spread over some brokers, or get another number.

Works on plain numbers, so that a command can use it with what Metadata returns. Kafka's
`kafka-reassign-partitions.sh --generate` places each partition as if it were new, which moves
nearly every replica. Here a replica stays where it is, unless its broker is not among the chosen
ones or has more than its share.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

Racks = Mapping[int, str | None]


class SpreadingError(ValueError):
    """There are too few brokers; the message says so."""


def spread(
    partitions: Sequence[Sequence[int]],
    brokers: Collection[int],
    racks: Racks,
    *,
    factor: int | None = None,
    even: bool = True,
) -> dict[int, tuple[int, ...]]:
    """The target replicas of each partition that changes.

    `partitions` has the topic's replicas by partition, and `brokers` those that may hold them.
    `factor` is the new number of replicas; None keeps it. With `even`, no broker has two replicas
    more than another, and preferred leaders are spread too; without, only what must change does.

    Raises SpreadingError.
    """
    most = max((factor or len(each) for each in partitions), default=0)
    if most > len(brokers):
        raise SpreadingError(
            f"{most} replicas need {most} brokers, but there "
            f"{'is' if len(brokers) == 1 else 'are'} {len(brokers)}: "
            f"{', '.join(map(str, sorted(brokers))) or 'none'}."
        )
    rows = [[broker for broker in each if broker in brokers] for each in partitions]
    load = Counter(dict.fromkeys(sorted(brokers), 0))
    load.update(broker for row in rows for broker in row)
    for row, each in zip(rows, partitions, strict=True):
        _resize(row, factor or len(each), load, racks)
    if even:
        _level_replicas(rows, load, racks)
        _level_leaders(rows, brokers)
    return {
        index: tuple(row)
        for index, (row, each) in enumerate(zip(rows, partitions, strict=True))
        if row != list(each)
    }


def _resize(row: list[int], factor: int, load: Counter[int], racks: Racks) -> None:
    """Give a partition that many replicas. The preferred leader stays."""
    while len(row) > factor:
        used = Counter(racks.get(broker) for broker in row)
        # Of two replicas in one rack, one is of less use (KIP-36).
        gone = max(row[1:], key=lambda broker: (used[racks.get(broker)], load[broker], broker))
        row.remove(gone)
        load[gone] -= 1
    while len(row) < factor:
        free = [broker for broker in load if broker not in row]
        held = {racks.get(broker) for broker in row}
        apart = [broker for broker in free if racks.get(broker) not in held]
        new = min(apart or free, key=lambda broker: (load[broker], broker))
        row.append(new)
        load[new] += 1


def _level_replicas(rows: list[list[int]], load: Counter[int], racks: Racks) -> None:
    """Move replicas from the brokers with the most to those with the fewest.

    Ends: each move makes the sum of the squares of the loads smaller.
    """
    while True:
        move = _next_move(rows, load, racks)
        if move is None:
            return
        row, index, low = move
        load[row[index]] -= 1
        load[low] += 1
        row[index] = low


def _next_move(
    rows: list[list[int]], load: Counter[int], racks: Racks
) -> tuple[list[int], int, int] | None:
    """A partition, the index of the replica in it that moves, and the broker that gets it."""
    ordered = sorted(load, key=lambda broker: (load[broker], broker))
    for high in reversed(ordered):
        for low in ordered:
            if load[high] - load[low] < 2:
                break
            leaders = None
            for row in rows:
                if high not in row or low in row or not _as_apart(row, high, low, racks):
                    continue
                index = row.index(high)
                if index:
                    return row, index, low
                leaders = leaders or (row, index, low)
            if leaders is not None:
                return leaders
    return None


def _as_apart(row: Sequence[int], old: int, new: int, racks: Racks) -> bool:
    """Whether the replicas are in as many racks after the move as before."""
    others = {racks.get(broker) for broker in row if broker != old}
    return racks.get(new) not in others or racks.get(old) in others


def _level_leaders(rows: list[list[int]], brokers: Collection[int]) -> None:
    """Exchange the first replica with another one, so that each broker is first equally often.

    This moves no data. Ends for the same reason as above.
    """
    first = Counter(dict.fromkeys(sorted(brokers), 0))
    first.update(row[0] for row in rows if row)
    while True:
        pair = next(
            (
                (row, low)
                for row in rows
                for low in sorted(row, key=lambda broker: first[broker])
                if first[row[0]] - first[low] >= 2
            ),
            None,
        )
        if pair is None:
            return
        row, low = pair
        index = row.index(low)
        first[row[0]] -= 1
        first[low] += 1
        row[0], row[index] = low, row[0]
