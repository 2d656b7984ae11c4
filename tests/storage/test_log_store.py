import shutil
import subprocess
import sys
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ottla.log.compaction import plan_compaction
from ottla.log.config import LogConfig
from ottla.log.errors import DataFolderError
from ottla.log.flush import FlushTask, flush
from ottla.log.partition_metadata import read_topic_id
from ottla.log.retention import remove_expired
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.build import build_batch
from ottla.records.header import read_header
from ottla.records.record import Record
from ottla.storage import log_store as store_file
from ottla.storage.log_store import LogStore

TOPIC_ID = uuid.UUID(int=77)


def _open(root: Path, node_id: int = 0, cluster_id: str | None = None) -> LogStore:
    store = LogStore.open(root, node_id=node_id, cluster_id=cluster_id, random=Random())
    store.open_logs(lambda topic: LogConfig(file_delete_delay_ms=0), 1)
    return store


def _fill(store: LogStore, topic: str, partition: int, count: int = 3) -> None:
    log = store.create(topic, partition, LogConfig(), TOPIC_ID, 1)
    for _ in range(count):
        batch = build_batch([Record(0, 1, b"k", b"v")])
        log.append(batch, [read_header(batch)], leader_epoch=0, now_ms=1)


def _checkpoint(store: LogStore) -> None:
    checkpoint = store.checkpoint({})
    checkpoint.run()
    checkpoint.apply()


def test_the_next_start_detects_a_clean_stop(tmp_path: Path) -> None:
    store = _open(tmp_path / "data")
    assert not store.was_clean
    _fill(store, "a-b", 0)
    _fill(store, "flights", 12)
    store.logs["a-b", 0].advance_start(2)
    store.cleaner_offsets["a-b", 0] = 1
    metadata = store.metadata
    assert store.previous_epoch == -1
    store.close({("a-b", 0): 3, ("flights", 12): 3}, broker_epoch=4711)
    text = (tmp_path / "data" / "recovery-point-offset-checkpoint").read_text()
    assert text.splitlines()[:-1] == ["0", "3", "a-b 0 3", "flights 12 3"]
    again = _open(tmp_path / "data")
    assert again.was_clean
    assert again.previous_epoch == 4711
    assert again.metadata == metadata
    assert {name: log.end_offset for name, log in again.logs.items()} == {
        ("a-b", 0): 3,
        ("flights", 12): 3,
    }
    assert again.logs["a-b", 0].start_offset == 2
    assert again.high_watermarks == {("a-b", 0): 3, ("flights", 12): 3}
    assert again.cleaner_offsets == {("a-b", 0): 1}
    assert read_topic_id(again.logs["flights", 12].folder) == TOPIC_ID
    # Only once: from here on the folder is unclean.
    assert not (tmp_path / "data" / ".kafka_cleanshutdown").exists()
    again.release()


def test_without_a_clean_stop_everything_is_recovered(tmp_path: Path) -> None:
    store = _open(tmp_path)
    _fill(store, "t", 0, 5)
    store.checkpoint({}).run()
    path = store.logs["t", 0].active.path
    store.release()
    with open(path, "ab") as file:
        file.write(b"torn")
    again = _open(tmp_path)
    assert not again.was_clean
    assert (again.logs["t", 0].end_offset, again.logs["t", 0].recovery_point) == (5, 0)
    again.release()


def test_a_second_broker_on_the_folder_is_refused(tmp_path: Path) -> None:
    store = _open(tmp_path)
    code = (
        "import random\nimport sys\nfrom ottla.storage.log_store import LogStore\n"
        "from ottla.log.errors import DataFolderError\n"
        "try: LogStore.open(sys.argv[1], node_id=0, random=random.Random())\n"
        "except DataFolderError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert "in use by another broker" in done.stdout
    store.close({})
    _open(tmp_path).release()


def test_another_nodes_or_clusters_folder_is_refused(tmp_path: Path) -> None:
    store = _open(tmp_path, node_id=3, cluster_id="abc")
    store.close({})
    with pytest.raises(DataFolderError, match="belongs to node 3"):
        _open(tmp_path, node_id=4)
    with pytest.raises(DataFolderError, match="belongs to cluster abc"):
        _open(tmp_path, node_id=3, cluster_id="xyz")
    _open(tmp_path, node_id=3).release()  # neither refusal kept the lock


def test_a_damaged_identity_stops_the_start_with_one_line(tmp_path: Path) -> None:
    _open(tmp_path).close({})
    (tmp_path / "meta.properties").write_text("rubbish\n")
    with pytest.raises(DataFolderError) as caught:
        _open(tmp_path)
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)


