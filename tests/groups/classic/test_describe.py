"""What administrators see of a group, in a rebalance and without."""

from __future__ import annotations

from tests.groups.classic.members import group_in

from ottla.groups.classic.describe import describe, listed
from ottla.groups.classic.requests import ListedGroup
from ottla.groups.classic.state import COMPLETING_REBALANCE, EMPTY, STABLE


def test_a_stable_group_shows_its_protocol_and_what_members_subscribed_to() -> None:
    found = describe(group_in(STABLE, ("a", None), ("s", "i")))
    assert (found.group, found.state, found.protocol_type, found.protocol) == (
        "g",
        "Stable",
        "consumer",
        "range",
    )
    assert [(one.member_id, one.group_instance_id, one.metadata) for one in found.members] == [
        ("a", None, b"subscription"),
        ("s", "i", b"subscription"),
    ]


def test_in_a_rebalance_no_protocol_is_shown() -> None:
    found = describe(group_in(COMPLETING_REBALANCE, ("a", None)))
    assert (found.state, found.protocol, found.members[0].metadata) == (
        "CompletingRebalance",
        "",
        b"",
    )


def test_a_group_that_has_never_had_a_member_has_no_protocol_type() -> None:
    assert describe(group_in(EMPTY)).protocol_type == ""
    assert listed(group_in(EMPTY)) == ListedGroup("g", "", "Empty", "classic")
