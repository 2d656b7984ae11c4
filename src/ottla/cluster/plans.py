"""Carries out the controller's plans: first the writes, then the deltas, then the reply.

Requests run one after another, so a decider sees the image as the request before left it. The
writes go to the coordination tree in as few `multi` requests as ZooKeeper's size limit allows, each
fenced by the controller epoch. Then the deltas are applied, and the caller gets its reply. A plan
is completed even if its caller is cancelled; otherwise the image would miss what the tree has.

If the controller crashes or is deposed between two `multi` requests, the tree has a prefix of the
writes. The next controller repairs what can be repaired (`controller.recovery`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from ottla.cluster.cluster_view import ClusterView
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
"""Upper bound of the fence's size in a request."""

log = logging.getLogger("ottla.controller")


class Plans:
    """The plans of one controller tenure. `overtaken` is called once, with the reason, when the
    tenure ends.
    """

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
        """Starts no further plans."""
        self._ended = True

    async def idle(self) -> None:
        """Returns when no plan is running."""
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
        """The reply or the refusal. If raised, a refusal would be unhandled without the caller."""
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
                # Someone else wrote, or the outcome is unknown: the image may be wrong now.
                self._end_tenure(f"a plan was overtaken: {error!r}")
                raise ApiError(ErrorCode.not_controller) from None
            await self._apply(plan.deltas)
            return plan.reply

    async def _apply(self, deltas: Sequence[MetadataDelta]) -> None:
        """A delta that is in the tree but not in the image would never be applied."""
        applied = False
        try:
            await self._view.apply(deltas)
            applied = True
        finally:
            if not applied:
                self._end_tenure("not all deltas of a plan could be applied")

    def _end_tenure(self, why: str) -> None:
        self._ended = True
        self._overtaken(why)


async def write_fenced(
    coordination: Coordination, writes: Sequence[Operation], epoch_version: int
) -> None:
    """Does the writes while the controller epoch's node has this version.

    Raises CoordinationError or StoreError; then a prefix of the writes may have been done.
    """
    fence = Check(layout.CONTROLLER_EPOCH, epoch_version)
    for chunk in chunks(writes):
        await coordination.multi([fence, *chunk])


def chunks(writes: Sequence[Operation]) -> Iterator[list[Operation]]:
    """Splits the writes, in order, into parts that fit into one request with the fence."""
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
