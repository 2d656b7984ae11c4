"""The controller at work on one broker: takes the next epoch, loads, carries out plans, tells.

Told short what the real controller does. Plans go to the tree in small parts, each fenced by the
epoch, so a deposition or a crash finds them in the middle; what broke off is healed by the next.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ottla.controller import layout
from ottla.controller.delta_text import encode_delta, encode_snapshot
from ottla.controller.image import BrokerImage, ClusterImage, MetadataDelta
from ottla.controller.loading import ROOTS, load_image
from ottla.controller.plan import Plan
from ottla.controller.rebalance import rebalance
from ottla.controller.recovery import healing_writes
from ottla.coordination.tree import (
    Check,
    CoordinationError,
    Delete,
    Event,
    Node,
    Operation,
    SessionExpiredError,
    SetData,
)
from ottla.protocol.errors import ApiError
from simulation.messages import Decide, Poll, Propose, Told
from simulation.process import Steps
from simulation.tree import Tree

if TYPE_CHECKING:
    from simulation.broker import Broker
    from simulation.network import Reply

_KEPT_MOST = 12
"""Metadata deltas kept: few, so that snapshots are often needed."""
_WAIT_MS = 700
_JOBS_MOST = 500
_RETRY_MS = 100
_REBALANCE_MS = 2500


class Driver:
    """One controller's term."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.image = ClusterImage("simulation")
        self.is_ready = False
        self._fence = 0
        self._kept: deque[tuple[int, Any]] = deque(maxlen=_KEPT_MOST)
        self._jobs: deque[tuple[Callable[[], Plan[Any]], Callable[[Any], None]]] = deque()
        self._is_working = False
        self._held: list[tuple[Poll, Reply, bool]] = []
        self._shutting_down: set[int] = set()

    @property
    def is_over(self) -> bool:
        """Another term has begun, here or elsewhere."""
        return self.broker.driver is not self

    def begin(self) -> None:
        """The broker owns /controller."""
        self.broker.spawn(self._load())

    def _over(self) -> None:
        """The image may be wrong: end the term. Whoever still owns /controller begins another."""
        broker = self.broker
        if not self.is_over:
            broker.driver = None
            broker.world.note(f"controller {broker.number} ends its term")
            broker.spawn(broker.stand(broker.session))

    def _load(self) -> Steps:
        broker = self.broker
        try:
            node: Node = yield lambda tree, mine: tree.get(mine, layout.CONTROLLER_EPOCH)
            epoch = str(int(node.data) + 1).encode()
            self._fence = node.version + 1
            yield lambda tree, mine: tree.multi(
                mine, [SetData(layout.CONTROLLER_EPOCH, epoch, node.version)]
            )
            broker.world.note(f"{broker.number} is the controller, epoch {int(epoch)}")
            for _ in range(3):
                nodes = yield lambda tree, mine: tree.read(mine, ROOTS)
                writes = healing_writes(nodes)
                if not writes:
                    break
                yield from self._write(writes)
            self.image = load_image(nodes, broker.number)
        except SessionExpiredError:
            broker.expired()
            return
        except CoordinationError:
            yield _RETRY_MS
            self._over()
            return
        if self.is_over:
            return
        self.is_ready = True
        self._tell(())
        self.look_after_brokers()

    # The brokers.

    def look_after_brokers(self) -> None:
        """From its registration on: before, it would elect leaders without knowing of itself."""
        if self.is_ready and self.broker.first_epoch >= 0:
            self._look()
            for number in self.image.brokers:
                self.hung_up(number)
            self._rebalance_later()

    def hung_up(self, number: int) -> None:
        """A broker's connection broke off: where nobody listens its registration goes."""
        known = self.image.brokers.get(number)
        if known is not None and number != self.broker.number and self.broker.world.probes:
            self.broker.network.probe(
                self.broker, number, lambda: self.broker.spawn(self._remove(number, known.epoch))
            )

    def _remove(self, number: int, epoch: int) -> Steps:
        path = layout.broker_path(number)
        try:
            node: Node | None = yield partial(_exists, path)
            if node is not None and node.created == epoch and not self.is_over:
                yield partial(_write_part, [Delete(path, node.version)])
        except CoordinationError:
            return

    def _rebalance_later(self) -> None:
        world = self.broker.world

        def rebalance_now() -> None:
            if not self.is_over:
                self.ask(
                    lambda: rebalance(self.image, world.config, shutting_down=self._shutting_down),
                    lambda reply: self._rebalance_later(),
                )

        if world.rebalances:
            self.broker.after(_REBALANCE_MS, rebalance_now)

    def _look(self) -> None:
        if not self.is_over:
            self.broker.spawn(self._read_brokers())

    def _read_brokers(self) -> Steps:
        live: dict[int, BrokerImage] = {}
        watch = self.broker.watch(self._changed)
        try:
            names = yield lambda tree, mine: tree.children(mine, layout.BROKER_IDS, watch)
            for name in names:
                path = layout.broker_path(int(name))
                node = yield partial(_exists, path)
                if node is not None:
                    live[int(name)] = layout.read_broker(int(name), node.data, node.created)
        except SessionExpiredError:
            self.broker.expired()
            return
        except CoordinationError:
            self.broker.after(_RETRY_MS, self._look)
            return
        world = self.broker.world
        self.ask(
            lambda: world.deciders.brokers_changed(
                live, self.image, world.config, shutting_down=self._shutting_down
            ),
            self._brokers_changed,
        )

    def _brokers_changed(self, reply: Any) -> None:
        if reply is not None:
            self._shutting_down -= {*reply.vanished, *reply.bounced}

    def _changed(self, _: Event) -> None:
        self._look()

    # Requests.

    def handle(self, request: Any, reply: Reply) -> None:
        """What only the controller answers."""
        if not self.is_ready:
            reply(None)
            return
        match request:
            case Poll():
                self._poll(request, reply)
            case Decide():
                self.ask(lambda: request.decide(self.image), reply)
            case Propose():
                world = self.broker.world
                self.ask(
                    lambda: world.deciders.alter_partitions(
                        request.broker,
                        request.broker_epoch,
                        request.proposals,
                        self.image,
                        world.config,
                        shutting_down=self._shutting_down,
                    ),
                    reply,
                )

    def ask(self, decide: Callable[[], Plan[Any]], reply: Callable[[Any], None]) -> None:
        """Carry out a plan when its turn comes; the reply is None where the term was over."""
        assert len(self._jobs) < _JOBS_MOST
        self._jobs.append((decide, reply))
        if not self._is_working:
            self._is_working = True
            self.broker.spawn(self._work())

    def _work(self) -> Steps:
        while self._jobs:
            decide, reply = self._jobs.popleft()
            if self.is_over:
                reply(None)
                continue
            try:
                plan = decide()
            except ApiError as error:
                reply(error)
                continue
            try:
                yield from self._write(plan.writes)
            except SessionExpiredError:
                self.broker.expired()
                reply(None)
                continue
            except CoordinationError:
                self._over()
                reply(None)
                continue
            if not self.is_over:
                self._tell(plan.deltas)
            reply(plan.reply)
        self._is_working = False

    def _write(self, writes: Sequence[Operation]) -> Steps:
        random = self.broker.schedule.random
        fence = Check(layout.CONTROLLER_EPOCH, self._fence)
        rest = list(writes)
        while rest:
            count = random.choice((1, 2, 5, 50))
            part, rest = rest[:count], rest[count:]
            yield partial(_write_part, [fence, *part])

    # Metadata deltas.

    def _tell(self, deltas: Sequence[MetadataDelta]) -> None:
        for each in deltas:
            self.image.apply(each)
            self._kept.append((self.image.version, encode_delta(each)))
        held, self._held = self._held, []
        for poll, reply, done in held:
            reply(self._told(poll, done))

    def _poll(self, poll: Poll, reply: Reply) -> None:
        if poll.want_shut_down:
            self._want_shut_down(poll, reply)
            return
        if self._is_up_to_date(poll):
            held = (poll, reply, False)
            self._held.append(held)

            def give_up() -> None:
                if held in self._held:
                    self._held.remove(held)
                    reply(self._told(poll, False))

            self.broker.after(_WAIT_MS, give_up)
        else:
            reply(self._told(poll, False))

    def _want_shut_down(self, poll: Poll, reply: Reply) -> None:
        known = self.image.brokers.get(poll.broker)
        if known is None or known.epoch != poll.broker_epoch:
            reply(self._told(poll, False))
            return
        self._shutting_down.add(poll.broker)
        world = self.broker.world

        def moved(leaving: Any) -> None:
            done = leaving is not None and leaving.may_shut_down
            reply(None if self.is_over else self._told(poll, done))

        self.ask(
            lambda: world.deciders.controlled_shutdown(
                poll.broker, self.image, shutting_down=self._shutting_down
            ),
            moved,
        )

    def _is_up_to_date(self, poll: Poll) -> bool:
        return (
            poll.controller_epoch == self.image.controller_epoch
            and poll.version == self.image.version
        )

    def _told(self, poll: Poll, done: bool) -> Told:
        image = self.image
        oldest = self._kept[0][0] - 1 if self._kept else image.version
        known = poll.controller_epoch == image.controller_epoch
        if known and oldest <= poll.version <= image.version:
            deltas = tuple(text for version, text in self._kept if version > poll.version)
            return Told(
                image.controller_id, image.controller_epoch, image.version, False, deltas, done
            )
        text = encode_snapshot(image)
        return Told(image.controller_id, image.controller_epoch, image.version, True, text, done)


def _exists(path: str, tree: Tree, session: int) -> Node | None:
    return tree.exists(session, path)


def _write_part(part: Sequence[Operation], tree: Tree, session: int) -> None:
    tree.multi(session, part)
