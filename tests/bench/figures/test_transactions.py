import json

import pytest
from bench.brokers import running
from bench.figures.commit_visibility import TOPIC, visibility_ms
from bench.figures.read_committed import ABORTED, RECORDS, write
from bench.figures.start import first_produce
from bench.figures.transactions import SETTINGS
from confluent_kafka import Consumer, TopicPartition

from bench import copying, transacting


def committed(address: str, topic: str) -> int:
    """Read partition 0 under read_committed; return the number of records."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "count",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    count = 0
    try:
        while True:
            message = consumer.poll(30)
            assert message is not None, "the consumer got nothing for 30 s"
            if message.error() is not None:
                return count
            count += 1
    finally:
        consumer.close()


def test_the_clients_write_what_they_report(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with running("Ottla", None, SETTINGS) as broker:
        for topic in ("load", "half-aborted", "copy", TOPIC):
            first_produce(broker.address, topic, 0)

        produced = ["transacting", broker.address, "load", "5", "0.02", "0.05"]
        monkeypatch.setattr("sys.argv", produced)
        transacting.main()
        found = json.loads(capsys.readouterr().out)
        assert found["records"] > 0
        assert found["commits_ms"]
        in_log = committed(broker.address, "load")
        assert in_log > found["records"]  # with the first record and the warm-up

        copied = ["copying", broker.address, "load", "copy", str(in_log), str(in_log // 3 + 1)]
        monkeypatch.setattr("sys.argv", copied)
        copying.main()
        found = json.loads(capsys.readouterr().out)
        assert found["records"] == in_log - (in_log // 3 + 1)
        assert committed(broker.address, "copy") == in_log + 1

        assert write(broker.address, "half-aborted", ABORTED) == (ABORTED - 1) * RECORDS
        assert committed(broker.address, "half-aborted") == (ABORTED - 1) * RECORDS + 1

        monkeypatch.setattr("bench.figures.commit_visibility.WARM_UP", 1)
        p50_ms, p99_ms = visibility_ms(broker.address, 3)
        assert 0 < p50_ms <= p99_ms
