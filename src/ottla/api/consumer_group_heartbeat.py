"""ConsumerGroupHeartbeat (key 68): the consumer rebalance protocol (KIP-848), not supported.

The response is UNSUPPORTED_VERSION, as from an Apache Kafka with that protocol disabled
(KafkaApis.isConsumerGroupProtocolEnabled): clients stop with an error that says so. The request is
advertised only for that: librdkafka waits for ever for a broker that does not know it.
v1 (KIP-848): a subscription by regular expression.
"""

from __future__ import annotations

import logging
from typing import Any, Final

from ottla.api.context import Context
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ErrorCode

KEY: Final = 68
ACCESS: Final = (
    Access(Operation.READ, Resource.GROUP),
    Access(Operation.DESCRIBE, Resource.TOPIC),
)

logger = logging.getLogger("ottla.groups")

MAX_LOGGED_CHARS: Final = 200
"""Of a name in a line: a request may have one of 32,767 bytes."""
_REASON: Final = (
    "This broker does not support the consumer group protocol (KIP-848); use"
    " group.protocol=classic."
)


async def handle(request: Any, context: Context) -> Any:
    logger.warning(
        "client %s at %s uses group.protocol=consumer in group %s, which is not supported;"
        " it must use group.protocol=classic",
        context.client_id[:MAX_LOGGED_CHARS],
        context.session.address,
        request.group_id[:MAX_LOGGED_CHARS],
    )
    return context.messages.ConsumerGroupHeartbeatResponse(
        error_code=ErrorCode.unsupported_version,
        error_message=_REASON,
        member_epoch=-1,
        heartbeat_interval=0,
    )
