"""The journey as a tree: six steps, in the order in which a message takes them.

Built from the document that `--json` prints, so it shows nothing that a program could not have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from ottla.cli.journey_branches import (
    BAD,
    GOOD,
    NAMES,
    STEP,
    WAITING,
    WEAK,
    Branch,
    Clock,
    Document,
    line,
    one_of,
)
from ottla.cli.journey_group import grow_asked_group
from ottla.cli.journey_readers import (
    NOT_REACHED,
    grow_not_reached,
    grow_reader,
    unknown_groups_said,
)
from ottla.cli.journey_replicas import grow_replicated
from ottla.cli.journey_transaction import grow_transaction
from ottla.journey.formatting import bytes_said, elapsed_said, moment_said

if TYPE_CHECKING:
    from rich.tree import Tree

MAX_VALUE_CHARACTERS: Final = 300
MIN_PRODUCER_ID_WAIT_MS: Final = 400
"""librdkafka's 500 ms, less the time between the producer's creation and its first record."""


def rich_tree(branch: Branch) -> Tree:
    """The same for rich."""
    from rich.text import Text
    from rich.tree import Tree

    tree = Tree(Text.assemble(*branch.parts), guide_style=WEAK)
    _grow(tree, branch.below, Text.assemble)
    return tree


def _grow(tree: Tree, branches: Iterable[Branch], assemble: Callable[..., Any]) -> None:
    for branch in branches:
        _grow(tree.add(assemble(*branch.parts)), branch.below, assemble)


def tell(document: Document) -> Branch:
    """The tree of a journey document."""
    place = f"partition {document['partition']}  offset {document['offset']}"
    top = line((document["topic"], "bold"), f"  {place}", ("  (times are UTC)", WEAK))
    state = document["state"]
    if document.get("computed"):
        top.parts.append(("  computed now: these brokers record nothing", WAITING))
    if state == "not_yet_written":
        end = document["log"]["end_offset"]
        what = f"the log ends at offset {end}"
        if document.get("computed"):
            what = f"or not replicated yet: consumers get the offsets before {end}"
        top.add(("Not yet written: ", WAITING), what)
        _readers(top, document, "Waiting for it")
        grow_asked_group(top, document)
        return top
    if not document["recorded"] and not document.get("computed"):
        top.add(("No times recorded: ", WAITING), "ottla.journey.enable is false on the broker")
    clock = Clock(document)
    if state == "removed":
        _removed(top, document, clock)
    elif state == "compacted":
        top.add(
            ("Removed by compaction: ", WAITING),
            "a later record has its key, or it was a tombstone, aborted, without a key or a marker",
        )
    elif state == "damaged":
        top.add(("Damaged: ", BAD), document["appended"]["damage"])
    if document["published"].get("timestamp_type"):
        _published(top, document["published"], clock)
    if document["partition_chosen"]:
        chosen = document["partition_chosen"]
        named = f"{chosen['partition']} of {chosen['partitions']}: "
        branch = top.add(("Partition chosen  ", STEP), named, chosen["why"])
        for said in elsewhere_said(document.get("key_elsewhere")):
            branch.add((said, WAITING))
    _appended(top, document, clock)
    grow_replicated(top, document["replicated"], clock)
    grow_transaction(top, document, clock)
    _readers(top, document, "Read and delivered", clock)
    _retention(top, document["retention"], is_computed=bool(document.get("computed")))
    grow_asked_group(top, document)
    return top


def shown(content: Document | None, most: int = MAX_VALUE_CHARACTERS) -> str:
    """A key or value, followed by its size if it is cut."""
    if content is None:
        return "null"
    mark = "" if "text" in content else "base64 "
    text = str(content["text"] if "text" in content else content["base64"])
    if content["cut"] or len(text) > most:
        return f"{mark}{text[:most]}… ({bytes_said(content['size_bytes'])})"
    return f"{mark}{text}" if text else '""'


def _published(top: Branch, published: Document, clock: Clock) -> None:
    clients = [client or "a client without a client id" for client in published["client_ids"]]
    by = f" by {' or '.join(clients)}" if clients else " by an unrecorded client"
    if published["control"]:
        by = " by a broker"
    own = published["timestamp_type"] == "CreateTime"
    stamped = published["timestamp_ms"]
    at = "without a timestamp" if stamped in (None, -1) else clock.at(stamped, dated=True)
    is_given = own and not published["control"]
    whose = "the producer's timestamp" if is_given else "the broker's clock"
    branch = top.add(("Published  ", STEP), at, (by, "bold"), (f"  ({whose})", WEAK))
    ahead_ms = published.get("clock_ahead_ms")
    if ahead_ms is not None:
        ahead = f"this is at least {elapsed_said(ahead_ms)} ahead of the broker's clock"
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


def _appended(top: Branch, document: Document, clock: Clock) -> None:
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
        size = bytes_said(segment["size_bytes"])
        branch.add(("segment  ", WEAK), segment["file"], f"  ({active}, {size})")
    branch.add(("batch    ", WEAK), _batch_said(batch))
    if record:
        packed = "uncompressed " if batch["compression"] != "none" else ""
        which = f"number {record['number'] + 1} of {batch['records']}"
        where = f"at byte {record['position']} of the batch's {packed}records"
        branch.add(("record   ", WEAK), f"{which}, {where}, {bytes_said(record['size_bytes'])}")
    if segment:
        entry = appended["index"]["entry"]
        leads = "no entry before it: reads start at the beginning of the segment"
        if entry:
            leads = f"nearest entry: offset {entry['offset']} at byte {entry['position']}"
        branch.add(("index    ", WEAK), leads)


def _batch_said(batch: Document) -> str:
    size = bytes_said(batch["size_bytes"])
    if batch["compression"] != "none":
        size += f" {batch['compression']}"
        if batch["uncompressed_bytes"] is not None:
            size += f" ({bytes_said(batch['uncompressed_bytes'])} uncompressed)"
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


def _readers(top: Branch, document: Document, title: str, clock: Clock | None = None) -> None:
    clock = clock or Clock(document)
    branch = top.add((title, STEP))
    pipelines = {one["group"] for one in document["delivered"] if one["group"]}
    for group in document["read"]:
        is_said_below = group["state"] == "read" and group["group"] in pipelines
        if group["state"] not in NOT_REACHED and not is_said_below:
            grow_reader(branch, group, clock)
    for one in document["delivered"]:
        _delivery(branch, one, clock)
    for group in document["read"]:
        if group["state"] in NOT_REACHED:
            grow_not_reached(branch, group)
    unknown = unknown_groups_said(document.get("groups"))
    if not branch.below and not unknown:
        branch.parts.append(("  no group has committed offsets for this partition", ""))
    for said in unknown:
        branch.add((said, WAITING))


def _delivery(branch: Branch, one: Document, clock: Clock) -> None:
    sink, when = one.get("sink"), one["when"]
    if sink is None and one["delta"]:
        sink = {"kind": "delta", "place": one["delta"]["table"]}
    parts: list[tuple[str, str] | str] = [(f"pipeline {one['query']}", "bold")]
    rejected = one.get("rejected")
    if rejected:
        parts.append(("  read  ", GOOD))
    elif one["delta"]:
        version = one_of("version", one["delta"]["first_version"], one["delta"]["last_version"])
        parts += [("  in Delta ", GOOD), (version, "bold"), "  "]
    elif sink:
        parts += [("  into ", GOOD), (NAMES[sink["kind"]], "bold"), "  "]
    else:
        parts.append(("  delivered  ", GOOD))
    batch = one_of("batch", one["first_batch"], one["last_batch"])
    parts += [clock.moment(when), (clock.after(when), WEAK), (f"  ({batch})", WEAK)]
    said = branch.add(*parts)
    if rejected:
        colour = BAD if rejected["certain"] else WAITING
        said.add(("rejected", colour), rejection_said(rejected))
    if sink and not (rejected and rejected["certain"]):
        place = {"parquet": "folder ", "json": "folder ", "topic": "to     "}
        said.add((place.get(sink["kind"], "table  "), WEAK), sink["place"])
        if sink["kind"] in ("parquet", "json") and sink["last_version"] is not None:
            lists = one_of("list", sink["first_version"], sink["last_version"])
            files = said.add(("files  ", WEAK), f"those of {lists} in _spark_metadata")
            for file in sink.get("files", ()):
                files.add(file)
            more = sink.get("file_count", 0) - len(sink.get("files", ()))
            if more:
                files.add((f"and {more} more", WEAK))
    if unknown := one.get("unknown_fields"):
        what = {"drop": "dropped", "keep": "kept in _unknown"}.get(unknown["did"], "rejected")
        fields = ", ".join(unknown["fields"])
        said.add(("unknown", WAITING), f" fields {what}: {fields}; the schema lacks them")
    if one.get("in_doubt"):
        why = ": what is recorded does not tell, or another record had this offset then"
        said.add(("not known whether it had this message", WAITING), why)
    if one.get("row"):
        said.add(("row    ", WEAK), row_said(one["row"]))
    if one["group"] is None:
        said.add(
            ("from the table's log; the table has no row if it was rejected or filtered", WEAK)
        )
        return
    group = said.add(("group  ", WEAK), one["group"])
    if one["first_commit_seen"]:
        group.parts.append(("  (its first commit; its start is not recorded)", WEAK))


def rejection_said(rejected: Document) -> str:
    """Why a message has no row; or that it is not known whether it has one."""
    kept = f"; kept in {rejected['kept']}" if rejected["kept"] else ""
    if rejected["certain"]:
        return f": {rejected['reason'] or 'the reason is not known'}{kept}"
    first, last = rejected["first_offset"], rejected["last_offset"]
    if first == last:
        return f" perhaps: it is not known whether this message became a row{kept}"
    were = "were" if kept else "may have been"
    some = f"some of offsets {first} to {last} {were} rejected{kept}"
    return f" perhaps: {some}. It is not known whether this one became a row"


def elsewhere_said(elsewhere: Document | None) -> list[str]:
    """A line for each other partition with the key, and one for those that were not searched."""
    if elsewhere is None:
        return []
    said = [
        f"its key is in partition {one['partition']}, too (newest: offset {one['offset']}): "
        f"{one['why']}"
        for one in elsewhere["messages"]
    ]
    if elsewhere["not_searched"]:
        said.append(f"{partitions_said(elsewhere['not_searched'])} not searched for its key")
    return said


def partitions_said(partitions: Sequence[int]) -> str:
    """`partition 3`, or `partitions 0, 1 and 3`."""
    *others, last = map(str, partitions)
    return f"partitions {', '.join(others)} and {last}" if others else f"partition {last}"


def row_said(row: Document) -> str:
    """What a message did to the row of its key, and what became of it."""
    also_in, unless_in = row.get("also_in"), row.get("unless_in")
    if also_in:
        did = {"opened": "a version of its key; ", "replaced": "another of its batch has its key; "}
        why = f"its key is in {partitions_said(also_in)}, too"
        return f"{did.get(row['did'], '')}what became of it is not known: {why}"
    if unless_in:
        some = partitions_said(unless_in)
        return f"{row_in_partition_said(row)}, if its key is not in {some}, too"
    return row_in_partition_said(row)


def row_in_partition_said(row: Document) -> str:
    """The same where no other partition has its key."""
    of = "" if row["of"] is None else f" that of offset {row['of']}"
    did = {
        "inserted": "inserted",
        "updated": f"updated{of}",
        "deleted": f"deleted{of}",
        "opened": "a version of its key",
        "closed": f"closed{of}",
        "marked": "a row marked deleted: a tombstone, and its partition had no row of its key",
        "nothing": "none: a tombstone, and its partition had no row of its key",
        "skipped": "none: a tombstone, and the pipeline skips these",
        "older": f"none: the row is newer,{of}",
        "replaced": "none: another message of its batch has its key",
        None: "inserted or updated, which is not known",
    }[row["did"]]
    by = row["by"]
    if row["then"] == "current":
        return f"{did}; it is the row now"
    if by is None:
        return did if row["then"] == "gone" else f"{did}; what became of it is not known"
    where = one_of("batch", by["first_batch"], by["last_batch"])
    if by["last_version"] >= 0:
        where = one_of("version", by["first_version"], by["last_version"])
    return f"{did}; {row['then']} by offset {by['offset']}, in {where}"


def _removed(top: Branch, document: Document, clock: Clock) -> None:
    removed = document["removed"]
    start = document["log"]["start_offset"]
    why = f", by {removed['reason']}" if removed["reason"] else ""
    at = clock.moment(removed["when"], dated=True)
    top.add(("Removed  ", BAD), at, f"{why}: the log starts at offset {start}")


def _retention(top: Branch, retention: Document | None, *, is_computed: bool) -> None:
    if retention is None:
        return
    not_before = retention["not_before_ms"]
    branch = top.add(("Retention  ", STEP))
    if retention["may_be_removed"] and is_computed:
        branch.parts.append(
            ("not known: it cannot be excluded that it may be deleted now", WAITING)
        )
    elif retention["may_be_removed"]:
        branch.parts.append(("may be deleted at any time", WAITING))
    elif not_before is None:
        branch.parts.append(("not deleted by any current rule", GOOD))
    else:
        branch.parts.append((f"not before {moment_said(not_before)}".removesuffix(" UTC"), GOOD))
    for rule in retention["rules"]:
        said = branch.add((f"{rule['setting']}  ", WEAK), rule["why"].replace(" UTC", ""))
        if rule["note"]:
            said.add(rule["note"].replace(" UTC", ""))
