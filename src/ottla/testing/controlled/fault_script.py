"""Which fault meets which request, and the list of what happened. Pure.

Rules apply in the order in which they were added; a rule that has met as many requests as it should
is skipped. So three rules one after another are a script.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ottla.protocol.errors import ErrorCode
from ottla.testing.fault_rule import KIT_CLIENT_ID, Effect, FaultRule, Received, api_name

MAX_RECEIVED: Final = 10_000
"""Older requests are forgotten."""
MAX_RULES: Final = 1_000


@dataclass(slots=True)
class _Active:
    rule: FaultRule
    met: int = 0


class FaultScript:
    """Of one broker."""

    def __init__(self) -> None:
        self._rules: dict[int, _Active] = {}
        self._last_id = 0
        self._received: deque[tuple[int, Received]] = deque(maxlen=MAX_RECEIVED)
        """With the id of the rule that met it, or 0."""
        self.count = 0
        """The requests so far."""

    def add(self, rule: FaultRule) -> int:
        """Apply the rule from now on; returns its id. Raises ValueError if there are too many."""
        if len(self._rules) >= MAX_RULES:
            raise ValueError(f"there are {MAX_RULES} faults already; remove some")
        self._last_id += 1
        self._rules[self._last_id] = _Active(rule)
        return self._last_id

    def remove(self, rule_id: int) -> None:
        """Stop applying the rule. Does nothing if it was removed already."""
        self._rules.pop(rule_id, None)

    def meet(
        self, now_ms: int, key: int, version: int, client_id: str, topics: frozenset[str]
    ) -> FaultRule | None:
        """A request has arrived: the rule that it meets, which counts this request."""
        found_id, found = 0, None
        for rule_id, active in self._rules.items():
            rule = active.rule
            if rule.times is not None and active.met >= rule.times:
                continue
            if rule.meets(key, client_id, topics):
                active.met += 1
                found_id, found = rule_id, rule
                break
        if found is not None or client_id != KIT_CLIENT_ID:
            self.count += 1
            what = None if found is None else describe(found)
            request = Received(
                self.count, now_ms, api_name(key), version, client_id, tuple(sorted(topics)), what
            )
            self._received.append((found_id, request))
        return found

    def received(self, rule_id: int | None = None) -> Iterator[Received]:
        """The requests in the order of their arrival, or those that met this rule."""
        for met_id, request in self._received:
            if rule_id is None or met_id == rule_id:
                yield request


def describe(rule: FaultRule) -> str:
    """What the rule does, in a few words."""
    if rule.effect is Effect.ERROR:
        what = f"error {ErrorCode(rule.error_code).name.upper()}"
    elif rule.effect in (Effect.DELAY, Effect.THROTTLE):
        what = f"{rule.effect.value} {rule.wait_ms} ms"
    else:
        what = rule.effect.value
    return f"{what}, after it was carried out" if rule.is_after else what
