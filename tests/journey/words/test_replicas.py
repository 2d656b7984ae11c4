"""Replicas and elections in the tree."""

from typing import Any

from ottla.journey.words.clock import Clock
from ottla.journey.words.line import Branch, line
from ottla.journey.words.replicas import grow_replicated


def when(ms: int) -> dict[str, Any]:
    return {"since_ms": ms, "until_ms": ms, "exact": True}


def copy(broker: int, state: str, ms: int | None = None, to: int | None = None) -> dict[str, Any]:
    said = None if ms is None else when(ms)
    return {"broker": broker, "state": state, "when": said, "fetched_to": to}


def replicated(**more: Any) -> dict[str, Any]:
    return {
        "committed": True,
        "when": when(1012),
        "replicas": 3,
        "copies": [copy(1, "leader", 1005), copy(2, "copied", 1012), copy(3, "not_yet", to=7)],
        "in_sync_now": [1, 2],
        "in_sync": {"brokers": [1, 2], "leader": 1, "leader_epoch": 4, "at_ms": 1012},
        "elections": [],
        **more,
    }


def lines(document: dict[str, Any]) -> list[str]:
    top = line("t")
    grow_replicated(top, document, Clock({"published": {"timestamp_ms": 1000}}))

    def walk(branch: Branch) -> list[str]:
        return [branch.text(), *(said for below in branch.below for said in walk(below))]

    return walk(top)[1:]


def test_each_replica_has_a_line() -> None:
    assert lines(replicated()) == [
        "Replicated  00:00:01.012  +12 ms  the high watermark passed it (3 replicas)",
        "broker 1  leader, appended it  00:00:01.005  +5 ms",
        "broker 2  copied it  00:00:01.012  +12 ms",
        "broker 3  not yet: it has fetched up to offset 7",
        "in sync then  brokers 1 2, led by 1 in epoch 4",
    ]


def test_one_replica_alone_is_one_line() -> None:
    assert len(lines(replicated(replicas=1))) == 1


def test_unknown_facts_are_shown_as_unknown() -> None:
    said = lines(replicated(copies=[copy(2, "not_recorded")], in_sync=None, committed=False))
    assert said == [
        "Replicated  not yet: the high watermark has not reached it",
        "broker 2  not known: none of its fetches is recorded here",
    ]


def test_all_possible_isrs_are_shown() -> None:
    possible = [
        {"brokers": [1, 2, 3], "leader": 1, "leader_epoch": 0},
        {"brokers": [2, 3], "leader": 2, "leader_epoch": 1},
    ]
    said = lines(replicated(in_sync=None, in_sync_possible=possible, in_sync_now=[2, 3]))
    assert said[-2:] == [
        "in sync then  brokers 1 2 3, led by 1 in epoch 0, or brokers 2 3, led by 2 in epoch 1",
        "in sync now   brokers 2 3",
    ]


def test_a_change_of_the_in_sync_set_is_shown() -> None:
    assert lines(replicated(in_sync_now=[2]))[-1] == "in sync now   broker 2"
    assert lines(replicated(in_sync_now=[]))[-1] == "in sync now   no broker"


def test_an_unclean_election_shows_what_it_dropped() -> None:
    election = {
        "at_ms": 5000,
        "leader": 2,
        "leader_epoch": 5,
        "previous_leader": 1,
        "start_offset": 90,
        "end_offset": 100,
        "seen_at_start": False,
        "unclean": True,
        "dropped": [
            {"broker": 1, "from_offset": 90, "to_offset": 99, "committed_to": 95, "at_ms": 5001}
            | {"replaced_by_epoch": 5},
            {"broker": 3, "from_offset": 90, "to_offset": 90, "committed_to": None, "at_ms": 5002},
        ],
    }
    assert lines(replicated(elections=[election]))[-3:] == [
        "election  by 00:00:05.000  broker 2 leads after broker 1, epoch 5, from offset 90"
        "  unclean: it was not in sync",
        "dropped  offsets 90 to 99 of broker 1, at 00:00:05.001  (committed up to 95)"
        "  epoch 5 begins there",
        "dropped  offset 90 of broker 3, at 00:00:05.002",
    ]
    election |= {"unclean": None, "dropped": [], "seen_at_start": True, "previous_leader": None}
    assert lines(replicated(elections=[election]))[-1] == (
        "election  by 00:00:05.000  broker 2 leads, epoch 5, from offset 90"
    )
