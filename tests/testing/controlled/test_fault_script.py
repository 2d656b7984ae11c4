"""Which rule meets which request."""

from __future__ import annotations

import pytest

from ottla.protocol.errors import ErrorCode
from ottla.testing.controlled.fault_script import (
    MAX_RECEIVED,
    MAX_RULES,
    FaultScript,
    describe,
)
from ottla.testing.fault_rule import KIT_CLIENT_ID, Effect, FaultRule

PRODUCE, FETCH = 0, 1


def meet(script: FaultScript, key: int = PRODUCE, client: str = "app", *topics: str) -> object:
    return script.meet(1_000, key, 9, client, frozenset(topics))


def test_rules_apply_in_their_order_and_as_often_as_they_should() -> None:
    script = FaultScript()
    first = FaultRule(PRODUCE, Effect.ERROR, error_code=6, times=2)
    second = FaultRule(PRODUCE, Effect.DISCONNECT, times=1)
    first_id = script.add(first)
    script.add(second)
    assert [meet(script) for _ in range(4)] == [first, first, second, None]
    assert [each.number for each in script.received(first_id)] == [1, 2]
    assert [each.fault for each in script.received()] == [
        "error NOT_LEADER_OR_FOLLOWER",
        "error NOT_LEADER_OR_FOLLOWER",
        "disconnect",
        None,
    ]


def test_request_type_client_and_topic_choose() -> None:
    script = FaultScript()
    rule = FaultRule(PRODUCE, Effect.DELAY, wait_ms=5, client_id="app", topic="t")
    script.add(rule)
    assert meet(script, FETCH, "app", "t") is None
    assert meet(script, PRODUCE, "other", "t") is None
    assert meet(script, PRODUCE, "app", "u") is None
    assert meet(script, PRODUCE, "app", "u", "t") is rule


def test_the_kits_clients_meet_a_fault_only_by_their_id() -> None:
    script = FaultScript()
    rule_id = script.add(FaultRule(PRODUCE, Effect.DISCONNECT))
    assert meet(script, PRODUCE, KIT_CLIENT_ID) is None
    assert not list(script.received())
    script.remove(rule_id)
    rule = FaultRule(PRODUCE, Effect.DISCONNECT, client_id=KIT_CLIENT_ID)
    script.add(rule)
    assert meet(script, PRODUCE, KIT_CLIENT_ID) is rule


def test_a_removed_rule_meets_nothing_and_its_requests_stay_listed() -> None:
    script = FaultScript()
    rule_id = script.add(FaultRule(PRODUCE, Effect.DISCONNECT))
    meet(script)
    script.remove(rule_id)
    script.remove(rule_id)
    assert meet(script) is None
    assert len(list(script.received(rule_id))) == 1


def test_rules_and_requests_are_limited() -> None:
    script = FaultScript()
    for _ in range(MAX_RULES):
        script.add(FaultRule(PRODUCE, Effect.DISCONNECT, times=0))
    with pytest.raises(ValueError, match="1000 faults already"):
        script.add(FaultRule(PRODUCE, Effect.DISCONNECT))
    other = FaultScript()
    for _ in range(MAX_RECEIVED + 1):
        meet(other)
    assert next(other.received()).number == 2
    assert other.count == MAX_RECEIVED + 1


def test_each_effect_is_described() -> None:
    assert describe(FaultRule(0, Effect.THROTTLE, wait_ms=7)) == "throttle 7 ms"
    assert describe(FaultRule(0, Effect.NO_RESPONSE, is_after=True)) == (
        "no response, after it was carried out"
    )
    rule = FaultRule(0, Effect.ERROR, error_code=int(ErrorCode.request_timed_out.value))
    assert describe(rule) == "error REQUEST_TIMED_OUT"
    assert FaultRule.from_json(rule.to_json()) == rule
