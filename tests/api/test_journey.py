"""The journey request: its fields, its refusals and their messages."""

import asyncio
import base64
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from ottla.api.journey import KEY, handle_json, read_query
from ottla.api.table import find
from ottla.controller.image import PartitionState
from ottla.log.config import LogConfig
from ottla.log.open_file import OpenFiles
from ottla.log.opening import open_log
from ottla.records.build import build_batch
from ottla.records.header import iterate_headers
from ottla.records.record import Record
from ottla.replica.share_history import ShareHistory
from ottla.timelines.recorder import TimelineRecorder
from ottla.tracing.find_message import JourneyError, MessageQuery

NOW_MS = 5_000_000


class StillClock:
    def now_ms(self) -> int:
        return NOW_MS

    def monotonic_ms(self) -> int:
        return NOW_MS


class NoGroups:
    async def offsets_of(self, topic: str, partition: int, within_ms: int) -> dict[int, Any]:
        return {}

    async def share_groups_of(self, topic_id: UUID, partition: int) -> list[str]:
        return []


class Partitions:
    """The topics of one broker."""

    def __init__(self) -> None:
        self.by_topic: dict[str, list[Any]] = {}

    def of_topic(self, topic: str) -> list[Any]:
        return self.by_topic.get(topic, [])

    def get(self, topic: str, partition: int) -> Any:
        return None

    def topics(self) -> list[str]:
        return list(self.by_topic)


@pytest.fixture
def context(tmp_path: Path) -> Any:
    """A node with topic `t`: 0 is empty, 1 has keys a, b and a, 2 has the newer key c."""
    clock = StillClock()
    journey = TimelineRecorder(clock)
    partitions = Partitions()
    files = OpenFiles(8)
    for index, keys in enumerate(((), (b"a", b"b", b"a"), (b"c",))):
        log = open_log(str(tmp_path / f"t-{index}"), LogConfig(), files, now_ms=1000)
        timeline = journey.open(log, high_watermark=0, now_ms=clock.now_ms())
        if keys:
            batch = build_batch([Record(0, 1000 + index, key, b"v") for key in keys])
            log.append(batch, list(iterate_headers(batch)), leader_epoch=0, now_ms=1000)
            timeline.appended(0, len(keys) - 1, NOW_MS, "client", -1)
        partition = SimpleNamespace(
            topic="t",
            index=index,
            log=log,
            timeline=timeline,
            high_watermark=log.end_offset,
            leader=SimpleNamespace(followers={}),
        )
        partitions.by_topic.setdefault("t", []).append(partition)
    state = PartitionState(1, 0, (1,), (1,), 0)
    image = SimpleNamespace(partitions=[state] * 3, topic_id=UUID(int=7))
    node = SimpleNamespace(
        config=SimpleNamespace(id=1),
        clock=clock,
        timelines=journey,
        partitions=partitions,
        groups=NoGroups(),
        shared_partitions=SimpleNamespace(groups_of=lambda partition: [], history=ShareHistory()),
        image=SimpleNamespace(topics={"t": image}, topic={"t": image}.get, brokers={1: None}),
        peers=None,
    )
    return SimpleNamespace(broker=node)


def question(**more: Any) -> dict[str, Any]:
    return {"journey": 1, "topic": "t", **more}


def key(text: bytes) -> str:
    return base64.b64encode(text).decode()


def test_it_is_in_the_dispatch_table_and_takes_json() -> None:
    handler = find(KEY)
    assert handler is not None
    assert handler.takes_json


def test_a_request_is_parsed() -> None:
    assert read_query(question(partition=2, offset=5)) == MessageQuery("t", 2, 5, None, False)
    assert read_query(question(key=key(b"\xff"))) == MessageQuery("t", None, None, b"\xff", False)
    assert read_query(question(key="", all=True)) == MessageQuery("t", None, None, b"", False, True)
    assert read_query(question(latest=True)) == MessageQuery("t", None, None, None, True)


@pytest.mark.parametrize(
    "wrong",
    [
        {"journey": 2},
        {"topic": ""},
        {"topic": 5},
        {"partition": -1},
        {"partition": "0"},
        {"partition": 2**31},
        {"offset": 2**63},
        {"offset": True},
        {"offset": 1.5},
        {"key": "no base64!"},
        {"key": 7},
        {"key": key(bytes(70_000))},
        {"latest": "yes"},
        {"all": True},
        {"all": 1, "key": ""},
        {"latest": True, "offset": 3},
        {"key": "", "offset": 3},
    ],
)
def test_an_invalid_request_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(JourneyError) as refusal:
        read_query(question(**wrong))
    assert refusal.value.code == "bad_request"


async def test_the_journey_of_an_offset(context: Any) -> None:
    said = await handle_json(question(partition=1, offset=2), context)
    assert (said["partition"], said["offset"], said["state"]) == (1, 2, "stored")
    assert said["published"]["client_ids"] == ["client"]
    assert said["log"]["partitions"] == 3


