"""Where a leader's logs start and end, for a follower whose fetch offset is out of range."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final

from ottla.network.peer import Peer
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of
from ottla.replica.partition import Partition

LIST_OFFSETS: Final = 2
VERSION: Final = 9
LATEST: Final = -1
EARLIEST: Final = -2


async def leader_offsets(
    peer: Peer, replica_id: int, partitions: Sequence[Partition], timeout_ms: int
) -> dict[tuple[str, int], tuple[int, int]]:
    """Start and end of each partition for which the leader returns no error.

    The end is fetched first, as in AbstractFetcherThread. Raises PeerError.
    """
    ends = await _list_offsets(peer, replica_id, partitions, LATEST, timeout_ms)
    starts = await _list_offsets(peer, replica_id, partitions, EARLIEST, timeout_ms)
    return {name: (starts[name], end) for name, end in ends.items() if name in starts}


async def _list_offsets(
    peer: Peer, replica_id: int, partitions: Sequence[Partition], timestamp: int, timeout_ms: int
) -> dict[tuple[str, int], int]:
    build = messages_of(LIST_OFFSETS, VERSION, "request")
    by_topic: dict[str, list[Any]] = defaultdict(list)
    for each in partitions:
        requested = build.ListOffsetsPartition(
            partition_index=each.index,
            current_leader_epoch=each.leader_epoch,
            timestamp=timestamp,
        )
        by_topic[each.topic].append(requested)
    topics = tuple(
        build.ListOffsetsTopic(name=name, partitions=tuple(those))
        for name, those in by_topic.items()
    )
    request = build.ListOffsetsRequest(replica_id=replica_id, topics=topics)
    response = await peer.ask(request, timeout_ms)
    return {
        (topic.name, each.partition_index): each.offset
        for topic in response.topics
        for each in topic.partitions
        if each.error_code is ErrorCode.none and each.offset >= 0
    }
