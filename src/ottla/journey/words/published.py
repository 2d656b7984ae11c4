"""The step `Published`: the record as its producer sent it."""

from __future__ import annotations

from typing import Final

from ottla.journey.formatting import format_bytes, format_elapsed
from ottla.journey.words.clock import Clock
from ottla.journey.words.line import NAME, STEP, WAITING, WEAK, Branch, Document

MAX_VALUE_CHARACTERS: Final = 300


def shown(content: Document | None, most: int = MAX_VALUE_CHARACTERS) -> str:
    """A key or value, followed by its size if it is cut."""
    if content is None:
        return "null"
    mark = "" if "text" in content else "base64 "
    text = str(content["text"] if "text" in content else content["base64"])
    if content["cut"] or len(text) > most:
        return f"{mark}{text[:most]}… ({format_bytes(content['size_bytes'])})"
    return f"{mark}{text}" if text else '""'


def grow_published(top: Branch, published: Document, clock: Clock) -> None:
    clients = [client or "a client without a client id" for client in published["client_ids"]]
    by = f" by {' or '.join(clients)}" if clients else " by an unrecorded client"
    if published["control"]:
        by = " by a broker"
    own = published["timestamp_type"] == "CreateTime"
    stamped = published["timestamp_ms"]
    at = "without a timestamp" if stamped in (None, -1) else clock.at(stamped, dated=True)
    is_given = own and not published["control"]
    whose = "the producer's timestamp" if is_given else "the broker's clock"
    branch = top.add(("Published  ", STEP), at, (by, NAME), (f"  ({whose})", WEAK))
    ahead_ms = published.get("clock_ahead_ms")
    if ahead_ms is not None:
        ahead = f"this is at least {format_elapsed(ahead_ms)} ahead of the broker's clock"
        branch.add((ahead, WAITING))
    producer = published["producer"]
    if published["control"]:
        branch.add("a transaction marker")
    else:
        branch.add(("key    ", WEAK), shown(published.get("key")))
        branch.add(("value  ", WEAK), shown(published.get("value")))
    for header in published.get("headers", ()):
        branch.add(("header ", WEAK), f"{header['name']}: {shown(header['value'])}")
    more = published.get("header_count", 0) - len(published.get("headers", ()))
    if more > 0:
        branch.add(("header ", WEAK), f"and {more} more")
    if producer:
        said = f"id {producer['id']}  epoch {producer['epoch']}"
        if producer["sequence"] is not None:
            said += f"  sequence {producer['sequence']}"
        kind = "transactional" if published["transactional"] else "idempotent"
        branch.add(("producer  ", WEAK), said, (f"  ({kind})", WEAK))
