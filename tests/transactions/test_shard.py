"""Transcripts of transactions: `transcripts/*.txt` hold commands and what came of them.

Each line before `----` is a command; the lines after it are the outcome, up to an empty line.
`REWRITE=1 pytest tests/transactions/test_shard.py` rewrites the outcomes, to be read in the diff.

    init a [timeout=60s] [expected[=1000/3]]   InitProducerId; `expected` names what a has
    add a t-0 t-1 [v2]                         AddPartitionsToTxn; v2: by a partition's leader
    verify a t-0
    end a commit|abort [v2]                    EndTxn in version 4, or 5
    marked t-0 | marked                        markers of the newest decision are written; all
    wait 10s | scan | expire                   time passes; the scans that time calls for
    restart                                    the state is rebuilt from the records
    refuse CODE | accept                       what becomes of appended records
    describe | listing [states=Empty,..] [ids=1000,..] [duration=5s]
    setting NAME=NUMBER | cluster VERSION | seed EPOCH    (Empty 1000/EPOCH is in the log)

A producer is written id/epoch; the first id is 1000. An option `as=1000/3` speaks for that one,
`id=u` is about another transactional id than t.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.shards.step import ProducerEpoch
from ottla.transactions.record_format import decode, encode
from ottla.transactions.requests import (
    AddRequest,
    EndRequest,
    InitRequest,
    ListFilter,
    ProducerResult,
)
from ottla.transactions.settings import TransactionSettings
from ottla.transactions.shard import TransactionShard
from ottla.transactions.state import EMPTY
from ottla.transactions.step import MarkersDue, ProducerIdNeeded, Step
from ottla.transactions.stored import TopicPartition, TransactionRecord, TransactionValue

TRANSCRIPTS = sorted(Path(__file__).parent.glob("transcripts/*.txt"))
UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}

T = TypeVar("T")


def milliseconds(text: str) -> int:
    matched = re.fullmatch(r"(-?\d+)(ms|s|m|h|d)", text)
    assert matched is not None, text
    return int(matched[1]) * UNITS_MS[matched[2]]


def producer(text: str) -> ProducerEpoch:
    producer_id, _, epoch = text.partition("/")
    return ProducerEpoch(int(producer_id), int(epoch))


def partitions(words: list[str]) -> frozenset[TopicPartition]:
    found = [word.rpartition("-") for word in words]
    return frozenset(TopicPartition(topic, int(index)) for topic, _, index in found)


def listed(wanted: frozenset[TopicPartition]) -> str:
    return " ".join(f"{topic}-{index}" for topic, index in sorted(wanted))


class World:
    """A shard, a clock that only `wait` moves, and producers that remember id and epoch."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.settings = TransactionSettings()
        self.cluster_version = 2
        self.log: list[tuple[bytes, bytes | None]] = []
        self.refusal: ErrorCode | None = None
        self.producers: dict[str, ProducerEpoch] = {}
        self.next_producer_id = 1000
        self.due: dict[str, MarkersDue] = {}
        self.output: list[str] = []
        self.shard = TransactionShard()

    def decide(self, decide: Callable[[int | None, Step], T]) -> T:
        """As the driver does it: a producer id is taken only where one is needed."""
        before = dict(self.shard.transactions)
        step = Step(self.now_ms, self.settings)
        try:
            result = decide(None, step)
        except ProducerIdNeeded:
            assert not step.records
            self.next_producer_id += 1
            result = decide(self.next_producer_id - 1, step)
        assert self.shard.transactions == before, "changed before the records are applied"
        self.run(step)
        return result

    def run(self, step: Step) -> None:
        """As the runtime does it."""
        if step.records and self.refusal is not None:
            self.output.append(f"not appended: {self.refusal.name}")
            raise ApiError(self.refusal)
        for record in step.records:
            self.log.append(encode(record, 1))
            self.shard.apply(record, len(self.log) - 1, self.now_ms, None)
            self.output.append(f"record {self.record_text(record)}")
        for due in step.committed:
            assert isinstance(due, MarkersDue)
            self.due[due.transactional_id] = due
            outcome = "commit" if due.is_commit else "abort"
            text = f"markers {due.transactional_id}: {outcome} {self.named(due.producer)}"
            self.output.append(f"{text} to [{listed(due.partitions)}]")

    @staticmethod
    def named(one: ProducerEpoch) -> str:
        return f"{one.producer_id}/{one.epoch}"

    def record_text(self, record: TransactionRecord) -> str:
        value = record.value
        if value is None:
            return f"{record.transactional_id}: removed"
        text = f"{record.transactional_id}: {value.state.value} {self.named(value.producer)}"
        text += f" [{listed(value.partitions)}]"
        if value.next_producer_id >= 0:
            text += f" then {value.next_producer_id}"
        return text

    def answered(self, client: str, result: ProducerResult) -> None:
        if result.error is not ErrorCode.none:
            assert result.producer == (-1, -1)
            self.output.append(result.error.name)
        elif result.producer == (-1, -1):
            self.output.append("ok")
        else:
            self.producers[client] = result.producer
            self.output.append(f"{client} is {self.named(result.producer)}")

    def who(self, client: str, options: dict[str, str]) -> ProducerEpoch:
        return producer(options["as"]) if "as" in options else self.producers[client]

    # Commands. `words` are plain words, `options` those with "=".

    def init(self, words: list[str], options: dict[str, str]) -> None:
        client = words[0]
        expected = None
        if "expected" in words:
            expected = self.producers[client]
        elif "expected" in options:
            expected = producer(options["expected"])
        request = InitRequest(
            options["id"],
            milliseconds(options.get("timeout", "60s")),
            expected,
            self.cluster_version,
        )
        result = self.decide(lambda spare, step: self.shard.initialize(request, spare, step))
        self.answered(client, result)

    def add(self, words: list[str], options: dict[str, str]) -> None:
        version = 2 if "v2" in words else 0
        named = partitions([word for word in words[1:] if word != "v2"])
        request = AddRequest(options["id"], self.who(words[0], options), named, version)
        self.output.append(self.decide(lambda _, step: self.shard.add(request, step)).name)

    def verify(self, words: list[str], options: dict[str, str]) -> None:
        wanted = partitions(words[1:])
        errors = self.shard.verify(options["id"], self.who(words[0], options), wanted)
        for partition, error in sorted(errors.items()):
            self.output.append(f"{listed(frozenset({partition}))}: {error.name}")

    def end(self, words: list[str], options: dict[str, str]) -> None:
        client, outcome = words[0], words[1]
        assert outcome in ("commit", "abort")
        version = 2 if "v2" in words else 0
        who = self.who(client, options)
        request = EndRequest(options["id"], who, outcome == "commit", version)
        self.answered(client, self.decide(lambda spare, step: self.shard.end(request, spare, step)))

    def marked(self, words: list[str], options: dict[str, str]) -> None:
        due = self.due[options["id"]]
        done = partitions(words) or due.partitions
        step = Step(self.now_ms, self.settings)
        self.shard.written(due.transactional_id, due.producer, done, step)
        self.run(step)

    def wait(self, words: list[str], options: dict[str, str]) -> None:
        self.now_ms += milliseconds(words[0])

    def scan(self, words: list[str], options: dict[str, str]) -> None:
        spares: list[int] = []
        step = Step(self.now_ms, self.settings)
        needed = self.shard.abort_timed_out(self.cluster_version, spares, step)
        self.run(step)
        if needed:
            self.output.append(f"needs {needed} producer ids")
            self.next_producer_id += needed
            spares = list(range(self.next_producer_id - needed, self.next_producer_id))
            step = Step(self.now_ms, self.settings)
            assert self.shard.abort_timed_out(self.cluster_version, spares, step) == 0
            assert not spares
            self.run(step)

    def expire(self, words: list[str], options: dict[str, str]) -> None:
        step = Step(self.now_ms, self.settings)
        self.shard.remove_expired(step)
        self.run(step)

    def restart(self, words: list[str], options: dict[str, str]) -> None:
        self.shard = TransactionShard()
        for key, value in self.log:
            record = decode(key, value)
            assert record is not None
            self.shard.apply(record, 0, self.now_ms, None)
        step = Step(self.now_ms, self.settings)
        self.shard.loaded(step)
        self.run(step)

    def refuse(self, words: list[str], options: dict[str, str]) -> None:
        self.refusal = ErrorCode[words[0]]

    def accept(self, words: list[str], options: dict[str, str]) -> None:
        self.refusal = None

    def setting(self, words: list[str], options: dict[str, str]) -> None:
        del options["id"]
        numbers = {name: int(number) for name, number in options.items()}
        self.settings = replace(self.settings, **numbers)

    def cluster(self, words: list[str], options: dict[str, str]) -> None:
        self.cluster_version = int(words[0])

    def describe(self, words: list[str], options: dict[str, str]) -> None:
        value = self.shard.describe(options["id"]).value
        if value is None:
            self.output.append("not found")
            return
        text = self.record_text(TransactionRecord(options["id"], value))
        self.output.append(f"{text}, timeout {value.timeout_ms} ms, began {value.start_ms}")

    def listing(self, words: list[str], options: dict[str, str]) -> None:
        wanted = ListFilter(
            frozenset(map(int, filter(None, options.get("ids", "").split(",")))),
            frozenset(filter(None, options.get("states", "").split(","))),
            milliseconds(options.get("duration", "-1ms")),
        )
        for name, value in self.shard.list(wanted, Step(self.now_ms, self.settings)):
            self.output.append(f"{name} {value.producer_id} {value.state.value}")

    def seed(self, words: list[str], options: dict[str, str]) -> None:
        value = TransactionValue(1000, int(words[0]), 60_000, EMPTY, frozenset(), self.now_ms)
        self.next_producer_id = 1001
        self.producers["a"] = value.producer
        step = Step(self.now_ms, self.settings)
        step.records.append(TransactionRecord(options["id"], value))
        self.run(step)

    def command(self, line: str) -> list[str]:
        name, *rest = line.split()
        self.output = []
        options = dict(word.split("=", 1) for word in rest if "=" in word)
        options.setdefault("id", "t")
        words = [word for word in rest if "=" not in word]
        try:
            getattr(self, name)(words, options)
        except ApiError as error:
            self.output.append(error.code.name)
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
    assert len(TRANSCRIPTS) >= 15
