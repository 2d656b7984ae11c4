"""Fetch (key 1): reads batches from partitions, and waits if there are too few bytes.

v7 (KIP-227): sessions. v9 (KIP-320): leader epochs. v11 (KIP-392): rack. v12: flexible,
and divergence by last fetched epoch (KIP-595). v13 (KIP-516): topics by id. v15 (KIP-903): replica
state. v16 (KIP-951): current leaders. v17, v18: for replicas.
A response holds whole batches, starting with the one that holds the offset. The first batch is
always whole, even if it exceeds the limits (KIP-74).

A connection's requests are answered in order, so a consumer's fetch that waits for records holds
up the requests behind it, for up to fetch.max.wait.ms (500 ms). Kafka lets them wait. Here such a
fetch is answered as soon as a request of another type is behind it; max_wait is only a maximum.
Spark gains most: KafkaConsumer sends the next fetch ahead, and after each poll Spark's executor
asks for the partition's first and last offsets (InternalKafkaConsumer.fetch).
"""

from __future__ import annotations

import asyncio
from contextlib import closing
from typing import Any, Final

from ottla.api.broker_requests import REFUSED, is_from_broker
from ottla.api.context import Context
from ottla.api.fetch_answer import (
    Cold,
    answer,
    answer_in_slices,
    count_throttled,
    load,
    load_cold,
    load_in_turns,
)
from ottla.api.fetch_quota import throttled
from ottla.api.fetch_reads import Reads, fetching_replica
from ottla.network.client_session import ClientSession
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.replica.fetch_session import SESSIONS, Fetch
from ottla.replica.fetch_wait import FetchWait, Key
from ottla.runtime.slices import SLICE

KEY: Final = 1
ACCESS: Final = (Access(Operation.READ, Resource.TOPIC),)


async def handle(request: Any, context: Context) -> Any:
    """See `replica.fetch_wait` for the steps."""
    broker = context.broker
    sessions = broker.fetch_sessions
    now_ms = broker.clock.monotonic_ms()
    try:
        _check_sender(request, context)
        if _names_few(request, context.version):
            fetch = sessions.begin(request, context.version, now_ms, is_between_brokers)
        else:
            fetch = await _begin_in_slices(request, context, now_ms)
    except ApiError as error:
        return context.messages.FetchResponse(error_code=error.code)
    until_ms = now_ms + max(0, request.max_wait)
    wait = fetch.wait
    reads = Reads(fetch, request, context)
    try:
        if len(fetch.partitions) <= SLICE:
            wait.begin(reads.conditions, fetch.partitions, now_ms)
        else:
            for _ in wait.beginning(reads.conditions, fetch.partitions, now_ms):
                await reads.pause()
        while True:
            if reads.read_few():
                await reads.read_in_slices()
            left_ms = until_ms - broker.clock.monotonic_ms()
            ends = (
                left_ms <= 0
                or broker.closing
                or reads.are_enough
                or reads.delay_others
                # The session is gone: nobody watches the partitions any more.
                or wait.is_closed
            )
            if fetch.session_id or not ends:
                wait.watch()
            if ends:
                if reads.is_throttled:
                    return await _throttled(reads, context)
                return await _answered(reads, context)
            if reads.has_changed:
                # While this request read other partitions: it would sleep through it.
                continue
            fetch.rests()
            await _sleep(wait, left_ms, context.session)
            if fetch.is_superseded:
                # As Kafka's IncrementalFetchContext.
                return context.messages.FetchResponse(
                    error_code=ErrorCode.invalid_fetch_session_epoch
                )
    finally:
        reads.end()
        if not fetch.session_id and wait.is_watching:
            sessions.end_wait(wait)


async def _throttled(reads: Reads, context: Context) -> Any:
    """The answer to a consumer that may have a quota."""
    over = await throttled(reads, context)
    if over is None:
        return await _answered(reads, context)
    if over.empty is not None:
        return over.empty
    response = await _answered(reads, context)
    response.throttle_time = over.throttle_ms
    return response


async def _answered(reads: Reads, context: Context) -> Any:
    fetch, disk_reads = reads.fetch, context.broker.disk_reads
    if len(reads.found) > SLICE:
        return await answer_in_slices(reads, context)
    if reads.conditions.replica is not None:
        count_throttled(reads.found.items(), context)
    data: dict[Key, memoryview] = {}
    cold: list[Cold] = []
    if disk_reads.turns.has_room(reads.size_bytes):
        load(reads.found.items(), reads.found, data, cold, disk_reads.buffers)
    else:
        fetch.pauses()
        await load_in_turns(reads.found, data, cold, disk_reads)
    if cold:
        fetch.pauses()
        await load_cold(cold, reads.found, data, disk_reads)
    return answer(fetch, reads.found, data, context)


def _check_sender(request: Any, context: Context) -> None:
    """Raise ApiError unless a replica's fetch comes from its broker."""
    replica = fetching_replica(request, context.version)
    if replica is not None and not is_from_broker(context, replica.broker_id):
        raise ApiError(REFUSED)


def _names_few(request: Any, version: int) -> bool:
    """Whether the partitions that it names are a slice or less."""
    count = 0
    for topic in request.topics:
        count += len(topic.partitions)
        if count > SLICE:
            return False
    if version >= SESSIONS:
        for topic in request.forgotten_topics_data:
            count += len(topic.partitions)
            if count > SLICE:
                return False
    return True


async def _begin_in_slices(request: Any, context: Context, now_ms: int) -> Fetch:
    with closing(
        context.broker.fetch_sessions.beginning(
            request, context.version, now_ms, is_between_brokers
        )
    ) as work:
        for fetch in work:
            if fetch is not None:
                return fetch
            await asyncio.sleep(0)
    raise AssertionError("the work ends with what was begun")


async def _sleep(wait: FetchWait, max_ms: int, session: ClientSession) -> None:
    """Sleep until a change that this fetch must not miss, or another request of the connection, or
    until `max_ms` have passed."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()

    def wake() -> None:
        if not future.done():
            future.set_result(None)

    wait.sleep(wake)
    session.arrived = wake
    handle = loop.call_later(max_ms / 1000, wake)
    try:
        await future
    finally:
        handle.cancel()
        session.arrived = None
        wait.wakes(wake)


def is_between_brokers(request: Any) -> bool:
    """Whether a replica fetches."""
    return fetching_replica(request, request.__version__) is not None
