"""Who is let in and when, without sockets."""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace

import pytest

from ottla.config import BrokerConfig
from ottla.network.admission import MAX_ENDING, Admission, Arrival
from ottla.network.connection_limits import ConnectionLimits


class Door:
    """The listeners of one broker; what has happened to each arrival, by its name."""

    def __init__(self, **given: str) -> None:
        settings = {name.replace("_", "."): value for name, value in given.items()}
        self.config = BrokerConfig(settings)
        self.limits = ConnectionLimits(self.config)
        self.now_ms = 1_000
        self.throttles: dict[str, int] = {}
        self.happened: list[str] = []
        self.open: dict[str, list[SimpleNamespace]] = {}

    def listener(self, name: str = "PLAINTEXT", *, is_protected: bool = False) -> Admission:
        connections = self.open[name] = []
        return Admission(
            name,
            self.config,
            self.config.security_of(name),
            self.limits,
            is_protected=is_protected,
            throttle_ms=lambda host: self.throttles.get(host, 0),
            connections=lambda: connections,
            monotonic_ms=lambda: self.now_ms,
        )

    def arrives(self, admission: Admission, name: str, host: str = "10.0.0.1") -> Arrival:
        def happens(what: str) -> None:
            self.happened.append(f"{name} {what}")

        return admission.arrive(host, lambda: happens("begins"), lambda: happens("ends"))

    def connected(self, admission: Admission, listener: str, name: str, active_ms: int) -> None:
        """Arrives, and is open since then."""
        self.arrives(admission, name)

        def abort() -> None:
            self.happened.append(f"{name} is aborted")

        self.open[listener].append(SimpleNamespace(active_ms=active_ms, abort=abort))

    async def until(self, *happened: str) -> None:
        async with asyncio.timeout(20):
            while len(self.happened) < len(happened):
                await asyncio.sleep(0.001)
        assert self.happened == list(happened)


async def test_those_over_the_limit_wait_in_the_order_of_arrival(
    caplog: pytest.LogCaptureFixture,
) -> None:
    door = Door(max_connections="1")
    admission = door.listener()
    first, second, third, fourth = [door.arrives(admission, each) for each in "abcd"]
    assert door.happened == ["a begins"]
    assert second.is_waiting
    assert "connections to listener PLAINTEXT wait: 1 are open" in caplog.text
    admission.leave(third)  # while it waits
    admission.leave(first)
    await door.until("a begins", "b begins")
    admission.leave(second)
    await door.until("a begins", "b begins", "d begins")
    admission.leave(fourth)
    assert (door.limits.count, door.limits.held, door.limits.waiting) == (0, 0, 0)


async def test_the_limit_is_of_all_listeners_together() -> None:
    door = Door(max_connections="2", listener_name_two_max_connections="1")
    one, two = door.listener("ONE"), door.listener("TWO")
    first = door.arrives(two, "a")
    door.arrives(two, "b")  # the listener's own limit
    door.arrives(one, "c")
    door.arrives(one, "d")  # the limit of all
    assert door.happened == ["a begins", "c begins"]
    two.leave(first)
    await asyncio.sleep(0.01)
    assert len(door.happened) == 3, "one place is one connection, of either listener"


async def test_a_broker_gets_the_place_of_the_connection_that_was_idle_longest() -> None:
    door = Door(max_connections="3")
    inside, outside = door.listener("INSIDE", is_protected=True), door.listener("OUTSIDE")
    door.connected(outside, "OUTSIDE", "busy", active_ms=900)
    door.connected(outside, "OUTSIDE", "idle", active_ms=100)
    door.connected(inside, "INSIDE", "other broker", active_ms=1)
    begun = ["busy begins", "idle begins", "other broker begins"]
    assert door.happened == begun
    door.arrives(inside, "broker")
    assert door.happened == [*begun, "broker begins", "idle is aborted"]
    door.arrives(outside, "client")
    assert door.happened == [*begun, "broker begins", "idle is aborted"], "a client waits"


