"""What a client of librdkafka says of itself is at hand when a run fails."""

import time

from confluent_kafka import Consumer
from faults.client_log import MAX_LINES, ClientLog

from ottla.testing.ports import free_ports


def test_the_last_lines_of_a_group_member_are_kept() -> None:
    log = ClientLog("consumer-3")
    consumer = Consumer(
        {
            "bootstrap.servers": f"127.0.0.1:{free_ports(1)[0]}",
            "group.id": "g",
            "debug": "cgrp",
            "logger": log.logger,
        }
    )
    consumer.subscribe(["t"])
    limit = time.monotonic() + 60
    while not any("no broker available for coordinator query" in each for each in log.last_lines()):
        consumer.poll(0.05)
        assert time.monotonic() < limit
    consumer.close()
    lines = log.last_lines()
    assert len(lines) <= MAX_LINES
    assert all(each.startswith("consumer-3: 20") for each in lines)
