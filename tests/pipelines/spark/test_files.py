"""Small files where Spark's data lies."""

from pathlib import Path

import pytest

from ottla.pipelines.spark.files import Files

pytestmark = pytest.mark.spark


def test_a_folder_is_listed_and_read(spark, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "one").write_text("ein Käfer")

    files = Files(spark, str(tmp_path))

    assert files.location == f"file:{tmp_path}"
    assert files.names() == ["sub"]
    assert files.names("sub") == ["one"]
    assert files.exists("sub/one")
    assert files.read("sub/one") == "ein Käfer"


def test_what_is_not_there_is_none(spark, tmp_path: Path) -> None:
    files = Files(spark, str(tmp_path / "gone"))

    assert not files.exists()
    assert files.names() == []
    assert files.read("one") is None
