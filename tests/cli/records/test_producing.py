"""The topic that commands produce to."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.client.fake_cluster import FakeCluster

from ottla.cli.failures import Failed
from ottla.cli.records.producing import count_partitions, sending_settings
from ottla.client.metadata import METADATA


def test_only_acks_of_all_are_idempotent() -> None:
    assert sending_settings("zstd", "all")["enable.idempotence"] is True
    assert sending_settings("none", "1")["enable.idempotence"] is False


def test_a_topic_that_exists_is_asked_for_once() -> None:
    fake = FakeCluster()
    assert count_partitions(fake.client(), "t", create=False) == 3
    assert len(fake.requests(METADATA)) == 1


@pytest.mark.parametrize(
    ("is_file", "hint"),
    [
        (True, "To send the lines of this file: ottla produce TOPIC --file "),
        (False, "To create it: ottla topic create "),
    ],
)
def test_a_file_in_the_place_of_the_topic(tmp_path: Path, is_file: bool, hint: str) -> None:
    file = tmp_path / "rows.jsonl"
    if is_file:
        file.touch()
    with pytest.raises(Failed, match="there is no topic") as raised:
        count_partitions(FakeCluster().client(), str(file), create=False)
    assert raised.value.hint is not None
    assert raised.value.hint.startswith(f"{hint}{file}")
