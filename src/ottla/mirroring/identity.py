"""Whether topics are still those that were read and written, by their ids (KIP-516)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

from ottla.mirroring.clusters import SideClient, id_of
from ottla.mirroring.position import is_same

MAX_LOOKS: Final = 10
LOOK_PAUSE_S: Final = 0.5


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
