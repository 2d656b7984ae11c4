import errno
import io
import uuid
from pathlib import Path
from typing import Any

import pytest

from ottla.log.partition_metadata import (
    FILE_NAME,
    make_folder,
    read_topic_id,
)
from ottla.protocol.errors import ApiError


def test_the_file_is_kafkas(tmp_path: Path) -> None:
    folder = tmp_path / "t-0"
    make_folder(str(folder), uuid.UUID("00112233-4455-6677-8899-aabbccddeeff"))
    assert (folder / FILE_NAME).read_text() == "version: 0\ntopic_id: ABEiM0RVZneImaq7zN3u_w"
    # One that is there stays, and its topic, where none is named.
    make_folder(str(folder), None)
    assert read_topic_id(str(folder)) == uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")


@pytest.mark.parametrize("text", ["", "version: 0", "version: 0\ntopic_id: short", "a\nb"])
def test_a_damaged_file_names_no_topic(tmp_path: Path, text: str) -> None:
    assert read_topic_id(str(tmp_path)) is None
    (tmp_path / FILE_NAME).write_text(text)
    assert read_topic_id(str(tmp_path)) is None


def test_a_write_that_fails_leaves_the_former_topic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder may have records: without its topic, any topic could take it."""
    before, after = uuid.UUID(int=1), uuid.UUID(int=2)
    make_folder(str(tmp_path), before)
    with monkeypatch.context() as patch:
        patch.setattr("builtins.open", lambda *given, **named: _Full(*given, **named))
        with pytest.raises(ApiError):
            make_folder(str(tmp_path), after)
    assert read_topic_id(str(tmp_path)) == before
    make_folder(str(tmp_path), after, sync=True)
    assert read_topic_id(str(tmp_path)) == after


class _Full(io.FileIO):
    """A file on a disk that takes five more bytes."""

    def __init__(self, path: str, mode: str, **_: object) -> None:
        super().__init__(path, mode.replace("b", ""))

    def write(self, data: Any) -> int:
        super().write(data[:5])
        raise OSError(errno.ENOSPC, "No space left on device")
