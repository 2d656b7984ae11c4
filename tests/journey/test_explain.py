"""The document of a journey, from facts that a test makes up: no broker, no file, no clock."""

import json
from dataclasses import replace
from typing import Any

import pytest

from ottla.journey.explain import content, explain
from ottla.journey.facts import Facts, LogLocation, Position
from ottla.journey.key_elsewhere import Hit, KeyElsewhere
from ottla.journey.record_in_batch import find_record
from ottla.journey.retention_rules import SegmentFacts
from ottla.journey.table_rows import KeyHistory, KeyRecord
from ottla.journey.transactions import EndMarker, OpenTransaction, TransactionFacts
from ottla.log.config import FOREVER_MS, LogConfig
from ottla.records.build import build_batch
from ottla.records.compression import Compression
from ottla.records.header import read_header
from ottla.records.record import Record
from ottla.timelines.destination import Destination
from ottla.timelines.step import COPIED, Kind, Opening, Step, Versions

SEGMENT = SegmentFacts(0, 100, 5000, 1010, True, 10_000)
RECORDS = [
    Record(0, 1000, b"N14228", b'{"flight": 1}', (("source", b"nyc"),)),
    Record(0, 1010, None, None),
]
STEPS = [
    Step(Kind.END_AND_HIGH, ((7, "airport"),), 2000, 2000, 0, 50, 50),
    Step(Kind.GROUP, "readers", 3000, 3050, 0, 30, 50),
    Step(Kind.DELIVERED, ("p", "q", "/t"), 4000, 4000, 0, 50, 50, False, Versions(3, 3, 9, 9)),
    Step(Kind.GROUP, "p", 4000, 4000, 0, 50, 50),
]


def location_of(offset: int, **batch: Any) -> LogLocation:
    how = {"base_offset": 40, "producer_id": 7, "producer_epoch": 1, "base_sequence": 5, **batch}
    data = build_batch(RECORDS, **how)
    header = read_header(data)
    return LogLocation(
        segment=SEGMENT,
        folder="flights-2",
        log_file="00000000000000000000.log",
        index_file="00000000000000000000.index",
        index_entry=(30, 4000),
        batch_position=4096,
        header=header,
        record=find_record(header, data, offset),
    )


def facts(offset: int = 40, **more: Any) -> Facts:
    known = Facts(
        topic="flights",
        partition=2,
        offset=offset,
        now_ms=9000,
        broker_id=1,
        partition_count=3,
        replica_count=1,
        start_offset=0,
        end_offset=50,
        high_watermark=50,
        config=LogConfig(),
        segments=[SEGMENT],
        steps=STEPS,
        opening=Opening(1500, 0, 0),
        positions={"readers": Position(50, ""), "p": Position(50, ""), "slow": Position(38, "")},
        location=location_of(offset) if offset in (40, 41) else None,
    )
    return replace(known, **more)


def test_a_stored_message_has_all_six_steps() -> None:
    said = explain(facts())
    assert said["state"] == "stored"
    assert said["published"]["client_ids"] == ["airport"]
    assert said["published"]["producer"] == {"id": 7, "epoch": 1, "sequence": 5}
    assert said["published"]["timestamp_ms"] == 1000
    assert said["published"]["timestamp_type"] == "CreateTime"
    assert said["published"]["headers"] == [
        {"name": "source", "value": {"size_bytes": 3, "cut": False, "text": "nyc"}}
    ]
    assert said["partition_chosen"]["partitions"] == 3
    assert said["appended"]["when"] == {"since_ms": 2000, "until_ms": 2000, "exact": True}
    assert said["appended"]["segment"]["file"] == "flights-2/00000000000000000000.log"
    assert said["appended"]["index"]["entry"] == {"offset": 30, "position": 4000}
    assert said["appended"]["batch"]["position"] == 4096
    assert said["appended"]["record"]["number"] == 0
    assert said["replicated"]["when"]["exact"]
    assert said["retention"]["not_before_ms"] == 1010 + 7 * 86_400_000
    assert said["removed"] is None
    assert json.loads(json.dumps(said)) == said


