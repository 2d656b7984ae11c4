from ottla.controller.image import (
    NO_LEADER,
    BrokerAppeared,
    BrokerImage,
    ClusterImage,
    DirectoryChanged,
    DirectoryImage,
    PartitionState,
)
from ottla.replication.life import in_this_life, knows_this_life

LED = PartitionState(1, 5, (1, 2), (1, 2), 9)


def image(directory_epoch: int | None) -> ClusterImage:
    image = ClusterImage("c")
    if directory_epoch is not None:
        image.apply(DirectoryChanged(1, DirectoryImage("d", directory_epoch, 0)))
    return image


def test_a_life_is_known_from_its_first_registration_on() -> None:
    assert not knows_this_life(image(None), 1, 30)
    assert not knows_this_life(image(29), 1, 30)
    assert knows_this_life(image(30), 1, 30)
    assert knows_this_life(image(31), 1, 30)


def test_an_unregistered_broker_is_known_to_nobody() -> None:
    assert not knows_this_life(image(29), 1, -1)


def test_being_among_the_registered_is_not_enough() -> None:
    read_only = image(29)
    read_only.apply(BrokerAppeared(BrokerImage(1, (), epoch=30)))
    assert not knows_this_life(read_only, 1, 30)


def test_nobody_leads_by_an_epoch_of_a_former_life() -> None:
    """Seeds 538 and 546 of the simulation: an empty disk led in its old epoch."""
    assert in_this_life(LED, image(29), 1, 30) == LED._replace(leader=NO_LEADER)
    assert in_this_life(LED, image(30), 1, 30) == LED


def test_nobody_is_followed_in_the_name_of_a_former_life() -> None:
    others = LED._replace(leader=2)
    assert in_this_life(others, image(None), 1, -1) == LED._replace(leader=NO_LEADER)
    assert in_this_life(others, image(30), 1, 30) == others


def test_a_sole_replica_leads_at_once() -> None:
    alone = LED._replace(replicas=(1,), isr=(1,))
    assert in_this_life(alone, image(None), 1, -1) == alone


def test_another_broker_that_took_the_number_is_not_this_one() -> None:
    """This one was away for longer than its session, and somebody replaced it."""
    taken = image(40)
    assert knows_this_life(taken, 1, 30, "d")
    assert not knows_this_life(taken, 1, 30, "mine")
    assert in_this_life(LED, taken, 1, 30, "mine") == LED._replace(leader=NO_LEADER)
