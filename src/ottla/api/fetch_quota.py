"""The quota of a consumer: it gets records, or has to wait (ClientQuotaManager, KIP-219)."""

from __future__ import annotations

from typing import Any, NamedTuple

from ottla.api.context import Context
from ottla.api.fetch_reads import Reads
from ottla.runtime.slices import SLICE, parts


class Throttled(NamedTuple):
    """For how long a consumer is throttled, and the response if it gets no records."""

    throttle_ms: int
    empty: Any


async def throttled(reads: Reads, context: Context) -> Throttled | None:
    """None if the records are within the quota.

    The empty response leaves the session as the client knows it: what was read is read again for
    its next request, and a session that this request has begun ends (FetchContext,
    getThrottledResponse).
    """
    broker, fetch = context.broker, reads.fetch
    throttle_ms, gets = broker.throttling.fetch(context, reads.size_bytes)
    if not throttle_ms:
        return None
    if gets:
        return Throttled(throttle_ms, None)
    if not fetch.incremental:
        broker.fetch_sessions.give_up(fetch)
    elif len(reads.found) <= SLICE:
        fetch.wait.requested(reads.found)
    else:
        for part in parts(list(reads.found)):
            fetch.wait.requested(part)
            await reads.pause()
    build = context.messages.FetchResponse
    return Throttled(
        throttle_ms, build(throttle_time=throttle_ms, session_id=fetch.session_id, responses=())
    )
