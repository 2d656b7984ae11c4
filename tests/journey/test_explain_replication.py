"""The replicas' part of the document, as the leader of now can honestly tell it."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ottla.journey.explain import explain
from ottla.journey.explain_replication import MAX_ELECTIONS
from ottla.journey.facts import Facts, LogLocation, Position
from ottla.journey.record_in_batch import find_record
from ottla.journey.retention_rules import SegmentFacts
from ottla.log.config import LogConfig
from ottla.records.build import build_batch
from ottla.records.header import BatchHeader, read_header
from ottla.records.record import Record
from ottla.timelines.step import COPIED, By, Kind, Opening, Step

SEGMENT = SegmentFacts(0, 100, 5000, 1010, True, 10_000)


def location(offset: int, leader_epoch: int) -> LogLocation:
    data = build_batch([Record(0, 1000, b"k", b"v")], base_offset=offset)
    header = replace_epoch(read_header(data), leader_epoch)
    found = find_record(header, data, offset)
    return LogLocation(SEGMENT, "t-0", "0.log", "0.index", None, 0, header, found)


def replace_epoch(header: BatchHeader, leader_epoch: int) -> BatchHeader:
    if hasattr(header, "_replace"):
        other: BatchHeader = header._replace(leader_epoch=leader_epoch)
        return other
    return replace(header, leader_epoch=leader_epoch)


def role(
    at: int,
    leader: int,
    epoch: int,
    isr: Sequence[int],
    partition_epoch: int,
    *,
    end: int = 0,
    found: bool = False,
) -> Step:
    name = (leader, epoch, tuple(isr), partition_epoch)
    return Step(Kind.IN_SYNC, name, at, at, end, end, end, found)


STEPS = [
    role(1500, 1, 4, (1, 2, 3), 7, found=True),
    Step(Kind.END, ((-1, "app"),), 2000, 2000, 0, 50, 50),
    Step(Kind.REPLICA, "2", 2003, 2003, 0, 50, 50),
    Step(Kind.REPLICA, "3", 1900, 1900, 0, 0, 20, True),
    Step(Kind.HIGH, None, 2004, 2004, 0, 50, 50),
]


def facts(
    steps: list[Step] = STEPS, *, broker: int = 1, epoch: int = 4, offset: int = 40, **more: Any
) -> Facts:
    known = Facts(
        topic="t",
        partition=0,
        offset=offset,
        now_ms=9000,
        broker_id=broker,
        partition_count=1,
        replica_count=3,
        start_offset=0,
        end_offset=50,
        high_watermark=50,
        config=LogConfig(),
        segments=[SEGMENT],
        steps=steps,
        opening=Opening(1500, 0, 0),
        positions={},
        location=location(offset, epoch),
        replicas=(1, 2, 3),
        isr=(1, 2),
        leader=broker,
        leader_epoch=epoch,
    )
    return replace(known, **more)


def test_the_leader_knows_each_replicas_fetch_and_the_isr_then() -> None:
    said = explain(facts())
    assert said["appended"]["broker"] == 1
    assert said["appended"]["when"]["exact"]
    replicated = said["replicated"]
    assert (replicated["leader"], replicated["leader_epoch"]) == (1, 4)
    assert replicated["in_sync_now"] == [1, 2]
    leader, second, third = replicated["copies"]
    assert (leader["state"], leader["when"]["since_ms"]) == ("leader", 2000)
    assert (second["state"], second["when"]["since_ms"]) == ("copied", 2003)
    assert (third["state"], third["when"], third["fetched_to"]) == ("not_yet", None, 20)
    assert replicated["in_sync"] == {
        "brokers": [1, 2, 3],
        "leader": 1,
        "leader_epoch": 4,
        "at_ms": 2004,
    }
    assert replicated["in_sync_possible"] == []
    assert replicated["elections"] == []
    assert json.loads(json.dumps(said)) == said


def test_a_copy_of_an_older_epoch_is_not_of_this_record() -> None:
    """The follower cut its log, copied the new leader's record, and a crash took these steps."""
    steps = [
        role(1500, 1, 4, (1, 2, 3), 7),
        Step(Kind.END, (COPIED,), 2000, 2000, 0, 50, 50),
        Step(Kind.HIGH, None, 2100, 2100, 0, 50, 50),
        Step(Kind.GROUP, "g", 2200, 2200, 0, 50, 50, by=By.MEMBER),
        role(6000, 2, 6, (2, 3), 9, end=50, found=True),
    ]
    now: dict[str, Any] = {"leader_epoch": 6, "opening": Opening(6000, 50, 50)}
    now["positions"] = {"g": Position(50, "")}
    for epoch, until_ms, doubt in ((4, 2000, "unordered"), (5, None, "rewritten")):
        said = explain(facts(steps, broker=2, epoch=epoch, **now))
        assert said["read"][0]["doubt"] == doubt
        when = {"since_ms": None, "until_ms": until_ms, "exact": False}
        assert said["appended"]["when"] == when


