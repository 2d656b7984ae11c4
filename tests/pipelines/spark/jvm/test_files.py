"""Small files where Spark's data lies."""

from pathlib import Path
from typing import Any

import pytest

from ottla.pipelines.spark.jvm.files import Files

pytestmark = pytest.mark.spark


def test_a_folder_is_listed_and_read(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "one").write_text("ein Käfer")

    files = Files(spark, str(tmp_path))

    assert files.location == f"file:{tmp_path}"
    assert files.names() == ["sub"]
    assert files.names("sub") == ["one"]
    assert files.exists("sub/one")
    assert files.read("sub/one") == "ein Käfer"


def test_what_is_not_there_is_none(spark: Any, tmp_path: Path) -> None:
    files = Files(spark, str(tmp_path / "gone"))

    assert not files.exists()
    assert files.names() == []
    assert files.read("one") is None


def test_a_file_is_replaced_as_a_whole_and_leaves_nothing_beside_it(
    spark: Any, tmp_path: Path
) -> None:
    files = Files(spark, str(tmp_path / "folder"))
    files.write("a.json", "one")
    files.write("a.json", "two")

    assert files.read("a.json") == "two"
    assert files.names() == ["a.json"]
    with pytest.raises(UnicodeEncodeError):  # as on a disk that is full: it is opened already
        files.write("a.json", "\ud83d")
    assert [entry.name for entry in (tmp_path / "folder").iterdir()] == ["a.json"]
    files.move("a.json", "kept/a.json")
    assert (files.read("a.json"), files.read("kept/a.json")) == (None, "two")
    files.delete("kept")
    files.delete("kept")
    assert not files.exists("kept")
    assert Files(spark, str(tmp_path / "folder")).is_file() is False


def test_a_file_that_has_hadoops_checksum_beside_it_is_replaced(spark: Any, tmp_path: Path) -> None:
    path = spark._jvm.org.apache.hadoop.fs.Path(str(tmp_path / "a.json"))
    stream = path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf()).create(path)
    stream.write(bytearray(b"one"))
    stream.close()
    files = Files(spark, str(tmp_path))
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [".a.json.crc", "a.json"]

    files.write("a.json", "two")

    assert files.read("a.json") == "two"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.json"]


def test_a_file_that_is_deleted_before_it_is_opened_is_none(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Files, "exists", lambda self, name="": True)
    assert Files(spark, str(tmp_path)).read("one") is None
