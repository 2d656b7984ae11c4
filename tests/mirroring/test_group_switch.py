"""Moving a group over for good, from one broker to another."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer
from tests.mirroring.conftest import Run
from tests.mirroring.test_mirror import Brokers, commit, committed, name_of, read_on

from ottla.client.admin.topics import delete_topic
from ottla.client.client import Client
from ottla.client.errors import ClientError
from ottla.mirroring import events, stable_map


def test_a_group_that_has_read_on_meanwhile(brokers: Brokers) -> None:
    """All that it has read is mirrored before."""
    source, target = brokers
    name, group = name_of("on"), name_of("g")
    topic = source.create_topic(name)
    topic.produce("a", "b")
    with Run(source, target, topics=(name,), name=name, groups=("none",)) as run:
        run.to_the_end()
        topic.produce("c", "d", "e")
        commit(source, group, name, {0: 4})
        moved = run.mirror.switch(group)
        assert moved is not None
        assert [each.source for each in moved] == [4]
    with Run(source, target, topics=(name,), name=name, groups=("none",)) as run:
        run.to_the_end()
    assert read_on(target, group, name, [0]) == [b"e"]


def test_a_group_of_a_topic_that_was_made_again_is_not_moved(brokers: Brokers) -> None:
    """Also before the mirror has noticed; other topics of the group do not move without it."""
    source, target = brokers
    begin, group = name_of("made"), name_of("g")
    again, other = f"{begin}-again", f"{begin}-other"
    for each in (again, other):
        source.create_topic(each).produce("a", "b")
    spec = {"topics": (f"{begin}-.*",), "name": begin, "refresh_every_s": 60.0}
    with Run(source, target, **spec, groups=("none",)) as run:
        run.to_the_end()
        with Client(source.bootstrap) as client:
            delete_topic(client, again)
        source.create_topic(again).produce("new", "new", "new")
        commit(source, group, again, {0: 1})
        commit(source, group, other, {0: 1})
        with pytest.raises(ClientError, match="deleted and created again"):
            run.mirror.switch(group)
    assert not committed(target, group, other)


def test_a_group_does_not_move_beyond_the_source(brokers: Brokers) -> None:
    """As after an unclean election."""
    source, target = brokers
    name, group = name_of("beyond"), name_of("g")
    source.create_topic(name).produce("a", "b")
    commit(source, group, name, {0: 7})
    with Run(source, target, topics=(name,), name=name, groups=("none",)) as run:
        run.to_the_end()
        with pytest.raises(ClientError, match="is past the end of the source's log, 2"):
            run.mirror.switch(group)
    assert not committed(target, group, name)


def test_topics_that_are_not_meant_are_said(brokers: Brokers) -> None:
    source, target = brokers
    name, group = name_of("meant"), name_of("g")
    for each in (name, f"{name}-not"):
        source.create_topic(each).produce("a", "b")
        commit(source, group, each, {0: 1})
    with Run(source, target, topics=(name,), name=name, groups=("none",)) as run:
        run.to_the_end()
        assert run.mirror.switch(group)
    (said,) = [each.text for each in run.events if each.kind == events.GROUP]
    assert said.endswith(f"they are not set: {name}-not.")


def test_an_open_transaction_in_the_map_is_awaited(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind it may be entries that nobody sees yet."""
    source, target = brokers
    name, group = name_of("open"), name_of("g")
    source.create_topic(name).produce("a", "b")
    commit(source, group, name, {0: 1})
    lost = Producer({"bootstrap.servers": target.bootstrap, "transactional.id": name})
    with Run(source, target, topics=(name,), name=name, groups=("none",)) as run:
        lost.init_transactions(30)
        lost.begin_transaction()
        lost.produce(f"ottla-mirror-{name}", b"{}", b"{}", partition=0)
        assert lost.flush(30) == 0
        run.to_the_end()
        monkeypatch.setattr(stable_map, "STABLE_WITHIN_S", 0.0)
        with pytest.raises(ClientError, match="does not end"):
            run.mirror.switch(group)
        monkeypatch.setattr(stable_map, "STABLE_WITHIN_S", 30.0)
        lost.abort_transaction(30)
        assert run.mirror.switch(group)
    assert read_on(target, group, name, [0]) == [b"b"]
