"""At the end of a run, each partition's leader is asked for the journeys of some records, and what
it says is compared with the tree's leaders, the replicas, and the clients' history. What it says of
the group is judged when all of its commits are over: see `journey_reads`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from random import Random
from typing import Any, Final, NamedTuple

from faults.history import Acknowledged, Event, Sent

from ottla.tracing.find_message import JourneyError, MessageQuery
from ottla.tracing.trace import trace
from simulation.broker import FIRST_WALL_MS, Broker
from simulation.cluster import Cluster
from simulation.journey_reads import Asked
from simulation.violation import Violation

MAX_ASKED: Final = 4
"""Records of a partition."""
Document = dict[str, Any]


class Span(NamedTuple):
    """A record was sent at the one time, and acknowledged at the other."""

    sent_ms: int
    acknowledged_ms: int


Written = tuple[int, str]
"""An offset and the value there: an unclean election may bring back an older record."""


def spans_of(events: Iterable[Event], partition: int) -> dict[Written, Span]:
    """The records of a partition of which it is known."""
    sent: dict[str, int] = {}
    found: dict[Written, Span] = {}
    for event in events:
        if isinstance(event, Sent):
            sent.setdefault(event.value, event.at_ms)
        elif isinstance(event, Acknowledged) and event.partition == partition:
            sent_ms = sent.get(event.value)
            if event.offset >= 0 and sent_ms is not None:
                found[event.offset, event.value] = Span(sent_ms, event.at_ms)
    return found


async def check_journeys(
    cluster: Cluster,
    topic: str,
    index: int,
    broker: Broker,
    partition: Any,
    spans: dict[Written, Span],
    again: str = "",
) -> list[Asked]:
    """The journeys of some records, others if it is asked `again`. Raises Violation for one that
    says what is not true.
    """
    node, process, loop = broker.node, broker.process, cluster.loop
    said_all: list[Asked] = []
    if node is None or process is None:
        return said_all
    account = cluster.invariants.account(topic, index)
    start, high = partition.log.start_offset, partition.high_watermark
    random = Random(f"{cluster.seed} journeys{again} of {topic}-{index}")
    asked = sorted(random.sample(range(start, high), min(MAX_ASKED, high - start)))
    for offset in asked:
        query, began_ms = MessageQuery(topic, index, offset, None, latest=False), loop.now_ms
        try:
            said = await loop.start_in(process, partial(trace, query, node))
        except JourneyError as error:
            if error.code in ("not_leader", "not_available"):
                return said_all
            raise Violation(f"no journey of {topic}-{index} {offset}: {error}") from None
        wrong = untrue(cluster, topic, index, partition, said)
        span = spans.get((offset, _value_of(said)))
        if wrong is None and not cluster.has_set_clocks and span is not None:
            wrong = untrue_time(said, span)
        if wrong is not None:
            raise Violation(f"the journey of {topic}-{index} {offset} says {wrong}")
        has_lost = account is None or bool(account.lost) or account.is_forgiven
        sent_ms = None if span is None else span.sent_ms
        said_all.append(Asked(topic, index, said, began_ms, loop.now_ms, has_lost, sent_ms))
    return said_all


def _value_of(said: Document) -> str:
    """Empty for a record that is no longer there."""
    value = (said.get("published") or {}).get("value") or {}
    return str(value.get("text") or "")


def untrue(cluster: Cluster, topic: str, index: int, partition: Any, said: Document) -> str | None:
    """What is not true of the leaders and the replicas; None: nothing."""
    if said["state"] not in ("stored", "removed"):
        return f"that it is {said['state']}"
    account = cluster.invariants.account(topic, index)
    if account is None or said["state"] != "stored":
        return None
    epoch, replicated = said["appended"]["leader_epoch"], said["replicated"]
    leader = account.leaders.get(epoch)
    if leader is not None and said["appended"]["broker"] not in (None, leader):
        return f"that broker {said['appended']['broker']} appended it, not {leader}"
    if said["offset"] < partition.high_watermark and not replicated["committed"]:
        return "that it is not committed"
    for one in replicated["elections"]:
        led = account.leaders.get(one["leader_epoch"])
        if led is not None and led != one["leader"]:
            return f"that broker {one['leader']} leads in epoch {one['leader_epoch']}, not {led}"
    in_sync = partition.state.isr if partition.state is not None else ()
    for copy in replicated["copies"]:
        if copy["state"] == "not_yet" and copy["broker"] in in_sync and replicated["committed"]:
            return f"that broker {copy['broker']}, which is in sync, does not have it"
    return None


def untrue_time(said: Document, span: Span) -> str | None:
    """Whether the append or its bounds lie outside of what the clients saw."""
    first_ms, last_ms = (FIRST_WALL_MS + each for each in span)
    when = said["appended"]["when"]
    since_ms, until_ms = when["since_ms"], when["until_ms"]
    if until_ms is not None and until_ms < first_ms:
        return f"that it was appended by {until_ms}, and it was sent at {first_ms}"
    if since_ms is not None and since_ms > last_ms:
        return f"that it was appended from {since_ms}, and it was acknowledged at {last_ms}"
    return None
