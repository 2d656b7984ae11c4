"""Carries out the controller's plans: first the writes, then the deltas, then the reply.

Requests run one after another, so a decider sees the image as the request before left it. The
writes go to the coordination tree in one `multi`, fenced by the controller epoch. Then the deltas
are applied, and the caller gets its reply. A plan is completed even if its caller is cancelled;
otherwise the image would miss what the tree has.

ZooKeeper limits a `multi`, so there a large plan takes several. If one of them fails, or the
controller crashes in between, the tree has a prefix of the writes. Then the tenure ends, and the
next controller completes or takes back what is half done before it serves
(`controller.recovery`). The caller of a plan with an unknown outcome gets OutcomeUnknownError.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from ottla.cluster.cluster_view import ClusterView
from ottla.controller import layout
from ottla.controller.image import MetadataDelta
from ottla.controller.plan import Plan, Steps
from ottla.coordination.embedded_store import StoreError
from ottla.coordination.tree import (
    Check,
    ConnectionLostError,
    Coordination,
    CoordinationError,
    Limits,
    Operation,
    SessionExpiredError,
    size_bytes,
)
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.runtime.slices import Slices

T = TypeVar("T")

MAX_WRITES_A_TURN = 1_000
FENCE_BYTES = 200
"""Upper bound of the fence's size in a request."""

log = logging.getLogger("ottla.controller")


class OutcomeUnknownError(ApiError):
    """NOT_CONTROLLER for a plan of which some writes, or all, may be in the tree.

    Whether they are is decided when the next controller has loaded the tree.
    """

    def __init__(self) -> None:
        super().__init__(ErrorCode.not_controller)


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
        self._is_over = False

    def end(self) -> None:
        """Starts no further plans."""
        self._ended = True

    def abandon(self) -> None:
        """The tenure is over. A plan whose writes are under way leaves the image alone: the next
        controller's image has what is in the tree, and may be in force here already.
        """
        self._ended = self._is_over = True

    async def idle(self) -> None:
        """Returns when no plan is running."""
        async with self._turn:
            return

    async def carry_out(self, decide: Callable[[], Plan[T] | Steps[T]]) -> T:
        """Raises ApiError: NOT_CONTROLLER (OutcomeUnknownError if the plan may take effect),
        KAFKA_STORAGE_ERROR, POLICY_VIOLATION for a node that is too large, or what the decider
        raises.
        """
        reply, refusal = await asyncio.shield(asyncio.create_task(self._outcome(decide)))
        if refusal is not None:
            raise refusal
        assert reply is not None
        return reply[0]

    async def _outcome(
        self, decide: Callable[[], Plan[T] | Steps[T]]
    ) -> tuple[tuple[T] | None, ApiError | None]:
        """The reply or the refusal. If raised, a refusal would be unhandled without the caller."""
        try:
            return (await self._in_turn(decide),), None
        except ApiError as refusal:
            return None, refusal

    async def _in_turn(self, decide: Callable[[], Plan[T] | Steps[T]]) -> T:
        async with self._turn:
            if self._ended:
                raise ApiError(ErrorCode.not_controller)
            plan = await self._decided(decide())
            if len(plan.writes) > MAX_WRITES_A_TURN:
                # The partitions of a large topic: deciding has taken long enough. The plan stays
                # valid, as no other one runs.
                await asyncio.sleep(0)
            await _check_sizes(plan.writes, self._coordination.limits)
            try:
                await write_fenced(self._coordination, plan.writes, self._epoch_version)
            except StoreError as error:
                log.error("the cluster's state cannot be written: %s", error)
                raise ApiError(ErrorCode.kafka_storage_error, str(error)) from None
            except (PartlyWrittenError, ConnectionLostError, SessionExpiredError) as error:
                self._end_tenure(f"a plan was interrupted: {error!r}")
                raise OutcomeUnknownError from None
            except CoordinationError as error:
                # Someone else wrote: the image may be wrong now.
                self._end_tenure(f"a plan was overtaken: {error!r}")
                raise ApiError(ErrorCode.not_controller) from None
            await self._apply(plan.deltas)
            return plan.reply

    async def _decided(self, decision: Plan[T] | Steps[T]) -> Plan[T]:
        """Raises NOT_CONTROLLER if the tenure ends between two steps: the image may be another
        controller's then.
        """
        if isinstance(decision, Plan):
            return decision
        while True:
            try:
                next(decision)
            except StopIteration as end:
                plan: Plan[T] = end.value
                return plan
            await asyncio.sleep(0)
            if self._ended:
                decision.close()
                raise ApiError(ErrorCode.not_controller)

    async def _apply(self, deltas: Sequence[MetadataDelta]) -> None:
        """A delta that is in the tree but not in the image would never be applied.

        Raises OutcomeUnknownError if the tenure is over.
        """
        applied = is_late = False

        async def find() -> Sequence[MetadataDelta]:
            nonlocal is_late
            is_late = self._is_over
            return () if is_late else deltas

        try:
            await self._view.apply_in_turn(find)
            applied = True
        finally:
            if not applied:
                self._end_tenure("not all deltas of a plan could be applied")
        if is_late:
            raise OutcomeUnknownError

    def _end_tenure(self, why: str) -> None:
        self._ended = True
        self._overtaken(why)


async def _check_sizes(writes: Sequence[Operation], limits: Limits | None) -> None:
    """Raise POLICY_VIOLATION if a node would be too large, for example that of a topic with tens of
    thousands of partitions."""
    if limits is None:
        return
    slices = Slices(5_000)
    for write in writes:
        await slices.count()
        if size_bytes(write) > limits.size_bytes - FENCE_BYTES:
            raise ApiError(
                ErrorCode.policy_violation,
                f"ZooKeeper would refuse the node {write.path}: it would have"
                f" {size_bytes(write)} bytes, of at most {limits.size_bytes - FENCE_BYTES}.",
            )


class PartlyWrittenError(CoordinationError):
    """The first writes were done, the others were not. The cause is the error."""


async def write_fenced(
    coordination: Coordination, writes: Sequence[Operation], epoch_version: int
) -> None:
    """Does the writes while the controller epoch's node has this version.

    Raises PartlyWrittenError; ConnectionLostError or SessionExpiredError if the first ones, or all,
    may have been done; any other CoordinationError if none was.
    """
    fence = Check(layout.CONTROLLER_EPOCH, epoch_version)
    is_first = True
    for chunk in chunks(writes, coordination.limits):
        try:
            await coordination.multi([fence, *chunk])
        except (ConnectionLostError, SessionExpiredError):
            raise
        except CoordinationError as error:
            if is_first:
                raise
            raise PartlyWrittenError(repr(error)) from error
        is_first = False


def chunks(writes: Sequence[Operation], limits: Limits | None) -> Iterator[list[Operation]]:
    """Splits the writes, in order, into parts that fit into one request with the fence."""
    if limits is None:
        if writes:
            yield list(writes)
        return
    part: list[Operation] = []
    total_bytes, max_bytes = 0, limits.size_bytes - FENCE_BYTES
    for write in writes:
        added = size_bytes(write)
        if part and (len(part) >= limits.operations - 1 or total_bytes + added > max_bytes):
            yield part
            part, total_bytes = [], 0
        part.append(write)
        total_bytes += added
    if part:
        yield part
