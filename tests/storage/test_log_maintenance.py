import asyncio
import errno
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.controller.config_changes import ConfigChange, ResourceChange, ResourceType
from ottla.controller.image import EVERY_BROKER
from ottla.log.errors import SyncError
from ottla.log.flush import FlushTask
from ottla.log.removal import Removal
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.build import build_batch
from ottla.records.record import Record
from ottla.storage import log_maintenance as maintenance_file
from ottla.storage.log_store import CheckpointTask

OLD_MS, SEGMENT_BYTES = 1_000, 1_048_576


async def fill(node_call: Any, topic: str, count: int = 8) -> Any:
    """Writes three segments of records that expired long ago."""
    for _ in range(count):
        batch = node_call.batch(bytes(400_000), time_ms=OLD_MS)
        assert (await node_call.produce(topic, batch)).error_code is ErrorCode.none
    return node_call.node.partitions.find(topic, 0)


async def test_retention_by_size_renames_the_oldest_segments(node_call: Any) -> None:
    await node_call.create(
        "u", segment_bytes=str(SEGMENT_BYTES), retention_bytes="1000000", retention_ms="-1"
    )
    partition = await fill(node_call, "u")
    before = partition.log.start_offset
    await node_call.node.log_maintenance.retain()
    assert before < partition.log.start_offset < partition.high_watermark == 8
    deleted = list(Path(partition.log.folder).glob("*.deleted"))
    assert deleted
    await node_call.node.log_maintenance.retain()
    assert partition.high_watermark == 8


async def test_retention_by_time_wakes_waiters(node_call: Any) -> None:
    await node_call.create("u", segment_bytes=str(SEGMENT_BYTES), retention_ms="1")
    partition = await fill(node_call, "u")
    await node_call.node.log_maintenance.retain()
    assert partition.log.start_offset == partition.high_watermark == 8
    assert (await node_call.produce("u", node_call.batch(b"a"))).base_offset == 8


async def test_retention_keeps_segments_within_the_limits(node_call: Any) -> None:
    await node_call.create("u", segment_bytes=str(SEGMENT_BYTES), retention_ms="-1")
    partition = await fill(node_call, "u")
    await node_call.node.log_maintenance.retain()
    assert partition.log.start_offset == 0


async def test_only_old_records_are_synced(node_call: Any) -> None:
    await node_call.create("soon", flush_ms="0")
    await node_call.create("never")
    for topic in ("soon", "never"):
        await node_call.produce(topic, node_call.batch(b"a"))
    await node_call.node.log_maintenance.flush_old()
    assert node_call.node.partitions.find("soon", 0).log.unflushed_records == 0
    assert node_call.node.partitions.find("never", 0).log.unflushed_records == 1


async def test_a_checkpoint_flushes_closed_segments(node_call: Any) -> None:
    await node_call.create("u", segment_bytes=str(SEGMENT_BYTES), retention_ms="-1")
    partition = await fill(node_call, "u")
    active = partition.log.active.base_offset
    assert partition.log.recovery_point < active
    await node_call.node.log_maintenance.checkpoint()
    assert partition.log.recovery_point >= active
    written = (node_call.node.config.data_folder / "recovery-point-offset-checkpoint").read_text()
    assert f"u 0 {partition.log.recovery_point}" in written.splitlines()


async def test_after_a_truncation_checkpoints_do_not_exceed_it(
    node_call: Any, eventually: Any
) -> None:
    for value in (b"a", b"b", b"c"):
        await node_call.produce("t", node_call.batch(value))
    maintenance, partition = node_call.node.log_maintenance, node_call.node.partitions.find("t", 0)
    await partition.flush()
    await maintenance.checkpoint()

    def written(name: str) -> list[str]:
        path = node_call.node.config.data_folder / f"{name}-offset-checkpoint"
        lines: list[str] = path.read_text().splitlines()
        return lines

    assert "t 0 3" in written("recovery-point")
    assert "t 0 3" in written("replication")
    partition.truncate_to(1, 0)
    node_call.node.store.cleaner_offsets["t", 0] = 3
    maintenance.was_truncated("t", 0, 1)
    assert node_call.node.store.cleaner_offsets["t", 0] == 1
    await eventually(lambda: "t 0 1" in written("recovery-point"))
    await eventually(lambda: "t 0 1" in written("replication"))


