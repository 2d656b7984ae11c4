"""The time that a client gives a change of topics."""

from __future__ import annotations

from ottla.protocol.errors import ApiError, ErrorCode


def check_in_time(timeout_ms: int) -> None:
    """Raises ApiError REQUEST_TIMED_OUT if there is no time at all: nothing is changed then, as by
    Apache Kafka's controller, whose queue ends an event at its deadline before it runs
    (ControllerApis, KafkaEventQueue).
    """
    if timeout_ms <= 0:
        raise ApiError(ErrorCode.request_timed_out)
