"""DescribeTransactions (key 65): the state of transactional ids (KIP-664); none is known yet."""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ErrorCode

KEY: Final = 65
ACCESS: Final = (Access(Operation.DESCRIBE, Resource.TRANSACTIONAL_ID),)


async def handle(request: Any, context: Context) -> Any:
    build = context.messages
    return build.DescribeTransactionsResponse(
        transaction_states=tuple(
            build.TransactionState(
                error_code=ErrorCode.transactional_id_not_found,
                transactional_id=transactional_id,
                producer_id=-1,
                producer_epoch=-1,
                transaction_start_time=-1,
            )
            for transactional_id in request.transactional_ids
        )
    )
