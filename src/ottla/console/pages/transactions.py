"""The transactional ids of the cluster: those with an open transaction first, and those that
hang.
"""

from __future__ import annotations

import time
from typing import Final

from starlette.responses import Response

from ottla.client.admin.hanging_transactions import OPEN, HangingTransaction
from ottla.client.admin.health import hanging_transactions
from ottla.client.admin.transactions import DescribedTransaction, Transactions
from ottla.client.client import Client
from ottla.console.pages.overview import HANGING_FRESH_S
from ottla.console.shared_answers import FRESH_S
from ottla.console.visit import Visit

MAX_ROWS: Final = 500


def transactions(visit: Visit) -> Response:
    """The page at `/transactions`."""
    client, access = visit.client, visit.access
    part = visit.text("q")
    rows, count = access.kept(f"transactions {part}", FRESH_S, lambda: described(client, part))
    hanging: list[HangingTransaction] | None = access.kept(
        "hanging", HANGING_FRESH_S, lambda: hanging_transactions(client)
    )
    return visit.page(
        "transactions.html",
        rows=rows,
        count=count,
        part=part,
        hanging=hanging,
        open_states=OPEN,
        now_ms=int(time.time() * 1000),
    )


def described(client: Client, part: str) -> tuple[list[DescribedTransaction], int]:
    """The first ids with this part, open ones first and the oldest of them on top; and how many
    there are.
    """
    known = Transactions(client)
    found = [each for each in known.listed() if part.lower() in each.transactional_id.lower()]
    found.sort(key=lambda each: (each.state not in OPEN, each.transactional_id))
    rows = list(known.described(each.transactional_id for each in found[:MAX_ROWS]).values())
    rows.sort(key=lambda each: (each.state not in OPEN, each.started_ms, each.transactional_id))
    return rows, len(found)
