"""Deletions of share groups' states that may still take effect, though nobody waits for them.

DeleteShareGroupState (KIP-932) names a share partition, and no epoch. A request that was not
answered may be on its way for a while. If the state begins again meanwhile, it takes that away: the
group counts on a state that there is not, and nobody can read the partition until the group's
offsets are altered. So no state of a group begins for LATE_S after

    a try to delete one that was not answered, even if the next try was
    this broker began to coordinate the group, and found that it was being deleted

A broker that is not answered ends the connection (`ottla.network.peer`), so that what arrives later
than that was held by the network. Kafka waits for nothing, and has the same request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from ottla.protocol.errors import ApiError, ErrorCode

LATE_S: Final = 15


class LateDeletions:
    """For the event loop's thread only."""

    def __init__(self) -> None:
        self._until_s: dict[str, float] = {}
        """By group, on the loop's clock; in the order of their ends."""

    def expect(self, groups: Iterable[str]) -> None:
        """A deletion of states of these groups may take effect from now on."""
        now_s = asyncio.get_running_loop().time()
        for group in groups:
            self._until_s.pop(group, None)
            self._until_s[group] = now_s + LATE_S
        for group in list(self._until_s):
            if self._until_s[group] > now_s:
                break
            del self._until_s[group]

    def is_expected(self, group: str) -> bool:
        """Whether one may take effect now."""
        return self._until_s.get(group, 0) > asyncio.get_running_loop().time()

    async def over(self, group: str) -> None:
        """Waits until none is expected. Raises ApiError: COORDINATOR_NOT_AVAILABLE, if another one
        was not answered meanwhile.
        """
        until_s = self._until_s.get(group)
        if until_s is None:
            return
        await asyncio.sleep(until_s - asyncio.get_running_loop().time())
        if self._until_s.get(group) == until_s:
            del self._until_s[group]
        elif self.is_expected(group):
            raise ApiError(
                ErrorCode.coordinator_not_available,
                "A deletion of this group's states may still take effect. Try again.",
            )
