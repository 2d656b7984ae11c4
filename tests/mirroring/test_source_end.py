"""The end of a run beside other instances, whose positions are at a broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.mirroring.conftest import side
from tests.mirroring.test_mirror import Brokers, name_of

from ottla.client.admin.committed_offsets import commit_offsets
from ottla.client.topic_partition import TopicPartition
from ottla.mirroring import events, identity, source_end
from ottla.mirroring.clusters import SideClient
from ottla.mirroring.events import Event
from ottla.mirroring.position import Origin, Position, written
from ottla.mirroring.source_end import SourceEnd
from ottla.mirroring.spec import MirrorSpec
from ottla.mirroring.topic_plan import SourceTopic, TopicPlan

ORIGIN = Origin("id", "there", ("cluster",))


@pytest.fixture
def clients(brokers: Brokers) -> Iterator[tuple[SideClient, SideClient]]:
    source, target = brokers
    with side(source, "source").client() as here, side(target, "target").client() as there:
        yield here, there


def test_beside_an_instance_that_has_left_a_topic_out(
    brokers: Brokers,
    clients: tuple[SideClient, SideClient],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is said which partition is waited for, and at the end that it is not mirrored."""
    monkeypatch.setattr(source_end, "WAITING_NOTE_S", 0.0)
    name = name_of("out")
    brokers[1].create_topic(name)
    partition = TopicPartition(name, 0)
    told: list[Event] = []
    end = SourceEnd(MirrorSpec(name), *clients, told.append)
    plan = TopicPlan(mirrored={name: SourceTopic(name, "id", 1)})

    def commit(position: Position) -> None:
        group, text = f"ottla-mirror-{name}", written(position)
        assert not commit_offsets(
            clients[1], group, {partition: position.offset}, {partition: text}
        )

    commit(Position(3, ORIGIN))
    for _ in range(3):
        assert not end.is_reached({partition: 5}, {}, (), plan)
    assert [each.text for each in told] == [
        f"Waiting for another instance, which mirrors {name}-0 ..."
    ]
    commit(Position(3, ORIGIN, None, is_left_out=True))
    assert end.is_reached({partition: 5}, {}, (), plan)
    assert [each.kind for each in told[1:]] == [events.LEFT_OUT]
    assert told[1].kind in events.LOSSES
    commit(Position(5, ORIGIN))
    assert end.is_reached({partition: 5}, {}, (), plan)


def test_topics_that_are_not_mirrored_any_more(
    brokers: Brokers,
    clients: tuple[SideClient, SideClient],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those that are refused or gone are not waited for; one that a broker does not know yet is."""
    monkeypatch.setattr(identity, "LOOK_PAUSE_S", 0.0)
    name = name_of("gone")
    brokers[0].create_topic(f"{name}-there")
    until = {TopicPartition(f"p.{name}-{each}", 0): 5 for each in ("gone", "refused")}
    end = SourceEnd(MirrorSpec(name, prefix="p."), *clients, lambda _: None)
    plan = TopicPlan(refused={f"{name}-refused": "it goes in a circle."})
    assert end.is_reached(until, {}, (), plan)
    assert not end.is_reached({TopicPartition(f"p.{name}-there", 0): 5}, {}, (), plan)