async def test_producers_that_cannot_be_read_after_a_truncation_are_a_failed_write(
    node_call: Any, eventually: Any, caplog: pytest.LogCaptureFixture
) -> None:
    for sequence in range(3):
        batch = node_call.batch(b"a", producer_id=3, producer_epoch=0, base_sequence=sequence)
        await node_call.produce("t", batch)
    partition = node_call.node.partitions.find("t", 0)
    path, away = partition.log.active.path, partition.log.folder + "/away"
    os.rename(path, away)
    partition.truncate_to(2, 0)
    await eventually(lambda: partition.log.loading is None)
    assert "t-0: cannot read the producers of" in caplog.text
    assert "cannot write t-0, which no other broker can lead" in caplog.text
    os.rename(away, path)
    batch = node_call.batch(b"a", producer_id=3, producer_epoch=0, base_sequence=2)
    assert (await node_call.produce("t", batch)).base_offset == 2


async def test_high_watermarks_are_written_if_one_has_moved(node_call: Any) -> None:
    maintenance, folder = node_call.node.log_maintenance, node_call.node.config.data_folder
    written = folder / "replication-offset-checkpoint"
    other = folder / "recovery-point-offset-checkpoint"
    other.unlink()
    await node_call.produce("t", node_call.batch(b"a"))
    await maintenance.checkpoint_high_watermarks()
    assert "t 0 1" in written.read_text().splitlines()
    assert not other.exists()
    written.unlink()
    await maintenance.checkpoint_high_watermarks()
    assert not written.exists()
    await maintenance.checkpoint()
    written.unlink()
    await maintenance.checkpoint_high_watermarks()
    assert not written.exists(), "the checkpoint of all was it"
    await node_call.produce("t", node_call.batch(b"b"))
    await maintenance.checkpoint_high_watermarks()
    assert "t 0 2" in written.read_text().splitlines()


async def test_high_watermarks_are_written_periodically(start_node: Any, eventually: Any) -> None:
    made = await start_node(replica_high_watermark_checkpoint_interval_ms="20")
    await made.create("t")
    await made.produce("t", made.batch(b"a"))
    written = made.node.config.data_folder / "replication-offset-checkpoint"
    await eventually(lambda: written.exists() and "t 0 1" in written.read_text().splitlines())


async def test_the_cleaners_pause_may_become_shorter(start_node: Any, eventually: Any) -> None:
    """At once: the pause that is under way may be a day."""
    made = await start_node(log_cleaner_backoff_ms="86400000", log_initial_task_delay_ms="86400000")
    await made.create(
        "t",
        cleanup_policy="compact",
        internal_segment_bytes="1000",
        min_cleanable_dirty_ratio="0.01",
    )
    for key in (b"a", b"a", b"b"):
        batch = build_batch([Record(0, 1_000, key, bytes(600))])
        assert (await made.produce("t", batch)).error_code is ErrorCode.none
    change = ConfigChange("log.cleaner.backoff.ms", "5")
    resource = ResourceChange(ResourceType.BROKER, EVERY_BROKER, (change,))
    (result,) = await made.node.controller.alter_configs([resource], incremental=True)
    assert not result.outcome.failed
    await eventually(lambda: made.node.store.cleaner_offsets.get(("t", 0)) == 2)


async def test_silent_producers_are_forgotten(start_node: Any) -> None:
    made = await start_node(producer_id_expiration_ms="1")
    await made.create("t")
    batch = made.batch(b"a", producer_id=1, producer_epoch=0, base_sequence=0)
    await made.produce("t", batch)
    partition = made.node.partitions.find("t", 0)
    assert len(partition.active_producers()) == 1
    await made.node.log_maintenance.forget_producers()
    assert partition.active_producers() == []


