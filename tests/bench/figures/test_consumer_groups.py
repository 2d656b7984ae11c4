from bench.brokers import running
from bench.epoch_members import EpochMembers
from bench.figures.consumer_groups import SETTINGS, requests
from bench.figures.start import first_produce
from bench.topics import create_topic
from confluent_kafka.admin import AdminClient


def test_a_group_is_stable_when_all_partitions_are_read() -> None:
    with running("Ottla", None, SETTINGS) as broker:
        create_topic(broker.address, "large", 8)
        admin = AdminClient({"bootstrap.servers": broker.address})

        def sizes() -> list[int]:
            described = admin.describe_consumer_groups(["g"])["g"].result(30)
            assert described.state.name == "STABLE"
            return sorted(len(each.assignment.topic_partitions) for each in described.members)

        with EpochMembers(broker.address, "g", "large", 4, 8) as group:
            assert group.until_stable(0.1) > 0
            assert sizes() == [2, 2, 2, 2]
            group.leave(2)
            group.until_stable(0.1)
            assert sizes() == [4, 4]
        first_produce(broker.address, "small", 0)
        for what in ("beat", "commit"):
            rate, cpu_us = requests(broker, what, 20)
            assert rate > 0
            assert cpu_us >= 0
