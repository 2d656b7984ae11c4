"""Elections reach the coordinator of their topic, and no other."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ottla.coordinator.coordinators import Coordinators


class Runtime:
    """Notes what it is called with."""

    def __init__(self, topic: str, led: tuple[int, ...] = ()) -> None:
        self.kind = SimpleNamespace(topic=topic)
        self.calls: list[Any] = []
        self._led = led

    def led_indexes(self) -> tuple[int, ...]:
        return self._led

    def elected(self, index: int) -> None:
        self.calls.append(("elected", index))

    def resigned(self, index: int) -> None:
        self.calls.append(("resigned", index))

    def close(self) -> None:
        self.calls.append("close")


def test_elections_go_to_the_coordinator_of_the_topic() -> None:
    groups, transactions = Runtime("groups"), Runtime("transactions")
    coordinators = Coordinators([groups, transactions])  # type: ignore[list-item]
    coordinators.elected("transactions", 3)
    coordinators.resigned("transactions", 4)
    coordinators.elected("anything else", 5)
    coordinators.resigned("anything else", 6)
    assert (groups.calls, transactions.calls) == ([], [("elected", 3), ("resigned", 4)])


def test_what_the_broker_leads_at_its_start_counts_as_elected() -> None:
    groups, transactions = Runtime("groups", (2, 5)), Runtime("transactions")
    coordinators = Coordinators([groups, transactions])  # type: ignore[list-item]
    coordinators.start()
    coordinators.close()
    assert groups.calls == [("elected", 2), ("elected", 5), "close"]
    assert transactions.calls == ["close"]
