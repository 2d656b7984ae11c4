"""This broker's own requests to the controller, on whichever broker that is now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from ottla.controller.plan import DONE, Outcome
from ottla.controller.topics import NewTopic
from ottla.network.client_session import IN_PROCESS
from ottla.network.peer import PeerError
from ottla.network.request_context import RequestContext
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages import messages_of
from ottla.protocol.versions import ALLOCATE_PRODUCER_IDS, CREATE_TOPICS

if TYPE_CHECKING:
    from ottla.broker.node import Node

ANSWER_WITHIN_MS: Final = 5_000
CREATE_WITHIN_MS: Final = 30_000
PURPOSE: Final = "controller-requests"
_CREATE_VERSION: Final = 7


async def ask_controller(node: Node, request: Any, timeout_ms: int = ANSWER_WITHIN_MS) -> Any:
    """The controller's response; raises PeerError where there is none to be had."""
    controller_id = node.image.controller_id
    if controller_id != node.config.id:
        if controller_id < 0:
            raise PeerError("there is no controller")
        return await node.peers.peer(controller_id, PURPOSE).ask(request, timeout_ms)
    key, version = request.__api_key__, request.__version__
    handler = node.handlers.find(key)
    assert handler is not None, key
    client_id = f"broker-{controller_id}-{PURPOSE}"
    context = RequestContext(node, IN_PROCESS, version, client_id, messages_of(key, version))
    return await handler.answer(request, context)


async def reserve_producer_ids(node: Node) -> tuple[int, int]:
    """A block of producer ids for this broker: its first, and the one behind its last (KIP-730).

    Raises ApiError COORDINATOR_LOAD_IN_PROGRESS, as Kafka does, so that the producer asks again.
    """
    build = messages_of(ALLOCATE_PRODUCER_IDS, 0, "request")
    request = build.AllocateProducerIdsRequest(
        broker_id=node.config.id, broker_epoch=node.membership.broker_epoch
    )
    try:
        response = await ask_controller(node, request)
    except PeerError as error:
        raise ApiError(ErrorCode.coordinator_load_in_progress, str(error)) from None
    if response.error_code is not ErrorCode.none:
        raise ApiError(ErrorCode.coordinator_load_in_progress, str(response.error_code))
    first = response.producer_id_start
    return first, first + response.producer_id_len


async def create_missing_topics(node: Node, wanted: Sequence[NewTopic]) -> dict[str, Outcome]:
    """Makes topics that a client's request needs; one that is there by now is fine."""
    build = messages_of(CREATE_TOPICS, _CREATE_VERSION, "request")
    request = build.CreateTopicsRequest(
        topics=tuple(
            build.CreatableTopic(
                name=topic.name,
                num_partitions=topic.partitions,
                replication_factor=topic.factor,
                configs=tuple(
                    build.CreatableTopicConfig(name=name, value=value)
                    for name, value in topic.configs
                ),
            )
            for topic in wanted
        ),
        timeout=CREATE_WITHIN_MS,
    )
    try:
        response = await ask_controller(node, request, CREATE_WITHIN_MS)
    except PeerError as error:
        outcome = Outcome(ErrorCode.unknown_topic_or_partition, str(error))
        return {topic.name: outcome for topic in wanted}
    return {each.name: _outcome(each) for each in response.topics}


def _outcome(each: Any) -> Outcome:
    if each.error_code in (ErrorCode.none, ErrorCode.topic_already_exists):
        return DONE
    if each.error_code is ErrorCode.not_controller:
        return Outcome(ErrorCode.unknown_topic_or_partition, each.error_message)
    return Outcome(each.error_code, each.error_message)