def test_groups_that_have_read_it_and_groups_that_have_not() -> None:
    readers, pipeline, slow = explain(facts())["read"]
    assert (readers["group"], readers["state"]) == ("readers", "read")
    assert readers["when"] == {"since_ms": 3000, "until_ms": 3050, "exact": False}
    assert (pipeline["group"], pipeline["state"]) == ("p", "read")
    assert slow == {
        "group": "slow",
        "state": "not_yet",
        "committed_offset": 38,
        "committed_ms": None,
        "behind": 3,
    }


def test_the_delta_version_that_holds_it() -> None:
    (delivered,) = explain(facts())["delivered"]
    assert delivered["query"] == "q"
    assert delivered["batch"] == 3
    assert delivered["delta"] == {
        "table": "/t",
        "version": 9,
        "first_version": 9,
        "last_version": 9,
    }


def test_if_steps_are_lost_the_last_commit_bounds_the_version() -> None:
    told = '{"ottla.pipeline": 1, "query": "q", "batch": 8, "delta": {"table": "/t", "version": 8}}'
    said = explain(facts(steps=[], positions={"p": Position(50, told)}))
    (delivered,) = said["delivered"]
    assert delivered["delta"] == {
        "table": "/t",
        "version": None,
        "first_version": 0,
        "last_version": 8,
    }
    assert delivered["when"] == {"since_ms": None, "until_ms": None, "exact": False}
    assert said["read"][0]["state"] == "read"
    waiting = explain(facts(steps=[], positions={"p": Position(40, told)}))
    assert waiting["delivered"] == []


def test_a_group_with_a_note_about_a_run_waits_for_nothing() -> None:
    started = '{"ottla.pipeline":1,"query":"q","id":"","run":{"id":"r","state":"failed"}}'
    asked = '{"ottla.stop":1,"run":"r","by":"me","at_ms":7}'
    running = '{"ottla.pipeline":1,"query":"q","id":"u","run":{"id":"r","state":"running"}}'
    positions = {
        "q.run": Position(0, started),
        "q.stop": Position(0, asked),
        "q": Position(0, running),
    }
    said = explain(facts(steps=[], positions=positions))
    assert [(one["group"], one["state"]) for one in said["read"]] == [("q", "not_yet")]


def test_an_offset_that_is_not_written_yet() -> None:
    said = explain(facts(60))
    assert said["state"] == "not_yet_written"
    assert [said[part] for part in ("published", "appended", "replicated", "retention")] == [
        None
    ] * 4
    assert {group["behind"] for group in said["read"]} == {11, 23}


def test_a_removed_record() -> None:
    steps = [*STEPS, Step(Kind.START, "retention.ms", 8000, 8000, 0, 45, 45)]
    said = explain(facts(30, start_offset=45, steps=steps))
    assert said["state"] == "removed"
    assert said["removed"] == {
        "when": {"since_ms": 8000, "until_ms": 8000, "exact": True},
        "reason": "retention.ms",
    }
    assert said["appended"]["when"]["exact"]
    assert "segment" not in said["appended"]
    lost = explain(facts(30, start_offset=45))["removed"]
    assert lost["reason"] is None


def test_a_group_that_had_not_reached_a_removed_record_has_missed_it() -> None:
    steps = [*STEPS, Step(Kind.START, "retention.ms", 8000, 8000, 0, 45, 45)]
    positions = {"readers": Position(50, ""), "slow": Position(38, "")}
    said = explain(facts(39, start_offset=45, steps=steps, positions=positions))
    slow = next(one for one in said["read"] if one["group"] == "slow")
    assert (slow["state"], slow["behind"], slow["committed_offset"]) == ("missed", 2, 38)
    compacted = explain(facts(45, positions=positions))["read"]
    assert {one["group"]: one["state"] for one in compacted}["slow"] == "missed"


def test_a_commit_after_the_removal_may_have_skipped_the_record() -> None:
    late = Step(Kind.GROUP, "late", 8500, 8500, 20, 50, 50)
    steps = [*STEPS, Step(Kind.START, "retention.ms", 8000, 8000, 0, 45, 45), late]
    said = explain(facts(30, start_offset=45, steps=steps, positions={}))
    after = {one["group"]: one["only_after_removal"] for one in said["read"]}
    assert after == {"readers": False, "p": False, "late": True}


