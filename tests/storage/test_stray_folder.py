"""Folders that are kept though no topic has them."""

from __future__ import annotations

from pathlib import Path
from random import Random
from uuid import UUID

import pytest

from ottla.log.config import LogConfig
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.build import build_batch
from ottla.records.header import read_header
from ottla.records.record import Record
from ottla.storage import log_store
from ottla.storage.log_store import LogStore
from ottla.storage.stray_folder import NOTE, folder_bytes, read_stray, stray_folders

TOPIC_ID = UUID(int=9)
LONG = "t" * 249


def opened(folder: Path) -> LogStore:
    store = LogStore.open(folder, node_id=3, random=Random(1))
    store.open_logs(lambda topic: LogConfig(), 0)
    return store


def written(store: LogStore, topic: str) -> None:
    """A partition with three records that begins at offset 1."""
    log = store.create(topic, 0, LogConfig(), TOPIC_ID, 1)
    for number in range(3):
        batch = build_batch([Record(number, 1, None, b"x")])
        log.append(batch, [read_header(batch)], leader_epoch=0, now_ms=1)
    log.start_offset = 1


def test_a_folder_that_is_set_aside_keeps_its_files_and_its_name_is_free(tmp_path: Path) -> None:
    store = opened(tmp_path)
    written(store, LONG)
    stray = store.put_aside(LONG, 0, "a reason", 7)
    assert stray is not None
    assert Path(stray.path).name.startswith("t" * 200)
    assert (stray.topic, stray.partition, stray.topic_id) == (LONG, 0, TOPIC_ID)
    assert (stray.why, stray.at_ms, stray.log_start_offset) == ("a reason", 7, 1)
    assert store.logs == {}
    checkpoint = store.checkpoint({})
    checkpoint.run()
    checkpoint.apply()
    written(store, LONG)
    store.close({})
    again = opened(tmp_path)
    assert list(again.logs) == [(LONG, 0)]
    assert again.strays == [stray.path]
    assert list(stray_folders(str(tmp_path))) == [stray]
    assert again.removals == []
    assert folder_bytes(stray.path) > 3 * 61
    removal = again.delete_stray(stray)
    removal.run()
    assert list(stray_folders(str(tmp_path))) == []
    again.release()


def test_a_log_without_records_leaves_nothing(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.create("t", 0, LogConfig(), TOPIC_ID, 1)
    assert store.put_aside("t", 0, "a reason", 7) is None
    assert store.logs == {}
    assert list(stray_folders(str(tmp_path))) == []
    store.release()


@pytest.mark.parametrize(
    "note",
    [
        None,
        "",
        "{}",
        "[1]",
        '{"version":1,"topic":"other","partition":4,"why":"","at_ms":1,"log_start_offset":0}',
        '{"version":1,"topic":"flights","partition":5,"why":"","at_ms":1,"log_start_offset":0}',
    ],
)
def test_without_a_note_the_name_says_what_it_is(tmp_path: Path, note: str | None) -> None:
    """A stray of Apache Kafka has no note, and a note may be damaged."""
    folder = tmp_path / f"flights-4.{'0' * 32}-stray"
    folder.mkdir()
    (folder / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAACQ")
    if note is not None:
        (folder / NOTE).write_text(note)
    stray = read_stray(str(folder))
    assert stray is not None
    assert (stray.topic, stray.partition, stray.topic_id) == ("flights", 4, TOPIC_ID)
    assert (stray.why, stray.log_start_offset) == (None, None)
    assert stray.at_ms > 1_600_000_000_000
    assert read_stray(str(tmp_path)) is None


def test_a_full_disk_does_not_lose_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = opened(tmp_path)
    written(store, "t")

    def full(*args: object, **more: object) -> None:
        raise ApiError(ErrorCode.kafka_storage_error, "No space left on device")

    monkeypatch.setattr(log_store, "write_note", full)
    stray = store.put_aside("t", 0, "a reason", 7)
    assert stray is not None
    assert (stray.topic, stray.partition, stray.why) == ("t", 0, None)
    assert "t-0: " in caplog.text
    assert "No space left on device" in caplog.text
    store.release()
