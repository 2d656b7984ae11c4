"""What transactions should have done: numbers committed as offsets of two groups. Pure.

Each transaction commits one new number as the offset of the same partition in two groups, which
have different coordinators. So the numbers that readers get say which transactions were committed:

- Nobody reads a number whose transaction is open or aborted.
- A number that a read returns is never below one that was known to be committed before the read.
- While no transaction is open, both groups have the same number: no transaction is partly visible.
- A producer commits nothing after a newer one with its transactional id was initialized.
"""

from __future__ import annotations

from enum import Enum

from simulation.instances import Instances

NOTHING = 0
"""The number of a group without an offset."""


class Fate(Enum):
    """What is known of a transaction."""

    OPEN = "open"
    """No commit was requested."""
    UNKNOWN = "unknown"
    """A commit was requested, without an answer so far."""
    COMMITTED = "committed"
    ABORTED = "aborted"


class Ledger:
    """The transactions of one transactional id. `anomalies` says what went wrong."""

    def __init__(self, name: str) -> None:
        self.anomalies: list[str] = []
        self.instances = Instances()
        self.committed = 0
        """How many transactions are known to be committed."""
        self.name = name
        self._fates: dict[int, Fate] = {}
        self._floor = NOTHING

    @property
    def floor(self) -> int:
        """The largest number known to be committed."""
        return self._floor

    def begun(self) -> int:
        """A transaction begins; returns its number."""
        number = len(self._fates) + 1
        self._fates[number] = Fate.OPEN
        return number

    def committing(self, number: int) -> None:
        """Its commit is requested."""
        self._fates[number] = Fate.UNKNOWN

    def ended(self, number: int, *, is_commit: bool, was_fenced: bool) -> None:
        """Its end is answered with success; `was_fenced`: already when the end was requested."""
        if not is_commit:
            self._fates[number] = Fate.ABORTED
            return
        if was_fenced:
            self._fail(f"a fenced producer committed {number}")
        self._commit(number)

    def read(self, number: int, floor: int) -> None:
        """A reader got this number as a stable offset; `floor` is from before its request."""
        if number < floor:
            self._fail(f"{number} was read after {floor} was committed")
        fate = self._fates.get(number, Fate.OPEN)
        if number != NOTHING and fate in (Fate.OPEN, Fate.ABORTED):
            self._fail(f"{number} was read, and its transaction is {fate.value}")

    def settled(self, first: int, second: int) -> None:
        """Both groups were read while no transaction could be open."""
        if first != second:
            self._fail(f"one group is at {first}, the other at {second}")
        for number, fate in self._fates.items():
            if fate in (Fate.OPEN, Fate.UNKNOWN):
                if number == first and fate is Fate.UNKNOWN:
                    self._commit(number)
                else:
                    self._fates[number] = Fate.ABORTED

    def _commit(self, number: int) -> None:
        if self._fates[number] is Fate.ABORTED:
            self._fail(f"{number} was committed after it was aborted")
        if self._fates[number] is not Fate.COMMITTED:
            self.committed += 1
        self._fates[number] = Fate.COMMITTED
        self._floor = max(self._floor, number)

    def _fail(self, what: str) -> None:
        self.anomalies.append(f"{self.name}: {what}")
