"""Transcripts of consumer groups: `transcripts/*.txt` hold commands and what came of them.

Each line before `----` is a command; the lines after it are the outcome, up to an empty line.
`REWRITE=1 pytest tests/groups/consumer` rewrites the outcomes, to be read in the diff.

    topic t 3                                        makes a topic, or changes it; 0 deletes it
    join a t,u [instance=i] [rebalance=60s] [assignor=range] [id=x]
    beat a [owns=t-0,1/u-2] [topics=t,u] [epoch=n] [instance=i] [full]
                                                     owns what it was told last, unless it says
    lost a                                           the same, but the answer does not arrive
    leave a | pause a                                for good, or a static member for a while
    wait 10s                                         timers fire on the way
    restart                                          the state is rebuilt from the records
    describe                                         the group and its members
    delete
    setting NAME=NUMBER
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.groups.consumer.world import START_MS, World, named, stored, topic_id

from ottla.groups.consumer.assignors.spec import Partitions
from ottla.groups.consumer.member import partitions_of
from ottla.groups.consumer.requests import HeartbeatRequest
from ottla.groups.consumer.stored import (
    ConsumerRecord,
    CurrentValue,
    GroupValue,
    MemberValue,
    TargetValue,
)
from ottla.groups.newer_stored import TargetEpochValue
from ottla.protocol.errors import ApiError

TRANSCRIPTS = sorted(Path(__file__).parent.glob("transcripts/*.txt"))
UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000}
STATES = {0: "stable", 1: "unrevoked", 2: "unreleased"}


def milliseconds(text: str) -> int:
    matched = re.fullmatch(r"(\d+)(ms|s|m)", text)
    assert matched is not None, text
    return int(matched[1]) * UNITS_MS[matched[2]]


def partitions_in(text: str) -> Partitions:
    found = {}
    for part in text.split("/") if text else ():
        topic, _, numbers = part.partition("-")
        found[topic_id(topic)] = frozenset(map(int, numbers.split(",")))
    return found


class Story(World):
    """Clients that remember their epoch and what they own."""

    def __init__(self) -> None:
        super().__init__()
        self.output: list[str] = []
        self.epochs: dict[str, int] = {}
        self.owned: dict[str, Partitions] = {}
        self.instances: dict[str, str | None] = {}

    def tell(self, records: Sequence[ConsumerRecord]) -> None:
        for key, value in records:
            name = "".join(f" {part}" for part in key[1:])
            kind = type(key).__name__.removesuffix("Key").lower()
            self.output.append(f"  {kind}{name}: {self.value_text(value)}")

    @staticmethod
    def value_text(value: object) -> str:
        match value:
            case None:
                return "removed"
            case GroupValue(epoch, _) | TargetEpochValue(epoch, _):
                return f"epoch {epoch}"
            case MemberValue():
                return f"subscribes to {','.join(value.subscribed_topics) or 'nothing'}"
            case TargetValue(partitions):
                return named(partitions)
            case CurrentValue():
                text = (
                    f"{STATES[value.state]} in {value.epoch} (was {value.previous_epoch}) with "
                    f"{named(partitions_of(value.assigned))}"
                )
                if value.pending_revocation:
                    text += f", gives up {named(partitions_of(value.pending_revocation))}"
                return text
        raise AssertionError(value)

    def send(self, client: str, options: dict[str, str], *, lost: bool = False) -> None:
        topics = options.get("topics")
        is_full = "full" in options
        request = HeartbeatRequest(
            group="g",
            member_id=options.get("id", client),
            epoch=int(options.get("epoch", self.epochs.get(client, 0))),
            client_id=client,
            client_host="/127.0.0.1",
            instance_id=options.get("instance", self.instances.get(client)),
            rebalance_timeout_ms=milliseconds(options.get("rebalance", "60s")) if is_full else -1,
            subscribed_topics=None
            if topics is None
            else frozenset(filter(None, topics.split(","))),
            server_assignor=options.get("assignor"),
            owned=partitions_in(options["owns"])
            if "owns" in options
            else self.owned.get(client, {}),
        )
        try:
            result, records = self.heartbeat(request)
        except ApiError as error:
            self.output.append(f"{client}: {error.code.name}")
            return
        told = "" if result.assignment is None else f", has {named(result.assignment)}"
        self.output.append(f"{client}: epoch {result.epoch}{told}{' (lost)' if lost else ''}")
        self.tell(records)
        if not lost:
            self.epochs[client] = result.epoch
            if result.assignment is not None:
                self.owned[client] = result.assignment

    # Commands.

    def join(self, client: str, topics: str, **options: str) -> None:
        self.epochs[client] = 0
        self.owned[client] = {}
        self.instances[client] = options.get("instance")
        self.send(client, {"topics": topics.removeprefix("-"), "full": ""} | options)

    def beat(self, client: str, *words: str, **options: str) -> None:
        self.send(client, dict.fromkeys(words, "") | options)

    def lost(self, client: str, **options: str) -> None:
        self.send(client, options, lost=True)

    def leave(self, client: str, **options: str) -> None:
        self.send(client, {"epoch": "-1"} | options)

    def pause(self, client: str, **options: str) -> None:
        self.send(client, {"epoch": "-2"} | options)

    def topic(self, name: str, count: str) -> None:
        self.set_topic(name, int(count))

    def wait(self, text: str) -> None:
        until_ms = self.now_ms + milliseconds(text)
        while (event := self.next_timer(until_ms)) is not None:
            seconds = (self.now_ms - START_MS) / 1_000
            self.output.append(f"at {seconds:g}s {type(event).__name__} {event.member}")
            self.tell(self.expire(event))

    def describe(self) -> None:
        group = self.shard.groups.get("g")
        if group is None:
            self.output.append("no group")
            return
        self.output.append(f"{group.state.value} in {group.epoch}, targets of {group.target_epoch}")
        for member in sorted(group.members.values()):
            state = STATES[member.state]
            target = named(group.target_of(member))
            has = named(partitions_of(member.assigned))
            self.output.append(
                f"  {member.member_id} {state} in {member.epoch}: {has}; target {target}"
            )

    def delete(self) -> None:
        step = self.step()
        try:
            self.shard.remove("g", step)
        except ApiError as error:
            self.output.append(error.code.name)
        else:
            self.tell(self.run(step))

    def setting(self, **options: str) -> None:
        values: dict[str, Any] = {name: int(value) for name, value in options.items()}
        self.settings = replace(self.settings, **values)

    def do(self, line: str) -> None:
        name, *rest = line.split()
        words = [word for word in rest if "=" not in word]
        options = dict(word.split("=", 1) for word in rest if "=" in word)
        getattr(self, name)(*words, **options)
        assert stored(self.replayed()) == stored(self.shard), "the log says something else"


def told(text: str) -> str:
    """The text with the outcomes that its commands have now."""
    story = Story()
    parts = []
    for part in text.strip().split("\n\n"):
        commands = part.split("\n----")[0]
        for line in commands.split("\n"):
            if not line.startswith("#"):
                story.do(line)
        parts.append("\n".join((commands, "----", *story.output)))
        story.output.clear()
    return "\n\n".join(parts) + "\n"


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=[path.stem for path in TRANSCRIPTS])
def test_transcript(path: Path) -> None:
    text = path.read_text()
    now = told(text)
    if os.environ.get("REWRITE"):
        path.write_text(now)
        text = now
    assert now == text
