"""Transcripts of groups: `transcripts/*.txt` hold commands and what came of them.

Each line before `----` is a command; the lines after it are the outcome, up to an empty line.
`REWRITE=1 pytest tests/groups/test_shard.py` rewrites the outcomes, to be read in the diff.

    join a [instance=i] [protocols=range,sticky] [topics=t,u] [type=consumer] [version=9]
           [session=10s] [rebalance=60s] [id=x]      as client a, with the id that it was given
    sync a [a=x b=y] [generation=n] [id=x]           a leader names the assignments
    beat a [generation=n] [id=x] [instance=i]
    leave a b [instance=i]
    commit a 0=5 1=7 [generation=n] [topic=t] [retention=1m] [metadata=text] [version=9]
    txn-commit 7 0=5 [by=a] [generation=n] [topic=t]     producer 7, for client a's group
    end 7 commit|abort                               the marker of producer 7's transaction
    fetch [stable]                                   all offsets of the group
    delete-offsets t                                 delete-group            topic-deleted t
    wait 10s                                         timers fire on the way
    sweep                                            expires offsets and groups
    restart                                          the state is rebuilt from the records
    refuse CODE | accept                             what becomes of appended records
    describe | list [states=stable,..] [types=classic]
    topic t=4                                        the topic has 4 partitions; from then on
                                                     classic members tell what they own:
                                                     join a owned=0,1
    sync a a=t-0,1 b=t-2                             assignments in the format of Kafka's consumers
    native a [topics=t] [owned=0,1] [epoch=n] [id=x] [instance=i]
                                                     a heartbeat of the consumer protocol: the first
                                                     one joins, owned partitions are those of t
    policy upgrade                                   group.consumer.migration.policy
    setting NAME=NUMBER

All of them are about group g, unless the line says group=h.
"""

from __future__ import annotations

import os
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from tests.groups.in_memory import all_in_memory

from ottla.groups.classic.requests import (
    HeartbeatRequest,
    JoinRequest,
    JoinResult,
    LeavingMember,
    SyncRequest,
    SyncResult,
)
from ottla.groups.consumer.assignors.spec import Partitions
from ottla.groups.consumer.member import MemberState, partitions_of
from ottla.groups.consumer.requests import HeartbeatRequest as ConsumerHeartbeat
from ottla.groups.consumer.requests import HeartbeatResult as ConsumerHeartbeatResult
from ottla.groups.consumer.settings import ConsumerGroupSettings
from ottla.groups.consumer.stored import CurrentValue, GroupValue, MemberValue, TargetValue
from ottla.groups.consumer.topics import Topic, Topics
from ottla.groups.embedded_protocol import read_assignment, write_assignment
from ottla.groups.newer_stored import TargetEpochValue
from ottla.groups.offsets.commit import CommitRequest, OffsetToCommit
from ottla.groups.offsets.transactional_commit import TransactionalCommitRequest
from ottla.groups.records import decode, encode
from ottla.groups.settings import GroupSettings
from ottla.groups.shard import GroupShard
from ottla.groups.step import Step, TimerEvent
from ottla.groups.stored import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.shards.step import ProducerEpoch, SetTimer, TransactionMarker

TRANSCRIPTS = sorted(Path(__file__).parent.glob("transcripts/*.txt"))
UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def milliseconds(text: str) -> int:
    matched = re.fullmatch(r"(\d+)(ms|s|m|h|d)", text)
    assert matched is not None, text
    return int(matched[1]) * UNITS_MS[matched[2]]


def subscription(topics: str, owned: Sequence[int] | None = None) -> bytes:
    if topics == "-":
        return b"?"
    names = topics.split(",")
    content = b"".join(len(name).to_bytes(2, "big") + name.encode() for name in names)
    text = b"\0\1" + len(names).to_bytes(4, "big") + content + b"\xff\xff\xff\xff"
    if owned is None:
        return text
    if not owned:
        return text + bytes(4)
    numbers = b"".join(number.to_bytes(4, "big") for number in owned)
    return text + b"\0\0\0\1\0\1t" + len(owned).to_bytes(4, "big") + numbers


def assignment(text: str) -> bytes:
    if not text.startswith("t-"):
        return text.encode()
    return write_assignment(1, [("t", numbers(text.removeprefix("t-")))])


