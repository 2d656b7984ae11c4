"""One simulated broker: registers, applies metadata deltas, leads and copies partitions.

It is the real broker's wiring told short: what is decided, the pure deciders decide (`replica.py`
and `driver.py` call them); what happens in between is simulated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ottla.config.listener import Endpoint
from ottla.controller import layout
from ottla.controller.image import NO_LEADER, BrokerImage, ClusterImage, PartitionState
from ottla.controller.in_sync_changes import ProposedIsr
from ottla.coordination.tree import (
    ConnectionLostError,
    CoordinationError,
    Create,
    Delete,
    Event,
    Node,
    NodeExistsError,
    NoNodeError,
    SessionExpiredError,
)
from ottla.protocol.errors import ErrorCode
from ottla.replication.leader import InSyncChange
from simulation.disk import Disk
from simulation.driver import Driver
from simulation.messages import Decide, Ends, Fetch, Latest, Poll, Produce, Propose, Read, Told
from simulation.news import take_in
from simulation.process import Process, Steps
from simulation.replicas import Replicas

if TYPE_CHECKING:
    from simulation.network import Reply
    from simulation.world import World

POLL_MS = 1000
_RETRY_MS = 150


class Broker(Process):
    """See the module's text."""

    def __init__(self, number: int, world: World) -> None:
        super().__init__(number, world.schedule, world.network, world.tree)
        self.world = world
        self.disk = Disk(world.new_id())
        self.image = ClusterImage("simulation")
        self.broker_epoch = self.first_epoch = -1
        self.controller_id = NO_LEADER
        self.driver: Driver | None = None
        self._has_image = False
        self.replicas = Replicas(self)
        self.wants_to_leave = False

    # Its life.

    def start(self) -> None:
        """A new process on the disk as it is."""
        self.disk.process_began()
        self.begin()
        self.image = ClusterImage("simulation")
        self.broker_epoch = self.first_epoch = -1
        self.controller_id = NO_LEADER
        self.driver = None
        self._has_image = False
        self.replicas = Replicas(self)
        self.wants_to_leave = False
        self._join()
        self.after(1, self._poll)
        self.replicas.begin()

    def crash(self) -> None:
        """SIGKILL."""
        self.end()
        self.world.hung_up(self.number)
        self.driver = None
        self.disk.checkpoint_survives(self.world.schedule.random)

    def leave(self) -> None:
        """The end of a controlled shutdown: the session is closed."""
        session = self.session
        self.world.note(f"broker {self.number} leaves")
        self.end()
        self.driver = None
        self.world.hung_up(self.number)
        if self.reaches_tree:
            self.tree.expire(session)

    def reached_again(self) -> None:
        """A pause or a cut is over: soon it hears that its session is, if it is."""
        self.hear_again()
        self.after(self.schedule.random.randrange(5, 120), self._hear_of_end)

    def _hear_of_end(self) -> None:
        if self.reaches_tree:
            self.expired()

    def expired(self) -> None:
        """It finds out that its session is over."""
        if self.tree.lives(self.session):
            return
        self.driver = None
        self._join()

    def _join(self) -> None:
        self.connect()
        if self._has_image:
            self.spawn(self._register(self.session))
        self.spawn(self.stand(self.session))

    # Registration.

    def _register(self, session: int) -> Steps:
        path = layout.broker_path(self.number)
        me = BrokerImage(
            self.number,
            (Endpoint("PLAINTEXT", f"host{self.number}", 9092),),
            directory_id=str(self.disk.directory_id),
            first_epoch=self.first_epoch,
        )
        data = layout.write_broker(me, self.schedule.now_ms)
        while session == self.session:
            try:
                node: Node | None = yield lambda tree, mine: tree.exists(mine, path)
                if node is not None and node.owner == session:
                    self._registered(node.created)
                    # The watch sees its end, whoever ends it.
                    node = yield lambda tree, mine: tree.exists(
                        mine, path, self.watch(lambda _: self._vanished(session))
                    )
                    if node is not None:
                        return
                elif node is None:
                    yield lambda tree, mine: tree.multi(mine, [Create(path, data, ephemeral=True)])
                elif layout.read_broker(self.number, node.data).directory_id == str(
                    self.disk.directory_id
                ):
                    yield lambda tree, mine: tree.multi(mine, [Delete(path)])
                else:
                    yield _RETRY_MS
            except SessionExpiredError:
                self.expired()
                return
            except ConnectionLostError:
                yield _RETRY_MS
            except (NodeExistsError, NoNodeError):
                continue

    def _registered(self, epoch: int) -> None:
        self.broker_epoch = epoch
        if self.first_epoch < 0:
            self.first_epoch = epoch
            if self.driver is not None:
                self.driver.look_after_brokers()

    def _vanished(self, session: int) -> None:
        if session == self.session:
            self.spawn(self._register(session))

    # Who is the controller.

    def stand(self, session: int) -> Steps:
        """Be the controller if nobody is; else know who it is, and when that ends."""
        data = layout.write_controller(self.number, self.schedule.now_ms)
        while session == self.session:
            try:
                node: Node | None = yield lambda tree, mine: tree.exists(
                    mine, layout.CONTROLLER, self.watch(lambda event: self._again(session, event))
                )
                if node is None:
                    self.driver = None
                    yield lambda tree, mine: tree.multi(
                        mine, [Create(layout.CONTROLLER, data, ephemeral=True)]
                    )
                    continue
                self.controller_id = layout.read_controller(node.data)
                if node.owner == session:
                    if self.driver is None:
                        self.driver = Driver(self)
                        self.driver.begin()
                else:
                    self.driver = None
                return
            except SessionExpiredError:
                self.expired()
                return
            except ConnectionLostError:
                yield _RETRY_MS
            except (NodeExistsError, NoNodeError):
                continue

    def _again(self, session: int, event: Event) -> None:
        if session == self.session:
            self.spawn(self.stand(session))

    # Metadata deltas.

    def _poll(self) -> None:
        """The first answer comes before the registration, as `ottla.broker.node` begins."""
        image = self.image
        if self.controller_id == NO_LEADER or (self._has_image and self.first_epoch < 0):
            self.after(_RETRY_MS, self._poll)
            return
        poll = Poll(
            self.number,
            self.broker_epoch,
            image.controller_epoch,
            image.version,
            self.wants_to_leave,
        )
        asked = self.controller_id
        self.network.ask(self, asked, poll, 2 * POLL_MS, lambda told: self._told(asked, told))

    def _told(self, asked: int, told: Told | None) -> None:
        if told is None or told.controller_epoch < self.image.controller_epoch:
            if told is None and self.world.probes:
                self.network.probe(self, asked, lambda: self.spawn(self._controller_refused(asked)))
            self.after(_RETRY_MS, self._poll)
            return
        if told.should_shut_down and self.wants_to_leave:
            self.leave()
            return
        take_in(self, told)
        self.replicas.fetch()
        self.replicas.wake()
        if not self._has_image:
            self._has_image = True
            self.spawn(self._register(self.session))
        self.after(0, self._poll)

    def _controller_refused(self, number: int) -> Steps:
        """Nobody is there: its /controller goes before its session ends."""
        try:
            node: Node | None = yield lambda tree, mine: tree.exists(mine, layout.CONTROLLER)
            if node is not None and layout.read_controller(node.data) == number:
                delete = Delete(layout.CONTROLLER, node.version)
                yield lambda tree, mine: tree.multi(mine, [delete])
        except CoordinationError:
            return

    # Requests.

    def handle(self, request: Any, reply: Reply) -> None:
        """What others ask."""
        match request:
            case Fetch():
                self.replicas.fetched_by(request, reply)
            case Produce():
                self.replicas.produce(request, reply)
            case Read():
                self.replicas.read(request, reply)
            case Latest():
                self.replicas.latest(request, reply)
            case Ends():
                self.replicas.ends(request, reply)
            case Poll() | Decide() | Propose():
                if self.driver is None:
                    reply(None)
                else:
                    self.driver.handle(request, reply)

    def propose(
        self, change: InSyncChange, answered: Callable[[ErrorCode, PartitionState | None], None]
    ) -> None:
        """AlterPartition to the controller, and again until one answers."""
        wish = ProposedIsr(
            change.topic_id,
            change.index,
            change.leader_epoch,
            change.partition_epoch,
            change.isr,
        )

        def reply(answers: Any) -> None:
            if isinstance(answers, tuple) and answers:
                answered(answers[0].code, answers[0].state)
            else:
                self.after(_RETRY_MS, ask)

        def ask() -> None:
            if self.controller_id == NO_LEADER:
                self.after(_RETRY_MS, ask)
                return
            request = Propose(self.number, self.broker_epoch, (wish,))
            held_up_ms = self.world.held_up_ms(self.number, change)
            self.network.ask(
                self, self.controller_id, request, POLL_MS, reply, held_up_ms=held_up_ms
            )

        ask()

    def live_epoch(self, broker: int) -> int | None:
        """A living broker's epoch, as far as this broker knows."""
        known = self.image.brokers.get(broker)
        return None if known is None else known.epoch
