"""Metadata lists a departed broker for a short time, with its last address."""

from typing import Any

import pytest

from ottla.cluster.departed import VISIBLE_MS, DepartedBrokers
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


def notify(departed: DepartedBrokers, *deltas: Any) -> None:
    for delta in deltas:
        departed.notified(delta)


def test_a_registered_broker_is_not_listed_twice(departed: DepartedBrokers) -> None:
    notify(departed, BrokerAppeared(broker(1)), BrokerAppeared(broker(2)))
    assert departed.visible() == ()


def test_a_departed_broker_is_visible_for_a_limited_time(
    departed: DepartedBrokers, clock: Clock
) -> None:
    notify(departed, BrokerAppeared(broker(1)), BrokerAppeared(broker(2)), BrokerVanished(1))
    clock.time_ms += VISIBLE_MS - 1
    notify(departed, BrokerVanished(2))
    assert departed.visible() == (broker(1), broker(2))
    clock.time_ms += 1
    assert departed.visible() == (broker(2),)
    clock.time_ms += VISIBLE_MS
    assert departed.visible() == ()


def test_a_returned_broker_is_a_registered_one(departed: DepartedBrokers) -> None:
    notify(departed, BrokerAppeared(broker(1)), BrokerVanished(1), BrokerAppeared(broker(1, 2)))
    assert departed.visible() == ()
    notify(departed, BrokerVanished(1))
    assert departed.visible() == (broker(1, 2),)


def test_an_unknown_broker_is_not_visible(departed: DepartedBrokers) -> None:
    notify(departed, BrokerVanished(1))
    assert departed.visible() == ()
