"""ListTransactions (key 66): the transactional ids that this broker coordinates (KIP-664).

v1 (KIP-994): filter by duration. v2 (KIP-1152): filter by a regular expression, which matches the
whole id; an empty one matches all. State filters that Kafka does not know are returned.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from ottla.api.context import Context
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError
from ottla.protocol.regular_expression import compile_expression
from ottla.protocol.versioned_field import VersionedField
from ottla.transactions.requests import ListFilter
from ottla.transactions.state import TransactionState

KEY: Final = 66
ACCESS: Final = (Access(Operation.DESCRIBE, Resource.TRANSACTIONAL_ID),)

STATES: Final = frozenset(state.value for state in TransactionState) | {"Dead", "PrepareEpochFence"}
"""The last two are Kafka's own, which no transactional id here ever shows."""

_DURATION_FILTER: Final = VersionedField(KEY, "ListTransactionsRequest", "duration_filter", -1)
_PATTERN: Final = VersionedField(KEY, "ListTransactionsRequest", "transactional_id_pattern", None)


async def handle(request: Any, context: Context) -> Any:
    build = context.messages
    unknown = tuple(state for state in request.state_filters if state not in STATES)
    wanted = ListFilter(
        frozenset(request.producer_id_filters),
        frozenset(request.state_filters),
        _DURATION_FILTER(request),
    )
    pattern = _PATTERN(request)
    try:
        expression = compile_expression(pattern) if pattern else None
    except ApiError as error:
        # As in Kafka, without the unknown states.
        return build.ListTransactionsResponse(error_code=error.code)
    try:
        found = await context.broker.transactions.list(wanted)
    except ApiError as error:
        return build.ListTransactionsResponse(error_code=error.code, unknown_state_filters=unknown)
    if expression is not None:
        # In a thread: there may be 100,000 ids, at some microseconds each.
        found = await asyncio.to_thread(
            lambda: [each for each in found if expression.fullmatch(each[0]) is not None]
        )
    return build.ListTransactionsResponse(
        unknown_state_filters=unknown,
        transaction_states=tuple(
            build.TransactionState(
                transactional_id=transactional_id,
                producer_id=value.producer_id,
                transaction_state=value.state.value,
            )
            for transactional_id, value in found
        ),
    )