async def test_removals_wait_for_their_delay(node_call: Any, tmp_path: Path) -> None:
    now, later = tmp_path / "now", tmp_path / "later"
    for folder in (now, later):
        folder.mkdir()
    node_call.node.log_maintenance.remove_later(Removal((str(now),), 0))
    node_call.node.log_maintenance.remove_later(Removal((str(later),), 600_000))
    async with asyncio.timeout(30):
        while now.exists():
            await asyncio.sleep(0.005)
    assert later.exists()


async def test_a_disk_failure_is_logged_once_and_retried(
    start_node: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made = await start_node(log_flush_scheduler_interval_ms="5", log_initial_task_delay_ms="5")
    await made.create("t", flush_ms="0")
    run, failures = FlushTask.run, iter(range(3))

    def fails_thrice(task: FlushTask) -> None:
        if next(failures, None) is not None:
            raise ApiError(ErrorCode.kafka_storage_error, "no disk today")
        run(task)

    monkeypatch.setattr(FlushTask, "run", fails_thrice)
    # Retention rolls a log with an old record, which the checkpoint then flushes, too.
    await made.produce("t", made.batch(b"a", time_ms=made.node.clock.now_ms()))
    async with asyncio.timeout(30):
        while made.node.partitions.find("t", 0).log.unflushed_records:
            await asyncio.sleep(0.005)
    assert [each.message for each in caplog.records if each.name == "ottla.logs"] == [
        "no disk today"
    ]
    assert made.node.storage_failure.reason is None, "nobody else could lead"


async def test_a_failed_sync_stops_the_broker_if_another_can_lead(
    node_call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system may drop pages that it could not write: no later sync writes them."""
    await node_call.appear(7)
    await node_call.place("t", (node_call.node.config.id, 7))
    await node_call.produce("t", node_call.batch(b"a"), acks=1)

    def fails(task: FlushTask) -> None:
        raise ApiError(ErrorCode.kafka_storage_error, "no disk today")

    monkeypatch.setattr(FlushTask, "run", fails)
    with pytest.raises(ApiError):
        await node_call.node.partitions.find("t", 0).flush()
    assert node_call.node.storage_failure.reason is not None


@pytest.mark.parametrize("work", ["checkpoint", "checkpoint_high_watermarks"])
async def test_a_checkpoint_that_cannot_be_synced_stops_the_broker(
    node_call: Any, monkeypatch: pytest.MonkeyPatch, work: str
) -> None:
    await node_call.produce("t", node_call.batch(b"a"))

    def fail(fd: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(SyncError):
            await getattr(node_call.node.log_maintenance, work)()
    failure = node_call.node.storage_failure
    assert failure.has_lost_sync
    assert "nobody knows what is on the disk" in failure.reason
    data = node_call.node.config.data_folder
    await node_call.node.close()
    assert not (data / ".kafka_cleanshutdown").exists()
    assert (data / ".ottla-lost-sync").exists()


async def delete_topic(node_call: Any, topic: str) -> None:
    build = node_call.request(20, 5)
    answer = await node_call.ask(build.DeleteTopicsRequest(topic_names=(topic,), timeout=30_000))
    assert answer.responses[0].error_code is ErrorCode.none


@pytest.mark.parametrize("work", ["checkpoint", "flush_old"])
async def test_topics_deleted_during_a_pass_are_not_a_disk_failure(
    node_call: Any, monkeypatch: pytest.MonkeyPatch, work: str
) -> None:
    """A pass lists its partitions, then waits for the disk once for each."""
    failures: list[Any] = []
    monkeypatch.setattr(
        node_call.node.storage_failure, "write_failed", lambda *failed: failures.append(failed)
    )
    for topic in ("one", "two", "three"):
        await node_call.create(
            topic, segment_bytes=str(SEGMENT_BYTES), flush_ms="0", file_delete_delay_ms="0"
        )
        await fill(node_call, topic)
    run, waits, go_on = FlushTask.run, asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def slow(task: FlushTask) -> None:
        loop.call_soon_threadsafe(waits.set)
        assert go_on.wait(60)
        run(task)

    monkeypatch.setattr(FlushTask, "run", slow)
    working = asyncio.create_task(getattr(node_call.node.log_maintenance, work)())
    await waits.wait()
    for topic in ("one", "two", "three"):
        await delete_topic(node_call, topic)
    go_on.set()
    await working
    assert failures == []


async def test_the_checkpoints_drop_a_deleted_partition_soon(
    start_node: Any, eventually: Any
) -> None:
    """Otherwise, after a crash, a new topic of that name would begin at the old one's offsets."""
    never = str(24 * 3600 * 1000)
    node_call = await start_node(
        log_initial_task_delay_ms=never,
        log_flush_offset_checkpoint_interval_ms=never,
        replica_high_watermark_checkpoint_interval_ms=never,
    )
    await node_call.create("u")
    for _ in range(3):
        await node_call.produce("u", node_call.batch(b"a"))
    partition = node_call.node.partitions.find("u", 0)
    partition.delete_before(2)
    await partition.flush()
    await node_call.node.log_maintenance.checkpoint()

    def written(name: str) -> str:
        folder: Path = node_call.node.config.data_folder
        return (folder / f"{name}-offset-checkpoint").read_text()

    names = ("recovery-point", "log-start", "replication")
    assert all("u 0 " in written(name) for name in names)
    await delete_topic(node_call, "u")
    await eventually(lambda: not any("u 0 " in written(name) for name in names))


async def test_a_topic_made_again_waits_until_the_checkpoints_have_dropped_the_old_one(
    start_node: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    never = str(24 * 3600 * 1000)
    node_call = await start_node(
        log_initial_task_delay_ms=never,
        log_flush_offset_checkpoint_interval_ms=never,
        replica_high_watermark_checkpoint_interval_ms=never,
    )
    monkeypatch.setattr(maintenance_file, "CHECKPOINT_DELAY_MS", 24 * 3600 * 1000)
    await node_call.create("u", 2)
    for index in (0, 1):
        for _ in range(3):
            await node_call.produce("u", node_call.batch(b"a"), index=index)
        node_call.node.partitions.find("u", index).delete_before(2)
    await node_call.node.log_maintenance.checkpoint()
    await delete_topic(node_call, "u")
    tasks: list[CheckpointTask] = []
    checkpoint = node_call.node.store.checkpoint

    def counted(high_watermarks: Any) -> CheckpointTask:
        tasks.append(checkpoint(high_watermarks))
        return tasks[-1]

    monkeypatch.setattr(node_call.node.store, "checkpoint", counted)
    await node_call.create("u", 2)
    for name in ("recovery-point", "log-start", "replication"):
        written = node_call.node.config.data_folder / f"{name}-offset-checkpoint"
        assert "u 0 2" not in written.read_text()
        assert "u 1 3" not in written.read_text()
    await node_call.produce("u", node_call.batch(b"a"))
    assert len(tasks) == 1, "one write frees all names"


async def test_no_thread_writes_checkpoints_after_close(
    node_call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store writes them when it closes: older files must not replace those."""
    maintenance, store = node_call.node.log_maintenance, node_call.node.store
    begun, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    def slow(high_watermarks: Any) -> None:
        begun.set()
        assert go_on.wait(60)
        ended.set()

    monkeypatch.setattr(store, "write_high_watermarks", slow)
    await node_call.produce("t", node_call.batch(b"a"))
    writing = asyncio.create_task(maintenance.checkpoint_high_watermarks())
    assert await asyncio.to_thread(begun.wait, 60)
    writing.cancel()
    closing = asyncio.create_task(maintenance.close())
    await asyncio.sleep(0.01)
    assert not closing.done()
    go_on.set()
    await closing
    assert ended.is_set()


async def test_a_segment_that_cannot_be_deleted_is_a_disk_failure(
    node_call: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As in Kafka, where segment deletions report to the log directory failure channel."""
    failures: list[Any] = []
    monkeypatch.setattr(
        node_call.node.storage_failure, "write_failed", lambda *failed: failures.append(failed)
    )
    for topic in ("one", "two"):
        await node_call.create(topic, segment_bytes=str(SEGMENT_BYTES), retention_ms="1")
    partitions = [await fill(node_call, topic) for topic in ("one", "two")]
    rename = os.rename

    def refuse(old: str, new: str) -> None:
        if "one-0" in old:
            raise OSError(errno.EROFS, "Read-only file system")
        rename(old, new)

    monkeypatch.setattr(os, "rename", refuse)
    await node_call.node.log_maintenance.retain()
    assert [failed for failed, _ in failures] == partitions[:1]
    assert "retention of one-0" in caplog.text
    assert partitions[1].log.start_offset == 8, "the others are looked after"


def _delete(data: Path) -> None:
    shutil.rmtree(data)


def _move(data: Path) -> None:
    data.rename(data.with_name("elsewhere"))


def _replace(data: Path) -> None:
    shutil.rmtree(data)
    data.mkdir()
    (data / ".lock").touch()


@pytest.mark.parametrize("change", [_delete, _move, _replace])
async def test_a_data_folder_that_is_gone_stops_the_broker(
    node_call: Any, change: Callable[[Path], None]
) -> None:
    """Appends to deleted files succeed, so every one of them was acknowledged."""
    node, data = node_call.node, node_call.node.config.data_folder
    await node_call.produce("t", node_call.batch(b"a"))
    await node.log_maintenance.check_folder()
    assert node.storage_failure.reason is None
    ended: list[str] = []
    node.storage_failure.end = lambda: ended.append("end")
    change(data)
    left = sorted(data.rglob("*"))
    await node.log_maintenance.check_folder()
    assert ended == ["end"]
    assert node.storage_failure.reason == (
        f"{data} was deleted while the broker was using it: this broker stops, because nothing"
        " it writes would be kept"
    )
    await node.close()
    # What another broker may have put there stays as it is.
    assert sorted(data.rglob("*")) == left


async def test_the_folder_is_checked_every_second(node_call: Any, eventually: Any) -> None:
    shutil.rmtree(node_call.node.config.data_folder)
    await eventually(lambda: node_call.node.storage_failure.reason is not None)


async def test_a_new_partition_does_not_bring_a_deleted_data_folder_back(node_call: Any) -> None:
    await node_call.create("u")
    data = node_call.node.config.data_folder
    shutil.rmtree(data)
    answer = await node_call.produce("u", node_call.batch(b"a"))
    assert answer.error_code is ErrorCode.kafka_storage_error
    assert not data.exists()


async def test_a_partition_that_is_gone_stops_the_broker_at_the_next_checkpoint(
    node_call: Any,
) -> None:
    node = node_call.node
    await node_call.produce("t", node_call.batch(b"a"))
    await node.log_maintenance.checkpoint()
    assert node.storage_failure.reason is None
    folder = node.partitions.find("t", 0).log.folder
    shutil.rmtree(folder)
    await node.log_maintenance.checkpoint()
    assert str(node.storage_failure.reason).startswith(f"{folder} was deleted while")


async def test_a_failed_checkpoint_is_a_storage_failure(
    node_call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = node_call.node
    told: list[tuple[list[str], str]] = []

    def failed(partitions: Any, error: ApiError) -> None:
        told.append(([each.topic for each in partitions], str(error)))

    monkeypatch.setattr(node.storage_failure, "checkpoint_failed", failed)
    full = OSError(errno.ENOSPC, "No space left on device")

    def no_space(*_: object) -> None:
        raise full

    monkeypatch.setattr(os, "replace", no_space)
    for write in (node.log_maintenance.checkpoint, node.log_maintenance._write_checkpoints):
        with pytest.raises(ApiError):
            await write()
    assert len(told) == 2
    assert told[0][0] == ["t"]
    assert "No space left on device" in told[0][1]
