"""What one broker tells clients about partitions: it learns of a change after the controller."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from ottla.testing.broker_request import NoResponseError, kit_client

TIMEOUT_S: Final = 2.0


class KnownPartition(NamedTuple):
    """A partition in a broker's metadata, or in the coordination tree."""

    leader: int
    leader_epoch: int
    isr: frozenset[int]


Known = Mapping[tuple[str, int], KnownPartition]
"""By topic and partition."""


def partitions_known_to(
    bootstrap: str, topics: Iterable[str], settings: Mapping[str, str] | None = None
) -> Known:
    """The partitions of these topics in the metadata of the broker at this address; a topic that it
    does not know has none. Raises NoResponseError.
    """
    with kit_client(bootstrap, TIMEOUT_S, settings=settings) as client:
        found = client.metadata(list(topics))
    return {
        (topic.name, index): KnownPartition(each.leader, each.leader_epoch, frozenset(each.in_sync))
        for topic in found.topics.values()
        for index, each in topic.partitions.items()
    }


def not_yet_known(
    bootstrap: str,
    topics: Iterable[str],
    actual: Known,
    settings: Mapping[str, str] | None = None,
) -> list[str]:
    """One line for each of the actual partitions that the broker does not know as it is."""
    try:
        known = partitions_known_to(bootstrap, topics, settings)
    except NoResponseError as error:
        return [str(error)]
    return [
        f"{topic}-{partition}: {bootstrap} knows {known.get((topic, partition))}, it is {state}"
        for (topic, partition), state in actual.items()
        if known.get((topic, partition)) != state
    ]
