"""A mirror whose positions the target has forgotten, as it does of groups without members."""

from __future__ import annotations

from typing import Any

import pytest
from tests.mirroring.conftest import Run
from tests.mirroring.test_mirror import Brokers, commit, name_of, read_on, values_of

from ottla.client.admin.groups import delete_group
from ottla.client.admin.topics import delete_topic
from ottla.client.client import Client
from ottla.mirroring import events
from ottla.mirroring.mirror import MirrorError


def forget(brokers: Brokers, mirror: str) -> None:
    """As after offsets.retention.minutes."""
    with Client(brokers[1].bootstrap) as client:
        delete_group(client, f"ottla-mirror-{mirror}")


@pytest.mark.parametrize("is_forced", [True, False])
def test_nothing_is_doubled(brokers: Brokers, is_forced: bool) -> None:
    source, target = brokers
    name, group = name_of("forgotten"), name_of("g")
    topic = source.create_topic(name, partitions=2)
    topic.produce("a", "b", "c", partition=0)
    spec: dict[str, Any] = {"topics": (name,), "name": name, "groups": ("none",)}
    with Run(source, target, **spec, into_existing=is_forced) as run:
        run.to_the_end()
    forget(brokers, name)
    topic.produce("d", "e", partition=1)
    with Run(source, target, **spec, into_existing=is_forced) as run:
        run.to_the_end()
        assert events.RESTORED in run.kinds()
        assert not run.mirror.losses
    assert values_of(target, name) == values_of(source, name)
    commit(source, group, name, {0: 1, 1: 1})
    with Run(source, target, **spec) as run:
        run.to_the_end()
        assert events.RESTORED not in run.kinds()
        run.mirror.switch(group)
    assert sorted(read_on(target, group, name, [0, 1])) == [b"b", b"c", b"e"]


def mirror_and_forget(brokers: Brokers, name: str) -> dict[str, Any]:
    """Mirror a new topic, whose positions the target then forgets; return the mirror."""
    source, target = brokers
    source.create_topic(name).produce("a", "b")
    spec: dict[str, Any] = {"topics": (name,), "name": name, "groups": ("none",)}
    with Run(source, target, **spec) as run:
        run.to_the_end()
    forget(brokers, name)
    return spec


def test_a_copy_that_was_made_again_has_no_positions(brokers: Brokers) -> None:
    """The map is of the one before."""
    source, target = brokers
    name = name_of("other")
    spec = mirror_and_forget(brokers, name)
    with Client(target.bootstrap) as client:
        delete_topic(client, name)
    target.create_topic(name).produce("other")
    with pytest.raises(MirrorError, match="did not write"):
        Run(source, target, **spec).__enter__()
    with Run(source, target, **spec, into_existing=True) as run:
        run.to_the_end()
    assert values_of(target, name) == {0: [b"other", b"a", b"b"]}


def test_a_topic_that_was_made_again_at_the_source(brokers: Brokers) -> None:
    """What is mirrored is from the one before, positions or not."""
    source, target = brokers
    name = name_of("again")
    spec = mirror_and_forget(brokers, name)
    with Client(source.bootstrap) as client:
        delete_topic(client, name)
    source.create_topic(name).produce("new")
    with pytest.raises(MirrorError, match="deleted and created again"):
        Run(source, target, **spec, into_existing=True).__enter__()
