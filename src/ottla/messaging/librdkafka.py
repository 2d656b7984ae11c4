"""librdkafka, with which commands produce and consume: its settings, and its errors in words.

It retries for minutes and logs each attempt. A command therefore asks the cluster first, with
Ottla's own client, and silences librdkafka's log, so that the user gets one message within seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException

from ottla.wording.errors import ReportedError

BROKEN: Final = frozenset({KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN})
NO_ANSWER: Final = frozenset(
    {KafkaError._TIMED_OUT, KafkaError._TIMED_OUT_QUEUE, KafkaError.REQUEST_TIMED_OUT}
)


class LibrdkafkaError(ReportedError):
    """Producing or consuming has failed."""


class RejectedSettingsError(LibrdkafkaError):
    """librdkafka does not take the settings; nothing was tried."""

    is_usage = True


def rejected(error: KafkaException, doing: str) -> RejectedSettingsError:
    """`doing`: "consume" or "produce"."""
    return RejectedSettingsError(f"cannot {doing} with these settings: {explain(error.args[0])}")


def failure(error: KafkaException, doing: str) -> LibrdkafkaError:
    """Its error as a message. `doing` names the action, such as "consume"."""
    reason = error.args[0]
    if reason.code() in BROKEN:
        return LibrdkafkaError(
            f"cannot {doing}: the connection closed before the response arrived.",
            "Brokers also close it while the cluster has no controller. To check: ottla "
            "cluster describe",
        )
    if reason.code() in NO_ANSWER:
        return LibrdkafkaError(
            f"cannot {doing}: no response in time.",
            "To check the cluster's controller: ottla cluster describe",
        )
    return LibrdkafkaError(f"cannot {doing}: {explain(reason)}")


def explain(error: Any) -> str:
    """librdkafka's error message without its `Broker:` and `Local:` prefixes."""
    text = str(error.str()).strip()
    for mark in ("Broker: ", "Local: "):
        text = text.removeprefix(mark)
    return text if text.endswith((".", "?")) else f"{text}."


def silent(_error: Any) -> None:
    """Ignores librdkafka's reports of broken connections; failures that matter arrive as
    results.
    """


def quiet(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a cluster for a producer or a consumer."""
    return {
        "log_level": 0,
        "error_cb": silent,
        "socket.connection.setup.timeout.ms": 3000,
        "reconnect.backoff.max.ms": 1000,
        **settings,
    }


def check_settings(settings: Mapping[str, Any]) -> str | None:
    """What is wrong with the names and values of settings; None if librdkafka takes them."""
    from confluent_kafka import Producer

    try:
        Producer(quiet(settings))
    except KafkaException as error:
        return explain(error.args[0])
    return None
