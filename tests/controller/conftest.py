"""A small cluster for the deciders: three brokers, and topics made by the real decider.

And a `World`, for transcripts: an image beside the tree that it was loaded from. Each plan is
applied to both, and both must agree afterwards. A partition is written

    LEADER@EPOCH REPLICAS | ISR +ADDING -REMOVING           2@5 1,2,3 | 2,3      -@6 1,2 | 1
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar
from uuid import UUID

import pytest

from ottla.config.broker import BrokerConfig
from ottla.config.listener import Endpoint
from ottla.controller import layout
from ottla.controller.broker_changes import BrokersChanged, brokers_changed
from ottla.controller.image import (
    NO_LEADER,
    BrokerAppeared,
    BrokerImage,
    ClusterImage,
    ControllerChanged,
    PartitionState,
    TopicCreated,
)
from ottla.controller.loading import first_writes, load_image
from ottla.controller.plan import Plan, decided
from ottla.controller.recovery import healing_writes
from ottla.controller.topics import NewTopic, create_topics
from ottla.coordination.embedded_store import EmbeddedStore
from ottla.coordination.tree import Create, Operation, TreeNode

T = TypeVar("T")


@pytest.fixture
def config() -> BrokerConfig:
    return BrokerConfig()


@pytest.fixture
def image() -> ClusterImage:
    image = ClusterImage("cluster")
    image.apply(ControllerChanged(1, 7))
    for number in (1, 2, 3):
        endpoint = Endpoint("PLAINTEXT", f"host{number}", 9092)
        image.apply(BrokerAppeared(BrokerImage(number, (endpoint,))))
    return image


@pytest.fixture
def new_id() -> Callable[[], UUID]:
    numbers: Iterator[int] = iter(range(1, 1000))
    return lambda: UUID(int=next(numbers))


@pytest.fixture
def add_topic(
    image: ClusterImage, config: BrokerConfig, new_id: Callable[[], UUID]
) -> Callable[[NewTopic], None]:
    """Puts a topic into the image."""

    def add(topic: NewTopic) -> None:
        plan = decided(create_topics([topic], image, config, new_id=new_id, start=0))
        assert not plan.reply[0].outcome.failed, plan.reply
        for delta in plan.deltas:
            image.apply(delta)

    return add


class World:
    """An image and a tree that take the same plans, and must agree."""

    def __init__(self) -> None:
        self.history: list[tuple[Operation, ...]] = []
        self.store = EmbeddedStore(None)
        self.write(first_writes({}, "cluster"))
        self.image = decided(load_image(self.tree(), 1))
        self.config = BrokerConfig()
        self.live: dict[int, BrokerImage] = {}
        self.shutting_down: set[int] = set()
        self._epoch = 100

    def write(self, writes: Sequence[Operation]) -> None:
        self.store.multi(tuple(writes), 1)
        self.history.append(tuple(writes))

    def tree(self) -> dict[str, TreeNode]:
        return self.store.read_tree("/")

    def up(self, *numbers: int, disk: str = "disk", clean: bool = False) -> BrokersChanged:
        """Brokers register, all seen at once; those already registered return in a new
        incarnation. `clean`: the one before stopped cleanly, in the last epoch that was seen.
        """
        for number in numbers:
            self._epoch += 1
            endpoint = Endpoint("PLAINTEXT", f"host{number}", 9092)
            previous = self.image.directories[number].epoch if clean else -1
            self.live[number] = BrokerImage(
                number, (endpoint,), None, self._epoch, disk, previous_epoch=previous
            )
        return self.check()

    def again(self, *numbers: int) -> BrokersChanged:
        """Brokers that never stopped register in new sessions, all seen at once."""
        for number in numbers:
            self._epoch += 1
            before = self.live[number]
            first_epoch = before.epoch if before.first_epoch < 0 else before.first_epoch
            self.live[number] = replace(before, epoch=self._epoch, first_epoch=first_epoch)
        return self.check()

    def down(self, *numbers: int) -> BrokersChanged:
        """Brokers vanish, all seen at once."""
        for number in numbers:
            del self.live[number]
        return self.check()

    def check(self) -> BrokersChanged:
        plan = brokers_changed(self.live, self.image, self.config, shutting_down=self.shutting_down)
        return self.do(plan)

    def topic(self, name: str, *texts: str, **overrides: str) -> None:
        """A topic whose partitions are in these states."""
        states = [_state(text) for text in texts]
        topic_id = UUID(int=len(self.image.topics) + 1)
        values = {key.replace("_", "."): value for key, value in overrides.items()}
        writes = [
            Create(layout.topic_config_path(name), layout.write_config(values)),
            Create(layout.topic_path(name), layout.write_topic(topic_id, states)),
            Create(layout.partitions_path(name)),
        ]
        for index, state in enumerate(states):
            writes.append(Create(layout.partition_path(name, index)))
            writes.append(Create(layout.state_path(name, index), layout.write_state(state, 0)))
        self.write(writes)
        self.image.apply(TopicCreated(decided(load_image(self.tree(), 1)).topics[name]))

    def do(self, plan: Plan[T]) -> T:
        """Carry out a plan, and check that the tree and the image still agree."""
        if plan.writes:
            self.write(plan.writes)
        for delta in plan.deltas:
            self.image.apply(delta)
        loaded = decided(load_image(self.tree(), 1))
        assert loaded.topics == self.image.topics
        assert loaded.directories == self.image.directories
        assert decided(healing_writes(self.tree())) == ()
        return plan.reply

    def show(self, name: str = "t") -> list[str]:
        """The partitions of a topic."""
        return [_text(state) for state in self.image.topics[name].partitions]

    def after_crash(self, plan: Plan[Any], writes: int) -> World:
        """Another world, where a controller stopped after this many of the plan's writes."""
        other = World()
        for past in self.history[1:]:
            other.write(past)
        if writes:
            other.write(plan.writes[:writes])
        healing = decided(healing_writes(other.tree()))
        if healing:
            other.write(healing)
        other.image = decided(load_image(other.tree(), 1))
        other.config, other.live = self.config, dict(self.live)
        for broker in other.live.values():
            other.image.apply(BrokerAppeared(broker))
        return other


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, filter(None, text.split(","))))


def _state(text: str) -> PartitionState:
    head, _, tail = text.partition("|")
    first, replicas = head.split()
    leader, _, epoch = first.partition("@")
    words = tail.split()
    lists = {word[0]: _numbers(word[1:]) for word in words if word[0] in "+-"}
    isr = next((_numbers(word) for word in words if word[0].isdecimal()), ())
    number = NO_LEADER if leader == "-" else int(leader)
    adding, removing = lists.get("+", ()), lists.get("-", ())
    return PartitionState(number, int(epoch), _numbers(replicas), isr, 0, adding, removing)


def _text(state: PartitionState) -> str:
    def joined(numbers: Sequence[int]) -> str:
        return ",".join(map(str, numbers))

    leader = "-" if state.leader == NO_LEADER else str(state.leader)
    text = f"{leader}@{state.leader_epoch} {joined(state.replicas)} | {joined(state.isr)}"
    text += f" +{joined(state.adding)}" if state.adding else ""
    text += f" -{joined(state.removing)}" if state.removing else ""
    return text.rstrip()


@pytest.fixture
def world() -> World:
    """Brokers 1, 2 and 3 live."""
    world = World()
    world.up(1, 2, 3)
    return world
