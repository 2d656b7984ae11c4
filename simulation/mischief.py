"""Faults and operators' requests, as they happen to a world."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from ottla.controller import layout
from ottla.controller.elections import ElectionType, elect_leaders
from ottla.controller.reassignment import alter_reassignments
from simulation.disk import Disk
from simulation.faults import Fault
from simulation.hold_up import HoldUp
from simulation.messages import Decide
from simulation.process import ZOOKEEPER

if TYPE_CHECKING:
    from simulation.broker import Broker
    from simulation.world import World


def begin_fault(world: World, fault: Fault) -> None:
    """It begins now, and arranges its own end."""
    world.note(f"FAULT {fault}")
    broker = world.brokers[fault.one]
    match fault.kind:
        case "crash" | "lose disk":
            _crash(world, broker, fault)
        case "pause":
            _pause(world, broker, fault)
        case "cut":
            _cut(world, fault.one, fault.other, fault.ms)
        case "cut tree":
            broker.hear_nothing()
            _cut(world, fault.one, ZOOKEEPER, fault.ms)
        case "loss":
            world.network.loss = 0.15
            world.schedule.after(fault.ms, lambda: _end_loss(world))
        case "expire":
            _expire(world, broker)
        case "leave":
            if broker.is_up:
                broker.wants_to_leave = True
                world.schedule.after(fault.ms + 1500, lambda: _begin_again(broker))
        case "hold up":
            world.hold_up = HoldUp(world, fault)
            # What is to rejoin must first be out.
            _crash(world, broker, fault._replace(ms=30))
        case "depose":
            for each in world.brokers.values():
                node = world.tree.nodes.get(layout.CONTROLLER)
                if node is not None and node.owner == each.session:
                    _expire(world, each)
        case "reassign":
            _reassign(world, fault)
        case "delete":
            world.operator.delete(min(fault.ms, 1500))
        case "add partition":
            world.operator.add_partition()
        case "preferred":
            request = Decide(
                lambda image: elect_leaders(ElectionType.PREFERRED, None, image), "preferred"
            )
            world.operator.ask(request, lambda reply: None)


def _crash(world: World, broker: Broker, fault: Fault) -> None:
    if not broker.is_up:
        return
    broker.crash()
    if fault.kind == "lose disk":
        broker.disk = Disk(world.new_id())
        world.ledger.disk_lost(broker.number)
    world.schedule.after(fault.ms, lambda: _begin_again(broker))


def _begin_again(broker: Broker) -> None:
    if broker.is_up and broker.wants_to_leave:
        # Nobody took over what it leads: after some tries it goes all the same.
        broker.leave()
    if not broker.is_up:
        broker.world.note(f"{broker.number} starts")
        broker.start()


def _pause(world: World, broker: Broker, fault: Fault) -> None:
    if not broker.is_up or broker.is_paused:
        return
    broker.pause()
    incarnation = broker.incarnation

    def resume() -> None:
        if broker.incarnation == incarnation and broker.is_paused:
            world.note(f"{broker.number} goes on")
            broker.resume()
            broker.reached_again()

    world.schedule.after(fault.ms, resume)


def _cut(world: World, one: int, other: int, ms: int) -> None:
    link = frozenset((one, other))
    world.network.cuts.add(link)

    def heal() -> None:
        world.network.cuts.discard(link)
        if other == ZOOKEEPER:
            world.brokers[one].reached_again()

    world.schedule.after(ms, heal)


def _end_loss(world: World) -> None:
    world.network.loss = 0.0


def _expire(world: World, broker: Broker) -> None:
    if broker.is_up:
        world.tree.expire(broker.session)
        broker.reached_again()


def _reassign(world: World, fault: Fault) -> None:
    random = Random(fault.seed)
    index = random.randrange(world.partitions)
    target = tuple(random.sample(sorted(world.brokers), min(world.factor, len(world.brokers))))
    wanted = {"t": {index: None if random.random() < 0.2 else target}}
    request = Decide(
        lambda image: alter_reassignments(wanted, image, world.config), f"reassign {wanted}"
    )
    world.note(f"operator: reassign {wanted}")
    world.operator.ask(request, lambda reply: world.note(f"reassign: {reply}"))
