"""How many connections an address may open."""

from ottla.quotas.connections import MAX_ADDRESSES, ConnectionRates, address
from ottla.quotas.entity import DEFAULT
from ottla.quotas.rate import Windows


def rates() -> ConnectionRates:
    return ConnectionRates(Windows(11, 1_000))


def test_an_address_over_its_rate_waits_at_most_a_window() -> None:
    connections = rates()
    assert not connections.is_on
    connections.set("10.0.0.7", 2)
    assert connections.is_on
    assert [connections.opened("10.0.0.7", 0) for _ in range(20)] == [0] * 20
    assert [connections.opened("10.0.0.7", 0) for _ in range(3)] == [500] * 3
    assert connections.opened("10.0.0.8", 0) == 0
    # Those that were refused do not count.
    assert connections.opened("10.0.0.7", 10_400) == 100
    assert connections.opened("10.0.0.7", 10_500) == 0


def test_the_default_is_for_all_without_their_own() -> None:
    connections = rates()
    connections.set(DEFAULT, 1)
    connections.set("::1", 100)
    assert [connections.opened("::1", 0) for _ in range(50)] == [0] * 50
    assert sum(1 for _ in range(50) if connections.opened("10.0.0.1", 0) == 0) == 10
    connections.set("::1", None)
    connections.set(DEFAULT, None)
    assert not connections.is_on
    assert len(connections) == 0


def test_addresses_are_compared_as_addresses() -> None:
    assert address("0:0:0:0:0:0:0:1") == "::1"
    assert address("::ffff:10.0.0.7") == "10.0.0.7"
    assert address("fe80::1%eth0") == "fe80::1"


def test_the_number_of_addresses_kept_is_bounded() -> None:
    connections = rates()
    connections.set(DEFAULT, 1)
    for number in range(2 * MAX_ADDRESSES):
        connections.opened(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", 0)
        assert len(connections) <= MAX_ADDRESSES