def test_what_was_before_the_removal_is_bounded_by_it() -> None:
    gone = Step(Kind.START, "retention.ms", 8000, 8000, 0, 45, 45)
    said = explain(facts(30, start_offset=45, steps=[gone], opening=Opening(8600, 50, 50)))
    before = {"since_ms": None, "until_ms": 8000, "exact": False}
    assert said["appended"]["when"] == before
    assert said["replicated"]["when"] == before


@pytest.mark.parametrize(
    ("until_ms", "ahead_ms"), [(999, 1), (930, 70), (1000, None), (2000, None)]
)
def test_a_producers_clock_that_is_ahead_is_said(until_ms: int, ahead_ms: int | None) -> None:
    appended = Step(Kind.END_AND_HIGH, ((7, "a"),), until_ms - 10, until_ms, 0, 30, 50)
    published = explain(facts(steps=[appended]))["published"]
    assert published["timestamp_ms"] == 1000
    assert published["clock_ahead_ms"] == ahead_ms


def test_a_record_removed_by_compaction() -> None:
    assert explain(facts(45))["state"] == "compacted"
    assert explain(facts(location=replace(location_of(40), record=None)))["state"] == "compacted"


def test_a_damaged_record() -> None:
    damaged = replace(location_of(40), record=None, damage="the records are not lz4")
    said = explain(facts(location=damaged))
    assert said["state"] == "damaged"
    assert said["appended"]["damage"] == "the records are not lz4"
    assert said["appended"]["record"] is None
    assert said["published"]["producer"]["sequence"] is None


def test_before_the_high_watermark_has_passed() -> None:
    said = explain(facts(high_watermark=40))["replicated"]
    assert (said["committed"], said["when"], said["replicas"]) == (False, None, 1)


def test_without_timelines_nothing_is_made_up() -> None:
    said = explain(facts(steps=None, opening=None))
    assert not said["recorded"]
    unknown = {"since_ms": None, "until_ms": None, "exact": False}
    assert said["appended"]["when"] == unknown
    assert said["replicated"]["when"] == unknown
    assert said["published"]["client_ids"] == []


def test_a_compressed_batch_tells_both_sizes() -> None:
    batch = explain(facts(location=location_of(40, compression=Compression.zstd)))["appended"][
        "batch"
    ]
    assert batch["compression"] == "zstd"
    assert batch["uncompressed_bytes"] > 0


def test_a_record_without_key_or_value() -> None:
    said = explain(facts(41))
    assert said["published"]["key"] is None
    assert said["published"]["value"] is None
    assert said["published"]["producer"]["sequence"] == 6
    assert said["partition_chosen"]["has_key"] is False


COMPACTED = LogConfig(cleanup_delete=False, cleanup_compact=True)


def compaction_of(
    offset: int = 40, *, key: bytes | None = b"k", value: bytes | None = b"v", **more: Any
) -> str:
    stored = location_of(offset, **more.pop("batch", {}))
    assert stored.record is not None
    record = replace(stored.record.record, key=key, value=value)
    stored = replace(stored, record=stored.record._replace(record=record))
    told = facts(offset, config=COMPACTED, searched_to=FOREVER_MS, location=stored, **more)
    (rule,) = explain(told)["retention"]["rules"]
    return str(rule["why"])


def test_what_compaction_does_with_a_record() -> None:
    assert compaction_of().startswith("the latest record with its key")
    assert compaction_of(value=None).startswith("a tombstone")
    assert compaction_of(key=None, value=None).startswith("a record without a key")


def test_compaction_and_the_transaction_of_a_record() -> None:
    batch = {"is_transactional": True}
    aborted = TransactionFacts(50, (), EndMarker(45, False, 2_000), 45)
    committed = TransactionFacts(50, (), EndMarker(45, True, 2_000), 45)
    is_open = TransactionFacts(40, (OpenTransaction(7, 1, 40, 2_000),))
    unknown = TransactionFacts(50, (), None, 47)
    said = [
        compaction_of(batch=batch, transactions=known)
        for known in (aborted, committed, is_open, unknown)
    ]
    assert [each.partition(":")[0] for each in said] == [
        *("aborted", "the latest record with its key"),
        *("its transaction is open", "not known"),
    ]
    marker = compaction_of(batch={**batch, "is_control": True}, transactions=committed)
    assert marker.startswith("a transaction's marker")


