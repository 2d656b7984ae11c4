"""Many members of one consumer group, by Kafka's own protocol, on a connection each."""

import socket
import struct
import time
from contextlib import ExitStack
from typing import Any, Self

from bench.measure import ClientError
from ottla.protocol.errors import ErrorCode
from ottla.protocol.frames import read_response, write_request
from ottla.protocol.messages import messages_of
from ottla.testing.broker_request import ask_broker

JOIN, SYNC = messages_of(11, 7, "request"), messages_of(14, 5, "request")
HEARTBEAT = messages_of(12, 4, "request")
WAIT_SECONDS = 120.0
LATER = (
    ErrorCode.not_coordinator,
    ErrorCode.coordinator_not_available,
    ErrorCode.coordinator_load_in_progress,
)
TIMEOUT_MS = 60_000
METADATA = b"\0\1\0\0\0\1\0\6topics\xff\xff\xff\xff\0\0\0\0"
ASSIGNMENT = bytes(100)


class Member:
    """One connection."""

    def __init__(self, address: str, group: str) -> None:
        host, _, port = address.rpartition(":")
        self.id = ""
        self.socket = socket.create_connection((host, int(port)), WAIT_SECONDS)
        self._group = group
        self._asked: Any = None

    def join(self) -> None:
        protocol = JOIN.JoinGroupRequestProtocol(name="range", metadata=METADATA)
        self._send(
            JOIN.JoinGroupRequest(
                group_id=self._group,
                session_timeout=TIMEOUT_MS,
                rebalance_timeout=TIMEOUT_MS,
                member_id=self.id,
                protocol_type="consumer",
                protocols=(protocol,),
            )
        )

    def sync(self, generation_id: int, members: tuple[str, ...]) -> None:
        """`members` are those that the leader gives partitions."""
        self._send(
            SYNC.SyncGroupRequest(
                group_id=self._group,
                generation_id=generation_id,
                member_id=self.id,
                protocol_type="consumer",
                protocol_name="range",
                assignments=tuple(
                    SYNC.SyncGroupRequestAssignment(member_id=each, assignment=ASSIGNMENT)
                    for each in members
                ),
            )
        )

    def must_join(self, generation_id: int) -> bool:
        """Whether a rebalance has begun."""
        self._send(
            HEARTBEAT.HeartbeatRequest(
                group_id=self._group, generation_id=generation_id, member_id=self.id
            )
        )
        error = self.answer(ErrorCode.rebalance_in_progress).error_code
        return error is ErrorCode.rebalance_in_progress

    def _send(self, request: Any) -> None:
        self._asked = request
        self.socket.sendall(write_request(request, 1, "bench"))

    def answer(self, *allowed: ErrorCode) -> Any:
        """The response to what was sent last. Raises ClientError if it is another error."""
        asked = self._asked
        (size,) = struct.unpack(">i", self.socket.recv(4, socket.MSG_WAITALL))
        frame = bytearray()
        while len(frame) < size:
            frame += self.socket.recv(size - len(frame))
        response = read_response(asked.__api_key__, asked.__version__, memoryview(frame))[1]
        allowed = (*allowed, ErrorCode.none)
        if response.error_code not in allowed:
            raise ClientError(f"{type(asked).__name__}: {response.error_code.name}")
        return response


class Members:
    """A context manager with a group that is stable."""

    def __init__(self, address: str, group: str, count: int) -> None:
        self._generation_id = -1
        self._open = ExitStack()
        self._address = address
        self._group = group
        self._members = [Member(address, group) for _ in range(count)]
        for each in self._members:
            self._open.enter_context(each.socket)

    def __enter__(self) -> Self:
        self._wait_for_coordinator()
        for each in self._members[1:]:
            each.join()
            each.id = each.answer(ErrorCode.member_id_required).member_id
        for each in self._members:
            each.join()
        self._end_rebalance()
        return self

    def _wait_for_coordinator(self) -> None:
        """The first question for it creates its topic. Then the first member has its id."""
        find = messages_of(10, 3, "request").FindCoordinatorRequest(key=self._group, key_type=0)
        limit = time.monotonic() + WAIT_SECONDS
        while True:
            ask_broker(self._address, find)
            self._members[0].join()
            first = self._members[0].answer(*LATER, ErrorCode.member_id_required)
            if first.error_code not in LATER:
                self._members[0].id = first.member_id
                return
            if time.monotonic() > limit:
                raise ClientError("the group has no coordinator")
            time.sleep(0.1)

    def rebalance(self) -> None:
        """All members join again. The leader's request begins the rebalance: before it, the others
        would be told that nothing has changed.
        """
        leader, *others = self._members
        leader.join()
        limit = time.monotonic() + WAIT_SECONDS
        while not others[0].must_join(self._generation_id):
            if time.monotonic() > limit:
                raise ClientError("the rebalance has not begun")
        for each in others:
            each.join()
        self._end_rebalance()

    def _end_rebalance(self) -> None:
        joined = [each.answer() for each in self._members]
        leader = joined[0].leader
        if len({each.generation_id for each in joined}) > 1:
            raise ClientError("the members have joined different generations")
        self._generation_id = joined[0].generation_id
        self._members.sort(key=lambda each: each.id != leader)
        ids = {each.id for each in self._members}
        if len(ids) < len(self._members):
            raise ClientError("two members have one id")
        for each in self._members:
            each.sync(self._generation_id, tuple(ids) if each.id == leader else ())
        if any(each.answer().assignment != ASSIGNMENT for each in self._members):
            raise ClientError("a member has no assignment")

    def __exit__(self, *_: object) -> None:
        self._open.close()