async def test_the_journey_of_the_newest_record_of_a_key(context: Any) -> None:
    said = await handle_json(question(key=key(b"a")), context)
    assert (said["partition"], said["offset"]) == (1, 2)
    said = await handle_json(question(key=key(b"c"), partition=1), context)
    assert said["error"]["code"] == "key_not_found"
    assert said["error"]["searched"] == [
        {"partition": 1, "down_to_offset": 0, "whole": True, "has_removed": False}
    ]


async def test_all_records_of_a_key(context: Any) -> None:
    said = await handle_json(question(key=key(b"a"), all=True), context)
    assert [(one["partition"], one["offset"]) for one in said["messages"]] == [(1, 0), (1, 2)]
    assert all(one["whole"] for one in said["searched"])
    assert len(said["searched"]) == 3
    led_by(context, 2, 1, 1)
    said = await handle_json(question(key=key(b"c"), all=True), context)
    assert [one["partition"] for one in said["messages"]] == [2]
    assert said["elsewhere"] == [0]
    said = await handle_json(question(key=key(b"x"), all=True), context)
    assert said["error"]["code"] == "key_not_found"
    assert [one["partition"] for one in said["error"]["searched"]] == [1, 2]


async def test_the_journey_of_the_latest_record(context: Any) -> None:
    said = await handle_json(question(latest=True), context)
    assert (said["partition"], said["offset"]) == (2, 0)
    said = await handle_json(question(latest=True, partition=0), context)
    assert said["error"]["code"] == "empty"


async def test_errors_list_the_partitions_and_offsets(context: Any) -> None:
    ranges = [
        {"partition": 0, "start_offset": 0, "end_offset": 0},
        {"partition": 1, "start_offset": 0, "end_offset": 3},
        {"partition": 2, "start_offset": 0, "end_offset": 1},
    ]
    for asked in (question(), question(offset=1)):
        said = await handle_json(asked, context)
        assert said["error"]["code"] == "which_offset"
        assert said["error"]["partitions"] == ranges
    said = await handle_json(question(partition=3, offset=0), context)
    assert said["error"]["code"] == "unknown_partition"
    said = await handle_json({**question(offset=0), "topic": "x"}, context)
    assert (said["error"]["code"], said["error"]["topics"]) == ("unknown_topic", ["t"])


async def test_a_damaged_log_is_an_error_response(context: Any) -> None:
    log = context.broker.partitions.of_topic("t")[1].log
    Path(log.active.path).write_bytes(b"\xff" * log.active.size_bytes)
    said = await handle_json(question(key=key(b"a"), partition=1), context)
    assert said["error"]["code"] == "storage_error"


async def test_many_requests_are_answered_in_turn(context: Any) -> None:
    asked = [handle_json(question(partition=1, offset=at % 3), context) for at in range(20)]
    said = await asyncio.gather(*asked)
    assert [one["offset"] for one in said] == [at % 3 for at in range(20)]


def led_by(context: Any, *leaders: int) -> None:
    states = [PartitionState(leader, 5, (1, 2), (1, 2), 0) for leader in leaders]
    context.broker.image.topic("t").partitions[:] = states


async def test_a_partition_of_another_leader_is_refused(context: Any) -> None:
    led_by(context, 1, 2, -1)
    error = (await handle_json(question(partition=1, offset=0), context))["error"]
    assert (error["code"], error["leader"]) == ("not_leader", 2)
    error = (await handle_json(question(partition=2, offset=0), context))["error"]
    assert (error["code"], error["leader"]) == ("not_leader", None)
    assert "has no leader" in error["message"]
    assert (await handle_json(question(partition=3), context))["error"][
        "code"
    ] == "unknown_partition"


async def test_without_a_partition_the_response_lists_those_led_elsewhere(context: Any) -> None:
    led_by(context, 2, 1, 2)
    said = await handle_json(question(latest=True), context)
    assert (said["partition"], said["offset"]) == (1, 2)
    assert said["elsewhere"] == [0, 2]
    said = await handle_json(question(offset=1), context)
    assert said["error"]["code"] == "which_offset"
    assert [one["partition"] for one in said["error"]["partitions"]] == [1]
    led_by(context, 2, 2, 2)
    said = await handle_json(question(latest=True), context)
    assert said["error"]["code"] == "not_leader"
    assert said["elsewhere"] == [0, 1, 2]


async def test_the_leader_reports_the_replicas(context: Any) -> None:
    led_by(context, 1, 1, 1)
    replicated = (await handle_json(question(partition=1, offset=0), context))["replicated"]
    assert (replicated["leader"], replicated["leader_epoch"]) == (1, 5)
    assert [copy["broker"] for copy in replicated["copies"]] == [1, 2]


async def test_a_topic_deleted_during_the_search_is_unknown(
    context: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition = context.broker.partitions.of_topic("t")[1]
    told = context.broker.timelines.history

    async def deleting(*arguments: Any) -> Any:
        found = await told(*arguments)
        partition.log.deleted(partition.log.folder + "-delete")
        return found

    monkeypatch.setattr(context.broker.timelines, "history", deleting)
    answer = await handle_json(question(partition=1, offset=0), context)
    assert answer["error"] == {
        "code": "unknown_topic",
        "message": "topic 't' was deleted in the meantime",
    }
