"""Transactions as documents: what `--json` prints, and which of them hang."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ottla.cli.screen import say, show_table
from ottla.client.admin.transactions import DescribedTransaction, OpenProducer
from ottla.client.topic_partition import TopicPartition
from ottla.journey.formatting import elapsed_said, moment_said

ONGOING: Final = "Ongoing"
PREPARED: Final = ("PrepareCommit", "PrepareAbort")
OPEN: Final = (ONGOING, *PREPARED)


def transaction_document(
    described: DescribedTransaction,
    producers: Iterable[OpenProducer],
    why: Mapping[TopicPartition, str],
    now_ms: int,
) -> dict[str, Any]:
    """One transactional id: its coordinator's description, and what its partitions say of it.

    `producers` and `why` are those of `Transactions.open_producers`.
    """
    is_open = described.state in OPEN
    in_log = {each.place: each for each in producers if each.producer_id == described.producer_id}
    partitions = []
    for place in described.partitions:
        each = in_log.get(place)
        partitions.append(
            {
                "topic": place[0],
                "partition": place[1],
                "first_offset": each.first_offset if each else None,
                "last_write_ms": each.last_write_ms if each else None,
                "error": why.get(place),
            }
        )
    return {
        "transactional_id": described.transactional_id,
        "state": described.state,
        "coordinator": described.coordinator,
        "producer_id": described.producer_id,
        "producer_epoch": described.producer_epoch,
        "timeout_ms": described.timeout_ms,
        "started_ms": described.started_ms if is_open else None,
        "open_for_ms": max(0, now_ms - described.started_ms) if is_open else None,
        "partitions": partitions,
    }


def what_next(document: Mapping[str, Any]) -> str | None:
    """What ends an open transaction, and how to end it now."""
    if document["state"] in PREPARED:
        return (
            "The outcome is decided. The coordinator writes the markers to the partitions below "
            "until each leader has acknowledged its own. To check the leaders: ottla cluster "
            "describe"
        )
    if document["state"] != ONGOING:
        return None
    left_ms = document["timeout_ms"] - document["open_for_ms"]
    if left_ms > 0:
        ends = (
            f"The coordinator aborts it in {elapsed_said(left_ms)} if the producer does not end it."
        )
    else:
        ends = (
            "Its timeout is over. The coordinator aborts it with its next scan "
            "(transaction.abort.timed.out.transaction.cleanup.interval.ms, 10 s by default)."
        )
    return f"{ends} To abort it now: ottla transaction abort {document['transactional_id']}"


def show_transaction(document: Mapping[str, Any]) -> None:
    """Print one transactional id."""
    say(f"{document['transactional_id']}: {document['state']}")
    say(f"coordinator: broker {document['coordinator']}")
    say(f"producer: {document['producer_id']}, epoch {document['producer_epoch']}")
    say(f"timeout: {elapsed_said(document['timeout_ms'])}")
    if document["open_for_ms"] is not None:
        since = moment_said(document["started_ms"])
        say(f"open for: {elapsed_said(document['open_for_ms'])}, since {since}")
    hint = what_next(document)
    if hint is not None:
        say(hint)
    if document["partitions"]:
        show_table(
            ["topic", "partition", "first offset", "last write", "state"],
            [
                [
                    each["topic"],
                    each["partition"],
                    each["first_offset"],
                    _moment(each["last_write_ms"]),
                    each["error"] or "",
                ]
                for each in document["partitions"]
            ],
            drop_empty=("state",),
        )


def hanging(
    producers: Iterable[OpenProducer],
    transactional_ids: Mapping[int, str],
    described: Mapping[str, DescribedTransaction],
) -> list[OpenProducer]:
    """Those whose transaction no coordinator will end (KIP-664).

    The open transaction of a producer in a partition hangs if the producer's transactional id is
    unknown (`transactional_ids`, by producer id), or if that id's transaction lacks the partition.
    """
    return [
        each
        for each in producers
        if not has_partition(described.get(transactional_ids.get(each.producer_id, "")), each)
    ]


def has_partition(described: DescribedTransaction | None, each: OpenProducer) -> bool:
    """Whether the coordinator will write a marker to this partition."""
    return described is not None and described.state in OPEN and each.place in described.partitions


def hanging_document(each: OpenProducer) -> dict[str, Any]:
    return {
        "topic": each.topic,
        "partition": each.partition,
        "first_offset": each.first_offset,
        "producer_id": each.producer_id,
        "producer_epoch": each.epoch,
        "coordinator_epoch": each.coordinator_epoch,
        "last_write_ms": each.last_write_ms,
    }


def show_hanging(documents: Sequence[Mapping[str, Any]]) -> None:
    """A table, and the command that ends the first of them."""
    show_table(
        ["topic", "partition", "first offset", "producer", "epoch", "last write"],
        [
            [
                each["topic"],
                each["partition"],
                each["first_offset"],
                each["producer_id"],
                each["producer_epoch"],
                _moment(each["last_write_ms"]),
            ]
            for each in documents
        ],
    )
    first = documents[0]
    say(
        "read_committed consumers stop before the first offset, and compaction too. To end one: "
        f"ottla transaction abort --topic {first['topic']} --partition {first['partition']} "
        f"--producer {first['producer_id']}"
    )


def _moment(at_ms: int | None) -> str | None:
    return None if at_ms is None or at_ms < 0 else moment_said(at_ms)
