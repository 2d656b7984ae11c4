"""/metrics as Prometheus sees it, off unless asked for."""

from __future__ import annotations

import re
import socket
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from prometheus_client.parser import text_string_to_metric_families

from ottla.testing.ports import free_ports

WAIT_S = 60
RECORDS = 500
PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"


def scrape(port: int) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Every sample, by name and labels."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=WAIT_S) as answer:
        assert answer.status == 200
        text = answer.read().decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_what_went_through_is_counted(new_broker: Callable[..., Any]) -> None:
    (port,) = free_ports(1)
    broker = new_broker("--config", f"ottla.metrics.listener=127.0.0.1:{port}")
    before = scrape(port)
    assert before["ottla_partitions", ()] == 0
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for _ in range(RECORDS):
        producer.produce("counted", b"x" * 100)
    assert producer.flush(WAIT_S) == 0
    topic = (("topic", "counted"),)
    after = scrape(port)
    assert after["ottla_topic_records_in_total", topic] == RECORDS
    assert after["ottla_topic_bytes_in_total", topic] > RECORDS * 100
    assert 1 <= after["ottla_topic_batches_in_total", topic] <= RECORDS
    assert after["ottla_topic_bytes_out_total", topic] == 0
    assert after["ottla_requests_total", (("api", "produce"),)] >= 1
    assert after["ottla_connections", ()] >= 1
    partition = (("partition", "0"), ("topic", "counted"))
    assert after["ottla_partition_end_offset", partition] == RECORDS
    assert after["ottla_partition_start_offset", partition] == 0
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": "g"}
    consumer = Consumer({**settings, "auto.offset.reset": "earliest"})
    consumer.subscribe(["counted"])
    assert len(consumer.consume(RECORDS, timeout=WAIT_S)) == RECORDS
    assert scrape(port)["ottla_topic_bytes_out_total", topic] > RECORDS * 100
    consumer.close()
    assert broker.stop() == 0
    assert "Traceback" not in broker.said()


def test_the_page_lists_every_metric(new_broker: Callable[..., Any]) -> None:
    (port,) = free_ports(1)
    new_broker("--config", f"ottla.metrics.listener=127.0.0.1:{port}")
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=WAIT_S) as answer:
        kinds = re.findall(r"^# TYPE (\S+) (\S+)$", answer.read().decode(), re.MULTILINE)
    page = re.findall(r"^\| `(\w+)[^|]*` \| (\w+) \|", PAGE.read_text(), re.MULTILINE)
    assert sorted(page) == sorted(kinds)


def test_a_port_in_use_ends_the_start_with_one_line(new_broker: Callable[..., Any]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(AssertionError, match="ottla serve: ") as refused:
            new_broker("--config", f"ottla.metrics.listener={address}")
        assert "Traceback" not in str(refused.value)
