import uuid
from pathlib import Path

import pytest

from ottla.log.partition_metadata import (
    FILE_NAME,
    make_folder,
    read_topic_id,
)


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