def test_a_marker_of_a_transaction_chose_no_partition() -> None:
    said = explain(facts(location=location_of(40, is_control=True, is_transactional=True)))
    assert said["published"]["control"]
    assert said["partition_chosen"] is None


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"abc", {"size_bytes": 3, "cut": False, "text": "abc"}),
        (b"\xff\x00", {"size_bytes": 2, "cut": False, "base64": "/wA="}),
        ("äöü".encode(), {"size_bytes": 6, "cut": True, "text": "äö"}),
        (b"\xff" * 9, {"size_bytes": 9, "cut": True, "base64": "//////8="}),
        (b"", {"size_bytes": 0, "cut": False, "text": ""}),
    ],
)
def test_content_is_text_or_base64_and_cut(data: bytes, said: dict[str, Any]) -> None:
    assert content(data, 5) == said


def test_a_table_by_the_key_of_the_messages_says_what_became_of_the_row() -> None:
    to = Destination("postgresql", "flights in postgresql://db/lake", "upsert", "offset", "remove")
    to = to._replace(by_message_key=True)
    steps = [
        Step(
            Kind.DELIVERED,
            ("p", "q", to.text()),
            4000,
            4000,
            0,
            41,
            41,
            False,
            Versions(3, 3, -1, -1),
        ),
        Step(
            Kind.DELIVERED,
            ("p", "q", to.text()),
            5000,
            5000,
            41,
            50,
            50,
            False,
            Versions(4, 4, -1, -1),
        ),
    ]
    history = KeyHistory((KeyRecord(40, 1000, False), KeyRecord(45, 1000, True)), is_whole=True)
    (delivered,) = explain(facts(steps=steps, key_history=history))["delivered"]
    assert delivered["delta"] is None
    assert delivered["sink"] == {
        "kind": "postgresql",
        "called": "postgresql",
        "place": "flights in postgresql://db/lake",
        "place_is": "table",
        "rows": "upsert",
        "version": None,
        "first_version": None,
        "last_version": None,
    }
    assert (delivered["row"]["did"], delivered["row"]["then"]) == ("inserted", "deleted")
    assert delivered["row"]["by"]["offset"] == 45

    # The later record was written once more: another one was delivered in its place.
    again = Step(Kind.OPENED, None, 5500, 5500, 42, 42, 42)
    written = Step(Kind.END_AND_HIGH, ((7, "airport"),), 5600, 5600, 42, 50, 50)
    rewritten = [*steps, again, written]
    (delivered,) = explain(facts(steps=rewritten, key_history=history))["delivered"]
    assert (delivered["in_doubt"], delivered["row"]) == (False, None)
    (unknown,) = explain(facts(steps=steps))["delivered"]
    assert unknown["row"] is None


@pytest.mark.parametrize(
    ("elsewhere", "row"),
    [
        (KeyElsewhere((), ()), ("inserted", "current", [], [])),
        (KeyElsewhere((), (2,)), ("inserted", "current", [], [2])),
        (KeyElsewhere((), (3,), (2,)), ("inserted", "current", [], [2, 3])),
        (KeyElsewhere((Hit(2, 7, 900),), (3,)), (None, None, [2], [])),
    ],
)
def test_the_row_of_a_key_that_several_partitions_have_is_not_told_from_one(
    elsewhere: KeyElsewhere, row: tuple[Any, ...]
) -> None:
    to = Destination("delta", "/t", "upsert", "timestamp", "remove", by_message_key=True)
    name = ("p", "q", to.text())
    steps = [Step(Kind.DELIVERED, name, 6000, 6000, 0, 50, 50, False, Versions(3, 3, 9, 9))]
    history = KeyHistory((KeyRecord(40, 1000, False),), is_whole=True)
    document = explain(facts(steps=steps, key_history=history, key_elsewhere=elsewhere))
    (delivered,) = document["delivered"]
    said = delivered["row"]
    assert (said["did"], said["then"], said["also_in"], said["unless_in"]) == row
    assert document["key_elsewhere"]["not_searched"] == list(elsewhere.not_searched)
    for one in document["key_elsewhere"]["messages"]:
        assert (one["partition"], one["offset"], one["timestamp_ms"]) == (2, 7, 900)
        assert "default" in one["why"]


