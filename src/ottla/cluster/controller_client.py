"""This broker's own requests to the current controller."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from ottla.cluster.registration import Registration
from ottla.controller.image import ClusterImage
from ottla.controller.plan import DONE, Outcome
from ottla.controller.topics import NewTopic
from ottla.network.peer import PeerError
from ottla.network.peers import Peers
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages import messages_of
from ottla.protocol.versions import ALLOCATE_PRODUCER_IDS, CREATE_TOPICS
from ottla.runtime.slices import Slices

ANSWER_WITHIN_MS: Final = 5_000
CREATE_WITHIN_MS: Final = 30_000
PURPOSE: Final = "controller-requests"
_CREATE_VERSION: Final = 7


class ControllerClient:
    """Sends requests to the controller, or answers them here if this broker is the controller."""

    def __init__(
        self,
        registration: Registration,
        image: ClusterImage,
        peers: Peers,
        answer_own: Callable[[Any, str], Awaitable[Any]],
    ) -> None:
        """`answer_own` answers a request of this broker to itself; its arguments are the request
        and the client id.
        """
        self._registration = registration
        self._image = image
        self._peers = peers
        self._answer_own = answer_own

    async def ask(self, request: Any, timeout_ms: int = ANSWER_WITHIN_MS) -> Any:
        """The controller's response. Raises PeerError if no controller is known or it does not
        answer."""
        controller_id = self._image.controller_id
        if controller_id == self._registration.broker_id:
            return await self._answer_own(request, f"broker-{controller_id}-{PURPOSE}")
        if controller_id < 0:
            raise PeerError("there is no controller")
        return await self._peers.peer(controller_id, PURPOSE).ask(request, timeout_ms)

    async def reserve_producer_ids(self) -> tuple[int, int]:
        """A block of producer ids for this broker: its first, and the one after its last (KIP-730).

        Raises ApiError COORDINATOR_LOAD_IN_PROGRESS, as Kafka does, so that the producer retries.
        """
        build = messages_of(ALLOCATE_PRODUCER_IDS, 0, "request")
        request = build.AllocateProducerIdsRequest(
            broker_id=self._registration.broker_id, broker_epoch=self._registration.broker_epoch
        )
        try:
            response = await self.ask(request)
        except PeerError as error:
            raise ApiError(ErrorCode.coordinator_load_in_progress, str(error)) from None
        if response.error_code is not ErrorCode.none:
            raise ApiError(ErrorCode.coordinator_load_in_progress, str(response.error_code))
        first = response.producer_id_start
        return first, first + response.producer_id_len

    async def create_missing_topics(self, wanted: Sequence[NewTopic]) -> dict[str, Outcome]:
        """Creates topics that a client's request needs; an existing topic is not an error."""
        build = messages_of(CREATE_TOPICS, _CREATE_VERSION, "request")
        slices, topics = Slices(), []
        for topic in wanted:
            await slices.count()
            topics.append(
                build.CreatableTopic(
                    name=topic.name,
                    num_partitions=topic.partitions,
                    replication_factor=topic.factor,
                    configs=tuple(
                        build.CreatableTopicConfig(name=name, value=value)
                        for name, value in topic.configs
                    ),
                )
            )
        request = build.CreateTopicsRequest(topics=tuple(topics), timeout=CREATE_WITHIN_MS)
        try:
            response = await self.ask(request, CREATE_WITHIN_MS)
        except PeerError as error:
            outcome = Outcome(ErrorCode.unknown_topic_or_partition, str(error))
            return {topic.name: outcome for topic in wanted}
        outcomes = {}
        for each in response.topics:
            await slices.count()
            outcomes[each.name] = _outcome(each)
        return outcomes


def _outcome(each: Any) -> Outcome:
    if each.error_code in (ErrorCode.none, ErrorCode.topic_already_exists):
        return DONE
    if each.error_code is ErrorCode.not_controller:
        return Outcome(ErrorCode.unknown_topic_or_partition, each.error_message)
    return Outcome(each.error_code, each.error_message)
