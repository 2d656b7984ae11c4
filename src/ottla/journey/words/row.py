"""What a message did to the row of its key: see `table_rows`."""

from __future__ import annotations

from ottla.journey.formatting import one_of
from ottla.journey.words.line import Document
from ottla.journey.words.partition import format_partitions


def format_row(row: Document) -> str:
    """What a message did to the row of its key, and what became of it."""
    also_in, unless_in = row.get("also_in"), row.get("unless_in")
    if also_in:
        did = {"opened": "a version of its key; ", "replaced": "another of its batch has its key; "}
        why = f"its key is in {format_partitions(also_in)}, too"
        return f"{did.get(row['did'], '')}what became of it is not known: {why}"
    if unless_in:
        some = format_partitions(unless_in)
        return f"{format_row_in_partition(row)}, if its key was never in {some}"
    return format_row_in_partition(row)


def format_row_in_partition(row: Document) -> str:
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
