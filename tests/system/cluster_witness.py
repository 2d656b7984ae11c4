"""What a test has seen of real brokers, so that the model's checker can check their journeys.

Each call is made alone and waited for, so its effect was between its begin and its end. All brokers
run on the machine of the test, and so have its clock.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from tests.journey.model.statements import Checked
from tests.journey.model.world import Happened, Passing, State, Written

from ottla.timelines.step import By

ROUNDING_MS: Final = 2
"""Both ends of a call are read with another clock call than the broker's."""
FOREVER_MS: Final = 10**9


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass
class SeenBroker:
    """A broker as the checker asks for it."""

    number: int
    log: list[Written]
    start: int = 0
    clock: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0), (0, 1)])
    """Two entries: when it heard of an election is not known here."""

    @property
    def high(self) -> int:
        """All that was written was acknowledged by all in-sync replicas."""
        return len(self.log)

    def reads(self, event: Happened) -> int:
        return event.ms


class Witness:
    """The partition's records, the groups, and who led when."""

    def __init__(self, brokers: Iterator[int]) -> None:
        self.seq = 0
        self.log: list[Written] = []
        self.brokers = {number: SeenBroker(number, self.log) for number in brokers}
        self.positions: dict[str, int] = {}
        self.highest: dict[str, int] = {}
        self.commits: list[tuple[Happened, str, int]] = []
        self.states: list[tuple[Happened, State]] = []
        self.epoch_starts: dict[int, int] = {}
        self.cuts: list[Any] = []
        self.pipeline_began = 1 << 62
        self.has_restarted = False

    def coordinator(self, group: str) -> SeenBroker:
        """Any: they have one clock."""
        return next(iter(self.brokers.values()))

    @contextmanager
    def call(self) -> Iterator[list[Happened]]:
        """The event of a call; it is there once the call is over."""
        found: list[Happened] = []
        began_ms = now_ms() - ROUNDING_MS
        yield found
        self.seq += 1
        found.append(Happened(self.seq, began_ms, now_ms() + ROUNDING_MS - began_ms))

    def saw_state(self, told: dict[str, Any]) -> None:
        """The controller's state, which is now steady."""
        state = State(told["leader"], told["leader_epoch"], tuple(sorted(told["isr"])), -1)
        if not self.states or self.states[-1][1] != state:
            self.seq += 1
            self.states.append((Happened(self.seq, 0, FOREVER_MS), state))
            self.epoch_starts.setdefault(state.leader_epoch, len(self.log))

    def appended(self, count: int, event: Happened, client: str) -> None:
        """A batch of each record, copied by all in-sync replicas by the end of the call."""
        state = self.states[-1][1]
        for _ in range(count):
            offset = len(self.log)
            record = Written(
                *(offset, state.leader_epoch, state.leader, event, client, -1, event.ms),
                (offset, offset),
                is_control=False,
                isr_then=state.isr,
            )
            record.committed, record.committed_state = event, state
            for number in self.brokers:
                # Who was not in sync may have copied it since, or will.
                until = 0 if number in state.isr else FOREVER_MS
                record.fetched[number] = record.copied[number] = event._replace(
                    took_ms=event.took_ms + until
                )
            self.log.append(record)

    def committed(self, group: str, offset: int, event: Happened, by: By = By.SIMPLE) -> None:
        passing = Passing(event, by, group not in self.positions)
        for record in self.log:
            if record.offset >= offset:
                record.past.discard(group)
            elif group not in record.past:
                record.past.add(group)
                record.read.setdefault(group, []).append(passing)
        self.commits.append((event, group, offset))
        self.positions[group] = offset
        self.highest[group] = max(self.highest.get(group, 0), offset)

    def forgotten(self, group: str, event: Happened, reason: str) -> None:
        for record in self.log:
            record.past.discard(group)
            if group in record.read:
                record.forgotten.setdefault(group, []).append((event, reason))
        self.positions.pop(group)

    def removed(self, start: int, event: Happened) -> None:
        for broker in self.brokers.values():
            for record in self.log[broker.start : start]:
                if broker is self.brokers[1]:
                    record.removed.append((event, "DeleteRecords"))
            broker.start = start


class SeenChecked(Checked):
    """A journey of a real broker beside what was seen."""

    def _published(self, record: Written) -> None:
        clients = self.said["published"]["client_ids"]
        self._is(not clients or record.client in clients, "client", clients)

    def _replicated(self, record: Written) -> None:
        said = self.said["replicated"]
        for one in (*said["in_sync_possible"], *filter(None, [said["in_sync"]])):
            one["brokers"] = sorted(one["brokers"])
        super()._replicated(record)

    def _copies(self, record: Written) -> None:
        for copy in self.said["replicated"]["copies"]:
            number, state, when = copy["broker"], copy["state"], copy["when"]
            if state == "leader":
                self._is(number == record.leader, "the leader then", number)
                self._holds(when, record.at, self.broker, "the leader's append")
            elif state == "copied":
                self._holds(when, record.fetched[number], self.broker, f"copied by {number}")
            elif state == "not_yet":
                self._is(number not in record.isr_then, "not yet", copy)

    def _forgotten(self, record: Written, group: dict[str, Any], coordinator: Any) -> None:
        said = group["forgotten"]
        is_one = any(
            said["reason"] in (None, reason)
            and (said["at_ms"] is None or 0 <= said["at_ms"] - event.ms <= event.took_ms)
            for event, reason in record.forgotten.get(group["group"], [])
        )
        self._is(is_one, "forgotten", (group, record.forgotten))

    def _elections(self) -> None:
        for one in self.said["replicated"]["elections"] if self.said["replicated"] else ():
            led = {state.leader_epoch: state for _, state in self.world.states}
            state = led.get(one["leader_epoch"])
            if state is None:
                continue  # it was over before the test looked
            self._is(state.leader == one["leader"], "elected", one)
            self._is(one["unclean"] is not True, "unclean", one)
            start = self.world.epoch_starts[one["leader_epoch"]]
            self._is(one["start_offset"] in (None, start), "start offset", (one, start))
            self._is(one["dropped"] == [], "dropped", one)