def _cut_end(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def _append(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"torn")


@pytest.mark.parametrize("change", [_cut_end, _append, Path.unlink])
def test_a_log_that_is_not_as_the_clean_stop_left_it_is_recovered(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, change: Callable[[Path], object]
) -> None:
    """Its checkpointed end would be wrong, and readers would wait for ever."""
    store = _open(tmp_path)
    for topic in ("cut", "whole"):
        _fill(store, topic, 0)
    path, size = Path(store.logs["cut", 0].active.path), store.logs["cut", 0].size_bytes
    store.close({})
    change(path)
    found = path.stat().st_size if path.exists() else 0
    again = _open(tmp_path)
    ends = {"_cut_end": 2, "_append": 3, "unlink": 0}
    assert again.logs["cut", 0].end_offset == ends[change.__name__]
    assert (again.logs["whole", 0].end_offset, again.logs["whole", 0].recovery_point) == (3, 3)
    assert not again.was_clean
    assert caplog.messages[0] == (
        f"{path.parent} has {found} bytes in its .log and .txnindex files and its last .snapshot,"
        f" and had {size} when the broker stopped: every batch is checked"
    )
    again.close({})
    caplog.clear()
    last = _open(tmp_path)
    assert (last.was_clean, caplog.messages) == (True, [])
    last.release()


def test_an_end_below_the_high_watermark_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A power failure has taken what no fsync had reached."""
    store = _open(tmp_path)
    _fill(store, "t", 0)
    store.checkpoint({("t", 0): 3}).run()
    path = Path(store.logs["t", 0].active.path)
    store.release()
    path.write_bytes(b"")
    again = _open(tmp_path)
    assert caplog.messages == [
        f"{tmp_path}/t-0 ends at offset 0, below its high watermark of 3: 3 committed records are "
        "missing here; where no other replica has them they are lost"
    ]
    again.release()


def test_a_lost_snapshot_is_noticed_after_a_clean_stop(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A log without snapshots has no producers, so their duplicates would be taken."""
    store = _open(tmp_path)
    log = store.create("t", 0, LogConfig(), TOPIC_ID, 1)
    sent: dict[str, Any] = {"producer_id": 6, "producer_epoch": 0, "base_sequence": 0}
    batch = build_batch([Record(0, 1, b"k", b"v")], **sent)
    log.append(batch, [read_header(batch)], leader_epoch=0, now_ms=1)
    store.close({})
    (snapshot,) = Path(log.folder).glob("*.snapshot")
    snapshot.unlink()
    again = _open(tmp_path)
    assert again.logs["t", 0].producers.producers[6].last_sequence == 0
    assert "every batch is checked" in caplog.text
    again.release()


def test_a_partition_that_is_gone_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = _open(tmp_path)
    _fill(store, "t", 0)
    size = store.logs["t", 0].size_bytes
    store.create("empty", 0, LogConfig(), TOPIC_ID, 1)
    store.close({})
    shutil.rmtree(tmp_path / "t-0")
    again = _open(tmp_path)
    assert caplog.messages == [
        f"{tmp_path}/t-0 is gone: it had {size} bytes when the broker stopped"
    ]
    again.release()


def test_without_our_mark_the_ends_are_read_from_the_segments(tmp_path: Path) -> None:
    """Apache Kafka stopped here: its checkpoints have no checksum."""
    store = _open(tmp_path)
    _fill(store, "t", 0)
    store.close({})
    (tmp_path / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":7}')
    (tmp_path / "recovery-point-offset-checkpoint").write_text("0\n1\nt 0 9\n")
    again = _open(tmp_path)
    assert again.was_clean
    assert (again.logs["t", 0].end_offset, again.logs["t", 0].recovery_point) == (3, 3)
    again.release()


def test_a_folder_that_cannot_be_created_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataFolderError, match="cannot use"):
        LogStore.open(tmp_path / "file" / "data", node_id=0, random=Random())


def test_a_log_without_records_has_nothing_to_delete(tmp_path: Path) -> None:
    store = _open(tmp_path)
    store.create("t", 0, LogConfig(), TOPIC_ID, 1)
    assert store.delete("t", 0).paths == ()
    assert ("t", 0) not in store.logs
    store.close({})


def test_a_deleted_partition_is_renamed_at_once_and_removed_later(tmp_path: Path) -> None:
    store = _open(tmp_path)
    _fill(store, "t", 0)
    held = store.logs["t", 0].read(0, max_bytes=1)
    removal = store.delete("t", 0)
    assert ("t", 0) not in store.logs
    assert not (tmp_path / "t-0").exists()
    assert Path(removal.paths[0]).is_dir()
    assert held.read()
    _checkpoint(store)
    _fill(store, "t", 0, 1)  # the name is free again
    removal.run()
    assert not Path(removal.paths[0]).exists()
    store.close({})


def test_a_deletion_interrupted_by_a_crash_is_finished_later(tmp_path: Path) -> None:
    store = _open(tmp_path)
    _fill(store, "t", 0)
    store.delete("t", 0)
    store.release()
    again = _open(tmp_path)
    assert again.logs == {}
    for removal in again.removals:
        removal.run()
    assert not list(tmp_path.glob("*-delete"))
    again.release()


def test_other_folders_are_ignored(tmp_path: Path) -> None:
    for name in ("lost+found", "__cluster_metadata-0", "notes"):
        (tmp_path / name).mkdir()
    store = _open(tmp_path)
    assert store.logs == {}
    store.close({})
    assert (tmp_path / "lost+found").is_dir()


def test_the_marker_is_written_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = _open(tmp_path)
    _fill(store, "t", 0)

    def fail(path: str, offsets: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store_file, "write_offsets", fail)
    with pytest.raises(OSError, match="No space"):
        store.close({})
    monkeypatch.undo()
    again = _open(tmp_path)  # the lock was released nevertheless
    assert not again.was_clean
    assert again.logs["t", 0].end_offset == 3
    again.release()


def test_has_partitions_ignores_other_folders(tmp_path: Path) -> None:
    store = _open(tmp_path / "data")
    (tmp_path / "data" / "notes").mkdir()
    assert not store.has_partitions
    _fill(store, "a", 0)
    assert store.has_partitions
    store.delete("a", 0)
    assert not store.has_partitions


def test_records_after_a_truncation_are_not_clean(tmp_path: Path) -> None:
    store = _open(tmp_path / "data")
    store.cleaner_offsets["t", 0] = 10
    store.truncated("t", 0, 12)
    assert store.cleaner_offsets == {("t", 0): 10}
    store.truncated("t", 0, 4)
    store.truncated("u", 0, 4)
    assert store.cleaner_offsets == {("t", 0): 4}
    store.release()


def test_a_deleted_log_does_not_affect_a_new_topic_of_the_same_name(tmp_path: Path) -> None:
    """Maintenance may still use the old log when the topic is created again."""
    store = _open(tmp_path / "data")
    _fill(store, "t", 0)
    old = store.logs["t", 0]
    under_way = FlushTask(old)
    old.roll(2)
    store.delete("t", 0)
    _checkpoint(store)
    _fill(store, "t", 0, count=5)
    new = store.logs["t", 0]
    flush(new)
    files = {path.name: path.read_bytes() for path in Path(new.folder).iterdir()}

    under_way.run()
    under_way.apply()
    flush(old)
    old.config = replace(old.config, retention_ms=0, cleanup_compact=True)
    assert remove_expired(old, now_ms=10**12, high_watermark=old.end_offset) is None
    assert (
        plan_compaction(old, clean_offset=None, now_ms=10**12, high_watermark=old.end_offset)
        is None
    )
    batch = build_batch([Record(0, 1, b"k", b"v")])
    with pytest.raises(ApiError) as refused:
        old.append(batch, [read_header(batch)], leader_epoch=0, now_ms=1)
    assert refused.value.code is ErrorCode.unknown_topic_or_partition
    with pytest.raises(ApiError) as refused:
        old.append_as_follower(batch, [read_header(batch)], now_ms=1)
    assert refused.value.code is ErrorCode.unknown_topic_or_partition

    assert {path.name: path.read_bytes() for path in Path(new.folder).iterdir()} == files
    store.release()


def test_a_deleted_log_can_still_be_read(tmp_path: Path) -> None:
    """Its files stay for file.delete.delay.ms, under another name."""
    store = _open(tmp_path / "data")
    _fill(store, "t", 0)
    old = store.logs["t", 0]
    store.delete("t", 0)
    _checkpoint(store)
    _fill(store, "t", 0, count=1)
    assert old.read(2, max_bytes=1 << 20).size_bytes > 0
    assert len(old.read(0, max_bytes=1 << 20).read()) == old.size_bytes
    store.release()


def test_deleting_a_log_ends_its_compaction(tmp_path: Path) -> None:
    store = _open(tmp_path / "data")
    _fill(store, "t", 0)
    old = store.logs["t", 0]
    old.config = replace(old.config, cleanup_compact=True, min_cleanable_dirty_ratio=0.0)
    old.roll(2)
    compaction = plan_compaction(old, clean_offset=None, now_ms=3, high_watermark=old.end_offset)
    assert compaction is not None
    compaction.run()
    removal = store.delete("t", 0)
    removal.run()
    assert compaction.apply() == []
    store.release()


def test_a_name_is_free_once_no_checkpoint_has_it(tmp_path: Path) -> None:
    store = _open(tmp_path)
    _fill(store, "t", 0)
    store.logs["t", 0].advance_start(2)
    before = store.checkpoint({("t", 0): 3})
    store.delete("t", 0)
    before.run()
    before.apply()
    assert store.stale == {("t", 0)}, "that checkpoint was older than the deletion"
    after = store.checkpoint({})
    after.run()
    assert store.stale == {("t", 0)}
    after.apply()
    assert store.stale == set()
    _fill(store, "t", 0, 1)
    store.release()
    again = _open(tmp_path)
    assert (again.logs["t", 0].start_offset, again.logs["t", 0].end_offset) == (0, 1)
    again.release()


def test_offsets_of_a_folder_that_is_gone_are_not_those_of_a_new_log(tmp_path: Path) -> None:
    """Somebody removed a partition's folder while the broker was down."""
    store = _open(tmp_path)
    for topic in ("gone", "kept"):
        _fill(store, topic, 0)
        store.logs[topic, 0].advance_start(2)
        store.cleaner_offsets[topic, 0] = 3
    store.create("empty", 0, LogConfig(), TOPIC_ID, 1)
    store.close({("gone", 0): 3, ("kept", 0): 3, ("empty", 0): 0}, broker_epoch=7)
    shutil.rmtree(tmp_path / "gone-0")
    again = _open(tmp_path)
    assert again.high_watermarks == {("kept", 0): 3, ("empty", 0): 0}
    assert again.cleaner_offsets == {("kept", 0): 3}
    assert again.was_clean
    assert again.previous_epoch == -1, "records are missing: leaders need new epochs"
    for name in ("recovery-point", "log-start", "replication", "cleaner"):
        assert "gone" not in (tmp_path / f"{name}-offset-checkpoint").read_text()
    _fill(again, "gone", 0, 1)
    again.release()  # a crash
    last = _open(tmp_path)
    assert (last.logs["gone", 0].start_offset, last.logs["gone", 0].end_offset) == (0, 1)
    assert (last.logs["kept", 0].start_offset, last.logs["kept", 0].end_offset) == (2, 3)
    last.release()


def test_a_recovery_point_above_the_end_is_lowered_in_its_file(tmp_path: Path) -> None:
    """Otherwise records written after one crash would count as synced after the next."""
    store = _open(tmp_path)
    _fill(store, "t", 0, 3)
    flush(store.logs["t", 0])
    store.checkpoint({}).run()
    store.release()
    (tmp_path / "t-0" / f"{0:020}.log").write_bytes(b"")
    once = _open(tmp_path)
    assert (once.logs["t", 0].end_offset, once.logs["t", 0].recovery_point) == (0, 0)
    batch = build_batch([Record(0, 1, b"k", b"v")])
    once.logs["t", 0].append(batch, [read_header(batch)], leader_epoch=0, now_ms=1)
    once.release()
    again = _open(tmp_path)
    assert (again.logs["t", 0].end_offset, again.logs["t", 0].recovery_point) == (1, 0)


def test_a_log_that_was_compacted_may_have_gaps(tmp_path: Path) -> None:
    """Its topic's cleanup.policy is delete now: a gap is no loss, and nothing after it is cut."""
    store = _open(tmp_path)
    _fill(store, "t", 0, 1)
    log = store.logs["t", 0]
    log.roll(1, 7)
    batch = build_batch([Record(0, 1, b"k", b"v")], base_offset=7, leader_epoch=0)
    log.append_as_follower(batch, [read_header(batch)], now_ms=1)
    store.cleaner_offsets["t", 0] = 7
    store.checkpoint({}).run()
    store.release()
    assert _open(tmp_path).logs["t", 0].end_offset == 8
