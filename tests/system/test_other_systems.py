"""A broker without the calls that only Linux has, as on macOS, which no test here can run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

WITHIN_S = 60
RECORDS = 300
# Python imports this module at its start, before anything of the broker.
REMOVED = """
import os, sys
for name in ("fdatasync", "posix_fallocate", "posix_fadvise", "RWF_NOWAIT"):
    if hasattr(os, name):
        delattr(os, name)
sys.modules["uvloop"] = None
"""


def test_records_survive_a_kill_and_are_read_from_the_disk(
    new_broker: Callable[..., Any], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "system").mkdir()
    (tmp_path / "system" / "sitecustomize.py").write_text(REMOVED)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "system"))
    broker = new_broker("-c", "log.flush.interval.messages=1", "-c", "log.preallocate=true")
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(RECORDS):
        producer.produce("records", b"%d" % number)
    assert producer.flush(WITHIN_S) == 0
    broker.kill()
    broker.start()
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": "g"}
    consumer = Consumer({**settings, "auto.offset.reset": "earliest"})
    consumer.subscribe(["records"])
    found = consumer.consume(RECORDS, timeout=WITHIN_S)
    assert [message.value() for message in found] == [b"%d" % number for number in range(RECORDS)]
    consumer.close()
    assert broker.stop() == 0
    assert "Traceback" not in broker.said()
