"""Starting and stopping: what keeps a broker from starting is one clear line; nothing breaks."""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.system.wire import Wire

from ottla.protocol.errors import ErrorCode
from ottla.records.build import build_batch
from ottla.records.record import Record
from ottla.testing.ports import free_ports

PRODUCE, FETCH, METADATA = 0, 1, 3
WAIT_S = 60
EXIT_FAILED, EXIT_BAD_SETTING = 1, 2


def serve(*arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
    """A broker that is expected to end by itself."""
    return subprocess.run(
        [sys.executable, "-m", "ottla", "serve", *arguments],
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
        **more,
    )


def assert_one_line(ended: subprocess.CompletedProcess[str], code: int, *words: str) -> None:
    assert ended.returncode == code, ended.stderr
    assert ended.stdout == ""
    lines = ended.stderr.strip().splitlines()
    assert len(lines) == 1, ended.stderr
    assert lines[0].startswith("ottla serve: ")
    for word in words:
        assert word in lines[0]


def snapshot(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def make_topic(wire: Wire, name: str) -> None:
    build = wire.request(METADATA, 9)
    topics = (build.MetadataRequestTopic(name=name),)
    wire.ask(build.MetadataRequest(topics=topics, allow_auto_topic_creation=True))


def produce(wire: Wire, topic: str, size: int = 10) -> tuple[ErrorCode, int]:
    """Error and first offset of one record of that size."""
    build = wire.request(PRODUCE, 9)
    records = build_batch([Record(0, 1, None, os.urandom(size))])
    data = build.PartitionProduceData(index=0, records=records)
    topics = (build.TopicProduceData(name=topic, partition_data=(data,)),)
    answer = wire.ask(build.ProduceRequest(acks=-1, timeout=5000, topic_data=topics))
    told = answer.responses[0].partition_responses[0]
    return told.error_code, told.base_offset


def count_records(wire: Wire, topic: str) -> int:
    """The high watermark, after a fetch from the start that must find no error."""
    build = wire.request(FETCH, 4)
    partition = build.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    topics = (build.FetchTopic(topic=topic, partitions=(partition,)),)
    request = build.FetchRequest(max_wait=0, min_bytes=0, max_bytes=1000, topics=topics)
    found = wire.ask(request).responses[0].partitions[0]
    assert found.error_code is ErrorCode.none
    count: int = found.high_watermark
    return count


def test_a_second_broker_on_the_same_folder(new_broker: Callable[..., Any]) -> None:
    broker = new_broker()
    with Wire(broker.bootstrap) as wire:
        make_topic(wire, "t")
        assert produce(wire, "t") == (ErrorCode.none, 0)
        ended = serve("--listen", "127.0.0.1:0", "--data", str(broker.data))
        assert_one_line(ended, EXIT_FAILED, "in use by another broker", str(broker.data))
        assert produce(wire, "t") == (ErrorCode.none, 1)
    assert broker.stop() == 0
    broker.start()
    with Wire(broker.bootstrap) as wire:
        assert count_records(wire, "t") == 2


def test_a_port_in_use(tmp_path: Path, new_broker: Callable[..., Any]) -> None:
    broker = new_broker()
    with Wire(broker.bootstrap) as wire:
        make_topic(wire, "t")
        assert produce(wire, "t") == (ErrorCode.none, 0)
    assert broker.stop() == 0
    before = snapshot(broker.data)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        ended = serve("--listen", address, "--data", str(broker.data))
        assert_one_line(ended, EXIT_FAILED, str(taken.getsockname()[1]), "in use")
    assert snapshot(broker.data) == before


def test_a_file_where_the_folder_should_be(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    for folder in (file, file / "below"):
        ended = serve("--listen", "127.0.0.1:0", "--data", str(folder))
        assert_one_line(ended, EXIT_FAILED, str(folder))
    assert file.read_text() == "mine"


def test_a_folder_of_another_broker_and_a_damaged_one(new_broker: Callable[..., Any]) -> None:
    broker = new_broker()
    assert broker.stop() == 0
    before = snapshot(broker.data)
    listen = ("--listen", "127.0.0.1:0", "--data", str(broker.data))
    ended = serve(*listen, "--config", "node.id=7")
    assert_one_line(ended, EXIT_FAILED, "node.id")
    assert snapshot(broker.data) == before
    (broker.data / "meta.properties").write_text("version=1\nnode.id=seven\n")
    assert_one_line(serve(*listen), EXIT_FAILED, "seven")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_folder(tmp_path: Path) -> None:
    folder = tmp_path / "closed"
    folder.mkdir(mode=0)
    ended = serve("--listen", "127.0.0.1:0", "--data", str(folder))
    assert_one_line(ended, EXIT_FAILED, str(folder), "ermission")


WRONG = {
    "unknown": (("--config", "log.retention.mss=1"), "log.retention.ms"),
    "no number": (("--config", "num.partitions=three"), "num.partitions"),
    "too small": (("--config", "num.partitions=0"), "num.partitions"),
    "no pair": (("--config", "num.partitions"), "name=value"),
    "port": (("--listen", "127.0.0.1:99999"), "65535"),
    "address": (("--listen", "nonsense"), "HOST:PORT"),
    "two folders": (("--config", "log.dirs=a,b"), "log.dirs"),
    "no file": (("--properties", "/nowhere/at/all"), "/nowhere/at/all"),
}


@pytest.mark.parametrize(("arguments", "named"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_setting(tmp_path: Path, arguments: tuple[str, ...], named: str) -> None:
    ended = serve(*arguments, cwd=tmp_path)
    assert ended.returncode in (EXIT_FAILED, EXIT_BAD_SETTING), ended.stderr
    assert ended.stderr.startswith("ottla serve: ")
    assert named in ended.stderr
    assert len(ended.stderr.strip().splitlines()) <= 2  # what is wrong, and what to type
    assert list(tmp_path.iterdir()) == []


def test_an_open_listener_is_warned_of_and_quiet_keeps_only_warnings(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    words = ["serve", "--quiet", "--listen", f":{port}", "--data", str(tmp_path / "data")]
    with subprocess.Popen(
        [sys.executable, "-m", "ottla", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        try:
            until = time.monotonic() + WAIT_S
            while socket.socket().connect_ex(("127.0.0.1", port)):
                assert time.monotonic() < until
                time.sleep(0.02)
        finally:
            running.send_signal(signal.SIGTERM)
            out, err = running.communicate(timeout=WAIT_S)
    assert (running.returncode, out) == (0, "")
    (line,) = err.splitlines()
    assert "WARNING ottla.config: Other machines can read and write everything" in line
    assert f"PLAINTEXT://:{port} has no authentication" in line


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_cleanly(new_broker: Callable[..., Any], number: signal.Signals) -> None:
    broker = new_broker()
    with Wire(broker.bootstrap) as wire:
        make_topic(wire, "t")
        assert produce(wire, "t") == (ErrorCode.none, 0)
        broker.process.send_signal(number)
        broker.process.communicate(timeout=WAIT_S)
    assert broker.process.returncode == 0
    assert (broker.data / ".kafka_cleanshutdown").exists()
    assert "Traceback" not in broker.said()


def test_a_signal_while_it_starts_or_stops_is_no_crash(new_broker: Callable[..., Any]) -> None:
    broker = new_broker()
    for _ in range(3):
        broker.process.send_signal(signal.SIGTERM)
    broker.process.communicate(timeout=WAIT_S)
    assert broker.process.returncode == 0
    assert "Traceback" not in broker.said()


def limit_file_size(broker: Any, size_bytes: int) -> None:
    """No file of the broker may grow beyond it: what a full disk is to an append."""
    _, hard = resource.prlimit(broker.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(broker.process.pid, resource.RLIMIT_FSIZE, (size_bytes, hard))


def test_a_disk_that_fills_up_while_it_runs(new_broker: Callable[..., Any]) -> None:
    """Refused with KAFKA_STORAGE_ERROR while it is full; nothing half-written stays."""
    broker = new_broker()
    with Wire(broker.bootstrap) as wire:
        make_topic(wire, "t")
        assert produce(wire, "t", 100_000) == (ErrorCode.none, 0)
        limit_file_size(broker, 150_000)
        for _ in range(3):
            assert produce(wire, "t", 100_000) == (ErrorCode.kafka_storage_error, -1)
        assert count_records(wire, "t") == 1
        assert produce(wire, "t", 10_000) == (ErrorCode.none, 1)
        limit_file_size(broker, resource.RLIM_INFINITY)
        assert produce(wire, "t", 100_000) == (ErrorCode.none, 2)
        assert count_records(wire, "t") == 3
    broker.kill()
    broker.start()
    with Wire(broker.bootstrap) as wire:
        assert count_records(wire, "t") == 3
    assert broker.stop() == 0
    assert "Traceback" not in broker.said()


def test_a_disk_that_is_full_where_a_segment_is_rolled(new_broker: Callable[..., Any]) -> None:
    """No room for the indexes nor for a new segment: told the same way, and healed the same way."""
    broker = new_broker("--config", "log.segment.bytes=1048576")
    with Wire(broker.bootstrap) as wire:
        make_topic(wire, "t")
        for number in range(10):
            assert produce(wire, "t", 100_000) == (ErrorCode.none, number)
        limit_file_size(broker, 0)
        for _ in range(3):
            assert produce(wire, "t", 100_000) == (ErrorCode.kafka_storage_error, -1)
        assert count_records(wire, "t") == 10
        limit_file_size(broker, resource.RLIM_INFINITY)
        for number in range(10, 15):
            assert produce(wire, "t", 100_000) == (ErrorCode.none, number)
        assert count_records(wire, "t") == 15
    assert broker.stop() == 0
    assert "Traceback" not in broker.said()
    broker.start()
    with Wire(broker.bootstrap) as wire:
        assert count_records(wire, "t") == 15


def test_a_disk_that_is_full_when_topics_are_made(new_broker: Callable[..., Any]) -> None:
    broker = new_broker()
    with Wire(broker.bootstrap) as wire:
        make_topic(wire, "there")
        limit_file_size(broker, 0)
        make_topic(wire, "none")
        assert produce(wire, "there") == (ErrorCode.kafka_storage_error, -1)
        limit_file_size(broker, resource.RLIM_INFINITY)
        assert produce(wire, "there") == (ErrorCode.none, 0)
        until = time.monotonic() + WAIT_S
        while True:
            make_topic(wire, "later")
            if produce(wire, "later")[0] is ErrorCode.none:
                break
            assert time.monotonic() < until
    assert broker.stop() == 0
    assert "Traceback" not in broker.said(), broker.said()


def test_a_full_disk_at_the_start_and_at_the_stop(new_broker: Callable[..., Any]) -> None:
    broker = new_broker()
    with Wire(broker.bootstrap) as wire:
        make_topic(wire, "t")
        assert produce(wire, "t") == (ErrorCode.none, 0)
    limit_file_size(broker, 0)
    broker.stop()
    assert "Traceback" not in broker.said(), broker.said()

    def no_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    address = f"127.0.0.1:{free_ports(1)[0]}"
    ended = serve("--listen", address, "--data", str(broker.data), preexec_fn=no_room)
    assert ended.returncode == EXIT_FAILED, ended.stderr
    assert "Traceback" not in ended.stderr
    broker.start()
    with Wire(broker.bootstrap) as wire:
        assert count_records(wire, "t") == 1
