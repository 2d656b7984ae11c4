"""Deletes the ephemeral node of a session that is not over yet: that process is taken for dead.

The deletion is for that very node and for no later one of the same path; see `controller.layout`.
"""

from __future__ import annotations

from typing import Final

from ottla.controller import layout
from ottla.coordination.tree import BadVersionError, Check, Coordination, Delete, NoNodeError

TRIES: Final = 3
"""Each time, another broker has registered between the read and the deletion."""


async def delete_broker(session: Coordination, broker_id: int, epoch: int) -> bool:
    """Deletes a broker's registration, the one with this epoch; False if that one is not there.

    Raises CoordinationError.
    """
    return await _delete(session, layout.broker_path(broker_id), epoch, layout.REGISTRATIONS)


async def delete_controller(session: Coordination, created: int) -> bool:
    """Deletes /controller, the one made in that transaction; False if that one is not there.

    Raises CoordinationError.
    """
    return await _delete(session, layout.CONTROLLER, created, layout.CONTROLLER_EPOCH)


async def _delete(session: Coordination, path: str, created: int, lasting: str) -> bool:
    for _ in range(TRIES):
        fence = await session.get(lasting)
        there = await session.exists(path)
        if there is None or there.created != created:
            return False
        try:
            await session.multi([Check(lasting, fence.version), Delete(path, there.version)])
        except BadVersionError:
            continue
        except NoNodeError:
            return False
        return True
    return False
