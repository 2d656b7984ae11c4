"""Moving a group's offsets: a plan, then what it says."""

from __future__ import annotations

import html
import re

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as PartitionAt
from tests.console.served_console import Got, Visitor

from ottla.client.admin.offset_moves import Move, commit_moves
from ottla.client.admin.share_offsets import share_commits_of
from ottla.client.client import Client
from ottla.client.topic_partition import TopicPartition
from ottla.console.errors import BadFormError
from ottla.console.pages.group_reset import read_moves, written_moves
from ottla.testing import Topic


def test_a_plan_in_a_form() -> None:
    moves = [Move("a.b", 0, None, 7, ""), Move("a.b", 1, 5, 0, "")]
    text = written_moves(moves)
    assert read_moves(text) == {
        TopicPartition("a.b", 0): (None, 7),
        TopicPartition("a.b", 1): (5, 0),
    }
    for wrong in ("", "a 0 1", "a 0 1 -", "a x 1 2", "a 0 -1 2", "a 0 1 99999999999999999999"):
        with pytest.raises(BadFormError):
            read_moves(wrong)


@pytest.fixture
def group(ottla_topic: Topic) -> str:
    producer = Producer({"bootstrap.servers": ottla_topic.bootstrap})
    for number in range(10):
        producer.produce(ottla_topic.name, str(number), timestamp=1_700_000_000_000 + number)
    producer.flush()
    name = f"<i>{ottla_topic.name}"
    commit(ottla_topic, name, 6)
    return name


def commit(topic: Topic, group: str, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": topic.bootstrap, "group.id": group})
    consumer.commit(offsets=[PartitionAt(topic.name, 0, offset)], asynchronous=False)
    consumer.close()


def moves_of(page: Got) -> str:
    found = re.search(r'name="moves" value="([^"]*)"', page.text)
    assert found is not None, page.words
    return html.unescape(found[1])


@pytest.mark.parametrize(
    ("to", "value", "said"),
    [
        ("earliest", "", "6 0 -6"),
        ("latest", "", "6 10 +4"),
        ("offset", "3", "6 3 -3"),
        ("offset", "99", "6 10 +4 99 is outside the log"),
        ("shift", "-2", "6 4 -2"),
        ("time", "1700000000008", "6 8 +2"),
    ],
)
def test_a_plan_changes_nothing(
    visitor: Visitor, ottla_topic: Topic, group: str, to: str, value: str, said: str
) -> None:
    plan = visitor.post("/group/plan", name=group, to=to, value=value)
    assert f"{ottla_topic.name} 0 {said}" in plan.words
    assert "Nothing is changed yet." in plan.words
    assert "<i>" not in plan.text
    assert "Lag 4" in visitor.get(f"/group?name=%3Ci%3E{ottla_topic.name}").words


def test_what_the_plan_says_is_done(visitor: Visitor, ottla_topic: Topic, group: str) -> None:
    plan = visitor.post("/group/plan", name=group, to="earliest", topic=ottla_topic.name)
    assert "6 records read again." in plan.words
    done = visitor.post("/group/apply", name=group, moves=moves_of(plan))
    assert f"Moved 1 partition of {group}." in done.words
    assert "Lag 10" in done.words
    late = visitor.post("/group/apply", name=group, moves=moves_of(plan))
    assert late.status == 409
    assert "is at 0 by now, not at 6" in late.words


def test_what_cannot_be_planned(visitor: Visitor, group: str) -> None:
    for fields, status in (
        ({"to": "nowhere"}, 400),
        ({"to": "offset"}, 400),
        ({"to": "offset", "value": "x"}, 400),
        ({"to": "time", "value": "soon"}, 400),
        ({"to": "earliest", "topic": "no-such-topic"}, 404),
        ({"to": "earliest", "name": "no-such-group"}, 404),
    ):
        assert visitor.post("/group/plan", **{"name": group, **fields}).status == status, fields


def test_a_group_that_reads_is_left_alone(visitor: Visitor, ottla_topic: Topic, group: str) -> None:
    consumer = Consumer({"bootstrap.servers": ottla_topic.bootstrap, "group.id": group})
    consumer.subscribe([ottla_topic.name])
    while consumer.poll(0.1) is None:
        pass
    refused = visitor.post("/group/plan", name=group, to="earliest")
    assert refused.status == 409
    assert "1 member of group" in refused.words
    consumer.close()


def test_a_group_is_deleted_once_its_name_is_typed(visitor: Visitor, group: str) -> None:
    assert visitor.post("/group/delete", name=group, typed="x").status == 400
    assert f"Deleted group {group}." in visitor.post("/group/delete", name=group, typed=group).words


def test_what_a_log_does_not_reach_is_not_moved(
    visitor: Visitor, ottla_topic: Topic, group: str
) -> None:
    found = visitor.post("/group/apply", name=group, moves=f"{ottla_topic.name} 0 6 99")
    assert found.status == 409
    assert "99 is outside the log" in found.words
    assert "Lag 4" in visitor.get(f"/group?name=%3Ci%3E{ottla_topic.name}").words


def test_a_share_group_is_moved_too(visitor: Visitor, ottla_topic: Topic, group: str) -> None:
    name = f"share-{ottla_topic.name}"
    with Client(ottla_topic.bootstrap, {}, client_id="tests") as client:
        commit_moves(client, name, [Move(ottla_topic.name, 0, None, 6, "")], is_share=True)
    plan = visitor.post("/group/plan", name=name, to="earliest")
    assert f"{ottla_topic.name} 0 6 0 -6" in plan.words
    done = visitor.post("/group/apply", name=name, moves=moves_of(plan))
    assert f"Moved 1 partition of {name}." in done.words
    assert "6 records read again." in done.words
    with Client(ottla_topic.bootstrap, {}, client_id="tests") as client:
        (commit,) = share_commits_of(client, name).values()
    assert commit.offset == 0
