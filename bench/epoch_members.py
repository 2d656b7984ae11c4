"""Members of groups of the consumer protocol (KIP-848), as plain requests on one connection each.

`python -m bench.epoch_members ADDRESS TOPIC GROUP beat|commit COUNT`: joins, prints "ready", waits
for a line on stdin, sends COUNT heartbeats or commits, each after the response to the one before,
and prints the seconds that this took.
"""

import selectors
import socket
import struct
import sys
import time
import uuid
from collections.abc import Sequence
from typing import Any, Self

from bench.measure import ClientError
from ottla.protocol.errors import ErrorCode
from ottla.protocol.frames import read_response, write_request
from ottla.protocol.messages import messages_of
from ottla.testing.broker_request import ask_broker

HEARTBEAT, COMMIT = messages_of(68, 1, "request"), messages_of(8, 9, "request")
LATER = (
    ErrorCode.not_coordinator,
    ErrorCode.coordinator_not_available,
    ErrorCode.coordinator_load_in_progress,
)
WAIT_SECONDS = 120.0
JOINS, LEAVES = 0, -1
MAX_POLL_MS = 300_000


class EpochMember:
    """One member. `connection`: that of another member, to share it."""

    def __init__(
        self, address: str, group: str, topic: str, connection: socket.socket | None = None
    ) -> None:
        host, _, port = address.rpartition(":")
        self.socket = connection or socket.create_connection((host, int(port)), WAIT_SECONDS)
        self.epoch = JOINS
        self.partitions: frozenset[int] = frozenset()
        self.is_due = True
        """It has something to tell at once: what it was given, or gave up."""
        self._address = address
        self._id = str(uuid.uuid4())
        self._group = group
        self._topic = topic
        self._topic_id: Any = None

    def heartbeat(self, *, leaves: bool = False) -> Any:
        joins = self.epoch == JOINS and not leaves
        owned: tuple[Any, ...] | None = None
        if joins:
            owned = ()
        elif self._topic_id is not None:
            numbers = tuple(sorted(self.partitions))
            given = HEARTBEAT.TopicPartitions(topic_id=self._topic_id, partitions=numbers)
            owned = (given,) if numbers else ()
        return HEARTBEAT.ConsumerGroupHeartbeatRequest(
            group_id=self._group,
            member_id=self._id,
            member_epoch=LEAVES if leaves else self.epoch,
            rebalance_timeout=MAX_POLL_MS,
            subscribed_topic_names=(self._topic,) if joins else None,
            topic_partitions=owned,
        )

    def commit(self, partition: int, offset: int) -> Any:
        each = COMMIT.OffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset, committed_metadata=""
        )
        topic = COMMIT.OffsetCommitRequestTopic(name=self._topic, partitions=(each,))
        return COMMIT.OffsetCommitRequest(
            group_id=self._group,
            generation_id_or_member_epoch=self.epoch,
            member_id=self._id,
            topics=(topic,),
        )

    def send(self, request: Any) -> None:
        self.socket.sendall(write_request(request, 1, "bench"))

    def frame(self) -> memoryview:
        """The next response, without its size."""
        size = struct.unpack(">i", self.socket.recv(4, socket.MSG_WAITALL))[0]
        return memoryview(self.socket.recv(size, socket.MSG_WAITALL))

    def beat(self, *, leaves: bool = False) -> None:
        """Until the coordinator is there. Raises ClientError for another error."""
        limit = time.monotonic() + WAIT_SECONDS
        while True:
            self.send(self.heartbeat(leaves=leaves))
            if self.take(self.frame()):
                return
            if time.monotonic() > limit:
                raise ClientError("the group has no coordinator")
            find_coordinator(self._address, self._group)
            time.sleep(0.1)

    def take(self, frame: memoryview) -> bool:
        """Takes over what a heartbeat was answered; False if it is to be sent again."""
        answer = read_response(68, 1, frame)[1]
        if answer.error_code in LATER:
            return False
        if answer.error_code is not ErrorCode.none:
            raise ClientError(f"a heartbeat: {answer.error_code.name} {answer.error_message}")
        self.epoch = answer.member_epoch
        self.is_due = False
        if answer.assignment is not None:
            numbers: set[int] = set()
            for topic in answer.assignment.topic_partitions:
                self._topic_id = topic.topic_id
                numbers |= set(topic.partitions)
            self.is_due = numbers != self.partitions
            self.partitions = frozenset(numbers)
        return True


