"""A broker that is gone is named for a little longer, with the address that it had."""

from typing import Any

import pytest

from ottla.broker.departed import NAMED_STILL_MS, DepartedBrokers
from ottla.controller.image import BrokerAppeared, BrokerImage, BrokerVanished


class Clock:
    def __init__(self) -> None:
        self.time_ms = 1_000

    def now_ms(self) -> int:
        raise AssertionError("the wall clock may go back")

    def monotonic_ms(self) -> int:
        return self.time_ms


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def departed(clock: Clock) -> DepartedBrokers:
    return DepartedBrokers(clock)


def broker(number: int, epoch: int = 1) -> BrokerImage:
    return BrokerImage(number, (), epoch=epoch)


def tell(departed: DepartedBrokers, *deltas: Any) -> None:
    for delta in deltas:
        departed.told(delta)


def test_who_is_registered_is_not_named_twice(departed: DepartedBrokers) -> None:
    tell(departed, BrokerAppeared(broker(1)), BrokerAppeared(broker(2)))
    assert departed.named_still() == ()


def test_who_is_gone_is_named_until_its_time_is_over(
    departed: DepartedBrokers, clock: Clock
) -> None:
    tell(departed, BrokerAppeared(broker(1)), BrokerAppeared(broker(2)), BrokerVanished(1))
    clock.time_ms += NAMED_STILL_MS - 1
    tell(departed, BrokerVanished(2))
    assert departed.named_still() == (broker(1), broker(2))
    clock.time_ms += 1
    assert departed.named_still() == (broker(2),)
    clock.time_ms += NAMED_STILL_MS
    assert departed.named_still() == ()


def test_who_is_back_is_a_registered_one(departed: DepartedBrokers) -> None:
    tell(departed, BrokerAppeared(broker(1)), BrokerVanished(1), BrokerAppeared(broker(1, 2)))
    assert departed.named_still() == ()
    tell(departed, BrokerVanished(1))
    assert departed.named_still() == (broker(1, 2),)


def test_who_was_never_known_has_no_address(departed: DepartedBrokers) -> None:
    tell(departed, BrokerVanished(1))
    assert departed.named_still() == ()
