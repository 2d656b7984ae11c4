"""A producer of a simulated cluster: it gets an id or an epoch, and writes until it is stopped.

There is one; what it writes is its `Work`: batches to one partition (`batches`: of plain values in
`clients`, of records with keys in `keyed_clients`), or transactions (`transactions`: of offsets
there, of records and offsets in `record_transactions`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress

from simulation.connection import NoAnswerError, RefusedError


class Work(ABC):
    """What a producer does with its id. All methods may raise NoAnswerError, RefusedError."""

    acknowledged = 0
    """Records, as far as the work counts them."""

    @abstractmethod
    async def begin(self) -> None:
        """Get a producer id, or its next epoch."""

    @abstractmethod
    async def write(self) -> bool:
        """Write one batch or transaction. False: another id or epoch is needed to go on."""

    async def rest(self) -> None:  # noqa: B027
        """Wait before the next one."""

    async def give_up(self, error: Exception | None) -> bool:
        """What began has ended, with this error if there was one. True: another producer has taken
        over."""
        return False


class Producer:
    """Does its work until it is stopped."""

    def __init__(self, work: Work, number: int = 0) -> None:
        """`number` is in its values, if they tell their producer."""
        self.number = number
        self.stopping = False
        self.has_stopped = False
        self._work = work

    @property
    def acknowledged(self) -> int:
        """How many records of its work."""
        return self._work.acknowledged

    async def run(self) -> None:
        """Run until `stopping`, or until another producer has taken over."""
        while not self.stopping:
            failure: Exception | None = None
            try:
                await self._work.begin()
                while not self.stopping and await self._work.write():
                    await self._work.rest()
            except (NoAnswerError, RefusedError) as error:
                failure = error
            if await self._work.give_up(failure):
                break
        self.has_stopped = True

    async def run_once(self) -> None:
        """Write once, if nothing refuses it."""
        # The coordinator ends what a refusal leaves open.
        with suppress(NoAnswerError, RefusedError):
            await self._work.begin()
            await self._work.write()
        self.has_stopped = True
