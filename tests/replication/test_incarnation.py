from ottla.controller.image import (
    NO_LEADER,
    BrokerAppeared,
    BrokerImage,
    ClusterImage,
    DirectoryChanged,
    DirectoryImage,
    PartitionState,
)
from ottla.replication.incarnation import in_this_incarnation, knows_this_incarnation

LED = PartitionState(1, 5, (1, 2), (1, 2), 9)


def image(directory_epoch: int | None) -> ClusterImage:
    image = ClusterImage("c")
    if directory_epoch is not None:
        image.apply(DirectoryChanged(1, DirectoryImage("d", directory_epoch, 0)))
    return image


def test_an_incarnation_is_known_from_its_first_registration() -> None:
    assert not knows_this_incarnation(image(None), 1, 30)
    assert not knows_this_incarnation(image(29), 1, 30)
    assert knows_this_incarnation(image(30), 1, 30)
    assert knows_this_incarnation(image(31), 1, 30)


def test_an_unregistered_broker_is_unknown() -> None:
    assert not knows_this_incarnation(image(29), 1, -1)


def test_a_registration_alone_is_not_enough() -> None:
    read_only = image(29)
    read_only.apply(BrokerAppeared(BrokerImage(1, (), epoch=30)))
    assert not knows_this_incarnation(read_only, 1, 30)


def test_no_leader_in_an_epoch_of_an_earlier_incarnation() -> None:
    """Seeds 538 and 546 of the simulation: an empty disk led in its old epoch."""
    assert in_this_incarnation(LED, image(29), 1, 30) == LED._replace(leader=NO_LEADER)
    assert in_this_incarnation(LED, image(30), 1, 30) == LED


def test_no_follower_in_an_epoch_of_an_earlier_incarnation() -> None:
    others = LED._replace(leader=2)
    assert in_this_incarnation(others, image(None), 1, -1) == LED._replace(leader=NO_LEADER)
    assert in_this_incarnation(others, image(30), 1, 30) == others


def test_a_sole_replica_leads_at_once_after_a_clean_stop() -> None:
    """After any other one, or with the folder of an earlier one, the controller changes its epoch:
    records written before that would hide which ones were lost.
    """
    alone = LED._replace(replicas=(1,), isr=(1,))
    waits = alone._replace(leader=NO_LEADER)
    assert in_this_incarnation(alone, image(29), 1, -1, previous_epoch=29) == alone
    assert in_this_incarnation(alone, image(29), 1, -1, "d", previous_epoch=29) == alone
    assert in_this_incarnation(alone, image(29), 1, -1, "other", previous_epoch=29) == waits
    assert in_this_incarnation(alone, image(29), 1, -1, previous_epoch=28) == waits
    assert in_this_incarnation(alone, image(29), 1, -1) == waits
    assert in_this_incarnation(alone, image(None), 1, -1, previous_epoch=29) == waits
    assert in_this_incarnation(alone, image(30), 1, 30) == alone
    assert in_this_incarnation(LED, image(29), 1, -1, previous_epoch=29).leader == NO_LEADER


def test_another_broker_with_the_same_number_is_not_this_one() -> None:
    """This broker's session expired, and another broker registered with its number."""
    taken = image(40)
    assert knows_this_incarnation(taken, 1, 30, "d")
    assert not knows_this_incarnation(taken, 1, 30, "mine")
    assert in_this_incarnation(LED, taken, 1, 30, "mine") == LED._replace(leader=NO_LEADER)
