"""Which commit of a Delta table delivered a message."""

from pathlib import Path

import pytest
from tests.tracing.delta_commits import CLUSTER, TOPIC_ID, write_commit

from ottla.tracing.delta_log import find_delivery, read_commits


def version_of(table: Path, offset: int) -> tuple[int, bool] | None:
    commits = read_commits(table, "flights", TOPIC_ID, CLUSTER, 0)
    found = find_delivery(commits, offset)
    return None if found is None else (found.commit.version, found.is_exact)


def test_a_version_is_the_first_whose_batch_ends_beyond_the_offset(tmp_path: Path) -> None:
    write_commit(tmp_path, 1, 0, 10)
    write_commit(tmp_path, 2, 1, 20)
    (tmp_path / "_delta_log" / f"{3:020d}.json").write_text(
        '{"commitInfo":{"operation":"OPTIMIZE"}}'
    )
    write_commit(tmp_path, 4, 2, 30)
    (tmp_path / "_delta_log" / "_last_checkpoint").write_text("{}")
    assert [version_of(tmp_path, offset) for offset in (0, 9, 10, 19, 29, 30)] == [
        (1, True),
        (1, True),
        (2, True),
        (2, True),
        (4, True),
        None,
    ]


def test_a_later_log_start_gives_a_bound(tmp_path: Path) -> None:
    write_commit(tmp_path, 8, 5, 50)
    write_commit(tmp_path, 9, 6, 60)
    assert version_of(tmp_path, 3) == (8, False)
    assert version_of(tmp_path, 55) == (9, True)
    found = find_delivery(read_commits(tmp_path, "flights", TOPIC_ID, CLUSTER, 0), 3)
    assert found is not None
    assert (found.commit.version, found.commit.at_ms, found.is_exact) == (8, 8_000, False)


def test_a_topic_that_was_created_again_is_another_one(tmp_path: Path) -> None:
    write_commit(tmp_path, 1, 0, 100, topic_id="the former")
    write_commit(tmp_path, 2, 1, 5)
    # Batch 1 may have begun anywhere: what lies before it was another topic's.
    assert version_of(tmp_path, 3) == (2, False)
    assert version_of(tmp_path, 50) is None


@pytest.mark.parametrize(
    "bad",
    [
        "{",
        '{"ottla.pipeline": 2}',
        "[]",
        '"x"',
        '{"ottla.pipeline": 1}',
        pytest.param("[" * 5000, id="deep"),
    ],
)
def test_commits_of_other_writers_are_ignored(tmp_path: Path, bad: str) -> None:
    write_commit(tmp_path, 1, 0, 10)
    write_commit(tmp_path, 2, 1, 20, userMetadata=bad)
    (tmp_path / "_delta_log" / f"{3:020d}.json").write_bytes(b"\xff\x00")
    assert version_of(tmp_path, 5) == (1, True)


def test_a_folder_without_a_log(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        next(read_commits(tmp_path / "nowhere", "flights", TOPIC_ID, CLUSTER, 0))