async def test_brokers_have_a_limit_of_their_own() -> None:
    door = Door(max_connections="1", listener_name_inside_max_connections="2")
    inside = door.listener("INSIDE", is_protected=True)
    for name in "abc":
        door.arrives(inside, name)
    assert door.happened == ["a begins", "b begins"]


async def test_a_changed_limit_counts_at_once() -> None:
    door = Door(max_connections="1")
    admission = door.listener()
    door.connected(admission, "PLAINTEXT", "a", active_ms=1)
    door.arrives(admission, "b")
    door.config.reconfigure({"max.connections": "2"}, {})
    door.limits.changed()
    await door.until("a begins", "b begins")
    door.config.reconfigure({"max.connections": "1"}, {})
    door.limits.changed()
    assert door.happened[2:] == ["a is aborted"]


async def test_more_than_the_rate_wait() -> None:
    """Eleven windows of a second at one a second; then each waits its time, a second at most."""
    door = Door(max_connection_creation_rate="1")
    admission = door.listener()
    for number in range(11):
        door.arrives(admission, str(number))
    # As in Kafka, the time before a window has passed does not count: ten in a burst.
    assert door.happened == [f"{number} begins" for number in range(10)]
    door.now_ms += 1_000
    admission.proceed()
    assert door.happened[-1] == "10 begins"
    admission.close()


async def test_only_their_own_rate_is_for_brokers() -> None:
    door = Door(
        max_connection_creation_rate="1", listener_name_inside_max_connection_creation_rate="100"
    )
    inside, outside = door.listener("INSIDE", is_protected=True), door.listener("OUTSIDE")
    for _ in range(50):
        door.arrives(inside, "broker")
    assert len(door.happened) == 50
    for _ in range(20):
        door.arrives(outside, "client")
    assert len(door.happened) == 60
    outside.close()


async def test_who_comes_too_often_is_closed_later_and_does_not_count() -> None:
    door = Door(max_connections="1", max_connection_creation_rate="1")
    admission = door.listener()
    door.throttles["10.0.0.7"] = 20
    for number in range(30):
        door.arrives(admission, str(number), "10.0.0.7")
    assert door.happened == []
    door.arrives(admission, "other")
    assert door.happened == ["other begins"], "neither their number nor their rate counts"
    async with asyncio.timeout(20):
        while len(door.happened) < 31:
            await asyncio.sleep(0.001)
    assert door.limits.held == 1


async def test_those_who_come_too_often_do_not_use_up_the_files() -> None:
    door = Door()
    admission = door.listener()
    door.throttles["10.0.0.7"] = 60_000
    for number in range(MAX_ENDING + 2):
        door.arrives(admission, str(number), "10.0.0.7")
    assert door.happened == ["0 ends", "1 ends"]
    assert door.limits.held == MAX_ENDING
    admission.close()
    assert door.limits.held == 0


async def test_too_many_of_one_address_are_refused(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    door = Door(max_connections_per_ip="1")
    admission = door.listener()
    for name in "abc":
        door.arrives(admission, name)
    assert door.happened == ["a begins", "b ends", "c ends"]
    assert door.limits.refused == 2
    assert "the last from 10.0.0.1: 1 from it are open" in caplog.text


async def test_those_that_wait_do_not_count_for_their_address() -> None:
    """As in Kafka's ConnectionQuotas.inc, which waits for a place before it counts."""
    door = Door(max_connections_per_ip="1", max_connections="1")
    admission = door.listener()
    first = door.arrives(admission, "a", "10.0.0.2")
    door.arrives(admission, "b")
    door.arrives(admission, "c")
    assert door.happened == ["a begins"], "both wait"
    admission.leave(first)
    await door.until("a begins", "b begins")
    assert admission.waiting == 1
    assert door.limits.refused == 0


async def test_a_limited_number_waits() -> None:
    door = Door(max_connections="0", socket_listen_backlog_size="2")
    admission = door.listener()
    for name in "abc":
        door.arrives(admission, name)
    assert door.happened == ["c ends"]
    admission.close()
    assert door.happened == ["c ends", "a ends", "b ends"]
    assert door.limits.held == 0
