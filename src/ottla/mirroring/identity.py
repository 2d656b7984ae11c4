"""Whether topics are still those that were read and written, by their ids (KIP-516)."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from ottla.mirroring.clusters import SideClient, id_of
from ottla.mirroring.position import is_same
from ottla.mirroring.share import Share
from ottla.mirroring.target_producer import TransactionFailed

MAX_LOOKS: Final = 10
LOOK_PAUSE_S: Final = 0.5


class RecreatedError(Exception):
    """Topics of the source are not those whose records were read. `names`: at the target."""

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__()
        self.names = sorted(names)


def replaced_topics(client: SideClient, ids: Mapping[str, str | None]) -> list[str]:
    """Those of these topics that were deleted, or deleted and created again. Raises ClientError.

    A broker that has just started may not know all topics yet, so it is asked again for a while
    before a topic counts as deleted.
    """
    other: list[str] = []
    left = dict(ids)
    for look in range(MAX_LOOKS):
        if look:
            time.sleep(LOOK_PAUSE_S)
        with client.asked():
            found = client.metadata(sorted(left)).topics
        for name in [each for each in left if each in found and found[each].partitions]:
            if not is_same(id_of(found[name]), left.pop(name)):
                other.append(name)
        if not left:
            break
    return sorted([*other, *left])


def check_source(client: SideClient, share: Share, topics: Collection[str]) -> None:
    """Whether these topics are still those that were read; names at the target. Raises
    RecreatedError and ClientError.
    """
    ids = {
        share.sources[each]: position.origin.topic_id
        for each, position in share.committed.items()
        if each.topic in topics
    }
    other = set(replaced_topics(client, ids))
    if other:
        raise RecreatedError({each.topic for each, name in share.sources.items() if name in other})


def check_target(client: SideClient, share: Share, topics: Collection[str]) -> None:
    """Whether these topics of the target are those that were written to. Raises ClientError and
    TransactionFailed; the positions are looked at again then.
    """
    ids = {
        each.topic: position.origin.target_id
        for each, position in share.committed.items()
        if each.topic in topics
    }
    other = replaced_topics(client, ids)
    if other:
        raise TransactionFailed(f"topic {other[0]!r} was deleted at the target.")
