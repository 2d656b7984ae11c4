"""DescribeCluster (key 60): the live brokers and the controller (KIP-700).

v1: the client requests brokers or controllers (KIP-919). v2: fenced brokers (KIP-1073); Ottla has
none: a broker without a session is not registered.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.api.metadata import CLUSTER_OPERATIONS, OPERATIONS_NOT_REQUESTED, broker_addresses
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ErrorCode
from ottla.protocol.versioned_field import VersionedField

KEY: Final = 60
ACCESS: Final = (Access(Operation.DESCRIBE, Resource.CLUSTER),)

_BROKERS: Final = 1
_CONTROLLERS: Final = 2

_ENDPOINT_TYPE: Final = VersionedField(KEY, "DescribeClusterRequest", "endpoint_type", _BROKERS)


async def handle(request: Any, context: Context) -> Any:
    build, image = context.messages, context.broker.image
    endpoint_type = _ENDPOINT_TYPE(request)
    if endpoint_type != _BROKERS:
        code, message = ErrorCode.unsupported_endpoint_type, f"No endpoint type {endpoint_type}."
        if endpoint_type == _CONTROLLERS:
            code = ErrorCode.mismatched_endpoint_type
            message = (
                "The request was sent to an endpoint of type BROKER, but we wanted an endpoint "
                "of type CONTROLLER"
            )
        return build.DescribeClusterResponse(
            error_code=code, error_message=message, endpoint_type=_BROKERS
        )
    requested = request.include_cluster_authorized_operations
    return build.DescribeClusterResponse(
        endpoint_type=_BROKERS,
        cluster_id=image.cluster_id,
        controller_id=image.controller_id,
        brokers=tuple(
            build.DescribeClusterBroker(broker_id=broker_id, host=host, port=port, rack=rack)
            for broker_id, host, port, rack in broker_addresses(context)
        ),
        cluster_authorized_operations=CLUSTER_OPERATIONS if requested else OPERATIONS_NOT_REQUESTED,
    )
