"""StreamsGroupTopologyDescriptionUpdate (key 93, KIP-1331): a member describes the topology.

Apache Kafka hands the description to a plug-in, and answers UNSUPPORTED_VERSION without one. Here
the coordinator keeps it (`ottla.groups.streams.description`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, Final

from ottla.api.context import Context
from ottla.api.streams_group_heartbeat import DISABLED, is_enabled
from ottla.groups.streams.describe_topology import DescriptionUpdate
from ottla.groups.streams.description import (
    MAX_DESCRIPTION_BYTES,
    MAX_DESCRIPTION_NAMES,
    Description,
    GlobalStore,
    Node,
    NodeKind,
    NodesOfSubtopology,
    encode,
)
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.runtime.slices import Slices

KEY: Final = 93
ACCESS: Final = (Access(Operation.READ, Resource.GROUP),)


async def handle(request: Any, context: Context) -> Any:
    build = context.messages
    try:
        if not is_enabled(context):
            raise ApiError(ErrorCode.unsupported_version, DISABLED)
        why_not = await context.broker.groups.streams.describe_topology(
            await _update(request, Slices())
        )
        if why_not is not None:
            raise ApiError(ErrorCode.streams_topology_description_update_failed, why_not)
    except ApiError as error:
        return build.StreamsGroupTopologyDescriptionUpdateResponse(
            error_code=error.code, error_message=error.message
        )
    return build.StreamsGroupTopologyDescriptionUpdateResponse()


async def _update(request: Any, slices: Slices) -> DescriptionUpdate:
    for name, text in (("MemberId", request.member_id), ("GroupId", request.group_id)):
        if not text.strip():
            raise ApiError(ErrorCode.invalid_request, f"{name} can't be empty.")
    description = await _description(request.topology_description, slices)
    return DescriptionUpdate(
        request.group_id,
        request.member_id,
        request.topology_epoch,
        None if description is None else encode(description),
    )


async def _description(said: Any, slices: Slices) -> Description | None:
    """None for one that is too large, of which no more than the allowed is looked at. Raises
    ApiError (INVALID_REQUEST) for what no application has.
    """
    room = _Room()
    subtopologies, stores = [], []
    for each in said.subtopologies:
        if not room.has_for((each.subtopology_id,), each.nodes):
            return None
        await slices.count(1 + len(each.nodes))
        subtopologies.append(NodesOfSubtopology(each.subtopology_id, tuple(map(_node, each.nodes))))
    for store in said.global_stores:
        if not room.has_for((), (store.source, store.processor)):
            return None
        await slices.count()
        source, processor = _node(store.source), _node(store.processor)
        if source.kind is not NodeKind.SOURCE or processor.kind is not NodeKind.PROCESSOR:
            raise ApiError(
                ErrorCode.invalid_request,
                "Global store must be composed of a source and a processor node.",
            )
        stores.append(GlobalStore(source, processor))
    return Description(tuple(subtopologies), tuple(stores))


class _Room:
    """For names, and for their characters."""

    def __init__(self) -> None:
        self._names = MAX_DESCRIPTION_NAMES
        self._characters = MAX_DESCRIPTION_BYTES

    def has_for(self, names: Iterable[str], nodes: Sequence[Any]) -> bool:
        self._take(names)
        if len(nodes) > self._names:
            return False
        for node in nodes:
            kinds = (node.source_topics, node.stores, node.successors)
            if sum(map(len, kinds)) > self._names:
                return False
            self._take((node.name, node.sink_topic or "", *chain(*kinds)))
            if self._names < 0 or self._characters < 0:
                return False
        return self._names >= 0 and self._characters >= 0

    def _take(self, names: Iterable[str]) -> None:
        for name in names:
            self._names -= 1
            self._characters -= len(name)


def _node(said: Any) -> Node:
    """Only what belongs to a node of its kind, each name once."""
    if said.node_type not in (1, 2, 3):
        raise ApiError(ErrorCode.invalid_request, f"Unknown topology node type: {said.node_type}")
    kind = NodeKind(said.node_type)
    return Node(
        said.name,
        kind,
        tuple(dict.fromkeys(said.source_topics)) if kind is NodeKind.SOURCE else (),
        said.sink_topic if kind is NodeKind.SINK else None,
        tuple(dict.fromkeys(said.stores)) if kind is NodeKind.PROCESSOR else (),
        tuple(dict.fromkeys(said.successors)),
    )
