"""Which broker this one is, for the brokers that it connects to and those that connect to it.

A broker that connects first sends BrokerProof (Ottla's own request, key 20003, JSON) twice:

    request 1    {"from": 1, "to": 2, "nonce": base64}
    response 1   {"nonce": base64, "proof": base64} or {"error": "cluster_authorization_failed"}
    request 2    {"proof": base64}
    response 2   {} or the error

`ottla.security.broker_proof` says what a proof is. Only then it sends anything else.

A proof counts on the listener of the brokers alone: a program that has learned the secret must get
past what protects that listener, too. While brokers change to another listener, one after the
other, it also counts on the one that the tree says the other broker uses.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from random import Random
from typing import Any, Final, Protocol, TypeAlias

from ottla.coordination.tree import CoordinationError
from ottla.network.client_session import ClientSession
from ottla.protocol.errors import ErrorCode
from ottla.security.broker_proof import NONCE_BYTES, Meeting, Role, is_proven, proof

Ask: TypeAlias = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
"""Sends one BrokerProof request on a connection."""

REFUSED: Final = {"error": ErrorCode.cluster_authorization_failed.name}


READ_AGAIN_MS: Final = 1_000
"""Anybody can send wrong proofs."""
MAX_LOOKS: Final = 4
"""At the tree, at once, for brokers that show themselves on another listener: anybody can say so,
and the tree has more important things to do. Who comes then is refused, and tries again.
"""


class Tree(Protocol):
    """What the coordination tree says of the brokers."""

    async def secret_again(self) -> bytes:
        """As it is now. Raises CoordinationError."""

    async def listener_of(self, broker_id: int) -> str | None:
        """Which listener that broker connects to; None if it has never started. Raises
        CoordinationError.
        """


class NotProvenError(Exception):
    """The other end is not the broker that it should be, or does not take this one for it."""


class BrokerIdentity:
    """This broker's id, and the secret of its cluster."""

    def __init__(
        self, broker_id: int, random: Random, listener: str = "", listeners: Sequence[str] = ()
    ) -> None:
        """`listener` is the one of the brokers, of these `listeners`."""
        self.broker_id = broker_id
        self._random = random
        self._listener = listener
        self._listeners = listeners
        self.secret = b""
        """Empty until it is read from the coordination tree; until then nothing is proven."""
        self.tree: Tree | None = None
        """None until there is a session."""
        self._read_at: float | None = None
        """When the secret was read again, on the loop's clock."""
        self._looks = 0
        self._chosen: dict[int, tuple[str, float]] = {}
        """The listener that a broker uses, and when it was read; of those that the tree has."""

    async def introduce(self, broker_id: int, ask: Ask) -> None:
        """Proves to the broker at the other end, which should be `broker_id`, which one this is.

        Raises NotProvenError; what `ask` raises.
        """
        if not self.secret:
            raise NotProvenError("this broker has not read the cluster's secret yet")
        nonce = self._nonce()
        answer = await ask({"from": self.broker_id, "to": broker_id, "nonce": _text(nonce)})
        _check(answer)
        meeting = Meeting(self.broker_id, broker_id, nonce, _bytes(answer, "nonce"))
        if not is_proven(self.secret, Role.ACCEPTED, meeting, _bytes(answer, "proof")):
            # No proof for an end that has none itself; it reads the secret again, too.
            await ask({"proof": ""})
            await self.read_again()
            raise NotProvenError("does not know the secret of this cluster: it is not that broker")
        _check(await ask({"proof": _text(proof(self.secret, Role.CONNECTED, meeting))}))

    async def answer(self, request: dict[str, Any], session: ClientSession) -> dict[str, Any]:
        """The response to a BrokerProof request; sets `session.broker_id` if that proves it."""
        if "from" in request and not await self._takes(request["from"], session):
            return REFUSED
        had_meeting = session.meeting is not None
        response = self.meet(request, session)
        if response is REFUSED and "proof" in request and had_meeting:
            await self.read_again()  # and the other broker tries again
        return response

    async def _takes(self, broker_id: Any, session: ClientSession) -> bool:
        """Whether that broker may show itself on this listener."""
        if session.listener == self._listener or not self._listeners:
            return True
        if self.tree is None or type(broker_id) is not int:
            return False
        try:
            chosen = await self._listener_of(self.tree, broker_id)
        except CoordinationError:
            return False  # it tries again
        # It connects to the first one if this broker does not have the one that it uses.
        return chosen == session.listener or (
            chosen is not None
            and chosen not in self._listeners
            and session.listener == self._listeners[0]
        )

    async def _listener_of(self, tree: Tree, broker_id: int) -> str | None:
        """As it was at most READ_AGAIN_MS ago. Raises CoordinationError."""
        now = asyncio.get_running_loop().time()
        if broker_id in self._chosen:
            chosen, at = self._chosen[broker_id]
            if now < at + READ_AGAIN_MS / 1000:
                return chosen
        if self._looks >= MAX_LOOKS:
            return None
        self._looks += 1
        try:
            found = await tree.listener_of(broker_id)
        finally:
            self._looks -= 1
        if found is not None:
            self._chosen[broker_id] = found, now
        return found

    async def read_again(self) -> None:
        """Reads the secret, which may have been changed."""
        now = asyncio.get_running_loop().time()
        if self.tree is None or (
            self._read_at is not None and now < self._read_at + READ_AGAIN_MS / 1000
        ):
            return
        self._read_at = now
        with suppress(CoordinationError):
            self.secret = await self.tree.secret_again()

    def meet(self, request: dict[str, Any], session: ClientSession) -> dict[str, Any]:
        """See `answer`."""
        if "proof" in request:
            meeting, session.meeting = session.meeting, None
            if meeting is None:
                return REFUSED
            sent = _bytes(request, "proof")
            if not is_proven(self.secret, Role.CONNECTED, meeting, sent):
                return REFUSED
            session.broker_id = meeting.connected_id
            return {}
        connected, accepted = request.get("from"), request.get("to")
        if (
            not self.secret
            or accepted != self.broker_id
            or type(connected) is not int
            or connected == self.broker_id
        ):
            return REFUSED
        nonce = self._nonce()
        meeting = Meeting(connected, self.broker_id, _bytes(request, "nonce"), nonce)
        session.meeting = meeting
        proven = proof(self.secret, Role.ACCEPTED, meeting)
        return {"nonce": _text(nonce), "proof": _text(proven)}

    def _nonce(self) -> bytes:
        return self._random.randbytes(NONCE_BYTES)


def _check(answer: dict[str, Any]) -> None:
    if "error" in answer:
        raise NotProvenError("does not take this broker for one of its cluster")


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes(document: dict[str, Any], name: str) -> bytes:
    """Empty if it is missing or invalid: that proves nothing."""
    value = document.get(name)
    if not isinstance(value, str):
        return b""
    try:
        return base64.b64decode(value, validate=True)
    except (ValueError, binascii.Error):
        return b""
