"""`--assign 1:2,2:3`: the brokers of each partition, as in kafka-topics.sh."""

from __future__ import annotations

from typing import Final

from ottla.cli.failures import UsageFailed

EXAMPLE: Final = "For two partitions on brokers 1 and 2: --assign 1:2,2:1"


def read_assignment(text: str) -> list[list[int]]:
    """The brokers of each partition, the preferred leader first. Raises UsageFailed."""
    parts = [part.split(":") for part in text.split(",")]
    if not all(broker.isascii() and broker.isdecimal() for part in parts for broker in part):
        raise UsageFailed(f"--assign must be broker ids, not {text!r}.", EXAMPLE)
    assignment = [[int(broker) for broker in part] for part in parts]
    if len({len(brokers) for brokers in assignment}) > 1:
        raise UsageFailed(
            "--assign must give every partition the same number of replicas.", EXAMPLE
        )
    if any(len(set(brokers)) < len(brokers) for brokers in assignment):
        raise UsageFailed("--assign names a broker twice for one partition.", EXAMPLE)
    return assignment
