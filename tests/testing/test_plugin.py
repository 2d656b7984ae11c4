"""The plugin's fixtures in the test run of another project."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

THEIR_TESTS = """
from confluent_kafka import Consumer, Producer

seen = []

def test_first(ottla_broker):
    seen.append(ottla_broker.process.pid)
    producer = Producer({"bootstrap.servers": ottla_broker.bootstrap})
    producer.produce("orders", b"one")
    assert producer.flush(20) == 0

def test_second(ottla_broker):
    assert seen == [ottla_broker.process.pid]
    open("pid", "w").write(str(ottla_broker.process.pid))
    consumer = Consumer(
        {"bootstrap.servers": ottla_broker.bootstrap, "group.id": "g",
         "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["orders"])
    message = consumer.poll(20)
    assert message.value() == b"one"
    consumer.close()

def test_failing(ottla_broker):
    assert False
"""


def test_one_broker_serves_the_run_and_ends_even_if_a_test_fails(tmp_path: Path) -> None:
    (tmp_path / "test_theirs.py").write_text(THEIR_TESTS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "test_theirs.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "1 failed, 2 passed" in done.stdout, done.stdout + done.stderr
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text()}").exists()
