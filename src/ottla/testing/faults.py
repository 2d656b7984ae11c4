"""Faults towards clients, as tests write them: `broker.fail("Produce", "REQUEST_TIMED_OUT")`."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from ottla.protocol.versions import APIS
from ottla.testing.control_socket import ControlSocket
from ottla.testing.errors import KitError, counted, is_for_the_test
from ottla.testing.fault_rule import (
    Effect,
    FaultRule,
    Received,
    api_key,
    api_name,
    error_code,
)

if TYPE_CHECKING:
    from ottla.protocol.errors import ErrorCode

__tracebackhide__ = is_for_the_test

POLL_S: Final = 0.005
WAIT_S: Final = 10.0


class Fault:
    """One fault that was added; `with broker.delay(...):` removes it at the end of the block."""

    def __init__(self, rule: FaultRule, ids: Sequence[tuple[ControlSocket, int]]) -> None:
        """`ids`: its id at each broker."""
        self._rule = rule
        self._ids = list(ids)
        self._at = list(ids)

    @property
    def happened(self) -> list[Received]:
        """The requests that it has met, in the order of their arrival."""
        return _in_order(each.ask("received", rule_id=rule_id) for each, rule_id in self._at)

    def wait(self, times: int = 1, timeout_s: float = WAIT_S) -> list[Received]:
        """Wait until it has met this many requests; returns them. Raises KitError."""
        until = time.monotonic() + timeout_s
        while len(happened := self.happened) < times:
            if time.monotonic() > until:
                wanted = counted(times, f"{api_name(self._rule.api_key)} request")
                raise KitError(
                    f"waited {timeout_s:g} s for {wanted} with this fault; there were "
                    f"{len(happened)}"
                )
            time.sleep(POLL_S)
        return happened

    def remove(self) -> None:
        """Stop it. A request that it delays is delayed to the end. A broker that is down, or was
        started again, has no fault any more.
        """
        while self._ids:
            control, rule_id = self._ids.pop()
            if control.is_open():
                control.ask("remove_fault", rule_id=rule_id)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.remove()


class Faults(ABC):
    """The faults of a broker, or of all brokers of a cluster.

    `api` is a request type by Kafka's name: "Produce", "Fetch", "JoinGroup". `times` is how many
    requests the fault meets (at each broker), by default all; `client_id` and `topic` choose among
    them. Faults apply in the order in which they were added. A broker's own requests, requests of
    other brokers and those of the kit's clients meet no fault.
    """

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._after: dict[ControlSocket, int] = {}
        """The last request of each broker that `requests` does not list."""

    @abstractmethod
    def controls(self) -> Sequence[ControlSocket]:
        """The brokers to ask. Raises KitError if they cannot be controlled."""

    def fail(
        self,
        api: str,
        error: str | ErrorCode,
        *,
        times: int | None = None,
        client_id: str | None = None,
        topic: str | None = None,
        after: bool = False,
    ) -> Fault:
        """Answer with an error, such as "NOT_LEADER_OR_FOLLOWER", and do nothing else; with
        `after` the broker carries the request out first.
        """
        from ottla.protocol.error_response import has_error_code

        key = api_key(api)
        if not has_error_code(key, APIS[key].max_version):
            raise KitError(f"the response to {api} has no error code: use disconnect or delay")
        code = int(error_code(error).value)
        return self._add(
            key, Effect.ERROR, times, client_id, topic, is_after=after, error_code=code
        )

    def delay(
        self,
        api: str,
        delay_ms: int,
        *,
        times: int | None = None,
        client_id: str | None = None,
        topic: str | None = None,
        after: bool = False,
    ) -> Fault:
        """Carry the request out this much later; with `after` at once, but answer later."""
        return self._add(
            api_key(api), Effect.DELAY, times, client_id, topic, is_after=after, wait_ms=delay_ms
        )

    def disconnect(
        self,
        api: str,
        *,
        times: int | None = None,
        client_id: str | None = None,
        topic: str | None = None,
        after: bool = False,
    ) -> Fault:
        """End the client's connection instead of an answer; with `after` the broker carries the
        request out first, so a record is in the log and its producer does not know.
        """
        return self._add(api_key(api), Effect.DISCONNECT, times, client_id, topic, is_after=after)

    def lose_response(
        self,
        api: str,
        *,
        times: int | None = None,
        client_id: str | None = None,
        topic: str | None = None,
    ) -> Fault:
        """Carry the request out and never answer: the connection stays open, and silent."""
        return self._add(api_key(api), Effect.NO_RESPONSE, times, client_id, topic, is_after=True)

    def throttle(
        self,
        api: str,
        throttle_ms: int,
        *,
        times: int | None = None,
        client_id: str | None = None,
        topic: str | None = None,
    ) -> Fault:
        """Answer with this throttle time, and take nothing more from the connection for so long,
        as a broker does with a client over its quota (KIP-219).
        """
        return self._add(
            api_key(api), Effect.THROTTLE, times, client_id, topic, wait_ms=throttle_ms
        )

    def clear_faults(self) -> None:
        """Remove the faults that were added here; `requests` begins again."""
        self.remove_faults()
        for each in self.controls():
            self._after[each] = each.ask("count_received")

    def remove_faults(self) -> None:
        """Remove the faults that were added here. Brokers that are down have none."""
        while self._faults:
            self._faults.pop().remove()

    def requests(
        self, api: str | None = None, *, client_id: str | None = None, topic: str | None = None
    ) -> list[Received]:
        """The requests that clients sent (the last 10,000), with the faults that they met."""
        name = None if api is None else api_name(api_key(api))
        return [
            each
            for each in _in_order(
                each.ask("received", after=self._after.get(each, 0)) for each in self.controls()
            )
            if name in (None, each.api)
            and client_id in (None, each.client_id)
            and (topic is None or topic in each.topics)
        ]

    def _add(
        self,
        key: int,
        effect: Effect,
        times: int | None,
        client_id: str | None,
        topic: str | None,
        **fields: Any,
    ) -> Fault:
        if times is not None and times < 1:
            raise KitError(f"times must be 1 or more, or None for every request, not {times}")
        if fields.get("wait_ms", 0) < 0:
            raise KitError(f"a time in ms must be 0 or more, not {fields['wait_ms']}")
        rule = FaultRule(key, effect, times=times, client_id=client_id, topic=topic, **fields)
        fault = Fault(
            rule, [(each, each.ask("add_fault", rule=rule.to_json())) for each in self.controls()]
        )
        self._faults.append(fault)
        return fault


def _in_order(lists: Iterable[list[list[Any]]]) -> list[Received]:
    found = [_received(fields) for each in lists for fields in each]
    return sorted(found, key=lambda each: (each.at_ms, each.number))


def _received(fields: list[Any]) -> Received:
    number, at_ms, api, version, client_id, topics, fault = fields
    return Received(number, at_ms, api, version, client_id, tuple(topics), fault)
