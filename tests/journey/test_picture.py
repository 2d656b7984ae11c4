"""The journey as a picture."""

from __future__ import annotations

from typing import Any

from ottla.journey.picture import (
    APPENDED,
    DONE,
    LOST,
    MAX_LANES,
    READ,
    REPLICATED,
    RETENTION,
    UNKNOWN,
    WAITING,
    Scale,
    picture,
)

BEGIN_MS = 1_700_000_000_000


def when(since: int | None, until: int | None) -> dict[str, Any]:
    def at(ms: int | None) -> int | None:
        return None if ms is None else BEGIN_MS + ms

    return {"since_ms": at(since), "until_ms": at(until), "exact": since == until}


def group(name: str, state: str = "read", **more: Any) -> dict[str, Any]:
    return {"group": name, "state": state, "when": when(2000, 2000), "doubt": None, **more}


def document(**more: Any) -> dict[str, Any]:
    return {
        "state": "stored",
        "asked_ms": BEGIN_MS + 100_000,
        "published": {
            "timestamp_ms": BEGIN_MS,
            "timestamp_type": "CreateTime",
            "client_ids": ["shop"],
        },
        "partition_chosen": {"partition": 0, "partitions": 3, "why": "murmur2 chooses it"},
        "appended": {"when": when(30, 30), "broker": 1},
        "replicated": {"committed": True, "replicas": 1, "when": when(40, 60), "copies": []},
        "delivered": [],
        "read": [],
        "retention": {"may_be_removed": False, "not_before_ms": BEGIN_MS + 3_700_000},
        "removed": None,
        **more,
    }


def test_the_steps_in_their_order_on_one_axis() -> None:
    read = [group("billing"), group("slow", "not_yet", when=when(None, None))]
    found = picture(document(read=read))
    assert [(each.step, each.name, each.tone) for each in found.lanes] == [
        ("Published", "shop", DONE),
        ("Partition chosen", "0 of 3", DONE),
        (APPENDED, "broker 1", DONE),
        (REPLICATED, "high watermark", DONE),
        (READ, "billing", DONE),
        (READ, "slow", WAITING),
        (RETENTION, "stays", UNKNOWN),
    ]
    published, chosen, appended, replicated, billing, slow, retention = found.lanes
    assert published.begin == published.end == 0
    assert chosen.begin is None
    assert appended.begin is not None
    assert replicated.begin is not None
    assert replicated.end is not None
    assert 0 < appended.begin < replicated.begin < replicated.end < (billing.begin or 0) < 1
    assert (slow.begin, slow.end) == (appended.begin, 1.0)
    assert retention.said == "in 1 h 0 min at the earliest"
    assert found.begin_ms == BEGIN_MS


def test_a_side_that_is_not_known_is_open() -> None:
    found = picture(document(read=[group("g", when=when(None, 2000), doubt="first_commit")]))
    lane = next(each for each in found.lanes if each.step == READ)
    assert lane.begin == 0
    assert lane.said == "passed it"


def test_replicas_pipelines_and_what_was_lost() -> None:
    copies = [
        {"broker": 1, "state": "leader", "when": when(30, 30), "fetched_to": None},
        {"broker": 2, "state": "copied", "when": when(50, 50), "fetched_to": None},
        {"broker": 3, "state": "not_yet", "when": None, "fetched_to": 4},
    ]
    one = {
        "query": "to_delta", "group": "p", "when": when(900, 900), "rejected": None,
        "delta": {"first_version": 7, "last_version": 7}, "first_batch": 3, "last_batch": 3,
    }  # fmt: skip
    found = picture(
        document(
            replicated={"committed": False, "replicas": 3, "when": None, "copies": copies},
            delivered=[one],
            read=[group("p"), group("late", "missed")],
            state="removed",
            removed={"when": when(90_000, 95_000)},
        )
    )
    assert [(each.name, each.tone, each.said) for each in found.lanes[3:]] == [
        ("broker 2", DONE, ""),
        ("broker 3", WAITING, "has not copied it yet"),
        ("high watermark", WAITING, "has not reached it"),
        ("pipeline to_delta", DONE, "Delta version 7, batch 3"),
        ("late", LOST, "missed it"),
        ("removed", LOST, ""),
    ]


def test_what_is_not_written_yet_has_no_time() -> None:
    found = picture({"state": "not_yet_written", "asked_ms": BEGIN_MS, "read": []})
    assert [(each.step, each.tone, each.begin) for each in found.lanes] == [
        (APPENDED, WAITING, None)
    ]
    assert found.ticks == []


def test_more_readers_than_fit_are_counted() -> None:
    found = picture(document(read=[group(f"g{number}") for number in range(1000)]))
    assert len(found.lanes) == MAX_LANES
    assert found.more == 1005 - MAX_LANES


def test_the_axis_grows_by_powers_of_ten() -> None:
    scale = Scale(0, 999_999)
    assert [scale.at(each) for each in (0, 9, 99, 999, 999_999)] == [0, 0.1667, 0.3333, 0.5, 1]
    assert [name for _, name in scale.ticks()] == [
        "0", "10 ms", "100 ms", "1 s", "10 s", "1 min", "10 min",
    ]  # fmt: skip
    assert Scale(5, 5).at(5) == 0
