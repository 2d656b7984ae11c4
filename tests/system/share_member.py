"""A member of a share group that joins and reads nothing."""

from __future__ import annotations

import time
import uuid
from typing import Any

from ottla.client.client import Client
from ottla.client.coordinators import Coordinated
from ottla.client.question import Question


class Member:
    """Joins a share group, and sends heartbeats when it is asked to."""

    def __init__(self, client: Client, group: str) -> None:
        self.client = client
        self.group = group
        self.member_id = str(uuid.uuid4())
        self.epoch = 0
        self.reads = 0
        """Partitions."""

    def beat(self, *topics: str) -> None:
        def build(messages: Any) -> Any:
            return messages.ShareGroupHeartbeatRequest(
                group_id=self.group,
                member_id=self.member_id,
                member_epoch=self.epoch,
                subscribed_topic_names=topics or None,
            )

        asked = self.client.ask_coordinators(
            Coordinated.GROUP,
            [self.group],
            lambda _: Question(76, 1, build),
            lambda response: [(self.group, response)],
        )
        answer = asked[self.group][1]
        assert answer.error_code == 0, answer
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.reads = sum(len(topic.partitions) for topic in answer.assignment.topic_partitions)

    def join(self, topic: str, partitions: int) -> None:
        """Until it reads so many."""
        self.beat(topic)
        until_s = time.monotonic() + 30
        while self.reads < partitions:
            assert time.monotonic() < until_s, f"reads {self.reads} of {partitions}"
            time.sleep(0.05)
            self.beat()

    def leave(self) -> None:
        self.epoch = -1
        self.beat()
