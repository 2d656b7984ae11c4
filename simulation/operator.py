"""Who runs the cluster: makes the topic, gives it partitions, deletes it, gives up what is lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ottla.controller.deletion import UnwantedTopic, delete_topics
from ottla.controller.elections import ElectionType, elect_leaders
from ottla.controller.image import NO_LEADER
from ottla.controller.topics import MorePartitions, NewTopic, add_partitions, create_topics
from ottla.protocol.errors import ErrorCode
from simulation.messages import Decide

if TYPE_CHECKING:
    from simulation.world import World

TOPIC = "t"
_AGAIN_MS = 150
_PARTITIONS_MOST = 3


class Operator:
    """Asks the controller, whoever that is; not told anything, it asks again."""

    def __init__(self, world: World) -> None:
        self.gave_up: set[str] = set()
        """Partitions that it had led uncleanly."""
        self.is_giving_up = False
        """There is something to give up, or was a moment ago."""
        self._world = world

    def ask(self, request: Decide, answered: Callable[[Any], None]) -> None:
        """The answer is None where there is no controller, or its term ended over it."""
        brokers = self._world.brokers.values()
        drivers = [each.driver for each in brokers if each.driver is not None]
        ready = [each for each in drivers if each.is_ready and not each.broker.is_paused]
        if ready:
            ready[0].broker.handle(request, answered)
        else:
            answered(None)

    def create(self) -> None:
        """Make the topic, until it is there."""
        world = self._world

        def answered(reply: Any) -> None:
            code = reply[0].outcome.code if isinstance(reply, tuple) else None
            if code not in (ErrorCode.none, ErrorCode.topic_already_exists):
                world.schedule.after(_AGAIN_MS, self.create)

        topic = NewTopic(TOPIC, world.partitions, world.factor)
        request = Decide(
            lambda image: create_topics(
                [topic], image, world.config, new_id=world.new_id, start=world.seed
            ),
            "create topic",
        )
        self.ask(request, answered)

    def delete(self, again_after_ms: int) -> None:
        """Delete the topic, and make another one of its name a while later."""
        world = self._world

        def answered(reply: Any) -> None:
            world.note(f"operator: delete: {reply}")
            world.schedule.after(again_after_ms, self.create)

        unwanted = [UnwantedTopic(TOPIC)]
        request = Decide(lambda image: delete_topics(unwanted, image, world.config), "delete topic")
        self.ask(request, answered)

    def add_partition(self) -> None:
        """One more, which clients write to as to the others."""
        world = self._world
        if world.partitions == _PARTITIONS_MOST:
            return
        wanted = [MorePartitions(TOPIC, world.partitions + 1)]

        def answered(reply: Any) -> None:
            world.note(f"operator: add partition: {reply}")
            if isinstance(reply, tuple) and reply[0].outcome.code is ErrorCode.none:
                world.partitions += 1
                world.make_clients(world.partitions - 1)

        request = Decide(
            lambda image: add_partitions(wanted, image, start=world.seed), "add partition"
        )
        self.ask(request, answered)

    def give_up_what_is_lost(self) -> None:
        """Partitions whose in-sync replicas all lost their disks are led by whoever lives. Looks
        again and again: the controller may be slow to hear of it (seed 2197).
        """
        world = self._world
        lost: list[int] = []
        for name, account in world.ledger.accounts.items():
            state = account.state
            if state is not None and state.leader == NO_LEADER and account.forgiven:
                self.gave_up.add(name)
                lost.append(int(name.rpartition("-")[2]))
        self.is_giving_up = bool(lost)
        if lost:
            request = Decide(
                lambda image: elect_leaders(ElectionType.UNCLEAN, {TOPIC: lost}, image),
                "elect unclean",
            )
            self.ask(request, lambda reply: None)
        world.schedule.after(1000, self.give_up_what_is_lost)
