from uuid import UUID

from ottla.cluster.topic_settings import TopicSettings
from ottla.config import BrokerConfig
from ottla.controller.image import ClusterImage, TopicCreated, TopicImage


def test_a_topics_own_settings_override_the_brokers() -> None:
    image = ClusterImage("c")
    settings = TopicSettings(BrokerConfig({"log.retention.ms": "1234"}), image)
    assert settings.log_config("t").retention_ms == 1234
    image.apply(TopicCreated(TopicImage("t", UUID(int=1), (), {"retention.ms": "5"})))
    assert settings.log_config("t").retention_ms == settings.topic_config("t").retention_ms == 5
    assert settings.log_config("unknown").retention_ms == 1234
