"""Carrying out what the controller's deciders plan: the writes, then the deltas, then the reply.

Requests come one after another: a decider sees the image as the request before left it. Its writes
go to the coordination tree in as few `multi`s as ZooKeeper's request size allows, each fenced by
the controller epoch; then the deltas are applied; then the caller has its reply.
A caller that goes away in the middle does not stop that, or the image would miss what the tree has.

A crash or a deposition between two `multi`s leaves a prefix of the writes; the next controller
heals what that can be (`controller.recovery`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from ottla.broker.cluster_view import ClusterView
from ottla.controller import layout
from ottla.controller.image import MetadataDelta
from ottla.controller.plan import Plan
from ottla.coordination.embedded_store import StoreError
from ottla.coordination.tree import (
    MAX_OPERATIONS,
    MAX_REQUEST_BYTES,
    Check,
    Coordination,
    CoordinationError,
    Operation,
    size_bytes,
)
from ottla.protocol.errors import ApiError, ErrorCode

T = TypeVar("T")

FENCE_BYTES = 200
"""What the fence takes of a request, at most."""

log = logging.getLogger("ottla.controller")


class Plans:
    """One controller's term. `overtaken` is told once what ends it."""

    def __init__(
        self,
        coordination: Coordination,
        view: ClusterView,
        epoch_version: int,
        overtaken: Callable[[str], None],
    ) -> None:
        self._coordination = coordination
        self._view = view
        self._epoch_version = epoch_version
        self._overtaken = overtaken
        self._turn = asyncio.Lock()
        self._ended = False

    def end(self) -> None:
        """No plan is begun any more."""
        self._ended = True

    async def idle(self) -> None:
        """Returns when no plan is under way."""
        async with self._turn:
            return

    async def carry_out(self, decide: Callable[[], Plan[T]]) -> T:
        """Raises ApiError: NOT_CONTROLLER, KAFKA_STORAGE_ERROR, or what the decider raises."""
        reply, refusal = await asyncio.shield(asyncio.create_task(self._outcome(decide)))
        if refusal is not None:
            raise refusal
        assert reply is not None
        return reply[0]

    async def _outcome(
        self, decide: Callable[[], Plan[T]]
    ) -> tuple[tuple[T] | None, ApiError | None]:
        """The reply or the refusal; raised, a refusal would be unhandled once the caller left."""
        try:
            return (await self._in_turn(decide),), None
        except ApiError as refusal:
            return None, refusal

    async def _in_turn(self, decide: Callable[[], Plan[T]]) -> T:
        async with self._turn:
            if self._ended:
                raise ApiError(ErrorCode.not_controller)
            plan = decide()
            try:
                await write_fenced(self._coordination, plan.writes, self._epoch_version)
            except StoreError as error:
                log.error("the cluster's state cannot be written: %s", error)
                raise ApiError(ErrorCode.kafka_storage_error, str(error)) from None
            except CoordinationError as error:
                # Someone else wrote, or it is unknown what is written: the image may be wrong now.
                self._end_term(f"a plan was overtaken: {error!r}")
                raise ApiError(ErrorCode.not_controller) from None
            await self._tell(plan.deltas)
            return plan.reply

    async def _tell(self, deltas: Sequence[MetadataDelta]) -> None:
        """What the tree has and the image has not, nobody would ever hear of."""
        told = False
        try:
            await self._view.tell(deltas)
            told = True
        finally:
            if not told:
                self._end_term("not all deltas of a plan could be applied")

    def _end_term(self, why: str) -> None:
        self._ended = True
        self._overtaken(why)


async def write_fenced(
    coordination: Coordination, writes: Sequence[Operation], epoch_version: int
) -> None:
    """Does the writes, as long as the controller epoch's node has this version.

    Raises CoordinationError or StoreError; then a prefix of them may have been done.
    """
    fence = Check(layout.CONTROLLER_EPOCH, epoch_version)
    for chunk in chunks(writes):
        await coordination.multi([fence, *chunk])


def chunks(writes: Sequence[Operation]) -> Iterator[list[Operation]]:
    """The writes in their order, in parts that one request can hold beside the fence."""
    part: list[Operation] = []
    total_bytes, max_bytes = 0, MAX_REQUEST_BYTES - FENCE_BYTES
    for write in writes:
        added = size_bytes(write)
        if part and (len(part) >= MAX_OPERATIONS - 1 or total_bytes + added > max_bytes):
            yield part
            part, total_bytes = [], 0
        part.append(write)
        total_bytes += added
    if part:
        yield part
