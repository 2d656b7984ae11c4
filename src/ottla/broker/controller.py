"""The controller at work: registers the broker, loads the image, carries out plans, tells the news.

Requests come one after another through `_carry_out`: the pure decider sees the image as the request
before left it; its writes go to the coordination tree in one `multi`; then the news is applied to
the image and told to the subscribers; then the caller has its reply. A caller that goes away in the
middle does not stop that, or the image would miss what the tree has.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import random
import uuid
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from ottla.config.broker import BrokerConfig
from ottla.config.listener import Endpoint
from ottla.controller import layout
from ottla.controller.config_changes import ResourceChange, ResourceResult, alter_configs
from ottla.controller.coordination import (
    Check,
    Coordination,
    CoordinationError,
    Create,
    NodeExistsError,
    SetData,
)
from ottla.controller.deletion import DeletionResult, UnwantedTopic, delete_topics
from ottla.controller.elections import ElectionType, elect_leaders
from ottla.controller.embedded_store import StoreError
from ottla.controller.image import (
    EVERY_BROKER,
    BrokerConfigChanged,
    BrokerImage,
    ClusterImage,
    News,
)
from ottla.controller.loading import ROOTS, first_writes, load_image
from ottla.controller.plan import DONE, Outcome, Plan
from ottla.controller.producer_ids import reserve_producer_ids
from ottla.controller.topics import (
    MorePartitions,
    NewTopic,
    TopicResult,
    add_partitions,
    create_topics,
)
from ottla.protocol.errors import ApiError, ErrorCode

T = TypeVar("T")

OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTIONS_TOPIC: Final = "__transaction_state"
SEGMENT_BYTES_MIN: Final = 1_048_576

Subscriber = Callable[[News], Awaitable[None] | None]

log = logging.getLogger(__name__)


class StartError(Exception):
    """This broker cannot take part; the text is one line for the person who started it."""


class Controller:
    """See the module's text. `image` is there once `start` has returned."""

    def __init__(
        self,
        coordination: Coordination,
        config: BrokerConfig,
        *,
        now_ms: Callable[[], int],
        cluster_id: str | None = None,
        new_id: Callable[[], uuid.UUID] | None = None,
        placement_start: Callable[[], int] | None = None,
    ) -> None:
        """`cluster_id` is the one that the data folder belongs to, if it is known yet.

        `new_id` and `placement_start` give what is random: topic ids, and where placement begins.
        """
        self.image = ClusterImage("")
        self._coordination = coordination
        self._config = config
        self._now_ms = now_ms
        self._cluster_id = cluster_id
        self._new_id = new_id or random_id
        self._placement_start = placement_start or (lambda: random.randrange(1 << 16))
        self._subscribers: list[Subscriber] = []
        self._turn = asyncio.Lock()
        self._epoch_version = 0

    async def start(self, endpoints: Sequence[Endpoint]) -> None:
        """Register the broker under these addresses, become controller and load the image.

        Raises StartError when the number is taken or the folder is another cluster's, StoreError,
        LayoutError, and ConfigError when a dynamic setting does not fit the static ones.
        """
        coordination, config = self._coordination, self._config
        tree = await coordination.read_tree("/")
        await coordination.multi(first_writes(tree, self._cluster_id or random_cluster_id()))
        me = BrokerImage(config.id, tuple(endpoints), config.broker_rack)
        try:
            await coordination.create(
                layout.broker_path(config.id),
                layout.write_broker(me, self._now_ms()),
                ephemeral=True,
            )
        except NodeExistsError:
            raise StartError(f"node.id={config.id}: a broker with this number runs") from None
        await self._become_controller()
        nodes = {}
        for root in ROOTS:
            nodes.update(await coordination.read_tree(root))
        self.image = load_image(nodes, config.id)
        if self._cluster_id not in (None, self.image.cluster_id):
            raise StartError(
                f"the data folder belongs to cluster {self._cluster_id}, "
                f"its coordination store to {self.image.cluster_id}"
            )
        self._reconfigure()

    async def close(self) -> None:
        """Let the request under way end, then leave the cluster."""
        async with self._turn:
            await self._coordination.close()

    def subscribe(self, subscriber: Subscriber) -> None:
        """Tell this one all news to come, after the image has it.

        An awaitable that it returns is awaited before whoever caused the news has its reply.
        """
        self._subscribers.append(subscriber)

    async def create_topics(
        self, wanted: Sequence[NewTopic], *, validate_only: bool = False
    ) -> tuple[TopicResult, ...]:
        """Make topics; see `ottla.controller.topics`."""
        return await self._carry_out(
            lambda: create_topics(
                wanted,
                self.image,
                self._config,
                new_id=self._new_id,
                start=self._placement_start(),
                validate_only=validate_only,
            )
        )

    async def auto_create(self, names: Sequence[str]) -> dict[str, Outcome]:
        """Make topics that a client asked the metadata of; one that is there by now is fine."""
        wanted = [self._auto_topic(name) for name in dict.fromkeys(names)]
        if not wanted:
            return {}
        results = await self.create_topics([topic for topic in wanted if topic is not None])
        outcomes = {name: Outcome(ErrorCode.unknown_topic_or_partition) for name in names}
        for result in results:
            there = result.outcome.code is ErrorCode.topic_already_exists
            outcomes[result.name] = DONE if there else result.outcome
        return outcomes

    async def ensure_offsets_topic(self) -> Outcome:
        """Make __consumer_offsets unless it is there."""
        if OFFSETS_TOPIC in self.image.topics:
            return DONE
        return (await self.auto_create([OFFSETS_TOPIC]))[OFFSETS_TOPIC]

    async def delete_topics(self, unwanted: Sequence[UnwantedTopic]) -> tuple[DeletionResult, ...]:
        """Delete topics; raises TOPIC_DELETION_DISABLED."""
        return await self._carry_out(lambda: delete_topics(unwanted, self.image, self._config))

    async def add_partitions(
        self, wanted: Sequence[MorePartitions], *, validate_only: bool = False
    ) -> tuple[TopicResult, ...]:
        """Give topics more partitions."""
        return await self._carry_out(
            lambda: add_partitions(
                wanted, self.image, start=self._placement_start(), validate_only=validate_only
            )
        )

    async def alter_configs(
        self, wanted: Sequence[ResourceChange], *, incremental: bool, validate_only: bool = False
    ) -> tuple[ResourceResult, ...]:
        """Change settings of topics and brokers."""
        return await self._carry_out(
            lambda: alter_configs(
                wanted,
                self.image,
                self._config,
                incremental=incremental,
                validate_only=validate_only,
            )
        )

    async def elect_leaders(
        self, kind: ElectionType, wanted: dict[str, Sequence[int]] | None
    ) -> dict[str, dict[int, Outcome]]:
        """Elect leaders; None means every partition."""
        return await self._carry_out(lambda: elect_leaders(kind, wanted, self.image))

    async def next_producer_ids(self) -> tuple[int, int]:
        """Reserve a block of producer ids: its first, and the one behind its last."""
        return await self._carry_out(lambda: reserve_producer_ids(self.image, self._config.id))

    async def _become_controller(self) -> None:
        """Take the ephemeral /controller and the next epoch, which fences the one before."""
        node = await self._coordination.get(layout.CONTROLLER_EPOCH)
        epoch = int(node.data) + 1
        await self._coordination.multi(
            [
                Create(
                    layout.CONTROLLER,
                    layout.write_controller(self._config.id, self._now_ms()),
                    ephemeral=True,
                ),
                SetData(layout.CONTROLLER_EPOCH, str(epoch).encode(), node.version),
            ]
        )
        self._epoch_version = node.version + 1

    async def _carry_out(self, decide: Callable[[], Plan[T]]) -> T:
        return await asyncio.shield(asyncio.create_task(self._in_turn(decide)))

    async def _in_turn(self, decide: Callable[[], Plan[T]]) -> T:
        async with self._turn:
            plan = decide()
            if plan.writes:
                fence = Check(layout.CONTROLLER_EPOCH, self._epoch_version)
                try:
                    await self._coordination.multi([fence, *plan.writes])
                except StoreError as error:
                    log.error("the cluster's state cannot be written: %s", error)
                    raise ApiError(ErrorCode.kafka_storage_error, str(error)) from None
                except CoordinationError as error:
                    # Someone else wrote: this broker is not the controller that it believes to be.
                    log.error("a plan was overtaken: %r", error)
                    raise ApiError(ErrorCode.not_controller) from None
            for news in plan.news:
                await self._tell(news)
            return plan.reply

    async def _tell(self, news: News) -> None:
        self.image.apply(news)
        if isinstance(news, BrokerConfigChanged):
            self._reconfigure()
        for subscriber in self._subscribers:
            waiting = subscriber(news)
            if waiting is not None:
                await waiting

    def _reconfigure(self) -> None:
        """Put the dynamic settings of the image in force on this broker."""
        own = self.image.config(str(self._config.id))
        changed = self._config.reconfigure(self.image.config(EVERY_BROKER).values, own.values)
        if changed:
            log.info("dynamic settings changed: %s", ", ".join(changed))

    def _auto_topic(self, name: str) -> NewTopic | None:
        config = self._config
        if name == TRANSACTIONS_TOPIC:
            return None
        if name != OFFSETS_TOPIC:
            return NewTopic(name)
        segment_bytes = config.offsets_topic_segment_bytes
        bounded = segment_bytes >= SEGMENT_BYTES_MIN
        return NewTopic(
            name,
            config.offsets_topic_num_partitions,
            config.offsets_topic_replication_factor,
            configs=(
                ("cleanup.policy", "compact"),
                ("compression.type", "producer"),
                ("segment.bytes" if bounded else "internal.segment.bytes", str(segment_bytes)),
            ),
        )


def random_id() -> uuid.UUID:
    """A topic id as Kafka makes them: random, and never one whose text begins with a dash."""
    while True:
        found = uuid.uuid4()
        if not layout.uuid_text(found).startswith("-"):
            return found


def random_cluster_id() -> str:
    """A cluster id as Kafka makes them: 22 characters."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
