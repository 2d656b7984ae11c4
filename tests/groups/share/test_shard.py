"""Transcripts of share groups: `transcripts/*.txt` hold commands and what came of them.

Each line before `----` is a command; the lines after it are the outcome, up to an empty line.
`REWRITE=1 pytest tests/groups/share` rewrites the outcomes, to be read in the diff.

    topic t 3                        makes a topic, or changes it; 0 deletes it
    join a t,u [rack=r]
    beat a [topics=t,u] [epoch=n]
    lost a                           the same, but the answer does not arrive
    leave a
    begun [t-0,1/u-2]                the share coordinator has begun the state of these; of all that
                                     it was last asked for
    refused                          it has not
    wait 10s                         timers fire on the way
    restart                          the state is rebuilt from the records
    describe                         the group, its members, and what has state
    alter t-0=5/t-1=7                AlterShareGroupOffsets
    delete_offsets t,u               DeleteShareGroupOffsets begins
    delete                           DeleteGroups begins
    forgotten [t,u]                  the share coordinator has forgotten these topics; all that it
                                     was last asked for
    remove                           the group is removed
    setting NAME=NUMBER
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest
from tests.groups.consumer.test_shard import milliseconds, partitions_in
from tests.groups.consumer.world import START_MS, named
from tests.groups.share.world import World, stored

from ottla.groups.newer_stored import TargetEpochValue
from ottla.groups.share.administration import (
    alter_offsets,
    begin_offset_removal,
    begin_removal,
    states_answered,
    states_forgotten,
)
from ottla.groups.share.group import ShareGroup
from ottla.groups.share.requests import HeartbeatRequest, StatesToInitialize
from ottla.groups.share.state_partitions import PartitionsOfTopics
from ottla.groups.share.stored import (
    CurrentValue,
    GroupValue,
    MemberValue,
    ShareRecord,
    StatesValue,
    StateTopics,
    TargetValue,
)
from ottla.protocol.errors import ApiError

TRANSCRIPTS = sorted(Path(__file__).parent.glob("transcripts/*.txt"))


def names_of(topics: StateTopics) -> str:
    return named({topic_id: topic.partitions for topic_id, topic in topics.items()})


def states_text(states: StatesValue) -> str:
    parts = [("initializing", names_of(states.initializing))]
    parts.append(("initialized", names_of(states.initialized)))
    parts.append(("deleting", " ".join(sorted(states.deleting.values())) or "nothing"))
    return ", ".join(f"{name} {what}" for name, what in parts if what != "nothing") or "nothing"


class Story(World):
    """Clients that remember their epoch."""

    def __init__(self) -> None:
        super().__init__()
        self.output: list[str] = []
        self.epochs: dict[str, int] = {}
        self.asked: Mapping[UUID, Collection[int]] = {}
        """The partitions that the share coordinator was last asked to begin or to forget."""

    def tell(self, records: Sequence[ShareRecord]) -> None:
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
                return f"in {value.epoch} (was {value.previous_epoch}) with {named(value.assigned)}"
            case StatesValue():
                return states_text(value)
        raise AssertionError(value)

    def send(self, client: str, options: dict[str, str], *, lost: bool = False) -> None:
        topics = options.get("topics")
        request = HeartbeatRequest(
            group="g",
            member_id=options.get("id", client),
            epoch=int(options.get("epoch", self.epochs.get(client, 0))),
            client_id=client,
            client_host="/127.0.0.1",
            rack_id=options.get("rack"),
            subscribed_topics=None
            if topics is None
            else frozenset(filter(None, topics.split(","))),
        )
        try:
            result, records = self.heartbeat(request)
        except ApiError as error:
            self.output.append(f"{client}: {error.code.name} {error.message}")
            return
        told = "" if result.assignment is None else f", has {named(result.assignment)}"
        self.output.append(f"{client}: epoch {result.epoch}{told}{' (lost)' if lost else ''}")
        self.tell(records)
        if result.to_initialize is not None:
            self.initialize(result.to_initialize)
        if not lost:
            self.epochs[client] = result.epoch

    def initialize(self, wanted: StatesToInitialize) -> None:
        texts = []
        for topic_id, offsets in wanted.offsets.items():
            known = ",".join(str(offset) for offset in offsets.values() if offset != -1)
            name = named({topic_id: frozenset(offsets)})
            texts.append(f"{name} at {known}" if known else name)
        self.asked = wanted.offsets
        self.output.append(f"  to initialize in epoch {wanted.epoch}: {' '.join(texts)}")

    # Commands.

    def join(self, client: str, topics: str, **options: str) -> None:
        self.epochs[client] = 0
        self.send(client, {"topics": topics.removeprefix("-")} | options)

    def beat(self, client: str, **options: str) -> None:
        self.send(client, options)

    def lost(self, client: str, **options: str) -> None:
        self.send(client, options, lost=True)

    def leave(self, client: str) -> None:
        self.send(client, {"epoch": "-1"})

    def topic(self, name: str, count: str) -> None:
        self.tell(self.set_topic(name, int(count)))

    def begun(self, partitions: str = "") -> None:
        done = partitions_in(partitions) if partitions else self.asked
        self.answered(done, {})

    def refused(self) -> None:
        self.answered({}, self.asked)

    def answered(self, begun: PartitionsOfTopics, refused: PartitionsOfTopics) -> None:
        group = self.shard.known("g")
        self.tell(
            self.decide(lambda step: states_answered(group, begun, refused, self.topics, step))[1]
        )

    def forgotten(self, topics: str = "") -> None:
        names = topics.split(",") if topics else ()
        ids = [self.topics.by_name[name].id for name in names] or list(self.asked)
        group = self.shard.known("g")
        self.tell(self.decide(lambda step: states_forgotten(group, ids, step))[1])

    def wait(self, text: str) -> None:
        until_ms = self.now_ms + milliseconds(text)
        while (event := self.next_timer(until_ms)) is not None:
            seconds = (self.now_ms - START_MS) / 1_000
            self.output.append(f"at {seconds:g}s {type(event).__name__} {event.member}")
            self.tell(self.expire(event))

    def describe(self) -> None:
        try:
            group = self.shard.describe("g")
        except ApiError as error:
            self.output.append(str(error.message))
            return
        self.output.append(f"{group.state} in {group.epoch}, targets of {group.assignment_epoch}")
        for member in sorted(group.members):
            target = named(self.shard.groups["g"].target_of(member.member_id))
            self.output.append(
                f"  {member.member_id} in {member.epoch}: {named(member.assigned)}; target {target}"
            )
        self.output.append(f"  states: {states_text(self.shard.groups['g'].states)}")

    def alter(self, text: str) -> None:
        offsets: dict[str, dict[int, int]] = {}
        for part in text.split("/"):
            topic, _, rest = part.partition("-")
            number, _, offset = rest.partition("=")
            offsets.setdefault(topic, {})[int(number)] = int(offset)
        group = self.shard.groups.get("g") or ShareGroup("g")
        try:
            altered, records = self.decide(
                lambda step: alter_offsets(group, offsets, self.topics, step)
            )
        except ApiError as error:
            self.output.append(error.code.name)
            return
        self.tell(records)
        self.initialize(altered.to_initialize)
        for topic, partition in sorted(altered.unknown):
            self.output.append(f"  unknown {topic}-{partition}")

    def delete_offsets(self, topics: str) -> None:
        names = topics.split(",")
        try:
            self.asked, records = self.decide(
                lambda step: begin_offset_removal(self.shard.known("g"), names, self.topics, step)
            )
        except ApiError as error:
            self.output.append(error.code.name)
            return
        self.tell(records)
        self.output.append(f"  to forget: {named(dict(self.asked))}")  # type: ignore[arg-type]

    def delete(self) -> None:
        try:
            self.asked, records = self.decide(
                lambda step: begin_removal(self.shard.known("g"), self.topics, step)
            )
        except ApiError as error:
            self.output.append(error.code.name)
            return
        self.tell(records)
        self.output.append(f"  to forget: {named(dict(self.asked))}")  # type: ignore[arg-type]

    def remove(self) -> None:
        try:
            self.tell(self.decide(lambda step: self.shard.remove("g", step))[1])
        except ApiError as error:
            self.output.append(error.code.name)

    def setting(self, **options: str) -> None:
        self.settings = replace(
            self.settings, **{name: int(value) for name, value in options.items()}
        )

    def do(self, line: str) -> None:
        name, *rest = line.split()
        if name == "alter":
            self.alter(rest[0])
        else:
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