def test_a_former_follower_knows_only_its_own_fetch() -> None:
    steps = [
        role(1500, 1, 4, (1, 2, 3), 7),
        Step(Kind.END, ((-1, ""),), 2000, 2000, 0, 50, 50),
        Step(Kind.HIGH, None, 2100, 2100, 0, 50, 50),
        role(3000, 2, 5, (2, 3), 8, end=50),
    ]
    said = explain(facts(steps, broker=2, leader_epoch=5))
    assert said["appended"]["broker"] == 1
    assert said["appended"]["when"] == {"since_ms": None, "until_ms": 2000, "exact": False}
    replicated = said["replicated"]
    assert replicated["when"] == {"since_ms": None, "until_ms": 2100, "exact": False}
    former, own, third = replicated["copies"]
    assert (former["state"], former["when"]["until_ms"]) == ("leader", 2000)
    assert (own["state"], own["when"]["since_ms"]) == ("copied", 2000)
    assert third["state"] == "not_recorded"
    (election,) = replicated["elections"]
    assert election == {
        "at_ms": 3000,
        "leader": 2,
        "leader_epoch": 5,
        "previous_leader": 1,
        "start_offset": 50,
        "end_offset": 50,
        "seen_at_start": False,
        "unclean": False,
        "dropped": [],
    }


def in_sync(said: dict[str, Any]) -> list[tuple[list[int], int]]:
    one = said["replicated"]["in_sync"]
    possible = [one] if one is not None else said["replicated"]["in_sync_possible"]
    return [(each["brokers"], each["leader_epoch"]) for each in possible]


def test_a_bound_that_spans_an_election_has_both_isrs() -> None:
    """A follower hears of the high watermark up to a fetch later; by then it may lead itself."""
    copied = Step(Kind.END, ((-1, ""),), 2000, 2000, 0, 50, 50)
    led_by_1, led_by_2 = role(1500, 1, 4, (1, 2, 3), 7), role(3000, 2, 5, (2, 3), 8, end=50)
    heard = Step(Kind.HIGH, None, 3100, 3100, 0, 50, 50)
    more = {"broker": 2, "leader_epoch": 5}
    steps = [led_by_1, copied, led_by_2, heard]
    assert in_sync(explain(facts(steps, **more))) == [([1, 2, 3], 4), ([2, 3], 5)]
    early = [led_by_1, copied, heard._replace(since_ms=2100, until_ms=2100), led_by_2]
    assert in_sync(explain(facts(early, **more))) == [([1, 2, 3], 4)]
    # A record of epoch 5 was not committed in an earlier one.
    assert in_sync(explain(facts(steps, epoch=5, **more))) == [([2, 3], 5)]


def test_what_was_in_sync_before_the_broker_heard_of_it_is_not_known() -> None:
    steps = [
        role(3000, 2, 5, (2, 3), 8, found=True),
        Step(Kind.END, ((-1, ""),), 2000, 3500, 0, 20, 50),
        Step(Kind.HIGH, None, 3600, 3600, 0, 50, 50),
    ]
    assert in_sync(explain(facts(steps, broker=2, leader_epoch=5))) == []


def test_an_unknown_leader_of_the_records_epoch_is_null() -> None:
    said = explain(facts([role(3000, 2, 9, (2,), 8, found=True)], broker=2, epoch=4))
    assert said["appended"]["broker"] is None
    assert said["replicated"]["elections"][0]["unclean"] is None


def test_an_unclean_election_says_what_it_dropped() -> None:
    steps = [
        *STEPS,
        role(3000, -1, 5, (1,), 8, end=50),
        role(4000, 2, 6, (2,), 9, end=50),
        Step(Kind.CUT, (2, 6, (2,), 9), 4001, 4001, 45, 48, 60),
    ]
    (election,) = explain(facts(steps))["replicated"]["elections"]
    assert election["unclean"] is True
    assert election["previous_leader"] == 1
    assert election["dropped"] == [
        {"broker": 1, "from_offset": 45, "to_offset": 59, "committed_to": 47, "at_ms": 4001}
        | {"replaced_by_epoch": None}
    ]


def test_the_election_that_dropped_another_record_is_shown() -> None:
    steps = [
        role(3000, 2, 6, (2,), 9),
        Step(Kind.DIVERGED, "1", 3001, 3001, 35, 35, 60),
        Step(Kind.END, ((-1, "app"),), 5000, 5000, 35, 50, 50),
    ]
    (election,) = explain(facts(steps, broker=2, epoch=6))["replicated"]["elections"]
    assert election["dropped"][0]["broker"] == 1
    assert election["dropped"][0]["committed_to"] is None


