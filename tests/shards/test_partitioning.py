"""Which partition keeps a group, as Java computes it."""

from __future__ import annotations

import pytest

from ottla.shards.partitioning import java_string_hash, partition_for


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0),
        ("a", 97),
        ("my-group", -1906497762),
        ("console-consumer-12345", 158455506),
        ("polygenelubricants", -(2**31)),
        ("größe", 98762257),
        ("\U0001f600", 1772899),
    ],
)
def test_hash_is_javas(text: str, value: int) -> None:
    assert java_string_hash(text) == value


def test_partition_is_never_negative() -> None:
    assert partition_for("my-group", 50) == 12
    assert partition_for("polygenelubricants", 50) == 0
