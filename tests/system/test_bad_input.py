"""Whatever arrives at the listener: the broker stays up, answers others, and its memory is bounded.

The seed of the fuzz test is printed; OTTLA_SEED takes one again. What it ever found stays below as
a test of its own.
"""

from __future__ import annotations

import os
import resource
import select
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID, uuid4

import pytest
from tests.system.hostile_requests import RequestMaker, spoil
from tests.system.wire import Wire

from ottla.protocol.errors import ErrorCode
from ottla.protocol.frames import write_request
from ottla.records.build import build_batch
from ottla.records.compression import Compression
from ottla.records.header import read_header
from ottla.records.record import Record

pytestmark = pytest.mark.timeout(240)

PRODUCE, FETCH, METADATA, OFFSET_COMMIT, API_VERSIONS, CREATE_TOPICS = 0, 1, 3, 8, 18, 19
FUZZ_FOR_S = 10
ROUND = 20
IDLE_CONNECTIONS = 10_000
MAX_MEMORY_BYTES = 300 << 20


def memory_bytes(broker: Any, figure: str = "VmRSS") -> int:
    for line in Path(f"/proc/{broker.process.pid}/status").read_text().splitlines():
        if line.startswith(f"{figure}:"):
            return int(line.split()[1]) << 10
    raise AssertionError(f"no {figure}")


def topic_id_of(broker: Any, name: str) -> UUID:
    """Makes the topic if need be."""
    with Wire(broker.bootstrap) as wire:
        build = wire.request(METADATA, 13)
        topics = (build.MetadataRequestTopic(name=name),)
        request = build.MetadataRequest(topics=topics, allow_auto_topic_creation=True)
        (topic,) = wire.ask(request).topics
        assert topic.error_code is ErrorCode.none
        found: UUID = topic.topic_id
        return found


def produce(wire: Wire, topic: str, records: bytes | None, version: int = 9) -> Any:
    """The answer for one partition."""
    build = wire.request(PRODUCE, version)
    data = build.PartitionProduceData(index=0, records=records)
    topics = (build.TopicProduceData(name=topic, partition_data=(data,)),)
    answer = wire.ask(build.ProduceRequest(acks=-1, timeout=5000, topic_data=topics))
    return answer.responses[0].partition_responses[0]


def a_batch(count: int = 3, compression: int = Compression.none) -> bytes:
    records = [Record(0, 1_000, b"key", b"value %d" % number) for number in range(count)]
    return build_batch(records, compression=compression)


def assert_fine(broker: Any) -> None:
    """It runs, it answers, and no line of its own log is a bug of ours."""
    assert broker.process.poll() is None, broker.said()[-3000:]
    with Wire(broker.bootstrap) as wire:
        assert produce(wire, "others", a_batch()).error_code is ErrorCode.none
    assert "Traceback" not in broker.said(), broker.said()[-5000:]


@pytest.fixture(autouse=True)
def _fine_after(broker: Any) -> Iterator[None]:
    topic_id_of(broker, "others")
    yield
    assert_fine(broker)
    assert memory_bytes(broker) < MAX_MEMORY_BYTES


def throw(broker: Any, frames: list[bytes]) -> None:
    """Each frame on a connection of its own; takes what is answered at once, and goes."""
    open_wires = {}
    for frame in frames:
        wire = Wire(broker.bootstrap)
        try:
            wire.send(frame)
        except ConnectionError:
            wire.close()
            continue
        open_wires[wire.socket] = wire
    # Not `select`, which takes no descriptor above 1,023: other tests of the process have files.
    readable = select.poll()
    by_number = {each.fileno(): each for each in open_wires}
    for number in by_number:
        readable.register(number, select.POLLIN)
    until = time.monotonic() + 0.15
    while open_wires and time.monotonic() < until:
        for number, _ in readable.poll(20):
            readable.unregister(number)
            open_wires.pop(by_number[number]).close()
    for wire in open_wires.values():
        wire.close()