def rejecting(*rejects: tuple[int, int, bool]) -> tuple[list[Step], KeyHistory]:
    """A pipeline into a table by key that rejected these offsets, or some of them (False)."""
    to = Destination("delta", "/t", "upsert", "offset", "remove", by_message_key=True)
    name = ("p", "q", to.text())
    steps = [Step(Kind.DELIVERED, name, 6000, 6000, 0, 50, 50, False, Versions(3, 3, 9, 9), True)]
    for first, end, are_all in rejects:
        kept = (*name, "t_rejected", "value is not a JSON object of the schema" if are_all else "")
        until = end if are_all else first
        steps.append(Step(Kind.REJECTED, kept, 6000, 6000, first, until, end))
    records = tuple(KeyRecord(offset, 1000, False) for offset in (30, 40, 45))
    return steps, KeyHistory(records, is_whole=True)


def test_a_rejected_message_has_no_row() -> None:
    steps, history = rejecting((38, 41, True))
    (delivered,) = explain(facts(steps=steps, key_history=history))["delivered"]
    assert delivered["row"] is None
    assert delivered["rejected"] == {
        "certain": True,
        "reason": "value is not a JSON object of the schema",
        "kept": "t_rejected",
        "first_offset": 38,
        "last_offset": 40,
    }
    (delivered,) = explain(facts(41, steps=steps, key_history=history))["delivered"]
    assert delivered["rejected"] is None


def test_where_some_of_a_range_were_rejected_nothing_is_said_of_a_row() -> None:
    steps, history = rejecting((38, 44, False))
    (delivered,) = explain(facts(steps=steps, key_history=history))["delivered"]
    assert delivered["row"] is None
    assert (delivered["rejected"]["certain"], delivered["rejected"]["reason"]) == (False, None)
    assert delivered["rejected"]["last_offset"] == 43


@pytest.mark.parametrize(
    ("rejects", "row"),
    [
        ([], ("replaced", None, "superseded", 45)),
        ([(45, 46, True)], ("updated", 30, "current", None)),
        ([(30, 31, True), (45, 46, True)], ("inserted", None, "current", None)),
        ([(45, 46, False)], None),
    ],
)
def test_a_row_is_not_replaced_by_a_rejected_message(
    rejects: list[tuple[int, int, bool]], row: tuple[Any, ...] | None
) -> None:
    steps, history = rejecting((29, 29, True), *rejects)
    numbers = (5000, 5000, 0, 35, 35)
    before = Step(Kind.DELIVERED, steps[0].name, *numbers, False, Versions(2, 2, 8, 8), True)
    steps = [before, steps[0]._replace(before=35), *steps[1:]]
    if not rejects:
        steps = [step._replace(has_rejects=False) for step in steps]
    (delivered,) = explain(facts(steps=steps, key_history=history))["delivered"]
    said = delivered["row"]
    assert delivered["rejected"] is None
    if row is None:
        assert said is None
    else:
        did, of, then, by = row
        assert (said["did"], said["of"], said["then"]) == (did, of, then)
        assert (said["by"] and said["by"]["offset"]) == by


def test_the_steps_of_earlier_messages_of_the_key_may_be_in_other_files() -> None:
    steps, history = rejecting((45, 46, True))
    steps[0] = steps[0]._replace(before=35)
    numbers = (5000, 5000, 0, 35, 35)
    before = Step(Kind.DELIVERED, steps[0].name, *numbers, False, Versions(2, 2, 8, 8), True)
    rejected = steps[1]._replace(before=30, first=31, last=31, since_ms=5000, until_ms=5000)
    known = facts(steps=steps, key_history=history, key_steps=[before, rejected, *steps])
    (delivered,) = explain(known)["delivered"]
    assert (delivered["row"]["did"], delivered["row"]["then"]) == ("inserted", "current")


