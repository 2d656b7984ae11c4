"""Which version of a table holds which batch."""

import json
from pathlib import Path

import pytest

from ottla.pipelines.sinks.delta_log import DeltaLog

pytestmark = pytest.mark.spark


def commit(table: Path, version: int, app_id: str | None = None, batch: int | None = None) -> None:
    log = table / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    actions: list[dict[str, object]] = [{"commitInfo": {"txnId": "q"}}]
    if app_id is not None:
        actions.append({"txn": {"appId": app_id, "version": batch}})
    text = "\n".join(json.dumps(action) for action in actions)
    (log / f"{version:020d}.json").write_text(text)


def test_a_batch_is_found_by_writer_and_number(spark, tmp_path: Path) -> None:
    for version, batch in enumerate([0, 1, 2]):
        commit(tmp_path, version, "q", batch)
    commit(tmp_path, 3, "other", 2)
    commit(tmp_path, 4)

    log = DeltaLog(spark, str(tmp_path))

    assert log.latest() == 4
    assert log.find("q", 2) == 2
    assert log.find("q", 0) == 0
    assert log.find("q", 3) is None
    assert log.find("q", 0, after=0) is None
    assert log.find("q", None) == 2
    assert log.reaches_back()


def test_new_commits_are_seen(spark, tmp_path: Path) -> None:
    log = DeltaLog(spark, str(tmp_path))
    assert log.latest() == -1
    commit(tmp_path, 0, "q", 0)
    assert log.latest() == 0
    assert log.find("q", 0) == 0


def test_a_log_whose_beginning_is_cleaned_up_is_read_from_its_checkpoint(
    spark, tmp_path: Path
) -> None:
    for version in (20, 21):
        commit(tmp_path, version, "q", version)
    (tmp_path / "_delta_log" / "_last_checkpoint").write_text('{"version":20,"size":3}')

    log = DeltaLog(spark, str(tmp_path))

    assert log.latest() == 21
    assert log.find("q", 20) == 20
    assert log.find("q", 7) is None
    assert not log.reaches_back()


def test_a_folder_of_other_files_is_no_table(spark, tmp_path: Path) -> None:
    (tmp_path / "_hidden").touch()
    log = DeltaLog(spark, str(tmp_path))
    assert not log.holds_other_files()
    (tmp_path / "data.parquet").touch()
    assert log.holds_other_files()
    assert not log.is_delta()
    commit(tmp_path, 0)
    assert not log.holds_other_files()