def test_only_the_newest_elections_are_shown() -> None:
    many = [role(3000 + n, 1 + n % 2, 10 + n, (1, 2), 20 + n) for n in range(MAX_ELECTIONS + 9)]
    found = explain(facts([*STEPS, *many]))["replicated"]["elections"]
    assert len(found) == MAX_ELECTIONS
    assert found[-1]["leader_epoch"] == 10 + MAX_ELECTIONS + 8


def test_one_broker_alone_needs_no_roles() -> None:
    said = explain(facts([STEPS[1]._replace(kind=Kind.END_AND_HIGH)], replicas=(1,), isr=(1,)))
    assert said["appended"]["broker"] == 1
    assert said["replicated"]["when"]["exact"]
    assert said["replicated"]["copies"][0]["state"] == "leader"


def test_a_removed_record_goes_by_who_led_then() -> None:
    said = explain(facts(location=None, start_offset=45))
    assert said["state"] == "removed"
    assert said["appended"]["broker"] == 1
    copied = STEPS[1]._replace(name=(COPIED,))
    assert explain(facts([copied], location=None, start_offset=45))["appended"]["broker"] is None
    later = [role(1000, 2, 4, (1, 2, 3), 7), role(1500, 3, 5, (3,), 8), copied]
    said = explain(facts(later, location=None, start_offset=45))
    assert said["appended"]["broker"] is None, "broker 3 may have copied it from broker 2"


def test_what_was_in_sync_then_is_not_known_where_the_last_states_are_lost() -> None:
    assert in_sync(explain(facts(partition_epoch=7)))
    assert in_sync(explain(facts(partition_epoch=8))) == []


def test_what_a_group_read_before_an_unclean_election_may_be_another_record() -> None:
    steps = [
        *(*STEPS, role(3000, 3, 5, (3,), 8), role(5000, 1, 6, (1,), 9)),
        Step(Kind.GROUP, "g", 4000, 4000, 0, 20, 50, by=By.MEMBER, broker=2),
    ]
    now: dict[str, Any] = {"positions": {"g": Position(50, "", -1, 4000, 2)}, "leader_epoch": 6}
    assert [one["state"] for one in explain(facts(steps, **now))["read"]] == ["not_known"]
    clean = [*steps[:-3], role(3000, 3, 5, (1, 3), 8), *steps[-2:]]
    assert [one["state"] for one in explain(facts(clean, **now))["read"]] == ["read"]


def test_what_a_group_read_of_a_leader_that_had_another_record_is_not_known() -> None:
    steps = [
        *(*STEPS, role(5000, 1, 6, (1,), 9)),
        Step(Kind.DIVERGED, "3", 5100, 5100, 30, 30, 60),
        Step(Kind.GROUP, "g", 4000, 4000, 0, 20, 50, by=By.MEMBER, broker=2),
    ]
    now: dict[str, Any] = {"positions": {"g": Position(50, "", -1, 4000, 2)}, "leader_epoch": 6}
    assert [one["state"] for one in explain(facts(steps, **now))["read"]] == ["not_known"]
    now["epoch_starts"] = [(4, 0), (5, 45), (6, 50)]
    assert [one["state"] for one in explain(facts(steps, **now))["read"]] == ["not_known"]
    kept = [step for step in steps if step.kind is not Kind.DIVERGED]
    assert [one["state"] for one in explain(facts(kept, **now))["read"]] == ["read"]


def copies_of(**more: Any) -> dict[int, tuple[str, int | None]]:
    found = explain(facts(**more))["replicated"]["copies"]
    return {one["broker"]: (one["state"], one["fetched_to"]) for one in found}


def test_a_copy_is_missing_only_if_the_leader_says_so_now() -> None:
    assert copies_of(fetched={2: 50, 3: 30})[3] == ("not_yet", 30)
    # The steps of its last fetches are lost.
    assert copies_of(fetched={2: 50, 3: 50})[3] == ("copied", 50)
    assert copies_of(fetched={2: 50})[3] == ("not_recorded", None)


def test_what_was_passed_before_the_records_epoch_was_another_record() -> None:
    replicated = explain(facts(epoch=5, leader_epoch=5))["replicated"]
    assert replicated["when"] == {"since_ms": None, "until_ms": None, "exact": False}


def test_what_a_group_read_before_leaders_of_which_nothing_is_known_may_be_another_record() -> None:
    read = Step(Kind.GROUP, "g", 2500, 2500, 0, 50, 50, is_first=True, by=By.MEMBER)
    steps = [*STEPS, read, role(3000, 1, 6, (1,), 12, end=50)]
    known: dict[str, Any] = {"leader_epoch": 6, "positions": {"g": Position(50, "")}}
    (group,) = explain(facts(steps, epoch_starts=[(4, 0), (6, 50)], **known))["read"]
    assert group["doubt"] in ("rewritten", "unordered")
    # It has records of the leader between, so that it followed it.
    (group,) = explain(facts(steps, epoch_starts=[(4, 0), (5, 45), (6, 50)], **known))["read"]
    assert (group["state"], group["doubt"]) == ("read", None)
