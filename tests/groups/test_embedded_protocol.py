"""The bytes are those of Kafka's own consumers (ConsumerProtocol.serializeSubscription and
serializeAssignment of 4.3.1)."""

import pytest

from ottla.groups.embedded_protocol import (
    Assignment,
    Subscription,
    read_assignment,
    read_subscription,
    write_assignment,
)

TOPICS = b"\0\0\0\2\0\1u\0\1t"
NO_DATA = b"\xff\xff\xff\xff"
OWNED = b"\0\0\0\1\0\1t\0\0\0\2\0\0\0\0\0\0\0\3"
T_0_3 = {"t": frozenset({0, 3})}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"\0\0" + TOPICS + NO_DATA, Subscription(0, frozenset("tu"), {}, None)),
        (b"\0\1" + TOPICS + NO_DATA + OWNED, Subscription(1, frozenset("tu"), T_0_3, None)),
        (
            b"\0\2" + TOPICS + b"\0\0\0\1x" + OWNED + b"\0\0\0\5",
            Subscription(2, frozenset("tu"), T_0_3, None),
        ),
        (
            b"\0\3" + TOPICS + NO_DATA + OWNED + NO_DATA + b"\0\1r",
            Subscription(3, frozenset("tu"), T_0_3, "r"),
        ),
        # A later version has more, which is not read.
        (
            b"\0\x09" + TOPICS + NO_DATA + OWNED + NO_DATA + b"\xff\xff?",
            Subscription(3, frozenset("tu"), T_0_3, None),
        ),
    ],
)
def test_subscriptions(content: bytes, expected: Subscription) -> None:
    assert read_subscription(content) == expected
    if expected.version < 3:
        for end in range(len(content)):
            with pytest.raises(ValueError, match=r"."):
                read_subscription(content[:end])


def test_assignments() -> None:
    content = write_assignment(2, [("u", [1]), ("t", {3, 0})])
    assert content == (b"\0\2\0\0\0\2\0\1t\0\0\0\2\0\0\0\0\0\0\0\3\0\1u\0\0\0\1\0\0\0\1" + NO_DATA)
    assert read_assignment(content) == Assignment({**T_0_3, "u": frozenset({1})}, b"")
    assert read_assignment(b"") == Assignment({}, b"")
    assert read_assignment(b"\0\0\0\0\0\0\0\0\0\2xy") == Assignment({}, b"xy")
    for wrong in (b"\xff\xff", b"word", b"\0\0\0\0\0\5"):
        with pytest.raises(ValueError, match=r"."):
            read_assignment(wrong)
