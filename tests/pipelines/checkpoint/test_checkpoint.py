"""Where a query stands, by Spark's own files."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ottla.pipelines.checkpoint.checkpoint import Checkpoint
from ottla.pipelines.checkpoint.next_batch import Planned
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.spark.jvm.files import Files

pytestmark = pytest.mark.spark


def plan(folder: Path, batch: int, *offsets: dict[str, Any]) -> None:
    (folder / "offsets").mkdir(exist_ok=True)
    lines = ["v1", "{}", *(json.dumps(one) for one in offsets)]
    (folder / "offsets" / str(batch)).write_text("\n".join(lines))


def done(folder: Path, batch: int) -> None:
    (folder / "commits").mkdir(exist_ok=True)
    (folder / "commits" / str(batch)).write_text('v1\n{"nextBatchWatermarkMs":0}')


def test_it_stands_where_the_last_batch_that_is_delivered_ends(spark: Any, tmp_path: Path) -> None:
    checkpoint = Checkpoint(Files(spark, str(tmp_path)))
    assert (checkpoint.planned(), checkpoint.begins()) == (None, {})
    assert checkpoint.plans("cp") == Planned("cp", 0)

    (tmp_path / "sources" / "0").mkdir(parents=True)
    (tmp_path / "sources" / "0" / "0").write_bytes(b'\0v1\n{"t":{"0":3}}')
    plan(tmp_path, 0, {"t": {"0": 5, "1": 2}})
    assert checkpoint.begins() == {"t": {0: 3, 1: 0}}
    assert checkpoint.begins(is_delivered=True) == {"t": {0: 5, 1: 2}}
    assert checkpoint.plans("cp") == Planned("cp", 0, {"t": {0: 3, 1: 0}}, {"t": {0: 5, 1: 2}})

    done(tmp_path, 0)
    assert checkpoint.plans("cp") == Planned("cp", 1, {"t": {0: 5, 1: 2}})
    plan(tmp_path, 1, {"t": {"0": 9, "1": 2}})
    assert checkpoint.begins() == {"t": {0: 5, 1: 2}}
    done(tmp_path, 1)
    assert checkpoint.begins() == {"t": {0: 9, 1: 2}}
    assert checkpoint.position() == ("", 1, 1)


def test_a_topic_of_two_sources_stands_at_the_first_of_both(spark: Any, tmp_path: Path) -> None:
    checkpoint = Checkpoint(Files(spark, str(tmp_path)))
    plan(tmp_path, 0, {"t": {"0": 5}}, {"t": {"0": 4}, "u": {"0": 1}}, {"version": 1})
    done(tmp_path, 0)

    assert checkpoint.begins() == {"t": {0: 4}, "u": {0: 1}}
    assert checkpoint.count_sources() == 3
    assert checkpoint.topics_by_number() == [["t"], ["t", "u"], []]


def test_a_note_counts_for_its_query_alone(spark: Any, tmp_path: Path) -> None:
    checkpoint = Checkpoint(Files(spark, str(tmp_path)))
    assert checkpoint.noted("q") == -1
    checkpoint.note("q", 0)
    checkpoint.note("q", 1)
    assert (checkpoint.noted("q"), checkpoint.noted("other")) == (1, -1)


def test_the_target_must_have_what_is_done_since_at_most_once_numbers_its_batches(
    spark: Any, tmp_path: Path
) -> None:
    checkpoint = Checkpoint(Files(spark, str(tmp_path)))
    done(tmp_path, 3)
    assert checkpoint.promised("q") == 3, "another delivery wrote it"
    checkpoint.files.write("ottla-noted.json", '{"version": 1, "id": "q", "batch": 3}')
    assert checkpoint.promised("q") is None, "an earlier version wrote it"
    checkpoint.note("q", 4)
    assert checkpoint.promised("q") is None
    checkpoint.note("q", 3)  # batch 4 was taken back
    assert checkpoint.promised("q") is None
    checkpoint.note("q", 4)
    done(tmp_path, 4)
    assert checkpoint.promised("q") == 4


def test_state_is_moved_away_also_after_a_crash_in_the_middle(spark: Any, tmp_path: Path) -> None:
    checkpoint = Checkpoint(Files(spark, str(tmp_path)))
    plan(tmp_path, 0, {"t": {"0": 5}})
    done(tmp_path, 0)
    (tmp_path / "replaced-1").mkdir()
    (tmp_path / "offsets").rename(tmp_path / "replaced-1" / "offsets")

    checkpoint.replace(1)

    assert sorted(p.name for p in (tmp_path / "replaced-1").iterdir()) == ["commits", "offsets"]
    assert checkpoint.planned() is None
    assert checkpoint.next_replaced() == 2


def test_when_a_batch_that_was_cut_off_began(spark: Any, tmp_path: Path) -> None:
    checkpoint = Checkpoint(Files(spark, str(tmp_path)))
    assert checkpoint.begun_ms() is None
    for batch, begun_ms in ((0, 1_000), (1, 2_000)):
        (tmp_path / "offsets").mkdir(exist_ok=True)
        text = f'v1\n{{"batchWatermarkMs":0,"batchTimestampMs":{begun_ms},"conf":{{}}}}\n{{}}\n'
        (tmp_path / f"offsets/{batch}").write_text(text)
    (tmp_path / "commits").mkdir()
    (tmp_path / "commits/0").write_text("v1\n{}\n")
    assert checkpoint.begun_ms() == 2_000
    (tmp_path / "commits/1").write_text("v1\n{}\n")
    assert checkpoint.begun_ms() is None


def whole(folder: Path) -> Checkpoint:
    """A checkpoint whose batch 1 was cut off."""
    (folder / "metadata").write_text('{"id":"q"}')
    plan(folder, 0, {"t": {"0": 5}})
    done(folder, 0)
    plan(folder, 1, {"t": {"0": 9}})
    return Checkpoint(Files(SparkSession.active(), str(folder)))


@pytest.mark.parametrize("text", ["", "v1\n{}", 'v1\n{}\n{"t":{"0":', None])
@pytest.mark.parametrize("name", ["metadata", "offsets/0", "offsets/1", "commits/0"])
def test_a_file_of_sparks_that_is_damaged_or_missing_is_named(
    spark: Any, tmp_path: Path, name: str, text: str | None
) -> None:
    checkpoint = whole(tmp_path)
    checkpoint.check()
    if text is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_text(text)

    if (name, text) in (("commits/0", None), ("commits/0", "v1\n{}"), ("offsets/1", None)):
        checkpoint.check()  # an earlier state, which is compared with the target
        return
    with pytest.raises(PipelineError, match=f"{name}.* Restore the whole checkpoint, or use a new"):
        checkpoint.check()


def test_a_file_of_sparks_is_not_as_its_checksum_says(spark: Any, tmp_path: Path) -> None:
    checkpoint = whole(tmp_path)
    system = checkpoint.files._system
    path = checkpoint.files._at("offsets/1")
    stream = system.create(path, True)
    stream.write(bytearray(b'v1\n{}\n{"t":{"0":9}}'))
    stream.close()
    assert (tmp_path / "offsets" / ".1.crc").exists()
    checkpoint.check()
    (tmp_path / "offsets" / "1").write_text('v1\n{}\n{"t":{"0":8}}')

    with pytest.raises(PipelineError, match="offsets/1 is damaged or missing"):
        checkpoint.check()


def test_a_folder_that_was_copied_while_its_query_ran_lacks_batches(
    spark: Any, tmp_path: Path
) -> None:
    checkpoint = whole(tmp_path)
    done(tmp_path, 1)
    done(tmp_path, 2)

    with pytest.raises(PipelineError, match="has batch 2 as done, and plans up to 1 alone"):
        checkpoint.check()
