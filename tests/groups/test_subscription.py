"""The topics in a consumer's subscription, in all versions of the consumer protocol."""

from __future__ import annotations

import pytest

from ottla.groups.subscription import subscribed_topics

TOPICS = b"\0\0\0\2\0\1t\0\2uv"


@pytest.mark.parametrize(
    "content",
    [
        b"\0\0" + TOPICS + b"\xff\xff\xff\xff",
        b"\0\1" + TOPICS + b"\0\0\0\3abc" + b"\0\0\0\0",
        b"\0\3" + TOPICS + b"\xff\xff\xff\xff" + b"\0\0\0\0" + b"\0\0\0\7" + b"\xff\xff",
        b"\0\x63" + TOPICS + b"whatever will come",
    ],
)
def test_later_versions_begin_as_the_first(content: bytes) -> None:
    assert subscribed_topics(content) == {"t", "uv"}


@pytest.mark.parametrize(
    "content",
    [b"", b"\0", b"\0\0\0\0\0\1", b"\xff\xff" + TOPICS, b"\0\0\x7f\xff\xff\xff", TOPICS[1:]],
)
def test_other_bytes_are_refused(content: bytes) -> None:
    with pytest.raises(ValueError):
        subscribed_topics(content)
