"""Steps that share an append, with transcripts: `transcripts/shared_append*.txt`.

Each line before `----` is a command; the lines after it are the outcome, up to an empty line: what
the log was asked, and the answers in their order. `REWRITE=1 pytest` rewrites the outcomes.

    together a b c-           in one turn of the event loop: a heartbeat of each member, which joins
                              with the first one, and leaves with c-; `commit`, `describe`: those
                              of the group; `other a`: a heartbeat in a group beside it; `delete`:
                              of the group; `expire a`: its session ends; `marker`: a transaction's
    gone b                    the client of the next `b` goes before it is answered
    refuse CODE [late]        the log refuses everything; late: it does not know it before
    stranger                  somebody else appends a record just before the next append
    accept                    the log takes records again
    hold | release            nothing is committed | what was appended is
    limit 400 [late]          the log takes batches of so many bytes
    resign                    in the turn of the next `together`, at its end: another broker leads
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Iterator
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import pytest
from tests.coordinator.conftest import MemoryLog, MemoryLogs, StillClock

from ottla.coordinator.coordinator_log import KeyAndValue, LogMarker, LogRecord
from ottla.coordinator.coordinator_runtime import CoordinatorRuntime
from ottla.coordinator.group_coordinator import GroupCoordinator, group_kind
from ottla.coordinator.shared_append import BATCH_BYTES, SharedAppend, size_bytes
from ottla.groups.consumer.requests import HeartbeatRequest
from ottla.groups.consumer.step import SessionExpired
from ottla.groups.consumer.topics import Topic, Topics
from ottla.groups.offsets.commit import CommitRequest, OffsetToCommit
from ottla.groups.settings import GroupSettings
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.build import build_plain_batch
from ottla.shards.step import ProducerEpoch, TransactionMarker

TRANSCRIPTS = sorted(Path(__file__).parent.glob("transcripts/shared_append*.txt"))
TOPICS = Topics(1, {"t": Topic(UUID(int=1), 4)})


class NotedLog(MemoryLog):
    def __init__(self, output: list[str]) -> None:
        super().__init__()
        self.output = output
        self.is_late = False
        self.has_stranger = False
        self.late_limit = 0

    def check(self) -> None:
        if not self.is_late:
            super().check()

    def append(
        self,
        records: Any,
        now_ms: int,
        producer: ProducerEpoch | None,
        guard: object | None = None,
    ) -> int:
        batch_bytes = len(build_plain_batch(records, now_ms))
        if batch_bytes > (self.late_limit or self.max_batch_bytes):
            self.output.append(f"refuses {len(records)} records: {batch_bytes} bytes")
            raise ApiError(ErrorCode.message_too_large)
        if self.has_stranger:
            self.has_stranger = False
            self.records.append(LogRecord(len(self.records), b"\0\x7f", b"", now_ms, None))
        try:
            last_offset = super().append(records, now_ms, producer, guard)
        except ApiError as error:
            self.output.append(f"refuses {len(records)} records: {error.code.name}")
            raise
        self.output.append(f"appends {len(records)} records")
        return last_offset

    def append_marker(self, marker: TransactionMarker, now_ms: int) -> int:
        self.output.append("appends a marker")
        return super().append_marker(marker, now_ms)

    def read_all(self) -> Iterator[LogRecord | LogMarker]:
        self.output.append("is loaded")
        yield from super().read_all()


class Story:
    def __init__(self) -> None:
        self.output: list[str] = []
        self.log = NotedLog(self.output)
        logs = MemoryLogs(1)
        logs._logs[0] = self.log
        settings = GroupSettings(offset_commit_timeout_ms=60_000)
        self.runtime = CoordinatorRuntime(
            group_kind(settings, topics=lambda: TOPICS), logs, StillClock()
        )
        self.groups = GroupCoordinator(self.runtime, lambda: 1, random=Random(1))
        self.epochs: dict[tuple[str, str], int] = {}
        self.leaving: set[str] = set()
        self.has_to_resign = False
        self.waiting: list[asyncio.Task[None]] = []

    async def beat(self, group: str, name: str) -> str:
        member = name.removesuffix("-")
        epoch = -1 if name.endswith("-") else self.epochs.get((group, member), 0)
        request = HeartbeatRequest(
            group, member, epoch, "client", "/127.0.0.1",
            rebalance_timeout_ms=60_000 if epoch == 0 else -1,
            subscribed_topics=frozenset("t") if epoch == 0 else None,
            owned={} if epoch == 0 else None,
        )  # fmt: skip
        result = await self.groups.consumer_heartbeat(request, 1)
        self.epochs[group, member] = max(result.epoch, 0)
        return f"epoch {result.epoch}"

    async def commit(self) -> str:
        offset = OffsetToCommit("t", None, 0, 7, -1, "")
        request = CommitRequest("offsets", -1, "", None, -1, (offset,), 9)
        return ", ".join(error.name for error in await self.groups.commit(request))

    async def describe(self) -> str:
        group = await self.groups.describe_consumer_group("g")
        names = sorted(each.member.member_id for each in group.members)
        return f"epoch {group.epoch}, {' '.join(names)}"

    async def delete(self) -> str:
        return (await self.groups.delete_group("g")).name

    async def marker(self) -> str:
        await self.groups.complete_transaction(0, 5, 0, committed=True, coordinator_epoch=1)
        return "written"

    async def expire(self, name: str) -> str:
        self.runtime._partitions[0]._expired(SessionExpired("g", name))
        return "expired"

    async def note(self, name: str, answer: Awaitable[str]) -> None:
        try:
            self.output.append(f"{name}: {await answer}")
        except ApiError as error:
            self.output.append(f"{name}: {error.code.name}")
        except asyncio.CancelledError:
            self.output.append(f"{name} has gone")

    async def together(self, *names: str) -> None:
        tasks, words = [], list(names)
        while words:
            name = words.pop(0)
            if name == "other":
                answer = self.beat("other", words.pop(0))
            elif name == "expire":
                answer = self.expire(words.pop(0))
            elif name in ("commit", "delete", "describe", "marker"):
                answer = getattr(self, name)()
            else:
                answer = self.beat("g", name)
            tasks.append(asyncio.create_task(self.note(name, answer)))
        await asyncio.sleep(0)
        for name, task in zip(names, tasks, strict=False):
            if name in self.leaving:
                task.cancel()
        self.leaving.clear()
        if self.has_to_resign:
            self.has_to_resign = False
            self.runtime.resigned(0)
        self.waiting += tasks
        await self.settle()

    async def settle(self) -> None:
        """Until nothing moves."""
        for _ in range(20):
            await asyncio.sleep(0)

    def gone(self, name: str) -> None:
        self.leaving.add(name)

    def refuse(self, code: str, late: str = "") -> None:
        self.log.refuse, self.log.is_late = ErrorCode[code], bool(late)

    def stranger(self) -> None:
        self.log.has_stranger = True

    def accept(self) -> None:
        self.log.refuse = None

    async def hold(self) -> None:
        self.log.hold()

    async def release(self) -> None:
        self.log.release()
        await self.settle()

    def limit(self, size: str, late: str = "") -> None:
        if late:
            self.log.late_limit = int(size)
        else:
            self.log.max_batch_bytes = int(size)

    def resign(self) -> None:
        self.has_to_resign = True

    async def run(self, line: str) -> None:
        command, *words = line.split()
        done = getattr(self, command)(*words)
        if done is not None:
            await done

    async def close(self) -> None:
        self.groups.close()
        self.runtime.close()
        await asyncio.gather(*self.waiting)


async def played(text: str) -> str:
    """The transcript with the outcomes of now."""
    story, blocks = Story(), []
    for block in re.split(r"\n\n+", text.strip()):
        commands = block.split("\n----")[0].split("\n")
        story.output.clear()
        for line in commands:
            if not line.startswith("#"):
                await story.run(line)
        blocks.append("\n".join([*commands, "----", *story.output]))
    await story.close()
    return "\n\n".join(blocks) + "\n"


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
async def test_transcript(path: Path) -> None:
    text = path.read_text()
    outcome = await played(text)
    if os.environ.get("REWRITE"):
        path.write_text(outcome)
    assert outcome == text


async def test_what_is_not_appended_is_behind_wherever_the_high_watermark_is() -> None:
    story = Story()
    await story.together("a")
    partition = story.runtime._partitions[0]
    beat = asyncio.create_task(story.beat("g", "b"))
    await asyncio.sleep(0)
    assert partition.is_sharing
    while story.log.high_watermark <= partition._last_offset:
        story.log.records.append(LogRecord(len(story.log.records), b"\0\x7f", b"", 1, None))
    assert partition.is_behind
    with pytest.raises(ApiError) as refused:
        await beat
    assert refused.value.code is ErrorCode.not_coordinator
    await story.close()


async def test_no_heartbeat_waits_for_ever_if_what_follows_an_append_fails() -> None:
    story = Story()
    await story.together("a")
    partition = story.runtime._partitions[0]
    failures: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, told: failures.append(told))

    def fail(step: object) -> None:
        raise AssertionError("a bug")

    partition._reply_when_committed = fail  # type: ignore[method-assign]
    beats = [asyncio.create_task(story.beat("g", name)) for name in "bc"]
    assert await asyncio.gather(*beats) == ["epoch 2", "epoch 2"]
    assert len(failures) == 1
    await story.close()


def test_there_are_transcripts() -> None:
    assert TRANSCRIPTS


@pytest.mark.parametrize(
    "contents",
    [
        [(b"k", None)],
        [(b"", b"")] * 5_000,
        [(bytes(70), bytes(9_000))] * 100,
        [(bytes(3 << 20), bytes(3 << 20))],
    ],
)
def test_no_batch_is_larger_than_it_says(contents: list[KeyAndValue]) -> None:
    """Else one that its log refuses for its size would fail all steps in it."""
    assert len(build_plain_batch(contents, 1)) <= BATCH_BYTES + size_bytes(contents)


def test_a_batch_has_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.coordinator.shared_append.MAX_SHARED_RECORDS", 3)
    shared = SharedAppend(1, 100)
    assert shared.takes(3, 39)
    assert not shared.takes(3, 40)
    assert not shared.takes(4, 39)
    shared.add([(b"k", b"v")] * 2, 20)
    assert shared.takes(1, 19)
    assert not shared.takes(2, 10)
    assert not shared.takes(1, 20)
