"""Deletes the ephemeral node of a process that seems dead, before its session is over.

In Apache Kafka only the session decides, and a killed broker is missed after zookeeper.session.
timeout.ms. Here a refused connection is a hint: a killed process closes its sockets at once. But a
firewall or a proxy may refuse for a process that is alive. So the process is asked by the tree,
where its session lives:

    version of the node   who set it
    even                  its owner: it is alive, as far as is known
    odd                   somebody who could not connect to the owner: a challenge

The data stays the same. The owner watches its node, and sets it again when it is challenged. A
challenge that has no answer in time, while connections are still refused, ends with the deletion.

An owner that is alive, and too slow for its answer, loses nothing but the role: the epochs of
leaders and controllers fence it, and it registers again.

The deletion is for that very node and for no later one of the same path; see `controller.layout`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from enum import Enum
from typing import Final, NamedTuple

from ottla.controller import layout
from ottla.coordination.tree import (
    BadVersionError,
    Check,
    Coordination,
    Delete,
    NoNodeError,
    SetData,
    TreeNode,
)

ANSWER_MS: Final = 25
"""How long an answer takes, at least."""
ANSWER_PER_CHALLENGE: Final = 3
"""Where the ensemble is slow, the answer gets this many times what the challenge took."""
TRIES: Final = 5
"""Each time, another broker has registered or challenged meanwhile."""


class Deposed(Enum):
    """What became of the node."""

    DELETED = "deleted"
    ALIVE = "alive"
    """Its owner has answered, or accepts connections again."""
    GONE = "gone"
    """It is not there any more, or is another one."""


def is_challenged(node: TreeNode) -> bool:
    """Whether the owner of this node should answer."""
    return node.version % 2 == 1


async def answer(session: Coordination, path: str) -> None:
    """Answers the challenge of a node if it is this session's. Raises CoordinationError."""
    there = await session.exists(path)
    if there is not None and there.owner == session.number and is_challenged(there):
        # Otherwise it is answered, or there is none any more.
        with suppress(BadVersionError, NoNodeError):
            await session.set(path, there.data, there.version)


async def depose_broker(
    session: Coordination, broker_id: int, epoch: int, is_refused: Callable[[], Awaitable[bool]]
) -> Deposed:
    """Deletes the registration of a broker, the one with this epoch, unless it is alive.

    `is_refused`: whether connections to it are refused. Raises CoordinationError.
    """
    node = _Node(layout.broker_path(broker_id), epoch, layout.REGISTRATIONS)
    return await _depose(session, [node], is_refused)


async def depose_controller(
    session: Coordination, broker_id: int, created: int, is_refused: Callable[[], Awaitable[bool]]
) -> Deposed:
    """As `depose_broker`, for the /controller that was made in that transaction, and with it the
    registration in the same session: the next controller finds that it is gone.
    """
    path = layout.broker_path(broker_id)
    there, registered = await asyncio.gather(*map(session.exists, (layout.CONTROLLER, path)))
    nodes = [_Node(layout.CONTROLLER, created, layout.CONTROLLER_EPOCH)]
    if there is not None and registered is not None and there.owner == registered.owner:
        nodes.append(_Node(path, registered.created, layout.REGISTRATIONS))
    return await _depose(session, nodes, is_refused)


class _Node(NamedTuple):
    path: str
    created: int
    lasting: str


async def _depose(
    session: Coordination, nodes: Sequence[_Node], is_refused: Callable[[], Awaitable[bool]]
) -> Deposed:
    loop = asyncio.get_running_loop()
    for _ in range(TRIES):
        began = loop.time()
        # The lasting nodes first.
        fences = await asyncio.gather(*(session.get(node.lasting) for node in nodes))
        found = await _find(session, nodes)
        if found is None:
            return Deposed.GONE
        are_same = [
            Check(node.lasting, fence.version) for node, fence in zip(nodes, fences, strict=True)
        ]
        challenge = [
            SetData(node.path, there.data, there.version)
            for node, there in zip(nodes, found, strict=True)
            if not is_challenged(there)
        ]
        versions = [there.version + (not is_challenged(there)) for there in found]
        try:
            await session.multi([*are_same, *challenge])
        except BadVersionError:
            continue  # another broker challenges it, too
        except NoNodeError:
            return Deposed.GONE
        took_s = loop.time() - began
        await asyncio.sleep(max(ANSWER_MS / 1000, ANSWER_PER_CHALLENGE * took_s))
        if not await is_refused():
            return Deposed.ALIVE
        deletions = [
            Delete(node.path, version) for node, version in zip(nodes, versions, strict=True)
        ]
        try:
            await session.multi([*are_same, *deletions])
        except NoNodeError:
            return Deposed.GONE
        except BadVersionError:
            found = await _find(session, nodes)
            if found is not None and any(
                there.version > version for there, version in zip(found, versions, strict=True)
            ):
                return Deposed.ALIVE
            continue  # another broker has registered, maybe this one
        return Deposed.DELETED
    return Deposed.ALIVE


async def _find(session: Coordination, nodes: Sequence[_Node]) -> list[TreeNode] | None:
    """None if one of them is not there, or another one is."""
    found = []
    for node, there in zip(
        nodes, await asyncio.gather(*(session.exists(node.path) for node in nodes)), strict=True
    ):
        if there is None or there.created != node.created:
            return None
        found.append(there)
    return found
