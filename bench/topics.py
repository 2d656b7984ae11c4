"""Topics that a figure needs."""

from confluent_kafka.admin import AdminClient, NewTopic

WAIT_SECONDS = 60.0


def create_topic(address: str, topic: str, partitions: int) -> None:
    """With one replica."""
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    for each in admin.create_topics([NewTopic(topic, partitions, 1)]).values():
        each.result(WAIT_SECONDS)
