"""Finds hanging transactions: those that are open in a partition, and that no coordinator will end
(KIP-664)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ottla.cli.transaction_client import DescribedTransaction, OpenProducer, TransactionClient
from ottla.cli.transaction_documents import hanging


def find_hanging(
    client: TransactionClient, places: Sequence[tuple[str, int]], before_ms: int
) -> tuple[list[OpenProducer], dict[tuple[str, int], str]]:
    """The hanging transactions of these partitions without a write after `before_ms`; and for the
    partitions that could not be asked, the reason. Raises Failed.
    """
    producers, why = client.open_producers(places)
    old = [each for each in producers if each.last_write_ms <= before_ms]
    return not_ended(client, hanging(old, *coordinated(client, old))), why


def coordinated(
    client: TransactionClient, producers: Iterable[OpenProducer]
) -> tuple[dict[int, str], Mapping[str, DescribedTransaction]]:
    """The transactional ids of producers by producer id, and the descriptions of those ids."""
    wanted = {each.producer_id for each in producers}
    # An empty filter would list every id.
    listed = client.listed(producer_ids=wanted) if wanted else []
    ids = {each.producer_id: each.transactional_id for each in listed}
    return ids, client.described(ids.values())


def not_ended(client: TransactionClient, found: list[OpenProducer]) -> list[OpenProducer]:
    """Those still open. A transaction that its coordinator completed after the first question
    looks as if it hung; its marker is in the log by now.
    """
    still, _ = client.open_producers({each.place for each in found})
    open_now = {(each.place, each.producer_id, each.first_offset) for each in still}
    return [each for each in found if (each.place, each.producer_id, each.first_offset) in open_now]
