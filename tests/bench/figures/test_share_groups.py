import pytest
from bench.brokers import running
from bench.figures.share_groups import PARTITIONS, fill, read_all, stream
from bench.topics import create_topic

from bench.figures import share_groups


def test_all_records_are_read_and_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share_groups, "WARM_UP", 0)
    quick = {  # a member learns what it reads with its second heartbeat
        "group.share.min.heartbeat.interval.ms": "100",
        "group.share.heartbeat.interval.ms": "300",
    }
    with running("Ottla", None, share_groups.SETTINGS | quick) as broker:
        create_topic(broker.address, "work", PARTITIONS)
        fill(broker, 5_000)
        assert read_all(broker, "two", 2, 5_000) > 0
        create_topic(broker.address, "stream", 1)
        median_ms, worst_ms = stream(broker, 1)
        assert 0 < median_ms <= worst_ms
