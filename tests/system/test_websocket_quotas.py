"""Quotas over a listener that speaks WebSocket: for clients, and for pages."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import confluent_kafka
from tests.system.test_quotas import alter, produce
from tests.system.test_websocket import started
from tests.system.test_websocket_json import Site
from tests.system.websocket_bridge import bridge

from ottla.testing import BrokerProcess
from ottla.testing.ports import HOST, free_ports

WAIT_S = 30


def test_a_client_is_told_how_long_it_has_to_wait(new_broker: Callable[..., BrokerProcess]) -> None:
    plain, outside, inside = free_ports(3)
    started(
        new_broker,
        listeners=f"PLAINTEXT://{HOST}:{plain},WS://{HOST}:{inside}",
        listener_security_protocol_map="PLAINTEXT:PLAINTEXT,WS:PLAINTEXT",
        advertised_listeners=f"PLAINTEXT://{HOST}:{plain},WS://{HOST}:{outside}",
        ottla_websocket_listeners="WS",
    )
    alter(f"{HOST}:{plain}", {"client-id": "slow"}, producer_byte_rate=1)
    alter(f"{HOST}:{plain}", {"client-id": "reads"}, consumer_byte_rate=20_000)
    with bridge(outside, f"ws://{HOST}:{inside}"):
        settings: dict[str, Any] = {"bootstrap.servers": f"{HOST}:{outside}", "linger.ms": 0}
        (throttle_ms, *_) = produce(settings | {"client.id": "slow"}, "t", bytes(200))
        assert throttle_ms > 100_000
        values = [b"%d" % number * 1000 for number in range(40)]
        quick = settings | {"client.id": "quick", "batch.num.messages": 1}
        assert produce(quick, "u", *values) == []
        assert consumed(settings | {"client.id": "reads"}, len(values)) == values


def consumed(settings: dict[str, Any], count: int) -> list[bytes]:
    """Throttled between its fetches, and nothing is lost."""
    throttled: list[float] = []
    consumer = confluent_kafka.Consumer(
        {name: value for name, value in settings.items() if name != "linger.ms"}
        | {
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "fetch.max.bytes": 8_000,
            "message.max.bytes": 8_000,
            "throttle_cb": lambda event: throttled.append(event.throttle_time),
        }
    )
    consumer.subscribe(["u"])
    found: list[bytes] = []
    until_s = time.monotonic() + WAIT_S
    while len(found) < count and time.monotonic() < until_s:
        found += [message.value() for message in consumer.consume(100, 0.5)]
    consumer.close()
    return found


def test_a_page_that_writes_too_much_is_answered_and_then_not_read(
    new_broker: Callable[..., BrokerProcess],
) -> None:
    site = Site(new_broker)
    site.create("t")
    bootstrap = site.settings["bootstrap.servers"]
    alter(bootstrap, {"client-id": "ottla.json"}, producer_byte_rate=200)
    with site.page() as page, site.page() as other:
        assert page.ask(type="produce", id=1, topic="t", value="a" * 3_000)["offset"] == 0
        began_s = time.monotonic()
        # The quota is that of all pages; who has not used it up for itself is read.
        opened = other.ask(type="subscribe", id=2, topic="t", **{"from": "earliest"}, permits=9)
        assert opened["type"] == "subscribed"
        assert other.values(1) == ["a" * 3_000]
        assert page.ask(type="produce", id=3, topic="t", value="b")["offset"] == 1
        assert time.monotonic() - began_s >= 1
        assert other.values(1) == ["b"]


def test_a_page_over_its_quota_gets_every_record_later(
    new_broker: Callable[..., BrokerProcess],
) -> None:
    site = Site(new_broker)
    site.create("t")
    values = [b"%d" % number * 1000 for number in range(40)]
    for value in values:
        site.produce(value)
    bootstrap = site.settings["bootstrap.servers"]
    alter(bootstrap, {"user": "ANONYMOUS"}, consumer_byte_rate=20_000)
    with site.page() as page:
        page.ask(type="subscribe", id=1, topic="t", **{"from": "earliest"}, permits=100)
        assert page.values(len(values)) == [value.decode() for value in values]
