"""A query that began at the end of a topic, and was ended before it had a batch.

Its checkpoint has the offsets at which it began. The topic ends at others by now: to begin there
would leave out what was produced since then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ottla.pipelines.checkpoint.changes import Loss, Partitions, losses
from ottla.pipelines.checkpoint.identity import Identity, Offsets
from ottla.pipelines.source.source import Source


def begun_before(
    sources: Iterable[Source],
    identity: Identity | None,
    started: Offsets,
    topics: Mapping[str, Partitions],
) -> tuple[Offsets, list[str], list[Loss]]:
    """Return where topics with starting="latest" begin, what to tell of it, and what is lost.

    `started`: where the checkpoint's first start began. Pure.
    """
    found: Offsets = {}
    notices: list[str] = []
    lost: list[Loss] = []
    for source in sources:
        name, now = source.name, topics[source.name]
        at = started.get(name)
        is_same = identity is not None and identity.topics.get(name) == now.topic_id
        if source.starting != "latest" or not at or not is_same or at == now.latest:
            continue
        found[name] = at
        lost += losses(identity, {name: at}, {name: now})
        notices.append(
            f"Topic {name!r} begins where it ended when this query was first started, for it has "
            "no batch yet. To begin where the topic ends now, use a new checkpoint"
        )
    return found, notices, lost
