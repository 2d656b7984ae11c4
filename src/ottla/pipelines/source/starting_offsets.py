"""Where a new query starts: an explicit offset for each partition."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.kafka.brokers import TopicState, offsets_at

if TYPE_CHECKING:
    from ottla.pipelines.source.source import Source, Starting


def read_starting(starting: Any) -> Starting:
    """Check the argument `starting` of `topic`; raises PipelineError."""
    if isinstance(starting, str) and starting in ("earliest", "latest", "table"):
        return starting
    if isinstance(starting, datetime):
        if starting.tzinfo is None:
            raise PipelineError(
                f"starting={starting.isoformat()} has no time zone: write "
                "datetime(..., tzinfo=timezone.utc)"
            )
        return starting
    if isinstance(starting, Mapping) and starting:
        pairs = list(starting.items())
        if all(_is_count(partition) and _is_count(offset) for partition, offset in pairs):
            return dict(pairs)
    raise PipelineError(
        f"starting={starting!r}: write 'earliest', 'latest', 'table', a datetime, or an offset "
        "for each partition, such as {0: 4711, 1: 815}"
    )


def _is_count(number: Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number >= 0


def starting_offsets(source: Source, state: TopicState) -> dict[int, int]:
    """Return the offset at which each partition starts, for all starts but "table".

    Asks the brokers again for a datetime. Raises PipelineError for offsets that the topic does
    not hold.
    """
    starting = source.starting
    assert starting != "table", "only the run knows what the table holds"
    if isinstance(starting, datetime):
        return offsets_at(source.kafka, source.name, starting)
    if isinstance(starting, dict):
        _check_offsets(starting, state)
        return dict(starting)
    return dict(state.latest if starting == "latest" else state.earliest)


def _check_offsets(starting: Mapping[int, int], state: TopicState) -> None:
    if set(starting) != set(state.earliest):
        raise PipelineError(
            f"starting= names the partitions {_listed(starting)}; the topic {state.name} has "
            f"{_listed(state.earliest)}: give an offset for each of them"
        )
    for partition, offset in sorted(starting.items()):
        first, last = state.earliest[partition], state.latest[partition]
        if not first <= offset <= last:
            raise PipelineError(
                f"starting={{{partition}: {offset}}}: partition {partition} of the topic "
                f"{state.name} holds the offsets {first} to {last}; give one of these"
            )


def _listed(partitions: Mapping[int, int]) -> str:
    return ", ".join(map(str, sorted(partitions)))
