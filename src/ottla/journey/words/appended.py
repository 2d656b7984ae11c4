"""The step `Appended`: where the record lies."""

from __future__ import annotations

from typing import Final

from ottla.journey.formatting import format_bytes
from ottla.journey.words.clock import Clock
from ottla.journey.words.line import STEP, WEAK, Branch, Document

MIN_PRODUCER_ID_WAIT_MS: Final = 400
"""librdkafka's 500 ms, less the time between the producer's creation and its first record."""


def grow_appended(top: Branch, document: Document, clock: Clock) -> None:
    appended = document["appended"]
    when = appended["when"]
    who = "an unrecorded broker"
    if appended["broker"] is not None:
        who = f"broker {appended['broker']}"
    by = f"  by {who}, at offset {document['offset']}"
    branch = top.add(("Appended  ", STEP), clock.moment(when), (clock.after(when), WEAK), by)
    if _waited_for_its_producer_id(document):
        branch.add(
            ("wait     ", WEAK),
            "may include librdkafka's 0.5 s, if it is the producer's first record",
        )
    batch, record, segment = appended.get("batch"), appended.get("record"), appended.get("segment")
    if not batch:
        return
    if segment:
        active = "active" if segment["active"] else "closed"
        size = format_bytes(segment["size_bytes"])
        branch.add(("segment  ", WEAK), segment["file"], f"  ({active}, {size})")
    branch.add(("batch    ", WEAK), _format_batch(batch))
    if record:
        packed = "uncompressed " if batch["compression"] != "none" else ""
        which = f"number {record['number'] + 1} of {batch['records']}"
        where = f"at byte {record['position']} of the batch's {packed}records"
        branch.add(("record   ", WEAK), f"{which}, {where}, {format_bytes(record['size_bytes'])}")
    if segment:
        entry = appended["index"]["entry"]
        leads = "no entry before it: reads start at the beginning of the segment"
        if entry:
            leads = f"nearest entry: offset {entry['offset']} at byte {entry['position']}"
        branch.add(("index    ", WEAK), leads)


def _format_batch(batch: Document) -> str:
    size = format_bytes(batch["size_bytes"])
    if batch["compression"] != "none":
        size += f" {batch['compression']}"
        if batch["uncompressed_bytes"] is not None:
            size += f" ({format_bytes(batch['uncompressed_bytes'])} uncompressed)"
    many = f"{batch['records']} records" if batch["records"] != 1 else "1 record"
    reach = f"offsets {batch['base_offset']} to {batch['last_offset']}"
    where = "" if batch["position"] is None else f"at byte {batch['position']}, "
    return f"{where}{size}, {many}, {reach}"


def _waited_for_its_producer_id(document: Document) -> bool:
    """Whether the delay fits librdkafka's: it asks for a producer id 500 ms after the producer was
    created, and holds records back until then (rd_kafka_idemp_init). No broker can answer sooner.
    """
    published, when = document["published"], document["appended"]["when"]
    producer, sent_ms = published["producer"], published["timestamp_ms"]
    return bool(
        producer
        and (producer["sequence"], producer["epoch"]) == (0, 0)
        and not published["transactional"]
        and published["timestamp_type"] == "CreateTime"
        and when["exact"]
        and when["since_ms"] - sent_ms >= MIN_PRODUCER_ID_WAIT_MS
    )