class EpochMembers:
    """A group of many, each on a connection of its own; a context manager."""

    def __init__(self, address: str, group: str, topic: str, count: int, partitions: int) -> None:
        self._partitions = partitions
        self._members = [EpochMember(address, group, topic) for _ in range(count)]
        self._owners: dict[int, EpochMember] = {}
        find_coordinator(address, group)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._members:
            each.socket.close()

    def until_stable(self, beat_seconds: float) -> float:
        """All send heartbeats, at once where they have something to tell, until each partition is
        some member's and all are in one epoch; returns the seconds. Raises ClientError if a
        partition was some other member's when a member got it.
        """
        began = time.monotonic()
        limit = began + WAIT_SECONDS
        next_at = dict.fromkeys(self._members, began)
        waiting: set[EpochMember] = set()
        with selectors.DefaultSelector() as selector:
            for each in self._members:
                selector.register(each.socket, selectors.EVENT_READ, each)
            while True:
                now = time.monotonic()
                if not waiting and self._is_stable():
                    return now - began
                if now > limit:
                    raise ClientError(f"the group was not stable after {WAIT_SECONDS:.0f} s")
                for each, at in next_at.items():
                    if each not in waiting and at <= now:
                        each.send(each.heartbeat())
                        waiting.add(each)
                for key, _ in selector.select(0.01):
                    member = key.data
                    had = member.partitions
                    is_taken = member.take(member.frame())
                    self._note_owned(member, had)
                    waiting.discard(member)
                    pause = 0.0 if member.is_due and is_taken else beat_seconds
                    next_at[member] = time.monotonic() + pause

    def _note_owned(self, member: EpochMember, had: frozenset[int]) -> None:
        if member.partitions == had:
            return
        for number in had - member.partitions:
            del self._owners[number]
        for number in member.partitions - had:
            if self._owners.setdefault(number, member) is not member:
                raise ClientError(f"partition {number} has two members")

    def _is_stable(self) -> bool:
        owned = [number for each in self._members for number in each.partitions]
        return (
            len({each.epoch for each in self._members}) == 1
            and self._members[0].epoch > 0
            and not any(each.is_due for each in self._members)
            and len(owned) == self._partitions == len(set(owned))
        )

    def leave(self, count: int) -> None:
        """So many leave, one after the other."""
        for each in self._members[:count]:
            had = each.partitions
            each.beat(leaves=True)
            each.partitions = frozenset()
            self._note_owned(each, had)
            each.socket.close()
        del self._members[:count]


def find_coordinator(address: str, group: str) -> None:
    """The first question for one creates its topic."""
    find = messages_of(10, 3, "request").FindCoordinatorRequest(key=group, key_type=0)
    ask_broker(address, find)


def main(words: Sequence[str]) -> None:
    address, topic, group, what, count = words
    member = EpochMember(address, group, topic)
    limit = time.monotonic() + WAIT_SECONDS
    while not member.partitions or member.is_due:
        member.beat()
        if time.monotonic() > limit:
            raise ClientError("the member got no partition")
        time.sleep(0.1)
    partition = min(member.partitions)
    requests = [member.commit(partition, 1) if what == "commit" else member.heartbeat()]
    frames = [write_request(each, 1, "bench") for each in requests]
    print("ready", flush=True)
    sys.stdin.readline()
    began = time.monotonic()
    for _ in range(int(count)):
        member.socket.sendall(frames[0])
        frame = member.frame()
    took = time.monotonic() - began
    answer = read_response(requests[0].__api_key__, requests[0].__version__, frame)[1]
    code = answer.topics[0].partitions[0].error_code if what == "commit" else answer.error_code
    if code is not ErrorCode.none:
        raise ClientError(f"the last {what}: {code.name}")
    print(took, flush=True)
    member.beat(leaves=True)


if __name__ == "__main__":
    main(sys.argv[1:])
