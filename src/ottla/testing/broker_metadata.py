"""What one broker tells clients about partitions: it learns of a change after the controller."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from ottla.protocol.messages import messages_of
from ottla.testing.broker_request import NoResponseError, ask_broker

METADATA: Final = 3
_VERSION: Final = 9
TIMEOUT_S: Final = 2.0


class KnownPartition(NamedTuple):
    """A partition in a broker's metadata, or in the coordination tree."""

    leader: int
    leader_epoch: int
    isr: frozenset[int]


Known = Mapping[tuple[str, int], KnownPartition]
"""By topic and partition."""


def partitions_known_to(bootstrap: str, topics: Iterable[str]) -> Known:
    """The partitions of these topics in the metadata of the broker at this address; a topic that it
    does not know has none. Raises NoResponseError.
    """
    build = messages_of(METADATA, _VERSION, "request")
    wanted = tuple(build.MetadataRequestTopic(name=topic) for topic in topics)
    request = build.MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
    response: Any = ask_broker(bootstrap, request, TIMEOUT_S)
    return {
        (topic.name, each.partition_index): KnownPartition(
            each.leader_id, each.leader_epoch, frozenset(each.isr_nodes)
        )
        for topic in response.topics
        for each in topic.partitions
    }


def not_yet_known(bootstrap: str, topics: Iterable[str], actual: Known) -> list[str]:
    """One line for each of the actual partitions that the broker does not know as it is."""
    try:
        known = partitions_known_to(bootstrap, topics)
    except NoResponseError as error:
        return [str(error)]
    return [
        f"{topic}-{partition}: {bootstrap} knows {known.get((topic, partition))}, it is {state}"
        for (topic, partition), state in actual.items()
        if known.get((topic, partition)) != state
    ]