def test_fuzz_of_every_request_in_every_version(broker: Any) -> None:
    seed = int(os.environ.get("OTTLA_SEED", time.time_ns() % 1_000_000))
    print(f"OTTLA_SEED={seed}")
    random = Random(seed)
    topic_ids = [topic_id_of(broker, name) for name in ("t", "g", "__consumer_offsets")]
    maker = RequestMaker(random, topic_ids)
    until = time.monotonic() + FUZZ_FOR_S
    thrown = 0
    while time.monotonic() < until:
        frames = []
        for _, _, frame in maker.of_every_version():
            frames += [frame, spoil(frame, random), spoil(frame, random)]
        for start in range(0, len(frames), ROUND):
            part = frames[start : start + ROUND]
            throw(broker, part)
            thrown += len(part)
            if "Traceback" in broker.said() or broker.process.poll() is not None:
                shown = "\n".join(frame.hex() for frame in part)
                raise AssertionError(f"seed {seed}\n{broker.said()[-4000:]}\none of\n{shown}")
    assert thrown > 200


def test_random_bytes(broker: Any) -> None:
    random = Random(1)
    for _ in range(20):
        throw(broker, [random.randbytes(random.randrange(1, 3000)) for _ in range(ROUND)])
        sized = [random.randbytes(random.randrange(4, 300)) for _ in range(ROUND)]
        throw(broker, [len(each).to_bytes(4, "big") + each for each in sized])


def test_a_frame_that_says_2_gb_is_refused_before_it_comes(broker: Any) -> None:
    with Wire(broker.bootstrap) as wire:
        wire.send((2**31 - 1).to_bytes(4, "big") + b"\0\0\0\x09")
        assert wire.is_ended()


def test_frames_that_promise_100_mb_cost_only_what_really_comes(broker: Any) -> None:
    before = memory_bytes(broker)
    wires = [Wire(broker.bootstrap) for _ in range(40)]
    for wire in wires:
        wire.send((100 << 20).to_bytes(4, "big") + bytes(1000))
    assert_fine(broker)
    assert memory_bytes(broker) - before < 40 * (3 << 20)
    for wire in wires:
        wire.close()


def spoiled_crc() -> bytes:
    batch = bytearray(a_batch())
    batch[-1] ^= 1
    return bytes(batch)


def with_header(**changes: int) -> bytes:
    """A batch whose header lies, and whose checksum says it is right."""
    batch = a_batch()
    header = read_header(batch)
    for name, value in changes.items():
        setattr(header, name, value)
    return with_crc(header.encode() + batch[61:])


def with_crc(batch: bytes) -> bytes:
    import crc32c

    return batch[:17] + crc32c.crc32c(batch[21:]).to_bytes(4, "big") + batch[21:]


BAD_BATCHES = {
    "bad crc": (spoiled_crc(), ErrorCode.corrupt_message),
    "count too large": (with_header(count=4, last_offset_delta=3), ErrorCode.invalid_record),
    "count too small": (with_header(count=2, last_offset_delta=1), ErrorCode.invalid_record),
    "count of 2^31-1": (
        with_header(count=2**31 - 1, last_offset_delta=2**31 - 2), ErrorCode.invalid_record,
    ),
    "count is not the last delta": (with_header(last_offset_delta=9), ErrorCode.invalid_record),
    "count 0": (with_header(count=0, last_offset_delta=-1), ErrorCode.invalid_record),
    "no compression has it": (
        with_header(attributes=7), ErrorCode.unsupported_compression_type,
    ),
    "control records": (with_header(attributes=32), ErrorCode.invalid_record),
    "magic 1": (a_batch()[:16] + b"\1" + a_batch()[17:], ErrorCode.invalid_record),
    "magic 9": (a_batch()[:16] + b"\x09" + a_batch()[17:], ErrorCode.corrupt_message),
    "length too short": (
        a_batch()[:8] + (5).to_bytes(4, "big") + a_batch()[12:], ErrorCode.corrupt_message,
    ),
    "length 2 GB": (
        a_batch()[:8] + (2**31 - 1).to_bytes(4, "big") + a_batch()[12:], ErrorCode.invalid_record,
    ),
    "truncated": (a_batch()[:-5], ErrorCode.invalid_record),
    "truncated in its header": (a_batch()[:40], ErrorCode.invalid_record),
    "two batches": (a_batch() + a_batch(), ErrorCode.invalid_record),
    "nothing": (b"", ErrorCode.invalid_record),
    "null": (None, ErrorCode.invalid_record),
}  # fmt: skip