def test_without_steps_the_last_commit_tells_what_it_rejected() -> None:
    told = {"ottla.pipeline": 1, "query": "q", "batch": 8, "delta": {"table": "/t", "version": 8}}
    told["rejects"] = {"kept": "t_rejected", "reasons": ["why"], "ranges": [[40, 41, 0]]}
    positions = {"p": Position(50, json.dumps(told))}
    (delivered,) = explain(facts(steps=[], positions=positions))["delivered"]
    assert (delivered["rejected"]["certain"], delivered["rejected"]["reason"]) == (True, "why")
    (other,) = explain(facts(41, steps=[], positions=positions))["delivered"]
    assert other["rejected"]["certain"] is False  # earlier commits may have rejected it


def test_a_query_whose_steps_got_a_fuller_name_is_shown_once() -> None:
    to = Destination("delta", "/t", "upsert")
    later = Step(
        Kind.DELIVERED, ("p", "q", to.text()), 6000, 6000, 60, 60, 60, True, Versions(9, 9, 9, 9)
    )
    (delivered,) = explain(facts(steps=[*STEPS, later]))["delivered"]
    assert delivered["batch"] == 3


def test_a_query_that_got_another_name_is_shown_once() -> None:
    to = Destination("delta", "/t", "append")
    now = (
        '{"ottla.pipeline": 1, "query": "file", "batch": 9, "delta": {"table": "/t", "version": 9}}'
    )
    later = Step(
        Kind.DELIVERED, ("p", "file", to.text()), 6000, 6000, 60, 60, 60, True, Versions(9, 9, 9, 9)
    )
    for steps in (STEPS, [*STEPS, later]):
        (delivered,) = explain(facts(steps=steps, positions={"p": Position(60, now)}))["delivered"]
        assert (delivered["query"], delivered["batch"]) == ("q", 3)


def test_two_queries_of_one_group_whose_places_are_unknown_are_both_shown() -> None:
    steps = [
        Step(Kind.DELIVERED, ("p", name, ""), 4000, 4000, 0, 50, 50, False, Versions(3, 3, -1, -1))
        for name in ("one", "two")
    ]
    assert [each["query"] for each in explain(facts(steps=steps))["delivered"]] == ["one", "two"]


CUT = [
    Step(Kind.END, ((7, "airport"),), 1600, 1600, 0, 60, 60),
    Step(Kind.GROUP, "readers", 1700, 1700, 0, 60, 60),
    Step(Kind.DELIVERED, ("p", "q", "/t"), 1700, 1700, 0, 60, 60, False, Versions(3, 3, 9, 9)),
    Step(Kind.CUT, (1, 5, (1,), 3), 1800, 1800, 30, 60, 60),
    Step(Kind.OPENED, None, 1800, 1800, 30, 30, 30),
    Step(Kind.END_AND_HIGH, ((7, "airport"),), 2000, 2000, 30, 50, 50),
]
"""Offset 40 had another record, which a group and a pipeline had, and which was truncated."""


def test_who_had_the_truncated_record_has_not_read_the_one_after_it() -> None:
    positions = {"readers": Position(60, "")}
    said = explain(facts(steps=CUT, positions=positions))
    (read,) = said["read"]
    assert (read["state"], read["committed_offset"]) == ("not_known", 60)
    assert read["when"] == {"since_ms": None, "until_ms": 1700, "exact": False}
    assert said["delivered"] == []
    (without_steps,) = explain(facts(steps=CUT, positions={"other": Position(60, "")}))["read"][1:]
    assert without_steps["state"] == "not_known"


def test_who_comes_past_a_rewritten_offset_once_more_has_read_it() -> None:
    more = [
        *CUT,
        Step(Kind.GROUP, "readers", 3000, 3000, 30, 50, 50),
        Step(
            Kind.DELIVERED, ("p", "q", "/t"), 3000, 3000, 30, 50, 50, False, Versions(4, 4, 10, 10)
        ),
    ]
    said = explain(facts(steps=more, positions={"readers": Position(50, "")}))
    (read,) = said["read"]
    assert (read["state"], read["when"]["exact"], read["when"]["since_ms"]) == ("read", True, 3000)
    (delivered,) = said["delivered"]
    assert (delivered["batch"], delivered["when"]["since_ms"]) == (4, 3000)
    assert not delivered["in_doubt"]


