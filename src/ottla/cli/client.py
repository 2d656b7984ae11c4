"""Connects every command to the broker, and turns each network failure into one line.

librdkafka retries for minutes and logs each attempt. A command therefore first checks with a plain
TCP connection whether anything listens at the given address, and silences librdkafka's log, so that
the user gets one message within seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from ottla.cli.failures import Failed, UsageFailed, unknown
from ottla.cli.polling import poll_until
from ottla.client.addresses import CONNECT_TIMEOUT_S, check_reachable
from ottla.client.errors import AdvertisedError, UnreachableError

if TYPE_CHECKING:
    from ottla.client.client import Client

ANSWER_TIMEOUT_S: Final = 10.0
METADATA_TIMEOUT_S: Final = 5.0
SETTLE_PAUSE_S: Final = 0.05
CLIENT_ID: Final = "ottla-cli"
INTERNAL_TOPICS: Final = frozenset(
    {"__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"}
)
BROKEN: Final = frozenset({KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN})
NO_ANSWER: Final = BROKEN | {
    KafkaError._TIMED_OUT,
    KafkaError._TIMED_OUT_QUEUE,
    KafkaError.REQUEST_TIMED_OUT,
}


def is_internal(topic: str) -> bool:
    """Whether this is one of Kafka's internal topics."""
    return topic in INTERNAL_TOPICS


def pairs(option: str, given: Iterable[str] | None) -> dict[str, str]:
    """`name=value` words as a mapping. Raises UsageFailed for any other word."""
    found: dict[str, str] = {}
    for word in given or ():
        name, equals, value = word.partition("=")
        name = name.strip()
        if not equals or not name:
            raise UsageFailed(
                f"{option} must be NAME=VALUE, not {word!r}.", f"For example: {option} name=value"
            )
        if name in found:
            raise UsageFailed(f"{option} sets {name} twice; set it once.")
        found[name] = value.strip()
    return found


@dataclass(frozen=True)
class Connection:
    """An admin client whose calls return a result or raise Failed with a message; and beside it
    Ottla's own client, for what librdkafka cannot do.
    """

    bootstrap: str
    settings: dict[str, Any]
    admin: Any
    answer_timeout_s: float

    @cached_property
    def client(self) -> Client:
        """A client with the same settings."""
        # Imported late: it needs messages of Kafka's, and many commands do not.
        from ottla.cli.screen import note
        from ottla.client.client import Client

        client_id = str(self.settings.get("client.id", CLIENT_ID))
        return Client(self.bootstrap, self.settings, client_id=client_id, on_wait=note)

    def wait(self, future: Future[Any], doing: str) -> Any:
        """The future's result. `doing` names the action for the error message, such as 'create
        topic x'.
        """
        try:
            return future.result(self.answer_timeout_s + 1)
        except KafkaException as error:
            raise self.failure(error, doing) from error
        except FutureTimeoutError as error:
            raise self.no_answer(doing) from error

    def failure(self, error: Any, doing: str) -> Failed:
        """The broker's error as a message."""
        reason = error.args[0]
        if reason.code() in BROKEN:
            return Failed(
                f"cannot {doing}: the connection closed before the response arrived.",
                "Brokers also close it while the cluster has no controller. To check: ottla "
                "cluster describe",
            )
        if reason.code() in NO_ANSWER:
            return self.no_answer(doing)
        return Failed(f"cannot {doing}: {explain(reason)}")

    def no_answer(self, doing: str) -> Failed:
        """The broker did not respond in time."""
        return Failed(
            f"cannot {doing}: no response within {self.answer_timeout_s:g} s.",
            "To check the cluster's controller: ottla cluster describe",
        )

    def metadata(self) -> Any:
        """The cluster's metadata: brokers and all topics with their partitions."""
        try:
            metadata = self.admin.list_topics(
                timeout=min(METADATA_TIMEOUT_S, self.answer_timeout_s)
            )
        except KafkaException as error:
            if error.args[0].code() in NO_ANSWER:
                raise Failed(
                    f"the server at {self.bootstrap} does not respond like a Kafka broker.",
                    "Check the port and the security settings (--client-config).",
                ) from error
            raise self.failure(error, "read the cluster's metadata") from error
        self.check_advertised(metadata.brokers.values())
        return metadata

    def check_advertised(self, brokers: Iterable[Any]) -> None:
        """Check that at least one advertised address is reachable: all further requests use those.

        Raises AdvertisedError if none is, instead of waiting for a response that cannot arrive.
        """
        advertised = [f"{broker.host}:{broker.port}" for broker in brokers]
        if not advertised or self.bootstrap in advertised:
            return
        for address in advertised:
            try:
                check_reachable(address)
            except UnreachableError:
                continue
            return
        raise AdvertisedError(self.bootstrap, advertised)

    def topics(self) -> dict[str, Any]:
        """Topic metadata by name."""
        return dict(self.metadata().topics)

    def groups(self) -> list[Any]:
        """All groups that the brokers know."""
        doing = "list the groups"
        self.metadata()  # fails sooner, and says more, if no broker answers
        listed = self.wait(
            self.admin.list_consumer_groups(request_timeout=self.answer_timeout_s), doing
        )
        if listed.errors and not listed.valid:
            raise self.failure(KafkaException(listed.errors[0]), doing)
        return sorted(listed.valid, key=lambda group: str(group.group_id))

    def existing_topics(self, names: Sequence[str]) -> dict[str, Any]:
        """Metadata of these topics. Raises Failed that names the first missing topic."""
        topics = self.topics()
        for name in names:
            if name not in topics:
                raise unknown("topic", name, topics, "To list all topics: ottla topic list")
        return {name: topics[name] for name in names}

    def settled_topics(self, partitions: Mapping[str, int]) -> None:
        """Wait until each topic has that many partitions, and each partition a leader.

        The controller acknowledges a creation before every broker has applied it.
        """

        def is_led(topics: Mapping[str, Any]) -> bool:
            return all(
                name in topics and has_leaders(topics[name], n) for name, n in partitions.items()
            )

        within_s = self.answer_timeout_s
        if not is_led(poll_until(self.topics, is_led, within_s=within_s, pause_s=SETTLE_PAUSE_S)):
            names = ", ".join(partitions)
            raise Failed(
                f"created {names}, but not every partition has a leader after {within_s:g} s."
            )


def has_leaders(topic: Any, partitions: int) -> bool:
    """Whether the topic's metadata shows that many partitions, all with a leader."""
    found = topic.partitions.values()
    return len(found) >= partitions and all(partition.leader >= 0 for partition in found)


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


def client_settings(bootstrap: str, client_config: Sequence[str] | None) -> dict[str, Any]:
    """Settings that every librdkafka client gets."""
    return {
        "bootstrap.servers": bootstrap,
        "client.id": CLIENT_ID,
        "log_level": 0,
        "error_cb": silent,
        "socket.connection.setup.timeout.ms": int(CONNECT_TIMEOUT_S * 1000),
        "reconnect.backoff.max.ms": 1000,
        **pairs("--client-config", client_config),
    }


def connect(
    bootstrap: str,
    client_config: Sequence[str] | None = None,
    *,
    answer_timeout_s: float = ANSWER_TIMEOUT_S,
) -> Connection:
    """Connect to a broker, or raise UnreachableError within a few seconds."""
    settings = client_settings(bootstrap, client_config)
    check_reachable(bootstrap)
    try:
        admin = AdminClient(settings)
    except KafkaException as error:
        raise UsageFailed(f"--client-config: {explain(error.args[0])}") from error
    return Connection(bootstrap, settings, admin, answer_timeout_s)
