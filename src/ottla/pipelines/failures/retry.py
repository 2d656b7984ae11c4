"""Which failures are worth a retry, and when. Pure: the caller passes the time.

A broker that restarts, a leader that moves, a storage that is throttled and a commit that met
another one pass by themselves. Everything else would fail again at once, so it is not retried.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from ottla.pipelines.source.framed import UNKNOWN_ID
from ottla.pipelines.spark.jvm.causes import Cause

BROKER: Final = "broker"
TOPIC: Final = "topic"
STORAGE: Final = "storage"
COMMIT: Final = "commit"
DATABASE: Final = "database"
WRITE: Final = "write"
SCHEMA: Final = "schema"
CONSTRAINT: Final = "constraint"

_KAFKA: Final = r"org\.apache\.kafka\.common\.errors\."
# SQLSTATE by PostgreSQL's list: the connection, the server's start and stop, too many connections,
# and a transaction that met another one.
_OF_DATABASE: Final = re.compile(r"SQLSTATE (08\w{3}|57P0[1-35]|53300|40001|40P01)")
# A row that violates a constraint, of those that are known at a start. PostgreSQL's are NOT NULL
# and the length of a text.
_OF_CONSTRAINT: Final = (
    "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES",
    "DELTA_NOT_NULL_CONSTRAINT_VIOLATED",
    "SQLSTATE 23502",
    "SQLSTATE 22001",
)
# (what passes by itself, the exception's class, a part of its text).
_PASSING: Final = (
    # Data with a schema that was registered after the query was planned.
    (SCHEMA, r".*", UNKNOWN_ID),
    # A task of to_topic; first, because its trace also has librdkafka's exception.
    (WRITE, r".*", r"\bNotWrittenError: "),
    # Kafka's RetriableException and its subclasses, as far as a reader meets them.
    (BROKER, _KAFKA + r"(Timeout|Disconnect|Network|BrokerNotAvailable|LeaderNotAvailable|"
     r"NotLeaderOrFollower|FencedLeaderEpoch|UnknownLeaderEpoch|OffsetNotAvailable|"
     r"CoordinatorLoadInProgress|CoordinatorNotAvailable|NotCoordinator|NotController|"
     r"ReplicaNotAvailable|KafkaStorage|UnstableOffsetCommit|ThrottlingQuotaExceeded|"
     r"FetchSessionIdNotFound|InvalidFetchSessionEpoch|Retriable)Exception", ""),
    # Spark's reader on an executor, when a poll brings nothing in time.
    (BROKER, r"java\.util\.concurrent\.TimeoutException", r"[Cc]annot fetch record"),
    # librdkafka's, behind the look-ups.
    (BROKER, r"cimpl\.KafkaException|confluent_kafka\..*KafkaException",
     r"_TRANSPORT|_ALL_BROKERS_DOWN|_TIMED_OUT|REQUEST_TIMED_OUT|LEADER_NOT_AVAILABLE|"
     r"NOT_LEADER|BROKER_NOT_AVAILABLE|COORDINATOR_|NETWORK_EXCEPTION"),
    (TOPIC, _KAFKA + r"UnknownTopic(OrPartition|Id)Exception", ""),
    (TOPIC, r"cimpl\.KafkaException|confluent_kafka\..*KafkaException", r"UNKNOWN_TOPIC"),
    (COMMIT, r"io\.delta\.exceptions\.(ConcurrentWrite|MetadataChanged|ProtocolChanged|"
     r"ConcurrentAppend|ConcurrentDeleteRead|ConcurrentDeleteDelete)Exception|"
     r".*\.CommitFailedException", ""),
    (STORAGE, r"java\.net\.(SocketTimeout|Connect|NoRouteToHost|Socket)Exception|"
     r"java\.net\.SocketException", ""),
    (STORAGE, r"org\.apache\.hadoop\.(net\.ConnectTimeoutException|ipc\.RetriableException|"
     r"ipc\.StandbyException|hdfs\.server\.namenode\.SafeModeException|"
     r"fs\.s3a\.AWS(ServiceThrottled|Status500|ServiceIO|ClientIO|ApiCallTimeout)"
     r"Exception)", ""),
    (STORAGE, r".*", r"SlowDown|[Ss]tatus [Cc]ode: 50[0234]\b|Server busy|ServerBusy|"
     r"Name node is in safe mode|Operation category WRITE is not supported in state standby|"
     r"Connection reset|Read timed out|Unable to execute HTTP request"),
)  # fmt: skip
# A retry does not help although the classes above are among the causes.
_LASTING: Final = re.compile(
    r"(Authentication|Authorization|AccessControl|AccessDenied|UnknownHost|Config)\w*Exception|"
    r"No resolvable bootstrap urls"
)


@dataclass(frozen=True, slots=True)
class RetryLimits:
    """Limits of the wait for a failure that passes by itself.

    The wait doubles from `first_wait_s` to `max_wait_s`. `max_topic_tries` applies to a topic
    that the broker does not know: after a restart this may pass, after a deletion it does not.
    `max_schema_tries` applies to data with an unknown schema: the next plan should know it.
    """

    max_tries: int = 40
    max_topic_tries: int = 3
    max_schema_tries: int = 3
    max_elapsed_s: float = 600.0
    first_wait_s: float = 1.0
    max_wait_s: float = 30.0


def passes_by_itself(causes: Sequence[Cause]) -> str | None:
    """Return what to wait for (BROKER, TOPIC, STORAGE, COMMIT, WRITE, DATABASE or SCHEMA).

    CONSTRAINT passes where the place got the constraint while the query ran. None where a retry
    cannot help.
    """
    if any(_LASTING.search(f"{cause.kind} {cause.message}") for cause in causes):
        return None
    if any(_OF_DATABASE.fullmatch(cause.condition) for cause in causes):
        return DATABASE
    if any(cause.condition in _OF_CONSTRAINT for cause in causes):
        return CONSTRAINT
    for kind, name, text in _PASSING:
        for cause in causes:
            if re.fullmatch(name, cause.kind) and re.search(text, cause.message):
                return kind
    return None


@dataclass(slots=True)
class Retries:
    """Counts the tries since the query last finished a batch."""

    limits: RetryLimits = field(default_factory=RetryLimits)
    tries: int = 0
    _since: float = 0.0

    def progressed(self) -> None:
        """Reset the count: the query has finished a batch."""
        self.tries = 0

    def next_wait(self, kind: str, now: float) -> float | None:
        """Return the seconds to wait before the next try, None when the limit is reached."""
        if not self.tries:
            self._since = now
        limits = {TOPIC: self.limits.max_topic_tries, SCHEMA: self.limits.max_schema_tries}
        limit = limits.get(kind, self.limits.max_tries)
        if self.tries >= limit or self.elapsed(now) >= self.limits.max_elapsed_s:
            return None
        wait = min(self.limits.max_wait_s, self.limits.first_wait_s * 2.0**self.tries)
        self.tries += 1
        return min(wait, max(0.0, self.limits.max_elapsed_s - self.elapsed(now)))

    def elapsed(self, now: float) -> float:
        """Return the seconds since the first failure after which no batch was finished."""
        return now - self._since if self.tries else 0.0