@pytest.mark.parametrize(("records", "code"), BAD_BATCHES.values(), ids=BAD_BATCHES.keys())
def test_a_bad_batch_is_refused_and_leaves_nothing(
    broker: Any, records: bytes | None, code: ErrorCode
) -> None:
    topic = f"bad-{uuid4()}"
    topic_id_of(broker, topic)
    with Wire(broker.bootstrap) as wire:
        refused = produce(wire, topic, records)
        assert (refused.error_code, refused.base_offset) == (code, -1)
        taken = produce(wire, topic, a_batch())
        assert (taken.error_code, taken.base_offset) == (ErrorCode.none, 0)


@pytest.mark.parametrize("kind", [Compression.gzip, Compression.lz4, Compression.zstd])
def test_a_small_batch_does_not_become_a_large_memory(broker: Any, kind: Compression) -> None:
    """On a compacted topic the broker looks inside; 1 GB of zeros are hardly any bytes packed."""
    topic = f"bomb-{kind.name}-{uuid4()}"
    with Wire(broker.bootstrap) as wire:
        build = wire.request(CREATE_TOPICS, 5)
        compact = (build.CreatableTopicConfig(name="cleanup.policy", value="compact"),)
        topics = (
            build.CreatableTopic(
                name=topic, num_partitions=1, replication_factor=1, configs=compact
            ),
        )
        created = wire.ask(build.CreateTopicsRequest(topics=topics, timeout=5000))
        assert created.topics[0].error_code is ErrorCode.none
        before = memory_bytes(broker, "VmHWM")
        batch = build_batch([Record(0, 1, b"k", bytes(400 << 20))], compression=kind)
        assert len(batch) < 2 << 20
        refused = produce(wire, topic, batch)
        assert refused.error_code in (ErrorCode.invalid_record, ErrorCode.message_too_large)
    assert memory_bytes(broker, "VmHWM") - before < 700 << 20


def header(key: int, version: int) -> bytes:
    body = key.to_bytes(2, "big", signed=True) + version.to_bytes(2, "big") + b"\0\0\0\1\xff\xff"
    return len(body).to_bytes(4, "big") + body


UNKNOWN = {
    "no such request": header(999, 0),
    "negative key": header(-1, 0),
    "version too new": header(METADATA, 99),
    "version too old": header(FETCH, 0),
    "produce below 3": header(PRODUCE, 2),
    "empty frame": bytes(4),
    "http": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "tls": bytes.fromhex("16030100c8010000c40303") + bytes(189),
}


@pytest.mark.parametrize("data", UNKNOWN.values(), ids=UNKNOWN.keys())
def test_what_is_no_request_here_ends_its_connection(broker: Any, data: bytes) -> None:
    with Wire(broker.bootstrap) as wire:
        wire.send(data)
        assert wire.is_ended()


def test_an_unknown_version_of_api_versions_is_answered_in_version_0(broker: Any) -> None:
    with Wire(broker.bootstrap) as wire:
        wire.send(header(API_VERSIONS, 77))
        assert wire.frame()[4:6] == int(ErrorCode.unsupported_version).to_bytes(2, "big")


