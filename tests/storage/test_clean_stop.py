import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import crc32c
import pytest

from ottla.storage.clean_stop import (
    FILE_NAME,
    CleanStop,
    LeftLog,
    read_clean_stop,
    remove_clean_stop,
    write_clean_stop,
)


def _log(folder: Path, *, is_on_disk: bool) -> Any:
    if is_on_disk:
        folder.mkdir()
        stem = "0" * 20
        for suffix, size_bytes in ((".log", 70), (".snapshot", 5), (".txnindex", 2), (".index", 9)):
            (folder / f"{stem}{suffix}").write_bytes(bytes(size_bytes))
    epochs = SimpleNamespace(checksum=99)
    return SimpleNamespace(folder=str(folder), is_on_disk=is_on_disk, epochs=epochs)


def _write(folder: Path) -> None:
    (folder / "one").write_bytes(b"1")
    logs: Any = {
        ("a-b", 12): _log(folder / "a-b-12", is_on_disk=True),
        ("empty", 0): _log(folder / "empty-0", is_on_disk=False),
    }
    write_clean_stop(str(folder), ["one"], logs, 4711)


def test_it_says_how_everything_was_left(tmp_path: Path) -> None:
    _write(tmp_path)
    found = read_clean_stop(str(tmp_path))
    assert found == CleanStop({"one": crc32c.crc32c(b"1")}, {("a-b", 12): LeftLog(77, 99)}, 4711)
    remove_clean_stop(str(tmp_path))
    assert read_clean_stop(str(tmp_path)) is None
    remove_clean_stop(str(tmp_path))


def test_kafka_reads_its_own_fields(tmp_path: Path) -> None:
    _write(tmp_path)
    content = json.loads((tmp_path / FILE_NAME).read_bytes())
    assert (content["version"], content["brokerEpoch"]) == (0, 4711)


@pytest.mark.parametrize("content", ['{"version":0,"brokerEpoch":-1}', "{}", ""])
def test_the_mark_of_kafka_knows_no_more(tmp_path: Path, content: str) -> None:
    (tmp_path / FILE_NAME).write_text(content)
    assert read_clean_stop(str(tmp_path)) == CleanStop()


def test_the_mark_of_kafka_has_the_epoch(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text('{"version":0,"brokerEpoch":12}')
    assert read_clean_stop(str(tmp_path)) == CleanStop(broker_epoch=12)


@pytest.mark.parametrize(
    "content",
    [
        *(b"\0" * 9, b"\xff", b"[]", b'{"logs":3}', b'{"logs":{"t":1}}', b'{"checkpoints":[]}'),
        b'{"brokerEpoch":"1"}',
        *(b'{"logs":{"t-0":"1"}}', b'{"logs":{"t-0":[1]}}', b'{"logs":{"t":[1,2]}}'),
    ],
)
def test_a_damaged_mark_is_one_line_and_no_clean_stop(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes
) -> None:
    (tmp_path / FILE_NAME).write_bytes(content)
    assert read_clean_stop(str(tmp_path)) is None
    (line,) = caplog.messages
    assert line.startswith(f"{tmp_path}/{FILE_NAME} is damaged (")
    assert line.endswith("the logs are recovered as after a crash")


def test_a_folder_in_its_place_is_one_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / FILE_NAME).mkdir()
    assert read_clean_stop(str(tmp_path)) is None
    assert len(caplog.messages) == 1
    remove_clean_stop(str(tmp_path))
