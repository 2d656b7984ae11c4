"""A data folder that an earlier version wrote opens unchanged.

`data_folder_2026_11.tar.gz` was written on 2026-11-22 by the code of commit 3824959, before its
rooms were split: one broker, stopped and started once. In each of two rounds an idempotent producer
of librdkafka wrote 40 records to `codec-<compression>` (two partitions), and another wrote 20
records to `segments` (a batch each; segments of 3,000 bytes) and 10 to `compacted`. In the first
round the group `readers` committed offsets of `codec-gzip`. `empty` has no record.
"""

from __future__ import annotations

import tarfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from ottla.records.header import iterate_headers
from ottla.records.iterate import iterate_records
from ottla.records.record import Record

WRITTEN = Path(__file__).with_name("data_folder_2026_11.tar.gz")
CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
FIRST_MS = 1_700_000_000_000
LONG = "2147483647"
ROUNDS = range(2)
OFFSET_FETCH = 9


@pytest.fixture(params=[True, False], ids=["stopped", "killed"])
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """The folder after a clean stop, and without its mark, so that every log is recovered."""
    with tarfile.open(WRITTEN) as written:
        written.extractall(tmp_path, filter="data")
    data = tmp_path / "data"
    if not request.param:
        (data / ".kafka_cleanshutdown").unlink()
    return data


async def opened(start_node: Any) -> Any:
    """Nothing expires, though all of it becomes older."""
    return await start_node(
        log_retention_ms="-1",
        log_cleaner_enable="false",
        offsets_retention_minutes=LONG,
        offsets_topic_num_partitions="3",
    )


def digests(folder: Path, *, recovered: bool) -> dict[str, str]:
    """Of the partitions' files; recovery rebuilds the indexes, so these are left out then."""
    kinds = [".log", "leader-epoch-checkpoint", "partition.metadata"]
    if not recovered:
        kinds += [".index", ".timeindex"]
    return {
        str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.name.endswith(tuple(kinds)) and path.parent != folder
    }


def records(node_call: Any, topic: str, index: int = 0) -> tuple[list[Record], set[int]]:
    """All records of a partition, and the compressions of its batches."""
    log = node_call.node.partitions.find(topic, index).log
    found: list[Record] = []
    codecs: set[int] = set()
    while len(found) < log.end_offset:
        data = bytes(log.read(len(found), max_bytes=1 << 20).read())
        for header in iterate_headers(data):
            codecs.add(header.attributes & 7)
            found += iterate_records(data[: header.size_bytes])
            data = data[header.size_bytes :]
    assert [each.offset for each in found] == list(range(log.end_offset))
    return found, codecs


async def test_every_record_is_read_as_it_was_written(start_node: Any, folder: Path) -> None:
    node_call = await opened(start_node)
    for name, codec in CODECS.items():
        for index in range(2):
            found, codecs = records(node_call, f"codec-{name}", index)
            assert codecs == {codec}
            assert [(each.timestamp_ms, each.key, each.value, each.headers) for each in found] == [
                (
                    FIRST_MS + number * 1000 + n,
                    f"key-{n}".encode(),
                    f"{name} {number} {n} {'x' * 50}".encode(),
                    (("round", str(number).encode()),),
                )
                for number in ROUNDS
                for n in range(index, 40, 2)
            ]
    found, _ = records(node_call, "segments")
    assert [each.value for each in found] == [
        f"{number} {n} {'y' * 300}".encode() for number in ROUNDS for n in range(20)
    ]
    found, _ = records(node_call, "compacted")
    assert [each.key for each in found] == [f"k{n % 3}".encode() for _ in ROUNDS for n in range(10)]
    assert len(node_call.node.partitions.of_topic("empty")) == 3
    assert len(node_call.node.partitions.find("segments", 0).log.segments) == 6


async def test_offsets_producers_and_epochs_are_those_that_were(
    start_node: Any, folder: Path
) -> None:
    node_call = await opened(start_node)
    partition = node_call.node.partitions.find("codec-zstd", 1)
    assert partition.high_watermark == 40
    assert [(each.epoch, each.start_offset) for each in partition.log.epochs.entries] == [(0, 0)]
    assert [each.last_offset for each in partition.active_producers()] == [19, 39]
    build = node_call.request(OFFSET_FETCH, 7)
    asked = build.OffsetFetchRequestTopic(name="codec-gzip", partition_indexes=(0, 1))
    answer = await node_call.ask(
        build.OffsetFetchRequest(group_id="readers", topics=(asked,), require_stable=False)
    )
    (topic,) = answer.topics
    assert [each.committed_offset for each in topic.partitions] == [7, 11]


async def test_opening_and_closing_leaves_the_files_as_they_were(
    start_node: Any, folder: Path
) -> None:
    recovered = not (folder / ".kafka_cleanshutdown").exists()
    before = digests(folder, recovered=recovered)
    node_call = await opened(start_node)
    await node_call.node.close()
    assert digests(folder, recovered=recovered) == before
