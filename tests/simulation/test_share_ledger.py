"""What members of a share group saw, and what of it cannot be."""

from __future__ import annotations

import pytest
from simulation.share_ledger import Ack, Delivery, ShareLedger

from ottla.share.record_state import AckType

LIMIT = 3
LOCK_MS = 1_000


class Bench:
    """Broker 1 leads partition 0; from `moved_ms` on, broker 2."""

    def __init__(self) -> None:
        self.moved_ms = 1 << 60
        self.found: list[str] = []
        self.ledger = ShareLedger(
            LIMIT, LOCK_MS, self.has_led, lambda partition, text: self.found.append(text)
        )

    def has_led(self, partition: int, broker: int, from_ms: int, to_ms: int) -> bool:
        return to_ms < self.moved_ms if broker == 1 else from_ms > self.moved_ms

    def deliver(
        self, member: int, at_ms: int, *, broker: int = 1, count: int = 1, offset: int = 5
    ) -> Delivery:
        """In the session with the member's number."""
        new = Delivery(member, member, broker, 0, offset, count, at_ms, at_ms + 10)
        self.ledger.acquired(0, (offset,), count)
        self.ledger.delivered(new)
        return new

    def say(self, delivery: Delivery, kind: AckType, at_ms: int, *, is_taken: bool = True) -> None:
        ack = Ack(delivery, kind, at_ms)
        self.ledger.says(ack)
        if is_taken:
            self.ledger.took(ack, at_ms + 10)


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_group_that_does_as_it_should(bench: Bench) -> None:
    first = bench.deliver(1, 100)
    bench.say(first, AckType.RELEASE, 200)
    second = bench.deliver(2, 300, count=2)
    bench.say(second, AckType.ACCEPT, 400)
    third = bench.deliver(1, 300, offset=6)
    bench.say(third, AckType.REJECT, 400)
    bench.ledger.session_went_on(1, 500)
    assert bench.found == []
    assert bench.ledger.lost(0, 7) == [0, 1, 2, 3, 4]
    assert bench.ledger.accepted == 1


@pytest.mark.parametrize("kind", [AckType.ACCEPT, AckType.REJECT])
def test_a_record_that_is_over_is_delivered_again(bench: Bench, kind: AckType) -> None:
    bench.say(bench.deliver(1, 100), kind, 200)
    bench.deliver(2, 2_000, count=2)
    assert bench.found == [
        f"offset 5 was {kind.name} at 210 ms and delivered to member 2 again at 2010 ms"
    ]


def test_a_replaced_leader_may_deliver_anything(bench: Bench) -> None:
    bench.moved_ms = 150
    bench.say(bench.deliver(1, 160, broker=2), AckType.ACCEPT, 200)
    bench.deliver(2, 2_000, broker=1)
    assert bench.found == []


def test_a_request_that_was_under_way_may_be_answered_late(bench: Bench) -> None:
    bench.say(bench.deliver(1, 100), AckType.RELEASE, 110)
    bench.say(bench.deliver(2, 115), AckType.ACCEPT, 200)
    bench.deliver(3, 205)  # asked for before member 2 was told
    assert bench.found == []


def test_too_many_deliveries(bench: Bench) -> None:
    bench.deliver(1, 100, count=LIMIT)
    bench.deliver(1, 5_000, count=LIMIT + 1)
    assert bench.found == ["offset 5 was delivered with the count 4"]


def test_two_have_a_record(bench: Bench) -> None:
    bench.deliver(1, 100)
    bench.deliver(2, 500, count=2)
    bench.ledger.session_went_on(1, 500)
    assert bench.found == [], "its session may have ended before the second delivery"
    bench.ledger.session_went_on(1, 600)
    assert len(bench.found) == 1
    assert "delivered to member 2 at 510 ms, while member 1 had it since 110 ms" in bench.found[0]


def test_a_record_of_a_session_that_ended_is_free(bench: Bench) -> None:
    bench.deliver(1, 100)
    bench.deliver(2, 500, count=2)
    bench.ledger.session_ended(1)
    bench.ledger.session_went_on(1, 900)
    assert bench.found == []


def test_a_lock_that_is_over_is_no_lock(bench: Bench) -> None:
    bench.deliver(1, 100)
    bench.deliver(2, 100 + LOCK_MS, count=2)
    bench.ledger.session_went_on(1, 5_000)
    assert bench.found == []


def test_what_was_said_of_another_ones_record_is_taken(bench: Bench) -> None:
    mine = bench.deliver(1, 100)
    bench.deliver(2, 2_000, count=2)
    bench.say(mine, AckType.ACCEPT, 3_000)
    assert len(bench.found) == 1
    assert "ACCEPT of member 1 at 3000 ms was taken, although member 2" in bench.found[0]


def test_what_is_said_of_a_record_that_is_over_is_taken(bench: Bench) -> None:
    mine = bench.deliver(1, 100)
    bench.say(bench.deliver(2, 2_000, count=2), AckType.ACCEPT, 2_500)
    bench.say(mine, AckType.ACCEPT, 3_000)
    assert bench.found == []


def test_what_is_not_lost(bench: Bench) -> None:
    bench.say(bench.deliver(1, 100, offset=0), AckType.ACCEPT, 200, is_taken=False)
    refused = Ack(bench.deliver(1, 100, offset=1), AckType.ACCEPT, 200)
    bench.ledger.says(refused)
    bench.ledger.refused(refused)
    bench.deliver(1, 100, offset=2, count=LIMIT)
    bench.ledger.acquired(0, (3,), LIMIT)  # the answer is lost
    assert bench.ledger.lost(0, 5) == [1, 4]