@pytest.fixture
def many_files() -> Iterator[int]:
    """As many open files for this process as it may have; gives how many connections fit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield min(IDLE_CONNECTIONS, int(hard * 0.7) - 200)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_ten_thousand_connections_opened_and_left(
    new_broker: Callable[..., Any], many_files: int
) -> None:
    broker = new_broker()
    topic_id_of(broker, "others")
    before = memory_bytes(broker)
    host, _, port = broker.bootstrap.rpartition(":")
    left = []
    try:
        for number in range(many_files):
            each = socket.create_connection((host, int(port)), timeout=30)
            if number % 3 == 0:
                each.send(b"\0\0\1\0half")
            left.append(each)
        assert_fine(broker)
        assert memory_bytes(broker) - before < many_files * 20_000
    finally:
        for each in left:
            each.close()
    until = time.monotonic() + 30
    while len(list(Path(f"/proc/{broker.process.pid}/fd").iterdir())) > 100:
        assert time.monotonic() < until, "the broker keeps connections that are gone"
        time.sleep(0.1)
    assert_fine(broker)
    assert broker.stop() == 0


def test_an_answer_that_nobody_reads_is_not_kept(broker: Any) -> None:
    """A client that sends requests and takes no answers is made to wait, not served into memory."""
    topic_id_of(broker, "large")
    with Wire(broker.bootstrap) as wire:
        for _ in range(30):
            records = build_batch([Record(0, 1, b"k", bytes(900_000))])
            assert produce(wire, "large", records).error_code is ErrorCode.none
    before = memory_bytes(broker)
    with Wire(broker.bootstrap) as wire:
        build = wire.request(FETCH, 4)
        partition = build.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=50 << 20)
        topics = (build.FetchTopic(topic="large", partitions=(partition,)),)
        request = build.FetchRequest(max_wait=0, min_bytes=1, max_bytes=50 << 20, topics=topics)
        frame = write_request(request, 1, "never reads")
        wire.socket.settimeout(2)
        try:
            for _ in range(20_000):
                wire.send(frame)
        except TimeoutError:
            pass
        assert_fine(broker)
        assert memory_bytes(broker) - before < 120 << 20


# What the fuzz test found.


def test_an_id_in_metadata_10_with_no_name(broker: Any) -> None:
    with Wire(broker.bootstrap) as wire:
        build = wire.request(METADATA, 10)
        topics = (build.MetadataRequestTopic(topic_id=topic_id_of(broker, "t"), name=None),)
        (answer,) = wire.ask(build.MetadataRequest(topics=topics)).topics
        assert (answer.error_code, answer.name) == (ErrorCode.invalid_request, "")


def test_a_commit_that_is_kept_for_ever(broker: Any) -> None:
    with Wire(broker.bootstrap) as wire:
        topic_id_of(broker, "t")
        topic_id_of(broker, "__consumer_offsets")
        build = wire.request(OFFSET_COMMIT, 2)
        partition = build.OffsetCommitRequestPartition(
            partition_index=0, committed_offset=1, committed_metadata=""
        )
        topics = (build.OffsetCommitRequestTopic(name="t", partitions=(partition,)),)
        request = build.OffsetCommitRequest(
            group_id="kept", generation_id_or_member_epoch=-1, retention_time=2**63 - 1,
            topics=topics,
        )  # fmt: skip
        assert wire.ask(request).topics[0].partitions[0].error_code is ErrorCode.none


def test_records_with_times_far_off_are_named_in_the_answer(broker: Any) -> None:
    topic_id_of(broker, "t")
    with Wire(broker.bootstrap) as wire:
        records = [Record(0, time_ms, b"k", b"v") for time_ms in (1_000, 2**60)]
        refused = produce(wire, "t", build_batch(records))
        assert refused.error_code is ErrorCode.invalid_timestamp
        assert [each.batch_index for each in refused.record_errors] == [1]
