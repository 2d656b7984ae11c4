"""Transcripts of streams groups: `transcripts/*.txt` hold commands and what came of them.

Each line before `----` is a command; the lines after it are the outcome, up to an empty line.
`REWRITE=1 pytest tests/groups/streams` rewrites the outcomes, to be read in the diff.

    topic t 3                        makes a topic, or changes it; 0 deletes it
    join a plain [process=p] [epoch=0] [endpoint=h:1] [version=1]
                                     [instance=i]: a static member
                                     the topology: plain, counts or stateful; `version` is its epoch
    beat a [owned=0_0,0_1/0_2]       says what it has, active / standby; as it was told by default
    quiet a                          says nothing of what it has
    lost a                           as `beat`, but the answer does not arrive
    shutdown a                       asks for the end of the application
    leave a
    away a                           a static member leaves for a while
    offsets a 0_0:5 [end=0_0:9]      how far it is with its tasks
    wait 10s                         timers fire on the way
    restart                          the state is rebuilt from the records
    describe
    remove
    setting NAME=NUMBER
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.groups.consumer.test_shard import milliseconds
from tests.groups.consumer.world import START_MS
from tests.groups.streams.world import COUNTS, PLAIN, STATEFUL, World, stored

from ottla.groups.newer_stored import TargetEpochValue
from ottla.groups.streams.member import Endpoint
from ottla.groups.streams.requests import HeartbeatRequest, HeartbeatResult
from ottla.groups.streams.step import FirstAssignmentDue
from ottla.groups.streams.stored import (
    CurrentValue,
    GroupValue,
    MemberValue,
    StreamsRecord,
    TargetValue,
    TopologyValue,
)
from ottla.groups.streams.tasks import HeldTasks, TaskId, Tasks, by_subtopology, each
from ottla.protocol.errors import ApiError

TRANSCRIPTS = sorted(Path(__file__).parent.glob("transcripts/*.txt"))
TOPOLOGIES = {"plain": PLAIN, "counts": COUNTS, "stateful": STATEFUL}


def _listed(partitions: Mapping[str, Iterable[int]]) -> str:
    tasks = sorted(each(partitions))  # type: ignore[arg-type]
    return ",".join(f"{name}_{number}" for name, number in tasks)


def named(tasks: Tasks | HeldTasks) -> str:
    kinds = [_listed(kind) for kind in tasks]
    return "/".join(kinds).rstrip("/") or "nothing"


def tasks_in(text: str) -> Tasks:
    kinds = []
    for kind in (*text.split("/"), "", "")[:3]:
        pairs = [each.rsplit("_", 1) for each in filter(None, kind.split(","))]
        kinds.append(by_subtopology([(name, int(number)) for name, number in pairs]))
    return Tasks(*kinds)


def offsets_in(text: str) -> dict[TaskId, int]:
    found = {}
    for each_one in text.split(","):
        name, _, offset = each_one.partition(":")
        subtopology, _, number = name.rpartition("_")
        found[subtopology, int(number)] = int(offset)
    return found


class Story(World):
    """Clients that remember their epoch and what they were told."""

    def __init__(self) -> None:
        super().__init__()
        self.output: list[str] = []
        self.epochs: dict[str, int] = {}
        self.owned: dict[str, Tasks] = {}
        self.endpoint_epochs: dict[str, int] = {}
        self.instances: dict[str, str | None] = {}

    def tell(self, records: Sequence[StreamsRecord]) -> None:
        for key, value in records:
            name = "".join(f" {part}" for part in key[1:])
            kind = type(key).__name__.removesuffix("Key").lower()
            self.output.append(f"  {kind}{name}: {self.value_text(value)}")

    @staticmethod
    def value_text(value: object) -> str:
        match value:
            case None:
                return "removed"
            case GroupValue(epoch, _, validated, _):
                return f"epoch {epoch}, validated {validated}"
            case TargetEpochValue(epoch, _):
                return f"epoch {epoch}"
            case MemberValue():
                who = "" if value.instance_id is None else f"{value.instance_id}, "
                return f"{who}of process {value.process_id}, topology {value.topology_epoch}"
            case TargetValue(tasks):
                return named(tasks)
            case TopologyValue(topology):
                return f"epoch {topology.epoch} with {len(topology.subtopologies)} subtopologies"
            case CurrentValue():
                pending = ""
                if value.pending_revocation:
                    pending = f", to give up {named(value.pending_revocation)}"
                where = f"in {value.epoch} (was {value.previous_epoch}), state {value.state}"
                return f"{where}, with {named(value.assigned)}{pending}"
        raise AssertionError(value)

    def send(self, client: str, request: HeartbeatRequest, *, lost: bool = False) -> None:
        try:
            result, records = self.heartbeat(request)
        except ApiError as error:
            self.output.append(f"{client}: {error.code.name} {error.message}")
            return
        self.output.append(f"{client}: {self.result_text(result)}{' (lost)' if lost else ''}")
        self.tell(records)
        if lost:
            return
        self.epochs[client] = result.epoch
        self.endpoint_epochs[client] = result.endpoint_epoch
        if result.tasks is not None:
            # As the client does: what it is not to have any more is given up at once.
            self.owned[client] = Tasks(
                {name: frozenset(its) for name, its in result.tasks.active.items()},
                result.tasks.standby,
                result.tasks.warmup,
            )

    @staticmethod
    def result_text(result: HeartbeatResult) -> str:
        parts = [f"epoch {result.epoch}"]
        if result.tasks is not None:
            parts.append(f"has {named(result.tasks)}")
        parts += [f"{status.code.name} {status.detail}" for status in result.statuses]
        if result.missing_topics:
            topics = [f"{topic.name}:{topic.partitions}" for topic in result.missing_topics]
            parts.append(f"to create {' '.join(topics)}")
        for at in result.endpoints or ():
            active = " ".join(f"{topic}:{numbers}" for topic, numbers in at.active) or "nothing"
            standby = " ".join(f"{topic}:{numbers}" for topic, numbers in at.standby)
            parts.append(f"{at.endpoint.host} has {active}{standby and ' / '}{standby}")
        return "; ".join(parts)

    def request(self, client: str) -> HeartbeatRequest:
        owned = self.owned.get(client, Tasks())
        return HeartbeatRequest(
            group="g",
            member_id=client,
            epoch=self.epochs.get(client, 0),
            client_id="client",
            client_host="/127.0.0.1",
            endpoint_epoch=self.endpoint_epochs.get(client, 0),
            instance_id=self.instances.get(client),
            active=owned.active,
            standby=owned.standby,
            warmup=owned.warmup,
        )

    # Commands.

    def join(self, client: str, topology: str, **options: str) -> None:
        self.epochs[client] = 0
        self.owned[client] = Tasks()
        self.instances[client] = options.get("instance")
        host, _, port = options.get("endpoint", "").partition(":")
        request = self.request(client)._replace(
            rebalance_timeout_ms=60_000,
            topology=TOPOLOGIES[topology]._replace(epoch=int(options.get("version", 0))),
            process_id=options.get("process", f"process-{client}"),
            endpoint=Endpoint(host, int(port)) if host else None,
        )
        self.send(client, request)

    def beat(self, client: str, owned: str | None = None, epoch: str | None = None) -> None:
        self.send(client, self._said(client, owned, epoch))

    def _said(self, client: str, owned: str | None, epoch: str | None) -> HeartbeatRequest:
        request = self.request(client)
        if owned is not None:
            active, standby, warmup = tasks_in(owned)
            request = request._replace(active=active, standby=standby, warmup=warmup)
        return request if epoch is None else request._replace(epoch=int(epoch))

    def quiet(self, client: str, epoch: str | None = None) -> None:
        request = self._said(client, None, epoch)
        self.send(client, request._replace(active=None, standby=None, warmup=None))

    def lost(self, client: str, owned: str | None = None) -> None:
        self.send(client, self._said(client, owned, None), lost=True)

    def shutdown(self, client: str) -> None:
        self.send(client, self.request(client)._replace(shuts_down=True))

    def leave(self, client: str) -> None:
        self.send(client, self.request(client)._replace(epoch=-1))

    def away(self, client: str) -> None:
        self.send(client, self.request(client)._replace(epoch=-2))

    def offsets(self, client: str, offsets: str, end: str | None = None) -> None:
        said = self.request(client)._replace(
            task_offsets=offsets_in(offsets),
            task_end_offsets=None if end is None else offsets_in(end),
        )
        self.send(client, said)

    def topic(self, name: str, count: str) -> None:
        self.set_topic(name, int(count))

    def wait(self, text: str) -> None:
        until_ms = self.now_ms + milliseconds(text)
        while (event := self.next_timer(until_ms)) is not None:
            seconds = (self.now_ms - START_MS) / 1_000
            who = "" if isinstance(event, FirstAssignmentDue) else f" {event.member}"
            self.output.append(f"at {seconds:g}s {type(event).__name__}{who}")
            self.tell(self.expire(event))

    def describe(self) -> None:
        try:
            group = self.shard.describe("g")
        except ApiError as error:
            self.output.append(str(error.message))
            return
        self.output.append(f"{group.state} in {group.epoch}, targets of {group.assignment_epoch}")
        for member, target, offsets in sorted(group.members):
            has = f"{named(member.assigned)}; target {named(target)}"
            for what, its in zip(("is at", "of"), offsets, strict=True):
                at = ",".join(f"{name}_{number}={n}" for (name, number), n in sorted(its.items()))
                has += f"; {what} {at}" if at else ""
            self.output.append(f"  {member.member_id} in {member.epoch}: {has}")
        for part in group.topology.subtopologies if group.topology is not None else ():
            topics = (*part.changelog_topics, *part.repartition_source_topics)
            counts = " ".join(f"{topic.name}:{topic.partitions}" for topic in topics)
            self.output.append(f"  subtopology {part.id}: {counts or 'no internal topics'}")

    def remove(self) -> None:
        self.tell(self.decide(lambda step: self.shard.remove("g", step))[1])

    def setting(self, **options: str) -> None:
        self.settings = replace(
            self.settings, **{name: int(value) for name, value in options.items()}
        )

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
