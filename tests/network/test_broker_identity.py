import base64
from random import Random
from typing import Any

import pytest

from ottla.network.broker_identity import REFUSED, BrokerIdentity, NotProvenError
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
        return accepted.meet(document, at)

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