def assignment_text(content: bytes) -> str:
    """That of a leader here is a word; the coordinator's is in Kafka's format."""
    if not content.startswith(b"\0"):
        return content.decode()
    return partitions_text(read_assignment(content).partitions)


def partitions_text(partitions: Mapping[str, Iterable[int]]) -> str:
    return " ".join(
        f"{topic}-{','.join(map(str, sorted(each)))}" for topic, each in sorted(partitions.items())
    )


def numbers(text: str) -> list[int]:
    return [int(each) for each in text.split(",") if each]


class World:
    """A shard, a clock that only `wait` moves, and clients that remember id and generation."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.settings = GroupSettings(min_session_timeout_ms=1_000)
        self.log: list[tuple[bytes, bytes | None, ProducerEpoch | None] | TransactionMarker] = []
        self.timers: dict[Hashable, tuple[int, TimerEvent]] = {}
        self.refusal: ErrorCode | None = None
        self.ids: dict[str, str] = {}
        self.generations: dict[str, int] = {}
        self.joined: dict[str, int] = {}
        self.output: list[str] = []
        self.topics = Topics(0, {})
        self.consumer_settings = ConsumerGroupSettings()
        self.shard = self.new_shard()
        self.before: Any = None
        self.shard.loaded(self.step())

    def new_shard(self) -> GroupShard:
        return GroupShard(lambda: self.topics, lambda group: self.consumer_settings)

    def step(self) -> Step:
        self.before = all_in_memory(self.shard)
        return Step(self.now_ms, self.settings)

    def run(self, step: Step) -> None:
        """As the runtime does it."""
        if step.records or step.marker is not None:
            assert all_in_memory(self.shard) == self.before, (
                "changed before the records are applied"
            )
        if (step.records or step.marker) and self.refusal is not None:
            self.output.append(f"not appended: {self.refusal.name}")
            if step.when_refused is not None:
                later = self.step()
                step.when_refused(later, self.refusal)
                self.run(later)
            raise ApiError(self.refusal)
        for record in step.records:
            self.log.append((*encode(record), step.producer))
            self.shard.apply(record, len(self.log) - 1, self.now_ms, step.producer)
            owner = "" if step.producer is None else f" (producer {step.producer.producer_id})"
            self.output.append(f"record {self.record_text(*record)}{owner}")
        if step.marker is not None:
            self.log.append(step.marker)
            self.shard.apply_marker(step.marker, len(self.log) - 1)
            self.output.append("marker")
        for work in step.committed:
            for record in work.records if step.marker is not None else ():
                self.output.append(f"committed {self.record_text(*record)}")
        for timer in step.timers:
            if isinstance(timer, SetTimer):
                self.timers[timer.key] = (self.now_ms + timer.delay_ms, timer.event)
            else:
                self.timers.pop(timer.key, None)
        for client, result in step.replies:
            self.answered(client, result)
        if step.when_appended is not None:
            later = self.step()
            step.when_appended(later)
            self.run(later)

    def record_text(self, key: Any, value: Any) -> str:
        if isinstance(key, OffsetCommitKey):
            assert value is None or isinstance(value, OffsetCommitValue)
            text = "removed" if value is None else f"offset {value.offset}"
            return f"{key.group} {key.topic}-{key.partition}: {text}"
        if isinstance(key, GroupMetadataKey):
            if value is None:
                return f"{key.group}: removed"
        else:
            return self.consumer_record_text(key, value)
        assert isinstance(value, GroupMetadataValue)
        members = " ".join(
            f"{one.member_id}={assignment_text(one.assignment)}" for one in value.members
        )
        return f"{key.group}: generation {value.generation} [{members}]"

    def consumer_record_text(self, key: Any, value: Any) -> str:
        what = type(key).__name__.removesuffix("Key")
        who = f"{key.group} {getattr(key, 'member', '')}".rstrip()
        if value is None:
            return f"{who}: no {what}"
        match value:
            case GroupValue() | TargetEpochValue():
                text = f"epoch {value.epoch}"
            case MemberValue():
                text = "consumer" if value.classic is None else "classic"
                text += f" {','.join(value.subscribed_topics)}"
            case TargetValue():
                text = self.named(value.partitions)
            case CurrentValue():
                state = MemberState.of(value.state).name
                text = f"epoch {value.epoch} {state} {self.named(partitions_of(value.assigned))}"
                if value.pending_revocation:
                    text += f" revoking {self.named(partitions_of(value.pending_revocation))}"
        return f"{who}: {what} {text}".rstrip()

    def named(self, partitions: Partitions) -> str:
        names = {topic.id: name for name, topic in self.topics.by_name.items()}
        return partitions_text({names[topic]: each for topic, each in partitions.items()})

    def answered(self, client: str, result: Any) -> None:
        if isinstance(result, SyncResult):
            text = f"assigned '{assignment_text(result.assignment)}'"
            self.output.append(f"{client} sync: {self.error_or(result.error, text)}")
            return
        assert isinstance(result, JoinResult)
        if result.member_id:
            self.ids[client] = result.member_id
        text = f"generation {result.generation}, {result.protocol_name}, leader {result.leader}"
        if result.members:
            text += ", leads " + " ".join(member.member_id for member in result.members)
        if result.skip_assignment:
            text += ", skips assignment"
        if result.error is ErrorCode.none:
            self.generations[client] = result.generation
        elif result.error is ErrorCode.member_id_required:
            text = result.member_id
        self.output.append(f"{client} join: {self.error_or(result.error, text)}")

    @staticmethod
    def error_or(error: ErrorCode, text: str) -> str:
        if error is ErrorCode.member_id_required:
            return f"{error.name} {text}"
        return text if error is ErrorCode.none else error.name

    # Commands. `words` are plain words, `options` those with "=".

    def join(self, words: list[str], options: dict[str, str]) -> None:
        (client,) = words
        version = int(options.get("version", "9"))
        number = self.joined[client] = self.joined.get(client, 0) + 1
        protocols = options.get("protocols", "range").split(",")
        owned = numbers(options.get("owned", "")) if self.topics.by_name else None
        metadata = subscription(options.get("topics", "t"), owned)
        request = JoinRequest(
            token=client,
            group=options["group"],
            member_id=options.get("id", self.ids.get(client, "")).removeprefix("none"),
            group_instance_id=options.get("instance"),
            new_member_id=f"{client}-{number}",
            client_id=client,
            client_host="/127.0.0.1",
            session_timeout_ms=milliseconds(options.get("session", "10s")),
            rebalance_timeout_ms=milliseconds(options.get("rebalance", "60s")),
            protocol_type=options.get("type", "consumer"),
            protocols=tuple((name, metadata) for name in protocols if name),
            requires_known_member_id=version >= 4,
            supports_skip_assignment=version >= 9,
        )
        step = self.step()
        self.shard.join(request, step)
        try:
            self.run(step)
        except ApiError as error:
            self.answered(client, JoinResult(error.code, request.member_id))

    def who(self, client: str, options: dict[str, str]) -> tuple[int, str, str | None]:
        generation = int(options.pop("generation", self.generations.get(client, -1)))
        member_id = options.pop("id", self.ids.get(client, "")).removeprefix("none")
        return generation, member_id, options.pop("instance", None)

    def sync(self, words: list[str], options: dict[str, str]) -> None:
        (client,) = words
        group = options.pop("group")
        named = (options.pop("type", "consumer"), options.pop("protocol", "range"))
        who = self.who(client, options)
        assignments = {self.ids[name]: assignment(text) for name, text in options.items()}
        step = self.step()
        self.shard.sync(SyncRequest(client, group, *who, *named, assignments), step)
        try:
            self.run(step)
        except ApiError as error:
            self.answered(client, SyncResult(error.code))

    def beat(self, words: list[str], options: dict[str, str]) -> None:
        group = options.pop("group")
        step = self.step()
        error = self.shard.heartbeat(HeartbeatRequest(group, *self.who(words[0], options)), step)
        self.run(step)
        self.output.append(error.name)

    def native(self, words: list[str], options: dict[str, str]) -> None:
        (client,) = words
        group = options.pop("group")
        epoch, member_id, instance_id = self.who(client, options)
        epoch = int(options.get("epoch", max(epoch, 0)))
        owned = options.get("owned", "" if epoch == 0 else None)
        topics = options.get("topics", "t" if epoch == 0 else None)
        partitions = None
        if owned is not None:
            partitions = {self.topics.by_name["t"].id: frozenset(numbers(owned))} if owned else {}
        request = ConsumerHeartbeat(
            group, member_id or client, epoch, client, "/127.0.0.1",
            instance_id=instance_id,
            rebalance_timeout_ms=30_000 if epoch == 0 else -1,
            subscribed_topics=None if topics is None else frozenset(topics.split(",")),
            owned=partitions,
        )  # fmt: skip
        step = self.step()
        result = self.shard.consumer_heartbeat(request, 1, step)
        assert isinstance(result, ConsumerHeartbeatResult)
        self.run(step)
        self.ids[client], self.generations[client] = result.member_id, result.epoch
        text = f"{client}: epoch {result.epoch}"
        if result.assignment is not None:
            text += f", assigned '{self.named(result.assignment)}'"
        self.output.append(text)

    def topic(self, words: list[str], options: dict[str, str]) -> None:
        del options["group"]
        by_name = {
            name: Topic(UUID(bytes=name.encode().rjust(16, b"\0")), int(count))
            for name, count in options.items()
        }
        self.topics = Topics(self.topics.version + 1, {**self.topics.by_name, **by_name})

    def policy(self, words: list[str], options: dict[str, str]) -> None:
        self.consumer_settings = replace(self.consumer_settings, migration_policy=words[0])

    def leave(self, words: list[str], options: dict[str, str]) -> None:
        leaving = [LeavingMember(self.ids.get(client, client), None) for client in words]
        if "instance" in options:
            leaving.append(LeavingMember("", options["instance"]))
        step = self.step()
        left = self.shard.leave(options["group"], leaving, step)
        self.run(step)
        for one in left:
            name = one.member_id or one.group_instance_id
            self.output.append(f"{name}: {self.error_or(one.error, 'left')}")

    def commit(self, words: list[str], options: dict[str, str]) -> None:
        group, topic = options.pop("group"), options.pop("topic", "t")
        retention = options.pop("retention", None)
        metadata = options.pop("metadata", None)
        version = int(options.pop("version", "9"))
        who = self.who(words[0], options) if words else (-1, "", None)
        offsets = [
            OffsetToCommit(topic, None, int(partition), int(offset), -1, metadata)
            for partition, offset in options.items()
        ]
        retention_ms = -1 if retention is None else milliseconds(retention)
        step = self.step()
        request = CommitRequest(group, *who, retention_ms, tuple(offsets), version)
        errors = self.shard.commit(request, step)
        self.output += [error.name for error in errors if error is not ErrorCode.none]
        self.run(step)

    def txn_commit(self, words: list[str], options: dict[str, str]) -> None:
        group, topic = options.pop("group"), options.pop("topic", "t")
        who = self.who(options.pop("by", ""), options)
        offsets = [
            OffsetToCommit(topic, None, int(partition), int(offset), -1, None)
            for partition, offset in options.items()
        ]
        step = self.step()
        producer = ProducerEpoch(int(words[0]), 0)
        request = TransactionalCommitRequest(group, "id", producer, *who, tuple(offsets), 3)
        errors = self.shard.commit_in_transaction(request, step)
        self.output += [error.name for error in errors if error is not ErrorCode.none]
        self.run(step)

    def end(self, words: list[str], options: dict[str, str]) -> None:
        producer_id, how = words
        step = self.step()
        marker = TransactionMarker(ProducerEpoch(int(producer_id), 0), how == "commit", 0)
        self.shard.end_transaction(marker, step)
        self.run(step)

    def fetch(self, words: list[str], options: dict[str, str]) -> None:
        stable = "stable" in words
        found = self.shard.fetch_all(options["group"], require_stable=stable)
        for topic, offsets in found.items():
            for each in offsets:
                note = f" '{each.metadata}'" if each.metadata else ""
                text = self.error_or(each.error, f"{each.offset}{note}")
                self.output.append(f"{topic}-{each.partition}: {text}")

    def delete_offsets(self, words: list[str], options: dict[str, str]) -> None:
        step = self.step()
        errors = self.shard.delete_offsets(options["group"], ((words[0], (0, 1)),), step)
        self.output.append(" ".join(error.name for error in errors[0]))
        self.run(step)

    def delete_group(self, words: list[str], options: dict[str, str]) -> None:
        step = self.step()
        error = self.shard.delete_group(options["group"], step)
        assert error is not None
        self.output.append(error.name)
        self.run(step)

    def topic_deleted(self, words: list[str], options: dict[str, str]) -> None:
        step = self.step()
        self.shard.topic_deleted(words[0], None, step)
        self.run(step)

    def sweep(self, words: list[str], options: dict[str, str]) -> None:
        step = self.step()
        self.shard.remove_expired(step)
        self.run(step)

    def wait(self, words: list[str], options: dict[str, str]) -> None:
        end_ms = self.now_ms + milliseconds(words[0])
        while self.timers:
            key = min(self.timers, key=lambda key: self.timers[key][0])
            due_ms, event = self.timers[key]
            if due_ms > end_ms:
                break
            del self.timers[key]
            self.now_ms = max(due_ms, self.now_ms)
            step = self.step()
            self.shard.expired(event, step)
            if step.timers or step.records or step.replies or step.when_appended:
                self.output.append(f"at {self.now_ms / 1000:g}s {type(event).__name__}")
            with suppress(ApiError):
                self.run(step)
        self.now_ms = end_ms

    def restart(self, words: list[str], options: dict[str, str]) -> None:
        self.shard, self.timers = self.new_shard(), {}
        for offset, entry in enumerate(self.log):
            if isinstance(entry, TransactionMarker):
                self.shard.apply_marker(entry, offset)
                continue
            encoded, value, producer = entry
            record = decode(encoded, value)
            assert record is not None
            self.shard.apply(record, offset, self.now_ms, producer)
        step = self.step()
        self.shard.loaded(step)
        self.run(step)

    def refuse(self, words: list[str], options: dict[str, str]) -> None:
        self.refusal = ErrorCode[words[0]]

    def accept(self, words: list[str], options: dict[str, str]) -> None:
        self.refusal = None

    def setting(self, words: list[str], options: dict[str, str]) -> None:
        del options["group"]
        numbers: dict[str, Any] = {name: int(number) for name, number in options.items()}
        self.settings = replace(self.settings, **numbers)

    def describe(self, words: list[str], options: dict[str, str]) -> None:
        group = self.shard.describe_group(options["group"])
        kind = f"{group.protocol_type or '-'}/{group.protocol or '-'}"
        self.output.append(f"{group.state} {kind}" if not group.reason else "not found")
        for one in group.members:
            note = f" ({one.group_instance_id})" if one.group_instance_id else ""
            size = len(one.metadata)
            assigned = assignment_text(one.assignment)
            self.output.append(f"  {one.member_id}{note} metadata {size} bytes, '{assigned}'")

    def list(self, words: list[str], options: dict[str, str]) -> None:
        chosen = [
            frozenset(options.get(name, "").split(",")) - {""} for name in ("states", "types")
        ]
        for group in self.shard.list_groups(*chosen):
            kind = group.protocol_type or "-"
            self.output.append(f"{group.group} {group.type} {kind} {group.state}")

    def command(self, line: str) -> Sequence[str]:
        """Runs one line and returns what came of it, the changes of state included."""
        name, *rest = line.split()
        options = {"group": "g"} | dict(word.split("=", 1) for word in rest if "=" in word)
        words = [word for word in rest if "=" not in word]
        before = {group.group_id: group.state.value for group in self.shard.groups.values()}
        self.output = []
        try:
            getattr(self, name.replace("-", "_"))(words, options)
        except ApiError as error:
            self.output.append(error.code.name)
        after = {group.group_id: group.state.value for group in self.shard.groups.values()}
        for group in sorted({*before, *after}):
            if before.get(group) != after.get(group):
                old, new = before.get(group, "none"), after.get(group, "none")
                self.output.append(f"{group}: {old} -> {new}")
        return self.output or ["ok"]


def played(text: str) -> str:
    """The transcript with its outcomes as they are now."""
    world, inside = World(), False
    lines: list[str] = []
    pending: list[str] = []
    for line in text.splitlines():
        if line == "----":
            inside = True
            lines += [line, *(out for command in pending for out in world.command(command))]
            continue
        if inside and line:
            continue
        if not line or line.startswith("#"):
            inside, pending = False, []
        elif not inside:
            pending.append(line)
        lines.append(line)
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_transcript(path: Path) -> None:
    text = path.read_text()
    now = played(text)
    if os.environ.get("REWRITE"):
        path.write_text(now)
    assert now == text or os.environ.get("REWRITE")


def test_there_are_transcripts() -> None:
    assert len(TRANSCRIPTS) >= 20
