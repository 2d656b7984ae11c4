"""Which leaders a delta elects, and why."""

from __future__ import annotations

from uuid import UUID

import pytest

from ottla.controller.elected import Elected, Why, elected
from ottla.controller.image import (
    NO_LEADER,
    BrokerVanished,
    ClusterImage,
    PartitionsChanged,
    PartitionState,
    TopicCreated,
    TopicImage,
)

IN_SYNC = PartitionState(1, 4, (1, 2, 3), (1, 2, 3), 0)


def topic(*states: PartitionState) -> TopicImage:
    return TopicImage("t", UUID(int=1), states, {})


def after(image: ClusterImage, before: PartitionState, state: PartitionState) -> PartitionsChanged:
    """The delta from one state to the other, of partition 1 of two."""
    image.apply(TopicCreated(topic(before, before)))
    return PartitionsChanged(topic(before, state), (1,))


@pytest.mark.parametrize(
    ("before", "leader", "isr", "replicas", "live", "why"),
    [
        (IN_SYNC, 2, (2, 3), (1, 2, 3), (2, 3), Why.DOWN),
        (IN_SYNC, 2, (2, 3), (1, 2, 3), (1, 2, 3), Why.MOVED),
        (IN_SYNC._replace(leader=2), 1, (1, 2), (1, 2, 3), (1, 2, 3), Why.PREFERRED),
        (IN_SYNC._replace(leader=2), 1, (1,), (1, 2, 3), (1, 3), Why.DOWN),
        (IN_SYNC._replace(leader=3), 1, (1, 2), (1, 2), (1, 2, 3), Why.REMOVED),
        (IN_SYNC._replace(isr=(1,)), 2, (2,), (1, 2, 3), (2, 3), Why.UNCLEAN),
        (IN_SYNC._replace(isr=(1,)), NO_LEADER, (1,), (1, 2, 3), (2, 3), Why.OFFLINE),
        (IN_SYNC._replace(leader=NO_LEADER), 1, (1,), (1, 2, 3), (1, 2, 3), Why.RETURNED),
    ],
)
def test_why(
    image: ClusterImage,
    before: PartitionState,
    leader: int,
    isr: tuple[int, ...],
    replicas: tuple[int, ...],
    live: tuple[int, ...],
    why: Why,
) -> None:
    for number in {1, 2, 3} - set(live):
        image.apply(BrokerVanished(number))
    state = before._replace(leader=leader, leader_epoch=5, isr=isr, replicas=replicas)
    delta = after(image, before, state)
    assert list(elected(image, delta)) == [Elected("t", 1, before.leader, leader, 5, why)]


def test_a_leader_that_stops_or_was_restarted(image: ClusterImage) -> None:
    delta = after(image, IN_SYNC, IN_SYNC._replace(leader=2, leader_epoch=5))
    (stops,) = elected(image, delta, stopping={1})
    (restarted,) = elected(image, delta, stopping={1}, restarted={1})
    assert (stops.why, restarted.why) == (Why.STOPS, Why.RESTARTED)


def test_what_is_no_election(image: ClusterImage) -> None:
    delta = after(image, IN_SYNC, IN_SYNC._replace(isr=(1, 2)))
    assert list(elected(image, delta)) == []
    assert list(elected(image, BrokerVanished(1))) == []
    unknown = PartitionsChanged(TopicImage("other", UUID(int=2), (IN_SYNC,), {}), (0,))
    assert list(elected(image, unknown)) == []
