"""The request for a partition's segments: its fields, its refusals, long logs."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.api import segments
from ottla.api.segments import KEY, handle_json
from ottla.api.table import find
from ottla.log.config import LogConfig
from ottla.log.errors import RebuildingError
from ottla.log.log import Log
from ottla.log.open_file import OpenFiles
from ottla.log.opening import open_log
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.build import build_batch
from ottla.records.header import iterate_headers
from ottla.records.record import Record

REQUEST = {"segments": 1, "topic": "t", "partition": 0}


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """Twelve segments of a batch each."""
    config = LogConfig(segment_bytes=80, retention_ms=1000)
    opened = open_log(str(tmp_path / "t-0"), config, OpenFiles(8), now_ms=1000)
    for at in range(12):
        batch = build_batch([Record(0, 5000 + at, b"k", b"v")])
        opened.append(batch, list(iterate_headers(batch)), leader_epoch=0, now_ms=1000)
    assert len(opened.segments) == 12
    return opened


@pytest.fixture
def context(log: Log) -> Any:
    def find_partition(topic: str, number: int) -> Any:
        if (topic, number) != ("t", 0):
            raise ApiError(ErrorCode.unknown_topic_or_partition)
        return SimpleNamespace(log=log)

    partitions = SimpleNamespace(find=find_partition)
    return SimpleNamespace(
        broker=SimpleNamespace(partitions=partitions, config=SimpleNamespace(id=3))
    )


def test_it_is_in_the_dispatch_table_and_takes_json() -> None:
    handler = find(KEY)
    assert handler is not None
    assert handler.takes_json


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"segments": 2}, "bad_request"),
        ({"topic": ""}, "bad_request"),
        ({"topic": 5}, "bad_request"),
        ({"partition": -1}, "bad_request"),
        ({"partition": True}, "bad_request"),
        ({"partition": 1}, "unknown_partition"),
        ({"topic": "other"}, "unknown_partition"),
    ],
)
async def test_an_invalid_request_is_refused(
    context: Any, wrong: dict[str, Any], code: str
) -> None:
    assert (await handle_json(REQUEST | wrong, context))["error"]["code"] == code


async def test_segments_are_listed_with_when_they_go(context: Any, log: Log) -> None:
    answer = await handle_json(REQUEST, context)
    listed = answer.pop("listed")
    assert answer == {
        "segments": 1, "broker": 3, "start_offset": 0, "end_offset": 12, "count": 12,
    }  # fmt: skip
    assert [each["base_offset"] for each in listed] == list(range(12))
    assert [each["next_offset"] for each in listed] == list(range(1, 13))
    assert [each["size_bytes"] for each in listed] == [each.size_bytes for each in log.segments]
    assert [each["removed_ms"] for each in listed] == [6000 + at for at in range(12)]
    assert [each["is_active"] for each in listed] == [False] * 11 + [True]


async def test_of_a_long_log_the_oldest_and_the_active_one(
    context: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "MAX_LISTED", 4)
    answer = await handle_json(REQUEST, context)
    assert answer["count"] == 12
    assert [each["base_offset"] for each in answer["listed"]] == [0, 1, 2, 11]
    assert answer["listed"][2]["removed_ms"] == 6002


async def test_a_time_that_is_not_known_now(log: Log) -> None:
    class Rebuilding:
        base_offset, size_bytes = 0, 5

        def largest_timestamp(self) -> int:
            raise RebuildingError("an index", None)  # type: ignore[arg-type]

    some: Any = SimpleNamespace(segments=[Rebuilding(), log.active], end_offset=12)
    found = await segments.facts_of(some)
    assert [each.largest_ms for each in found] == [None, 5011]