def test_what_a_follower_copied_later_than_it_was_read_is_in_doubt() -> None:
    state: dict[str, Any] = {
        "replica_count": 2,
        "replicas": (1, 2),
        "isr": (1,),
        "leader": 1,
        "leader_epoch": 3,
    }
    copied = [*CUT[:-1], CUT[-1]._replace(name=(COPIED,))]
    said = explain(facts(steps=copied, positions={"readers": Position(60, "")}, **state))
    assert said["appended"]["broker"] is None
    assert [read["state"] for read in said["read"]] == ["not_known"]
    (delivered,) = said["delivered"]
    assert delivered["in_doubt"]
    assert delivered["row"] is None


def test_what_another_broker_tells_is_in_doubt_where_the_record_was_replaced() -> None:
    """Its clock is another one, so its times alone do not tell what came first."""
    step = Step(Kind.GROUP, "readers", 1700, 1700, 0, 60, 60, broker=3)
    steps = [one for one in CUT if one.kind not in (Kind.GROUP, Kind.DELIVERED)]
    positions = {"readers": Position(60, "")}
    known = facts(steps=[*steps, step], positions=positions, end_offset=60)
    (read,) = explain(known)["read"]
    assert read["state"] == "not_known"
    later = step._replace(since_ms=9000, until_ms=9000)
    known = replace(known, steps=[*steps, later])
    (read,) = explain(known)["read"]
    assert (read["state"], read["when"]["since_ms"]) == ("read", 9000)


def test_a_group_that_is_before_the_offset_again_was_set_back() -> None:
    steps = [step for step in STEPS if step.kind is not Kind.DELIVERED]
    read = explain(facts(steps=steps, positions={"readers": Position(35, "")}))["read"][0]
    assert (read["state"], read["set_back"]) == ("set_back", {"at_ms": None, "to_offset": 35})


def test_a_delivery_after_the_removal_is_in_doubt() -> None:
    start = Step(Kind.START, "retention.ms", 3000, 3000, 0, 45, 45)
    name = ("p", "q", "/t")

    def delivered(at_ms: int, producer_id: int = -1) -> bool:
        batch = Step(Kind.DELIVERED, name, at_ms, at_ms, 0, 50, 50, versions=Versions(0, 0, 1, 1))
        appended = STEPS[0]._replace(name=((producer_id, "airport"),))
        known = facts(steps=[appended, start, batch], start_offset=45, location=None)
        return bool(explain(known)["delivered"][0]["in_doubt"])

    assert delivered(3000), "its batch may have begun at the new log start"
    assert not delivered(2900)
    assert delivered(2900, producer_id=7), "it may have been aborted, or a marker"


@pytest.mark.parametrize("reads_committed", [False, True])
def test_a_pipeline_may_not_read_what_was_aborted(reads_committed: bool) -> None:
    steps = [*STEPS[:2], STEPS[2]._replace(reads_committed=reads_committed), STEPS[3]]
    aborted = TransactionFacts(50, (), EndMarker(45, False, 2_000), 45)
    location = location_of(40, is_transactional=True)
    known = facts(steps=steps, location=location, transactions=aborted)
    said = [one["in_doubt"] for one in explain(known)["delivered"]]
    assert said == ([] if reads_committed else [True])
    marker = location_of(40, is_control=True, is_transactional=True)
    assert explain(facts(steps=steps, location=marker))["delivered"] == []


def test_it_is_not_known_who_had_read_what_was_compacted() -> None:
    said = explain(facts(45))
    assert said["state"] == "compacted"
    passed = [one for one in said["read"] if one["state"] != "missed"]
    assert passed
    assert {one["doubt"] for one in passed} == {"unordered"}
    assert all(one["in_doubt"] for one in said["delivered"])
