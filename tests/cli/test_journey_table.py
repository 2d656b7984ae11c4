"""The Delta version of a message, from the table's own log."""

import json
from pathlib import Path

import pytest

from ottla.cli.failures import Failed
from ottla.cli.journey_table import add_tables, find_delivery, read_commits, table_document

TOPIC_ID, CLUSTER = "topic-id", "cluster-id"


def write(
    table: Path, version: int, batch: int, offset: int, topic_id: str = TOPIC_ID, **info: object
) -> None:
    log = table / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    said = {
        "ottla.pipeline": 1,
        "query": "flights",
        "id": "id-1",
        "batch": batch,
        "cluster": CLUSTER,
        "topics": {"flights": {"id": topic_id, "offsets": {"0": offset}}},
    }
    commit = {"timestamp": 1_000 * version, "userMetadata": json.dumps(said), **info}
    lines = ['{"protocol":{}}', json.dumps({"commitInfo": commit}), '{"add":{}}']
    (log / f"{version:020d}.json").write_text("\n".join(lines))


def version_of(table: Path, offset: int) -> tuple[int, bool] | None:
    commits = read_commits(table, "flights", TOPIC_ID, CLUSTER, 0)
    found = find_delivery(commits, offset)
    return None if found is None else (found.commit.version, found.is_exact)


def test_a_version_is_the_first_whose_batch_ends_beyond_the_offset(tmp_path: Path) -> None:
    write(tmp_path, 1, 0, 10)
    write(tmp_path, 2, 1, 20)
    (tmp_path / "_delta_log" / f"{3:020d}.json").write_text(
        '{"commitInfo":{"operation":"OPTIMIZE"}}'
    )
    write(tmp_path, 4, 2, 30)
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
    write(tmp_path, 8, 5, 50)
    write(tmp_path, 9, 6, 60)
    assert version_of(tmp_path, 3) == (8, False)
    assert version_of(tmp_path, 55) == (9, True)
    found = find_delivery(read_commits(tmp_path, "flights", TOPIC_ID, CLUSTER, 0), 3)
    assert found is not None
    document = table_document("/lake/flights", found)
    assert document["when"] == {"since_ms": None, "until_ms": 8_000, "exact": False}
    assert (document["delta"]["version"], document["delta"]["last_version"]) == (None, 8)


def test_a_topic_that_was_created_again_is_another_one(tmp_path: Path) -> None:
    write(tmp_path, 1, 0, 100, topic_id="the former")
    write(tmp_path, 2, 1, 5)
    # Batch 1 may have begun anywhere: what lies before it was another topic's.
    assert version_of(tmp_path, 3) == (2, False)
    assert version_of(tmp_path, 50) is None


@pytest.mark.parametrize(
    "bad", ["{", '{"ottla.pipeline": 2}', "[]", '"x"', '{"ottla.pipeline": 1}']
)
def test_commits_of_other_writers_are_ignored(tmp_path: Path, bad: str) -> None:
    write(tmp_path, 1, 0, 10)
    write(tmp_path, 2, 1, 20, userMetadata=bad)
    (tmp_path / "_delta_log" / f"{3:020d}.json").write_bytes(b"\xff\x00")
    assert version_of(tmp_path, 5) == (1, True)


def test_a_journey_gets_versions_from_the_tables(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    write(one, 1, 0, 10)
    write(two, 1, 0, 3)
    document = {"topic": "flights", "partition": 0, "offset": 7, "delivered": []}
    (missing,) = add_tables(document, [one, two], TOPIC_ID, CLUSTER)
    assert missing.startswith(f"{two}: none of the last")
    (found,) = document["delivered"]
    assert (found["group"], found["delta"]["table"], found["delta"]["version"]) == (
        None,
        str(one),
        1,
    )
    with pytest.raises(FileNotFoundError):
        next(read_commits(tmp_path / "nowhere", "flights", TOPIC_ID, CLUSTER, 0))
    with pytest.raises(Failed, match="is not a Delta table: no such file"):
        add_tables(document, [tmp_path / "nowhere"], TOPIC_ID, CLUSTER)
