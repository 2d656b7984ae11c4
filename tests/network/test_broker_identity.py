import asyncio
import base64
import contextlib
from random import Random
from typing import Any

import pytest

from ottla.network.broker_identity import MAX_LOOKS, REFUSED, BrokerIdentity, NotProvenError
from ottla.network.client_session import ClientSession

SECRET = bytes(32)


def identity(broker_id: int, secret: bytes = SECRET) -> BrokerIdentity:
    made = BrokerIdentity(broker_id, Random(broker_id))
    made.secret = secret
    return made


def session() -> ClientSession:
    return ClientSession(1, "127.0.0.1", "PLAINTEXT", "", 0)


async def meet(
    connected: BrokerIdentity, wanted: int, accepted: BrokerIdentity, at: ClientSession
) -> list[dict[str, Any]]:
    sent = []

    async def ask(document: dict[str, Any]) -> dict[str, Any]:
        sent.append(document)
        return await accepted.answer(document, at)

    await connected.introduce(wanted, ask)
    return sent


async def test_two_brokers_of_a_cluster_know_each_other() -> None:
    at = session()
    await meet(identity(1), 2, identity(2), at)
    assert at.broker_id == 1


async def test_a_broker_of_another_cluster_is_refused() -> None:
    at = session()
    with pytest.raises(NotProvenError, match="does not know the secret of this cluster"):
        await meet(identity(1, bytes(31) + b"x"), 2, identity(2), at)
    assert at.broker_id is None


@pytest.mark.parametrize(
    ("connected", "wanted", "accepted"), [(1, 2, 3), (2, 2, 2)], ids=["not meant", "its own id"]
)
async def test_a_broker_answers_only_others_that_mean_it(
    connected: int, wanted: int, accepted: int
) -> None:
    with pytest.raises(NotProvenError, match="does not take this broker"):
        await meet(identity(connected), wanted, identity(accepted), session())


@pytest.mark.parametrize(("mine", "other"), [(b"", SECRET), (SECRET, b"")])
async def test_without_the_secret_nothing_is_proven(mine: bytes, other: bytes) -> None:
    at = session()
    with pytest.raises(NotProvenError):
        await meet(identity(1, mine), 2, identity(2, other), at)
    assert at.broker_id is None


async def test_what_was_heard_on_another_connection_proves_nothing() -> None:
    accepted = identity(2)
    heard = await meet(identity(1), 2, accepted, session())
    at = session()
    first, second = heard
    assert "proof" in accepted.meet(first, at)
    assert accepted.meet(second, at) == REFUSED
    assert at.broker_id is None
    assert accepted.meet(second, at) == REFUSED


@pytest.mark.parametrize(
    "request_",
    [
        {},
        {"proof": ""},
        {"proof": 7},
        {"from": 1},
        {"from": True, "to": 2, "nonce": ""},
        {"from": "1", "to": 2, "nonce": ""},
    ],
)
def test_other_requests_are_refused(request_: dict[str, Any]) -> None:
    assert identity(2).meet(request_, session()) == REFUSED


def test_each_meeting_is_tried_once() -> None:
    accepted, at = identity(2), session()
    nonce = base64.b64encode(bytes(16)).decode()
    accepted.meet({"from": 1, "to": 2, "nonce": nonce}, at)
    assert accepted.meet({"proof": "bm8="}, at) == REFUSED
    assert at.meeting is None


class Tree:
    """The coordination tree, as far as brokers ask it."""

    def __init__(self) -> None:
        self.current = SECRET
        self.asked = 0
        self.listeners: dict[int, str] = {}
        self.looks = 0
        self.is_slow = False

    async def secret_again(self) -> bytes:
        self.asked += 1
        return self.current

    async def listener_of(self, broker_id: int) -> str | None:
        self.looks += 1
        if self.is_slow:
            await asyncio.sleep(0)
        return self.listeners.get(broker_id)


def on_listeners(tree: Tree) -> BrokerIdentity:
    made = BrokerIdentity(2, Random(2), "BROKERS", ["CLIENTS", "BROKERS"])
    made.secret, made.tree = SECRET, tree
    return made


@pytest.mark.parametrize(
    ("listener", "uses", "is_taken"),
    [
        ("BROKERS", None, True),
        ("CLIENTS", None, False),
        ("CLIENTS", "BROKERS", False),
        # The other broker has other settings: the cluster is being changed.
        ("CLIENTS", "CLIENTS", True),
        ("CLIENTS", "OLD", True),
        ("BROKERS", "OLD", True),
    ],
)
async def test_a_proof_counts_on_the_listener_of_the_brokers(
    listener: str, uses: str | None, is_taken: bool
) -> None:
    tree = Tree()
    if uses is not None:
        tree.listeners[1] = uses
    at = ClientSession(1, "127.0.0.1", listener, "", 0)
    with contextlib.suppress(NotProvenError):
        await meet(identity(1), 2, on_listeners(tree), at)
    assert at.broker_id == (1 if is_taken else None)


async def test_what_anybody_can_say_does_not_flood_the_tree() -> None:
    tree = Tree()
    tree.is_slow = True
    tree.listeners[1] = "CLIENTS"
    here = on_listeners(tree)

    async def says(broker_id: int) -> dict[str, Any]:
        at = ClientSession(1, "127.0.0.1", "CLIENTS", "", 0)
        return await here.answer({"from": broker_id, "to": 2, "nonce": ""}, at)

    answers = await asyncio.gather(*(says(number) for number in range(100, 200)))
    assert answers == [REFUSED] * 100
    assert tree.looks == MAX_LOOKS
    assert "proof" in await says(1)
    assert tree.looks == MAX_LOOKS + 1
    for _ in range(5):
        assert "proof" in await says(1)
    assert tree.looks == MAX_LOOKS + 1, "it was read a moment ago"


async def test_a_changed_secret_is_read_again() -> None:
    """By either side, after a proof that fails; wrong proofs do not ask the tree each time."""
    new = b"n" * 32
    tree = Tree()
    tree.current = new
    has_new, has_old = identity(1, new), on_listeners(tree)
    at = ClientSession(1, "127.0.0.1", "BROKERS", "", 0)
    with pytest.raises(NotProvenError):  # the new one does not believe the old one
        await meet(has_new, 2, has_old, at)
    assert has_old.secret == new
    await meet(has_new, 2, has_old, at)
    assert at.broker_id == 1
    has_old.secret, at.broker_id = SECRET, None
    stranger = identity(3, b"s" * 32)
    stranger_tree = Tree()
    stranger_tree.current = new
    stranger.tree = stranger_tree
    with pytest.raises(NotProvenError):
        await meet(stranger, 2, identity(2, new), at)
    await meet(stranger, 2, identity(2, new), at)
    assert at.broker_id == 3
    assert stranger_tree.asked == 1

    for _ in range(3):
        meeting = await has_old.answer(
            {"from": 1, "to": 2, "nonce": base64.b64encode(bytes(16)).decode()}, at
        )
        assert "nonce" in meeting
        assert await has_old.answer({"proof": "AAAA"}, at) == REFUSED
    assert tree.asked == 1
    assert at.broker_id == 3
