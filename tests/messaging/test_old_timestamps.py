"""Which records are warned of, how often, and when the topic's settings are asked for."""

from __future__ import annotations

import time

import pytest
from tests.client.answers import configs
from tests.client.fake_cluster import Answer, FakeCluster, silent

from ottla.client.admin.configs import DESCRIBE_CONFIGS
from ottla.messaging.jsonlines import Outgoing
from ottla.messaging.old_timestamps import OldTimestamps

DAY_MS = 86_400_000
USUAL = {
    "cleanup.policy": "delete",
    "message.timestamp.type": "CreateTime",
    "retention.ms": str(7 * DAY_MS),
}


class Topic:
    """The topic t with these settings; `asked` is how often they were read."""

    def __init__(self, *answers: Answer, **settings: str) -> None:
        known = USUAL | {name.replace("_", "."): value for name, value in settings.items()}
        answer = configs({("topic", "t"): dict(known)})
        self.cluster = FakeCluster({DESCRIBE_CONFIGS: answers or [answer]})

    @property
    def asked(self) -> int:
        return len(self.cluster.requests(DESCRIBE_CONFIGS))


def warned(topic: Topic, *ages_days: float | None) -> str:
    """What is said of records of these ages, on one line each."""
    now_ms = int(time.time() * 1000)
    times = [None if days is None else now_ms - int(days * DAY_MS) for days in ages_days]
    records = [Outgoing(None, b"v", timestamp_ms=each) for each in times]
    left = iter(records)
    said: list[str] = []
    watch = OldTimestamps(topic.cluster.client(), "t", said.append)
    decode = watch.watching(lambda _line: next(left))
    assert [decode(b"a line") for _ in records] == records
    return "\n".join(said)


def test_the_first_old_record_is_said_with_the_way_out() -> None:
    topic = Topic()
    said = warned(topic, None, 6.9, 12.01, 30)
    assert "the timestamp of line 3 is 12 days 0 h old" in said
    assert "t keeps records for 7 days (retention.ms)" in said
    assert said.endswith("To keep them: ottla config alter topic t retention.ms=-1")
    assert said.count("Warning") == 1
    assert topic.asked == 1


def test_records_of_now_ask_for_nothing() -> None:
    topic = Topic()
    assert warned(topic, None, None) == ""
    assert topic.asked == 0


@pytest.mark.parametrize(
    "topic",
    [
        Topic(cleanup_policy="compact"),
        Topic(message_timestamp_type="LogAppendTime"),
        Topic(retention_ms="-1"),
        Topic(silent),
    ],
)
def test_topics_that_keep_such_records(topic: Topic) -> None:
    assert warned(topic, 400, 500) == ""
    assert topic.asked == 1


def test_a_topic_that_deletes_and_compacts() -> None:
    assert "Warning" in warned(Topic(cleanup_policy="compact,delete"), 400)
