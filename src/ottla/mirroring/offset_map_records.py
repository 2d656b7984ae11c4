"""The offset map as records of a compacted topic at the target.

Key, as JSON:     {"topic": NAME, "partition": N, "from": SOURCE_OFFSET or "start"}
Value, as JSON:   {"target": TARGET_OFFSET, "runs": [COUNT, SKIPPED, SKIPPED, COUNT ...]}

NAME is that of the source. `runs` are counts of records, and between two counts how many offsets
the source and the target skip. The record with "start" says where the mirror began; what lies
before it in the topic belongs to an earlier life of the partition (its topic was deleted at the
target and mirrored again). Its value is

{"source": SOURCE_OFFSET, "target": TARGET_OFFSET, "origin": {as in the metadata of a position}}

An earlier version has written none with an origin. A record is written in the transaction of the
records that it describes, so it is there if and only if they are. The last record of a partition
may be written again with more runs, under its key (`open_entries`); a reader skips the runs that it
knows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from ottla.client.topic_partition import TopicPartition
from ottla.mirroring.offset_map import Run
from ottla.mirroring.position import Origin, origin_fields, origin_of

START: Final = "start"
MAX_RUNS: Final = 5_000
"""Of one record: about 60 kB."""


class MapEntry(NamedTuple):
    """One record of the topic, read. `runs` has one of no records if `is_start`."""

    partition: TopicPartition
    is_start: bool
    runs: tuple[Run, ...]
    origin: Origin | None = None
    """Where the records are from, if `is_start` and it is known."""


def start_record(
    partition: TopicPartition, source: int, target: int, origin: Origin
) -> tuple[bytes, bytes]:
    """Key and value of the record that says where the mirror begins."""
    value = {"source": source, "target": target, "origin": origin_fields(origin)}
    return entry_key(partition, START), _json(value)


def entry_key(partition: TopicPartition, begin: int | str) -> bytes:
    """The key of the entry that begins with this source offset, or of START."""
    return _json({"topic": partition.topic, "partition": partition.partition, "from": begin})


def map_records(partition: TopicPartition, runs: Sequence[Run]) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values of the records that describe these runs."""
    for first in range(0, len(runs), MAX_RUNS):
        some = runs[first : first + MAX_RUNS]
        steps = [some[0].records]
        for before, run in pairwise(some):
            steps += [
                run.source - before.source - before.records,
                run.target - before.target - before.records,
                run.records,
            ]
        value = {"target": some[0].target, "runs": steps}
        yield entry_key(partition, some[0].source), _json(value)


def read_entry(key: bytes, value: bytes) -> MapEntry | None:
    """None for a record that is none of the map."""
    try:
        of, what = json.loads(key), json.loads(value)
        partition = TopicPartition(str(of["topic"]), int(of["partition"]))
        if of["from"] == START:
            origin = origin_of(what["origin"]) if "origin" in what else None
            begin = Run(int(what["source"]), int(what["target"]), 0)
            return MapEntry(partition, True, (begin,), origin)
        source, target = int(of["from"]), int(what["target"])
        steps = [int(each) for each in what["runs"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    runs = [Run(source, target, steps[0])] if steps else []
    for at in range(1, len(steps) - 2, 3):
        before = runs[-1]
        runs.append(
            Run(
                before.source + before.records + steps[at],
                before.target + before.records + steps[at + 1],
                steps[at + 2],
            )
        )
    return MapEntry(partition, False, tuple(runs))


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
