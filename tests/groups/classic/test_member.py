"""One member: what it says of itself, what its generation's record keeps, when it must beat."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.groups.classic.member import Member
from ottla.groups.classic.requests import JoinRequest

PROTOCOLS = (("range", b"r"), ("roundrobin", b"rr"))


def joining(**changes: Any) -> Member:
    request = JoinRequest(
        token="join",
        group="g",
        member_id="",
        group_instance_id="i",
        new_member_id="made",
        client_id="c",
        client_host="/127.0.0.1",
        session_timeout_ms=10,
        rebalance_timeout_ms=100,
        protocol_type="consumer",
        protocols=PROTOCOLS,
    )
    return Member.joining(request._replace(**changes), "m")


def test_a_joining_member_is_new_and_has_no_assignment() -> None:
    member = joining()
    assert (member.member_id, member.group_instance_id, member.is_new) == ("m", "i", True)
    assert (member.session_timeout_ms, member.rebalance_timeout_ms) == (10, 100)
    assert (member.assignment, list(member.protocols)) == (b"", ["range", "roundrobin"])
    assert member.is_static
    assert not joining(group_instance_id=None).is_static


def test_the_record_of_a_generation_keeps_the_chosen_protocol_only() -> None:
    kept = joining().to_store("roundrobin", b"partition 0")
    again = Member.stored(kept, "consumer", "roundrobin")
    assert again.protocols == {"roundrobin": b"rr"}
    assert (again.assignment, again.is_new) == (b"partition 0", False)
    assert again.to_store("roundrobin", again.assignment) == kept
    assert Member.stored(kept, "consumer", None).protocols == {}


@pytest.mark.parametrize(
    ("is_new", "join", "sync", "waits"),
    [
        (False, None, None, False),
        (False, "token", None, True),
        (False, None, "token", True),
        (True, "token", None, False),
    ],
)
def test_a_member_that_waits_for_an_answer_sends_no_heartbeats(
    is_new: bool, join: str | None, sync: str | None, waits: bool
) -> None:
    member = joining()
    member.is_new, member.join_token, member.sync_token = is_new, join, sync
    assert member.is_waiting is waits


def test_the_order_and_metadata_of_protocols_count() -> None:
    member = joining()
    assert member.prefers_same(PROTOCOLS)
    assert not member.prefers_same(PROTOCOLS[::-1])
    assert not member.prefers_same((("range", b"other"), PROTOCOLS[1]))
    assert not member.prefers_same(PROTOCOLS[:1])


def test_administrators_see_metadata_once_a_protocol_is_chosen() -> None:
    member = joining()
    assert member.described(None).metadata == b""
    described = member.described("range")
    assert (described.metadata, described.client_host) == (b"r", "/127.0.0.1")
