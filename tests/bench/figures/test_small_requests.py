from bench.brokers import running
from bench.figures.small_requests import CLIENTS, commit
from bench.figures.start import first_produce
from confluent_kafka import Consumer, TopicPartition


def test_every_consumer_commits_its_offsets() -> None:
    with running("Ottla", None) as broker:
        for number in range(CLIENTS):
            first_produce(broker.address, f"small-{number}", 0)
        rate, cpu_microseconds = commit(broker, 5)
        assert rate > 0
        assert cpu_microseconds >= 0
        for number in range(CLIENTS):
            consumer = Consumer(
                {"bootstrap.servers": broker.address, "group.id": f"group-{number}"}
            )
            try:
                (kept,) = consumer.committed([TopicPartition(f"small-{number}", 0)], timeout=30)
                assert kept.offset == 5
            finally:
                consumer.close()
