"""The load on one broker: its history has no anomalies, even after a restart."""

import time
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic
from faults.anomaly import Policy
from faults.checker import check
from faults.clients import Rate
from faults.history import Acknowledged, Committed, FinalRead, Polled, Recorder, Sent
from faults.load import Load

from ottla.testing import BrokerProcess


def test_a_restart_under_load_has_no_anomalies(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "history", lambda: time.monotonic_ns() // 1_000_000)
    with BrokerProcess(tmp_path / "data") as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.create_topics([NewTopic("t", 2, 1)])["t"].result(20)
        rate = Rate(producers=2, consumers=2, records_per_s=400)
        load = Load(broker.bootstrap, "t", 2, recorder, Policy.strict, rate)
        load.start()
        wait_for(recorder, Committed)
        broker.stop()
        broker.start()
        before = count(recorder, Polled)
        wait_for(recorder, Polled, before)
        load.stop()
        load.read_all()
    recorder.close()
    events = recorder.events
    assert check(events, Policy.strict).anomalies == ()
    acknowledged = sum(isinstance(event, Acknowledged) for event in events)
    assert acknowledged == sum(isinstance(event, Sent) for event in events)
    assert acknowledged == sum(len(e.records) for e in events if isinstance(e, FinalRead))


def count(recorder: Recorder, kind: type) -> int:
    return sum(isinstance(event, kind) for event in recorder.events)


def wait_for(recorder: Recorder, kind: type, before: int = 0) -> None:
    until = time.monotonic() + 30
    while count(recorder, kind) <= before:
        assert time.monotonic() < until, f"no {kind.__name__} came"
        time.sleep(0.05)
