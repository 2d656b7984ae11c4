"""A member of a simulated streams group describes its topology (KIP-1331); somebody reads that.

As Kafka's StreamsGroupTopologyDescriptionRequestManager: the member sends the description some time
after the answer to a heartbeat has asked for it, again while the coordinator moves, and not again
after another error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any, Final

from ottla.groups.streams import describe_topology
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of
from simulation.connection import RETRY_S, Connections, NoAnswerError
from simulation.consumers import COORDINATOR_MOVED
from simulation.pace import Pace
from simulation.streams_descriptions import DescriptionLedger
from simulation.streams_ledger import Answered
from simulation.streams_requests import STREAMS_GROUP
from simulation.streams_topology import Application

UPDATE: Final = 93
DESCRIBE: Final = 89
NOT_STORED: Final = 1
AVAILABLE: Final = 3
"""TopologyDescriptionStatus."""
ASKS_AGAIN_MS: Final = 4_000
"""In a full run. Kafka waits 30 s, longer than a run."""
SLOW_SHARE: Final = 0.2
SENDS_WITHIN_S, SENDS_LATE_WITHIN_S = 0.1, 1.5
"""The latter in a full run."""
READS_EVERY_S: Final = 0.7
"""In a full run."""
REFUSED: Final = frozenset(
    {ErrorCode.unknown_member_id, ErrorCode.group_id_not_found, ErrorCode.invalid_request}
)
"""The member is none any more, or its topology is not the group's."""


@contextmanager
def asks_again_soon(pace: Pace) -> Iterator[None]:
    """While it lasts, coordinators ask for a description again within a run."""
    right = describe_topology.FIRST_RETRY_MS
    vars(describe_topology)["FIRST_RETRY_MS"] = pace.ms(ASKS_AGAIN_MS)
    try:
        yield
    finally:
        vars(describe_topology)["FIRST_RETRY_MS"] = right


class Describer:
    """What one member does about it."""

    def __init__(
        self,
        member: int,
        version: int,
        application: Application,
        ledger: DescriptionLedger,
        random: Random,
        pace: Pace,
        asked: Callable[[int], None],
    ) -> None:
        """`version`: of the application. `asked` hears which broker asks."""
        self._member = member
        self._version = version
        self._application = application
        self._ledger = ledger
        self._random = random
        self._late_s = pace.s(SENDS_LATE_WITHIN_S)
        self._asked = asked
        self._sends_at: float | None = None

    def was_asked(self, answered: Answered) -> None:
        """The answer to a heartbeat asks for the description."""
        self._ledger.asked(self._member, self._version, answered)
        is_late = self._random.random() < SLOW_SHARE
        within_s = self._late_s if is_late else SENDS_WITHIN_S
        self._sends_at = asyncio.get_running_loop().time() + self._random.random() * within_s
        self._asked(answered.broker)

    async def go_on(
        self, member_id: str, connections: Connections, now_ms: Callable[[], int], timeout_ms: int
    ) -> None:
        """Send the description, if it is time. Raises NoAnswerError, and sends it later then."""
        loop = asyncio.get_running_loop()
        if self._sends_at is None or loop.time() < self._sends_at:
            return
        self._sends_at = loop.time() + RETRY_S
        build = messages_of(UPDATE, 0, "request")
        request = build.StreamsGroupTopologyDescriptionUpdateRequest(
            group_id=STREAMS_GROUP,
            member_id=member_id,
            topology_epoch=self._version,
            topology_description=self._application.description(build, self._version),
        )
        sent_ms = now_ms()
        broker = await connections.coordinator(STREAMS_GROUP)
        answer = await connections.ask(broker, request, timeout_ms)
        code = ErrorCode(answer.error_code)
        if code in COORDINATOR_MOVED:
            connections.forget_coordinator(STREAMS_GROUP)
            return
        self._sends_at = None
        answered = Answered(broker, sent_ms, now_ms())
        if code is ErrorCode.none:
            self._ledger.kept(self._version, answered)
        elif code is ErrorCode.streams_topology_description_update_failed:
            assert not self._application.is_describable(self._version), answer.error_message
            self._ledger.refused(self._version, answered)
        else:
            assert code in REFUSED, f"a description is refused: {code.name}: {answer.error_message}"


class DescriptionReader:
    """An administrator who describes the group again and again."""

    def __init__(
        self,
        connections: Connections,
        application: Application,
        ledger: DescriptionLedger,
        now_ms: Callable[[], int],
        pace: Pace,
    ) -> None:
        self._connections = connections
        self._application = application
        self._ledger = ledger
        self._now_ms = now_ms
        self._every_s = pace.s(READS_EVERY_S)

    async def run(self) -> None:
        """To the end of the run."""
        while True:
            await asyncio.sleep(self._every_s)
            await self.read()

    async def read(self) -> Any:
        """Describes the group once; returns the group in the answer, None where there is none."""
        request = messages_of(DESCRIBE, 1, "request").StreamsGroupDescribeRequest(
            group_ids=(STREAMS_GROUP,),
            include_authorized_operations=False,
            include_topology_description=True,
        )
        sent_ms = self._now_ms()
        try:
            broker = await self._connections.coordinator(STREAMS_GROUP)
            answer = await self._connections.ask(broker, request)
        except NoAnswerError:
            self._connections.forget_coordinator(STREAMS_GROUP)
            return None
        group = answer.groups[0]
        if ErrorCode(group.error_code) is not ErrorCode.none:
            self._connections.forget_coordinator(STREAMS_GROUP)
            return None
        epoch = None if group.topology is None else group.topology.epoch
        self._ledger.read(
            epoch, Answered(broker, sent_ms, self._now_ms()), is_its=self._is_its(group, epoch)
        )
        return group

    def _is_its(self, group: Any, epoch: int | None) -> bool | None:
        status = group.topology_description_status
        if status == NOT_STORED:
            assert group.topology_description is None
            return None
        assert status == AVAILABLE, f"the description has the status {status}"
        build = messages_of(DESCRIBE, 1, "response")
        return epoch is not None and bool(
            group.topology_description == self._application.description(build, epoch)
        )
