"""A batch frame into a table: one commit for each completed call."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from ottla.pipelines import PipelineError, to_delta
from ottla.pipelines.run.frame import FILE
from ottla.pipelines.sinks.delta.sink import DeltaSink

pytestmark = pytest.mark.spark


def ids(spark: Any, folder: Path) -> list[int]:
    rows = spark.read.format("delta").load(str(folder / "table")).collect()
    return sorted(row["id"] for row in rows)


def write(spark: Any, folder: Path, first: int, end: int, **options: Any) -> Any:
    frame = spark.range(first, end)
    return to_delta(frame, folder / "table", checkpoint=folder / "cp", **options)


def cut_off(spark: Any, folder: Path) -> None:
    """Leave what a kill leaves between the commit and the note that the call is done."""
    note = folder / "cp" / FILE
    note.write_text(note.read_text().replace('"done": true', '"done": false'))
    (folder / "cp" / f".{FILE}.crc").unlink(missing_ok=True)


def test_each_call_is_one_commit(spark: Any, tmp_path: Path) -> None:
    first = write(spark, tmp_path, 0, 5)
    second = write(spark, tmp_path, 5, 8)

    assert (first.version, second.version) == (1, 2)
    assert first.awaitTermination()
    assert ids(spark, tmp_path) == list(range(8))


@pytest.mark.parametrize(
    ("delivery", "found"),
    [
        ("exactly-once", [0, 1, 2]),
        ("at-most-once", [0, 1, 2]),
        ("at-least-once", [0, 0, 1, 1, 2, 2]),
    ],
)
def test_a_call_cut_off_after_its_commit_is_finished_by_the_next(
    spark: Any, tmp_path: Path, delivery: str, found: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    write(spark, tmp_path, 0, 3, delivery=delivery)
    cut_off(spark, tmp_path)

    again = write(spark, tmp_path, 0, 3, delivery=delivery)
    assert ids(spark, tmp_path) == found
    assert "was cut off: this call finishes it" in caplog.text
    assert again.version == {"exactly-once": 1, "at-most-once": None, "at-least-once": 2}[delivery]

    write(spark, tmp_path, 3, 4, delivery=delivery)
    assert ids(spark, tmp_path) == [*found, 3]


def test_a_call_cut_off_before_its_commit_is_made_by_the_next_but_at_most_once(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for delivery, found in (("exactly-once", [0, 1, 2]), ("at-most-once", [])):
        folder = tmp_path / delivery

        def killed(*_: Any) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(DeltaSink, "write", killed)
            with pytest.raises(KeyboardInterrupt):
                write(spark, folder, 0, 3, delivery=delivery)
        write(spark, folder, 0, 3, delivery=delivery)
        assert ids(spark, folder) == found


def test_another_call_on_a_checkpoint_in_use_is_refused(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of another thread of this process, too: its rows would count as those of the first call."""
    said: list[str] = []
    write_rows = DeltaSink.write

    def write_meanwhile(sink: DeltaSink, frame: Any, batch: Any) -> int | None:
        monkeypatch.undo()
        with pytest.raises(PipelineError) as caught:
            write(spark, tmp_path, 5, 8)
        said.append(str(caught.value))
        return write_rows(sink, frame, batch)

    monkeypatch.setattr(DeltaSink, "write", write_meanwhile)
    write(spark, tmp_path, 0, 3)
    assert "is in use by process" in said[0]
    write(spark, tmp_path, 5, 8)
    assert ids(spark, tmp_path) == [0, 1, 2, 5, 6, 7]


@pytest.mark.parametrize("delivery", ["exactly-once", "at-most-once"])
def test_a_checkpoint_that_is_older_than_its_table_is_refused(
    spark: Any, tmp_path: Path, delivery: str
) -> None:
    write(spark, tmp_path, 0, 3, delivery=delivery)
    shutil.copytree(tmp_path / "cp", tmp_path / "backup")
    write(spark, tmp_path, 3, 5, delivery=delivery)
    shutil.rmtree(tmp_path / "cp")
    (tmp_path / "backup").rename(tmp_path / "cp")

    for _ in range(2):
        with pytest.raises(PipelineError, match="was set back, for example by a backup"):
            write(spark, tmp_path, 5, 9, delivery=delivery)
    assert ids(spark, tmp_path) == [0, 1, 2, 3, 4]


def test_what_is_for_streams_only_is_refused(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(
        PipelineError, match="trigger, group and dead_letters are for streaming frames"
    ):
        write(spark, tmp_path, 0, 1, trigger={"once": True})
    with pytest.raises(
        PipelineError, match="trigger, group and dead_letters are for streaming frames"
    ):
        write(spark, tmp_path, 0, 1, group="g")
    assert not (tmp_path / "table").exists()


@pytest.mark.full
def test_a_frame_may_replace_the_rows_of_its_keys(spark: Any, tmp_path: Path) -> None:
    def merge(*rows: tuple[int | None, str]) -> None:
        frame = spark.createDataFrame(rows, "id INT, word STRING")
        to_delta(frame, tmp_path / "table", checkpoint=tmp_path / "cp", keys=["id"])

    merge((1, "a"), (2, "b"))
    merge((2, "c"), (3, "d"))

    found = spark.read.format("delta").load(str(tmp_path / "table")).collect()
    assert sorted(map(tuple, found)) == [(1, "a"), (2, "c"), (3, "d")]
    with pytest.raises(PipelineError, match=r'the key column id is null: {"id":null,"word":"e"}'):
        merge((None, "e"))
    with pytest.raises(PipelineError, match=r'The key {"id":4} has records whose order is not'):
        merge((4, "f"), (4, "g"))
