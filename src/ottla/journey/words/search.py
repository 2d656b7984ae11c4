"""What a search for a message has read of the topic, and what not."""

from __future__ import annotations

from ottla.journey.words.line import Document


def left_out(document: Document) -> list[str]:
    """A line for the partitions that were not searched, or not to their start."""
    lines: list[str] = []
    ended = [one for one in document["searched"] if not one["whole"]]
    if ended:
        partitions = ", ".join(
            f"partition {one['partition']} before offset {one['down_to_offset']}" for one in ended
        )
        lines.append(f"Not searched: {partitions}.")
        alone = "Give a PARTITION to search it alone; " if len(document["searched"]) > 1 else ""
        lines.append(f"{alone}ottla consume {document['topic']} --key KEY reads all.")
    missing = document["unanswered"]
    if missing:
        names = ", ".join(map(str, missing))
        word = "Partitions" if len(missing) > 1 else "Partition"
        lines.append(f"{word} {names}: no leader answered.")
    return lines


def format_searched(searched: list[Document]) -> str | None:
    """How far a search came if it stopped before the start of the log."""
    ended = [one for one in searched if not one["whole"]]
    if not ended:
        return None
    partitions = ", ".join(
        f"partition {one['partition']} to {one['down_to_offset']}" for one in ended
    )
    return f"Searched from the end back to {partitions}. Give the PARTITION to search further back."


def format_ranges(topic: str, partitions: list[Document]) -> str:
    """The offsets of each partition, one line each, and how to ask for one."""
    lines: list[str] = []
    example: Document | None = None
    for one in partitions:
        start, end = one["start_offset"], one["end_offset"]
        if start == end:
            has = f"empty, next offset {end}"
        else:
            has = f"offsets {start} to {end - 1}"
            example = example or one
        lines.append(f"partition {one['partition']}: {has}")
    if example is not None:
        message = f"{example['partition']} {example['end_offset'] - 1}"
        lines.append(f"For example: ottla journey {topic} {message}")
        lines.append(f"Or: ottla journey {topic} --latest, or with --key KEY")
    return "\n  ".join(lines)
