"""The controller: one broker of the cluster, while it is elected.

`lead` takes the next controller epoch, which fences the previous controller, and loads the image
from the coordination tree. From then on every change of the cluster is a plan (`plans`). `resign`
ends the tenure at once. A broker that is not the controller answers NOT_CONTROLLER to all requests.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from random import Random
from typing import Final, NamedTuple, TypeVar

from ottla.cluster.broker_watch import BrokerWatch
from ottla.cluster.cluster_view import ClusterView
from ottla.cluster.elections_log import log_brokers, log_elections
from ottla.cluster.last_elections import LastElections
from ottla.cluster.metadata_log import MetadataLog
from ottla.cluster.plans import OutcomeUnknownError, Plans, write_fenced
from ottla.config.broker import BrokerConfig
from ottla.controller import layout
from ottla.controller.alter_partition import IsrAnswer, ProposedIsr, alter_partitions
from ottla.controller.broker_changes import brokers_changed
from ottla.controller.config_changes import ResourceChange, ResourceResult, alter_configs
from ottla.controller.controlled_shutdown import controlled_shutdown
from ottla.controller.deletion import DeletionResult, TopicToDelete, delete_topics
from ottla.controller.deletion_notes import are_too_many, forget_oldest, notes_by_age
from ottla.controller.differences import differences_in_steps
from ottla.controller.elections import ElectionType, elect_leaders
from ottla.controller.features import FeatureUpdate, update_features
from ottla.controller.image import BrokerAppeared, BrokerImage, ClusterImage, MetadataDelta
from ottla.controller.leadership import Election
from ottla.controller.loading import ROOTS, load_image
from ottla.controller.plan import DONE, Charge, Outcome, Plan, Steps, free
from ottla.controller.producer_ids import reserve_producer_ids
from ottla.controller.quotas import QuotaChange, QuotaOutcome, alter_quotas
from ottla.controller.reassignment import Target, alter_reassignments
from ottla.controller.rebalance import rebalance
from ottla.controller.recovery import healing_writes
from ottla.controller.topics import (
    CreationSoFar,
    MorePartitions,
    NewTopic,
    TopicResult,
    add_partitions,
    all_refused,
    create_topics,
    in_parts,
)
from ottla.controller.users import Deletion, Upsertion, UserOutcome, alter_credentials
from ottla.coordination.tree import Coordination, TreeNode
from ottla.network.peers import Peers
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.kafka_uuid import random_uuid
from ottla.runtime.clock import Clock
from ottla.runtime.slices import Slices, in_turns
from ottla.runtime.waiting import Waiter

T = TypeVar("T")

OUTCOME_WITHIN_MS: Final = 30_000
"""How long the request of a plan with an unknown outcome waits for the next controller."""

log = logging.getLogger("ottla.controller")


class Tenure(NamedTuple):
    """The epoch of a controller, and the version that its node has while that is the last one."""

    epoch: int
    version: int


class Controller:
    """The controller's part of a broker; it acts while the broker is elected."""

    def __init__(
        self,
        config: BrokerConfig,
        view: ClusterView,
        clock: Clock,
        peers: Peers,
        *,
        random: Random,
        placement_start: Callable[[], int] | None = None,
    ) -> None:
        """`placement_start` returns where placement begins; a random position if it is None."""
        self.metadata_log: MetadataLog | None = None
        self._view = view
        self._config = config
        self._clock = clock
        self._peers = peers
        self._session: Coordination | None = None
        self._others_return_until: float | None = None
        self._on_overtaken: Callable[[], None] = lambda: None
        self._watch: BrokerWatch | None = None
        self._former: dict[int, BrokerImage] = {}
        """The registered brokers, as far as this one knew when it became the controller."""
        self._shutting_down: set[int] = set()
        self._placement_start = placement_start or (lambda: random.randrange(1 << 16))
        self._random = random
        self._plans: Plans | None = None
        self._deletion_notes: list[str] = []
        """The paths of the noted deletions, the oldest first."""
        self.elections = LastElections(view.image, clock, lambda: self._shutting_down)
        view.observe(self.elections.before)
        view.subscribe(self._notified)

    @property
    def image(self) -> ClusterImage:
        """The cluster as this broker knows it."""
        return self._view.image

    @property
    def active(self) -> bool:
        """This broker is the controller, as far as it knows."""
        return self._plans is not None

    async def lead(
        self,
        session: Coordination,
        *,
        overtaken: Callable[[], None],
        tenure: Tenure | None = None,
        others_return_until: float | None = None,
    ) -> None:
        """This broker owns /controller: takes the next epoch, unless it has taken `tenure` with the
        node, and loads the image.

        `overtaken` is called if another broker turns out to be the controller.
        `others_return_until`: how long, on the loop's clock, to wait for brokers whose sessions
        ended together with this broker's own; None if its own did not end.

        Raises CoordinationError, LayoutError, StoreError.
        """
        epoch, version = tenure or await _next_tenure(session)
        nodes = await _read_all(session)
        writes = await in_turns(healing_writes(nodes))
        if writes:
            log.warning("repairing %d nodes of an interrupted change", len(writes))
            await write_fenced(session, writes, version)
            nodes = await _read_all(session)
        loaded = await in_turns(load_image(nodes, self._config.id))
        self._deletion_notes = notes_by_age(nodes)
        self._former = dict(self.image.brokers)
        self._session, self._on_overtaken = session, overtaken
        self._others_return_until = others_return_until
        if self._wait_until is not None:
            for missing in self._former.keys() - loaded.brokers.keys():
                loaded.apply(BrokerAppeared(self._former[missing]))
        await self._view.apply_in_turn(lambda: in_turns(differences_in_steps(self.image, loaded)))
        self.metadata_log = MetadataLog(self.image)
        plans = Plans(session, self._view, version, lambda why: self._overtaken(plans, why))
        self._plans = plans
        log.info(
            "broker %d is the controller, epoch %d: %d topics",
            self._config.id,
            epoch,
            len(loaded.topics),
        )

    async def begin(self) -> None:
        """This broker is registered and serves: from now on the controller watches all brokers.

        Earlier, it would elect leaders without knowing itself.
        """
        if self.active and self._watch is None:
            assert self._session is not None
            self._watch = BrokerWatch(
                self,
                self._session,
                self._config,
                self.image,
                self._clock,
                self._peers,
                self._former,
            )
            await self._watch.start(self._wait_until)

    @property
    def _wait_until(self) -> float | None:
        """`others_return_until`, unless that is in the past."""
        until = self._others_return_until
        return until if until is not None and asyncio.get_running_loop().time() < until else None

    def disconnected(self, broker_id: int) -> None:
        """A broker's connection to the controller was lost."""
        if self._watch is not None:
            self._watch.disconnected(broker_id)

    def resign(self, why: str) -> None:
        """Another broker is the controller, or may be. Does nothing if this one is not."""
        if self._plans is not None:
            log.warning("broker %d is no longer the controller: %s", self._config.id, why)
            self._end()

    async def close(self, *, wait: bool = True) -> None:
        """Resigns, after the current plan has ended; with `wait` False, at once."""
        if self._plans is not None:
            self._plans.end()
            if wait:
                await self._plans.idle()
        if self._plans is not None:  # the plan may have found that the tenure was over
            self._end()

    def _end(self) -> None:
        assert self._plans is not None
        self._plans.abandon()
        if self.metadata_log is not None:
            self.metadata_log.close()
        if self._watch is not None:
            self._watch.close()
        self._plans = self.metadata_log = self._watch = None
        self._shutting_down.clear()

    async def carry_out(self, decide: Callable[[], Plan[T] | Steps[T]]) -> T:
        """See `Plans.carry_out`."""
        if self._plans is None:
            raise ApiError(ErrorCode.not_controller)
        return await self._plans.carry_out(decide)

    async def _place(self, decide: Callable[[], Plan[T] | Steps[T]]) -> T:
        """Carries out a plan that places replicas: it must see all registered brokers."""
        if self._watch is not None:
            await self._watch.current()
        return await self._answer(decide)

    async def _answer(self, decide: Callable[[], Plan[T] | Steps[T]]) -> T:
        """Carries out the plan of an admin request.

        If its outcome is unknown, the refusal comes after the next controller has completed it or
        taken it back: the client may then look, and what it finds stays. In Kafka's ZooKeeper mode,
        too, a request waits until the ensemble is back (KafkaZkClient.retryRequestUntilConnected),
        and is refused with REQUEST_TIMED_OUT if that takes long.
        """
        epoch = self.image.controller_epoch
        try:
            return await self.carry_out(decide)
        except OutcomeUnknownError:
            loop = asyncio.get_running_loop()
            until = loop.time() + OUTCOME_WITHIN_MS / 1000
            while self.image.controller_epoch <= epoch:
                left_ms = int((until - loop.time()) * 1000)
                if left_ms <= 0:
                    message = "The change may take effect when the ensemble is back."
                    raise ApiError(ErrorCode.request_timed_out, message) from None
                await Waiter([self._view]).wait(left_ms)
            raise

    async def brokers_are(self, live: Mapping[int, BrokerImage]) -> None:
        """Applies that exactly these are registered; see `ottla.controller.broker_changes`."""
        changed = await self.carry_out(
            lambda: brokers_changed(
                live, self.image, self._config, shutting_down=self._shutting_down
            )
        )
        self._shutting_down.difference_update(changed.vanished, changed.bounced)
        log_brokers(changed)

    async def shut_down(self, broker_id: int, broker_epoch: int) -> bool:
        """Moves the leaderships of a broker that wants to stop. True if it may stop: no other live
        broker could take over what it still leads.

        Raises NOT_CONTROLLER; STALE_BROKER_EPOCH or BROKER_NOT_AVAILABLE if the controller knows
        another registration or none (KafkaController.doControlledShutdown): it will elect leaders
        when it sees this one, so the broker must ask again.
        """
        broker = self.image.brokers.get(broker_id)
        if broker is None:
            raise ApiError(ErrorCode.broker_not_available, f"Broker id {broker_id} does not exist.")
        if broker.epoch != broker_epoch:
            message = f"Expected broker epoch {broker.epoch}, but got broker epoch {broker_epoch}"
            raise ApiError(ErrorCode.stale_broker_epoch, message)
        self._shutting_down.add(broker_id)
        leaving = await self.carry_out(
            lambda: controlled_shutdown(broker_id, self.image, shutting_down=self._shutting_down)
        )
        log_elections(leaving.elections)
        return leaving.may_shut_down

    async def rebalance(self, only: Collection[int] | None = None) -> tuple[Election, ...]:
        """Elects the preferred leaders; see `ottla.controller.rebalance`."""
        elections = await self.carry_out(
            lambda: rebalance(
                self.image, self._config, shutting_down=self._shutting_down, only=only
            )
        )
        log_elections(elections)
        return elections

    async def alter_partitions(
        self, broker_id: int, broker_epoch: int, proposals: Sequence[ProposedIsr]
    ) -> tuple[IsrAnswer, ...]:
        """Applies in-sync sets that leaders propose; see `ottla.controller.alter_partition`."""
        return await self.carry_out(
            lambda: alter_partitions(
                broker_id,
                broker_epoch,
                proposals,
                self.image,
                self._config,
                shutting_down=self._shutting_down,
            )
        )

    async def alter_reassignments(
        self, wanted: Mapping[str, Mapping[int, Target]], *, allow_factor_change: bool
    ) -> dict[str, dict[int, Outcome]]:
        """Begin or cancel reassignments; see `ottla.controller.reassignment`."""
        return await self._place(
            lambda: alter_reassignments(
                wanted,
                self.image,
                self._config,
                shutting_down=self._shutting_down,
                allow_factor_change=allow_factor_change,
            )
        )

    def _overtaken(self, plans: Plans, why: str) -> None:
        if self._plans is not plans:
            log.info("a plan of an earlier tenure: %s", why)
            return
        self.resign(why)
        self._on_overtaken()

    def _notified(self, delta: MetadataDelta) -> None:
        if self.metadata_log is not None:
            self.metadata_log.append(delta)

    async def create_topics(
        self, wanted: Sequence[NewTopic], *, validate_only: bool = False, charge: Charge = free
    ) -> tuple[TopicResult, ...]:
        """Create topics; see `ottla.controller.topics`.

        Many topics take several plans. If one of them is refused as a whole, so are the topics of
        the plans after it; those of the plans before it exist.
        """
        so_far, start = CreationSoFar(), self._placement_start()
        results: list[TopicResult] = []
        is_first = True
        for part in in_parts(wanted):
            if not is_first:
                await asyncio.sleep(0)
            is_first = False
            if part is None:
                continue
            decide = partial(self._creation, part, start, validate_only, so_far, charge)
            try:
                done: tuple[TopicResult, ...] = await self._place(decide)
                results += done
            except ApiError as error:
                if not results:
                    raise
                slices = Slices()
                for refusal in all_refused(wanted, error, {each.name for each in results}):
                    await slices.count()
                    if refusal is not None:
                        results.append(refusal)
                break
        return tuple(results)

    def _creation(
        self,
        wanted: Sequence[NewTopic],
        start: int,
        validate_only: bool,
        so_far: CreationSoFar,
        charge: Charge,
    ) -> Steps[tuple[TopicResult, ...]]:
        return create_topics(
            wanted,
            self.image,
            self._config,
            new_id=lambda: random_uuid(self._random),
            start=start,
            shutting_down=self._shutting_down,
            validate_only=validate_only,
            so_far=so_far,
            charge=charge,
        )

    async def delete_topics(
        self, topics: Sequence[TopicToDelete], *, charge: Charge = free
    ) -> tuple[DeletionResult, ...]:
        """Delete topics; raises TOPIC_DELETION_DISABLED."""
        results = await self._answer(
            lambda: delete_topics(topics, self.image, self._config, charge)
        )
        slices = Slices()
        for each in results:
            await slices.count()
            if each.outcome == DONE and each.topic_id is not None:
                self._deletion_notes.append(layout.deletion_path(each.topic_id))
        if are_too_many(self._deletion_notes):
            # If it fails, the topics are deleted nevertheless, and the next controller forgets.
            with suppress(ApiError):
                await self.carry_out(self._forget_deletions)
        return results

    def _forget_deletions(self) -> Plan[list[str]]:
        plan = forget_oldest(self._deletion_notes)
        # At once: the next plan may be decided before this one's caller continues.
        self._deletion_notes = plan.reply
        return plan

    async def add_partitions(
        self,
        wanted: Sequence[MorePartitions],
        *,
        validate_only: bool = False,
        charge: Charge = free,
    ) -> tuple[TopicResult, ...]:
        """Add partitions to topics."""
        return await self._place(
            lambda: add_partitions(
                wanted,
                self.image,
                start=self._placement_start(),
                shutting_down=self._shutting_down,
                validate_only=validate_only,
                charge=charge,
            )
        )

    async def alter_configs(
        self, wanted: Sequence[ResourceChange], *, incremental: bool, validate_only: bool = False
    ) -> tuple[ResourceResult, ...]:
        """Change the settings of topics, groups and brokers."""
        return await self._answer(
            lambda: alter_configs(
                wanted,
                self.image,
                self._config,
                incremental=incremental,
                validate_only=validate_only,
                shutting_down=self._shutting_down,
            )
        )

    async def alter_credentials(
        self, deletions: Sequence[Deletion], upsertions: Sequence[Upsertion]
    ) -> tuple[UserOutcome, ...]:
        """Change the passwords of users for SCRAM."""
        return await self._answer(lambda: alter_credentials(deletions, upsertions, self.image))

    async def alter_quotas(
        self, changes: Sequence[QuotaChange], *, validate_only: bool = False
    ) -> tuple[QuotaOutcome, ...]:
        """Change the quotas of users, client ids and addresses."""
        return await self._answer(
            lambda: alter_quotas(changes, self.image, validate_only=validate_only)
        )

    async def elect_leaders(
        self, kind: ElectionType, wanted: Mapping[str, Sequence[int]] | None
    ) -> dict[str, dict[int, Outcome]]:
        """Elect leaders; None means every partition."""
        return await self._answer(
            lambda: elect_leaders(kind, wanted, self.image, shutting_down=self._shutting_down)
        )

    async def update_features(
        self, updates: Sequence[FeatureUpdate], *, validate_only: bool = False
    ) -> Outcome:
        """Change the levels of the cluster's features; see `ottla.controller.features`."""
        return await self._answer(
            lambda: update_features(
                updates, self.image, self._config.id, validate_only=validate_only
            )
        )

    async def next_producer_ids(self, broker_id: int) -> tuple[int, int]:
        """Reserve a block of producer ids for a broker: its first, and the one after its last."""
        return await self.carry_out(lambda: reserve_producer_ids(self.image, broker_id))


async def _next_tenure(session: Coordination) -> Tenure:
    node = await session.get(layout.CONTROLLER_EPOCH)
    epoch = int(node.data) + 1
    version = await session.set(layout.CONTROLLER_EPOCH, str(epoch).encode(), node.version)
    return Tenure(epoch, version)


async def _read_all(session: Coordination) -> dict[str, TreeNode]:
    nodes, *others = await asyncio.gather(*(session.read_tree(root) for root in ROOTS))
    for tree in others:  # all of them together are smaller than the first, that of the topics
        nodes.update(tree)
    return nodes
