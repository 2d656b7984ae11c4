from pathlib import Path
from random import Random

import pytest

from ottla.log.errors import DataFolderError
from ottla.storage.broker_metadata import FILE_NAME, load_or_create


def test_a_new_folder_gets_permanent_ids(tmp_path: Path) -> None:
    made = load_or_create(str(tmp_path), 2, None, Random(1))
    assert len(made.cluster_id) == len(made.directory_id) == 22
    assert load_or_create(str(tmp_path), 2, None, Random(1)) == made
    assert load_or_create(str(tmp_path), 2, made.cluster_id, Random(1)) == made
    assert "node.id=2\n" in (tmp_path / FILE_NAME).read_text()


def test_a_file_written_by_kafka_is_read(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text(
        "#\n#Thu Nov 19 10:00:00 UTC 2026\ncluster.id=q1Sh-9_ISia_zwGINzRvyQ\n"
        "directory.id=Mj3CW3OSRi29cFeNJlXuAQ\nnode.id=1\nversion=1\n"
    )
    found = load_or_create(str(tmp_path), 1, None, Random(1))
    assert (found.cluster_id, found.directory_id) == (
        "q1Sh-9_ISia_zwGINzRvyQ",
        "Mj3CW3OSRi29cFeNJlXuAQ",
    )


def test_a_file_of_kafkas_zookeeper_mode_gets_a_directory_id(tmp_path: Path) -> None:
    """Kafka can still read it."""
    written = "#\n#Wed Nov 25 02:58:48 UTC 2026\nbroker.id=1\nversion=0\ncluster.id=abc\n"
    (tmp_path / FILE_NAME).write_text(written)
    found = load_or_create(str(tmp_path), 1, "abc", Random(1))
    assert len(found.directory_id) == 22
    assert load_or_create(str(tmp_path), 1, "abc", Random(2)) == found
    text = (tmp_path / FILE_NAME).read_text()
    assert text == f"{written}directory.id={found.directory_id}\n"


def test_a_file_without_a_cluster_is_damaged(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text("node.id=1\n")
    with pytest.raises(DataFolderError, match="damaged"):
        load_or_create(str(tmp_path), 1, None, Random(1))


def test_a_missing_file_is_not_made_again_for_a_folder_with_topics(tmp_path: Path) -> None:
    """With a new cluster id the folder would belong to no cluster."""
    with pytest.raises(DataFolderError) as caught:
        load_or_create(str(tmp_path), 1, None, Random(1), is_used=True)
    assert str(caught.value) == (
        f"{tmp_path}/{FILE_NAME} is missing, and the folder has topics: put back a copy of the"
        " file, which never changes, or write it with the lines version=1, cluster.id=(that of the"
        " cluster), node.id=(that of this broker)"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"\xff\xfe", b"cluster.id=a\xff"])
def test_a_file_that_is_no_text_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE_NAME).write_bytes(content)
    with pytest.raises(DataFolderError, match=f"{tmp_path}/{FILE_NAME} is damaged"):
        load_or_create(str(tmp_path), 1, None, Random(1))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).mkdir()
    with pytest.raises(DataFolderError, match=f"cannot read {tmp_path}/{FILE_NAME}: Is a dir"):
        load_or_create(str(tmp_path), 1, None, Random(1))
