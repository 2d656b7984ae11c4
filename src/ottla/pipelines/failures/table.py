"""The known failures of Spark, Kafka and storage, which any query may have: one row each.

Conditions are Spark's own names (error-conditions.json of Spark); where a failure has none, the
exception's class or text decides. More specific rows come first: those of FIRST, then those that
the target declares in its folder, then those of OTHERS. Pure.
"""

from __future__ import annotations

from typing import Final

from ottla.pipelines.errors import INSTALL_JAVA
from ottla.pipelines.failures import words
from ottla.pipelines.failures.known import Known, Wait
from ottla.pipelines.failures.marks import (
    CONFLICT,
    NO_PROTOBUF,
    SEVERAL,
    SHARED,
    TRUNCATED,
    UNEXPECTED,
    UNKNOWN_ID,
    UNORDERED,
)

BROKER: Final = Wait("broker", "{servers} does not answer", asks_brokers=True)
TOPIC: Final = Wait("topic", "{topics} is not on {servers}")
STORAGE: Final = Wait("storage", "The storage of {target} does not answer or slows requests down")
COMMIT: Final = Wait("commit", "Another job committed to {target} at the same time")
CONSTRAINT: Final = Wait(
    "constraint",
    "{target} has a new constraint, and rejects rows that violate it",
    rejects_rows=True,
)
SCHEMA: Final = Wait("schema", "{topics} has data of a schema that the plan does not know")

LASTING: Final = (
    r"(Authentication|Authorization|AccessControl|AccessDenied|UnknownHost|Config)\w*Exception|"
    r"No resolvable bootstrap urls"
)
"""A retry does not help where one of the causes is this, whatever the others are."""

_CONTINUES: Final = "The next start continues from the checkpoint"
_START_IT: Final = "Start it: the next start continues from the checkpoint"
_KAFKA: Final = r"^org\.apache\.kafka\.common\."
_LIBRDKAFKA: Final = r"^(cimpl|confluent_kafka\..*)\.?KafkaException$"
_AWAY: Final = "{servers} does not answer: {plain}. " + _START_IT
_STORAGE: Final = (
    "The storage of {target} does not answer or slows requests down ({found}). " + _CONTINUES
)
FIRST: Final = (
    # ---- the schemas of a registry ----
    Known(
        "{Topics}: {1}, which the plan of the query does not know. Start the query again, or give "
        "what writes, such as to_delta(), a function that returns the frame: then it is planned "
        "again by itself",
        text=rf"{UNKNOWN_ID}: (.+?)(?: SQLSTATE|\n|$)",
        retry=SCHEMA,
    ),
    Known(
        "{Topics}: {1}. Register a version that can read both, name a version to read by "
        "(schema='registry:SUBJECT@VERSION'), or begin after these records (starting=)",
        text=rf"{CONFLICT}: ([^\n]+?)(?: SQLSTATE|\n|$)",
    ),
    Known("{Topics}: {1}", text=rf"{NO_PROTOBUF}: ([^\n]+)"),
    # ---- the machine ----
    Known(words.disk_full, text=r"No space left on device|Disk quota exceeded|not enough space"),
    Known(words.memory, text=r"OutOfMemoryError:? ?([\w ]*)|exit code 52\b|Cannot allocate memory"),
)

OTHERS: Final = (
    # ---- a value that cannot be computed ----
    Known(words.python_function, text=r"Traceback \(most recent call last\)"),
    Known(
        "The key {1} has records whose order is not known: they are not all in one partition of "
        "{topics}. Name the column that orders them, such as order_by='timestamp'",
        text=rf"{UNORDERED} (\{{.*?\}})(?:\s|$)",
    ),
    Known(
        "The key {1} has several results in one batch: name all columns of the GROUP BY in keys=",
        text=rf"{SEVERAL} (\{{.*?\}})(?:\s|$)",
    ),
    Known(
        "The key {1} has several rows of one record of {topics}, and nothing says which of them is "
        "the last: an explode, a join or a union of the query makes them. Add the column that "
        "tells them apart to keys=, or name one that orders them in order_by",
        text=rf"{SHARED} (\{{.*?\}})(?:\s|$)",
    ),
    Known(
        "A row of {topics} {1}. Nothing of its batch is written: filter or mend such rows in the "
        "query, or write on_unexpected='reject' or 'drop'",
        text=rf"{UNEXPECTED} (.*?\}})(?=\s|$)",
    ),
    Known(
        "The record of {topics} in partition {1} says that the database's table was "
        "truncated. Nothing of its batch is written: write truncate='apply' for a table with keys, "
        "or delete the rows of the target that are gone there, and write truncate='ignore' to go "
        "on after it",
        text=rf"{TRUNCATED} (\d+ at offset \d+)",
    ),
    Known(
        words.row,
        condition=r"CAST_INVALID_INPUT|CAST_OVERFLOW\w*|DIVIDE_BY_ZERO|INTERVAL_DIVIDED_BY_ZERO|"
        r"REMAINDER_BY_ZERO|ARITHMETIC_OVERFLOW|BINARY_ARITHMETIC_OVERFLOW|"
        r"NUMERIC_VALUE_OUT_OF_RANGE\S*|INVALID_ARRAY_INDEX\w*|MAP_KEY_DOES_NOT_EXIST|"
        r"CANNOT_PARSE_\w+|CONVERSION_INVALID_INPUT|INVALID_PARAMETER_VALUE\S*|NULL_MAP_KEY|"
        r"DUPLICATED_MAP_KEY|USER_RAISED_EXCEPTION|MALFORMED_\w+\S*|FAILED_EXECUTE_UDF|"
        r"INVALID_FRACTION_OF_SECOND|DATETIME_OVERFLOW|ROW_VALUE_IS_NULL|NOT_NULL_ASSERT_VIOLATION",
    ),
    Known(words.too_far_ahead, kind=r"^java\.lang\.ArithmeticException$", text=r"long overflow"),
    # ---- folders and file systems ----
    Known(words.file_system, text=r"(?:Class |NotFoundException: )(\S*FileSystem) not found"),
    Known(words.file_system, text=r'No FileSystem for scheme:? "?(\w+)'),
    Known(
        "The checkpoint {1} is a file: give a folder, which is created if it does not exist",
        text=r"Destination exists and is not a directory: (\S+)",
    ),
    # ---- other runs ----
    Known(
        "Another run uses the checkpoint {checkpoint}, and one must end. Stop one of them, then "
        "start again: the batches are in the table once",
        condition="CONCURRENT_STREAM_LOG_UPDATE|CONCURRENT_QUERY",
    ),
    Known(
        "The query no longer fits the state in {checkpoint}: its aggregation, join or "
        "deduplication was changed. Give it a new checkpoint ({plain})",
        condition=r"STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA|"
        r"STATE_STORE_\w*SCHEMA\w*\S*|STATE_STORE_INVALID_\w+",
    ),
    # ---- Kafka ----
    Known(words.data_loss, condition=r"KAFKA_DATA_LOSS\.\S+"),
    Known(words.data_loss, text=r"failOnDataLoss|data may have been"),
    Known(
        "{Topics} is no longer on {servers}: it was deleted while the query ran",
        kind=_KAFKA + r"errors\.UnknownTopic",
        retry=TOPIC,
    ),
    # Before the broker is asked: a token endpoint (KIP-768) gives no token, for example.
    Known(
        words.no_login,
        kind=r"^javax\.security\.auth\.login\.LoginException$",
    ),
    Known(
        "{servers} refused the login of the query: {plain}. Check the sasl.* and ssl.* settings in "
        "kafka=",
        kind=_KAFKA + r"errors\.\w*(Authentication|Ssl)",
    ),
    Known(
        "This user may not read {topics} on {servers}: {plain}. Allow it: READ and DESCRIBE on the "
        "topic",
        kind=_KAFKA + r"errors\.\w*Authorization",
    ),
    Known(
        "{servers} sent a batch of records that cannot be read: {plain}",
        kind=_KAFKA + r"errors\.\w*(RecordTooLarge|Corrupt)",
    ),
    Known(
        "The name in bootstrap_servers={servers!r} cannot be resolved",
        text=r"kafka(?s:.)*No resolvable bootstrap urls",
    ),
    # Kafka's RetriableException and its subclasses, as far as a reader meets them.
    Known(
        _AWAY,
        kind=_KAFKA + r"errors\.(Timeout|Disconnect|Network|BrokerNotAvailable|"
        r"LeaderNotAvailable|NotLeaderOrFollower|FencedLeaderEpoch|UnknownLeaderEpoch|"
        r"OffsetNotAvailable|CoordinatorLoadInProgress|CoordinatorNotAvailable|NotCoordinator|"
        r"NotController|ReplicaNotAvailable|KafkaStorage|UnstableOffsetCommit|"
        r"ThrottlingQuotaExceeded|FetchSessionIdNotFound|InvalidFetchSessionEpoch|"
        r"Retriable)Exception$",
        retry=BROKER,
    ),
    Known(_AWAY, kind=_KAFKA + r"(errors\.|KafkaException)"),
    # Spark's reader on an executor, when a poll brings nothing in time.
    Known(
        "{servers} sent no records for too long: {last}. " + _START_IT,
        kind=r"^java\.util\.concurrent\.TimeoutException$",
        text=r"[Cc]annot fetch record",
        retry=BROKER,
    ),
    # librdkafka's, behind the look-ups.
    Known(
        kind=_LIBRDKAFKA,
        text=r"_TRANSPORT|_ALL_BROKERS_DOWN|_TIMED_OUT|REQUEST_TIMED_OUT|LEADER_NOT_AVAILABLE|"
        r"NOT_LEADER|BROKER_NOT_AVAILABLE|COORDINATOR_|NOT_COORDINATOR|NETWORK_EXCEPTION|"
        r"_DESTROY_BROKER",
        retry=BROKER,
    ),
    Known(kind=_LIBRDKAFKA, text=r"UNKNOWN_TOPIC", retry=TOPIC),
    # ---- storage, and Spark itself ----
    Known(words.not_writable, text=words.DENIED),
    Known("{0}. " + _CONTINUES, text=r"Spark's process ended[^\n]*(?<!\.)"),
    Known(
        "The Spark session was stopped during a batch. " + _CONTINUES,
        text=r"SparkContext was shut ?down|stopped SparkContext|SparkContext .*stopped",
    ),
    Known(
        "A job of the query was cancelled. " + _CONTINUES,
        text=r"[Jj]ob \d* ?cancelled|part of cancellation of all jobs",
    ),
    Known(
        _STORAGE,
        kind=r"^java\.net\.(SocketTimeout|Connect|NoRouteToHost|Socket)Exception$|"
        r"^org\.apache\.hadoop\.(net\.ConnectTimeoutException|ipc\.RetriableException|"
        r"ipc\.StandbyException|hdfs\.server\.namenode\.SafeModeException|"
        r"fs\.s3a\.AWS(ServiceThrottled|Status500|ServiceIO|ClientIO|ApiCallTimeout)Exception)$",
        retry=STORAGE,
    ),
    Known(
        _STORAGE,
        text=r"SlowDown|[Ss]tatus [Cc]ode: 50[0234]\b|Server ?[Bb]usy|[Nn]ame node is in safe mode|"
        r"Operation category WRITE is not supported in state standby|Connection reset|"
        r"Read timed out|Unable to execute HTTP request.*",
        retry=STORAGE,
    ),
    Known(
        _STORAGE,
        text=r"(?:SocketTimeout|Connect|NoRouteToHost|Socket)Exception:.*|safe mode",
    ),
)

# A text with its causes, the sentence. `{pair}` is the pair of versions that would work.
PARTS: Final = (
    (
        r"org[./]apache[./]spark[./]sql[./]catalyst[./]SQLConfHelper",
        "Delta's jar was built for another Spark or Scala (its class SQLConfHelper is not in "
        "this Spark). {pair}",
    ),
    (
        r"(NoSuchMethodError|NoClassDefFoundError|AbstractMethodError|NoSuchFieldError|"
        r"IncompatibleClassChangeError)(?s:.){0,400}(io[./]delta|spark[./]sql[./]delta)|"
        r"not defined in Spark 3",
        "Delta's jar was built for another Spark. {pair}",
    ),
    (
        r"UnsupportedClassVersionError",
        "A jar was built for a newer Java than the one that runs Spark. Use Java 17 or 21, or "
        f"type: {INSTALL_JAVA}",
    ),
    (
        r"unresolved dependency|JAVA_GATEWAY_EXITED",
        "Spark did not start; its output says why. If it names an unresolved dependency, Maven "
        "Central does not have that version, or this machine does not reach it: then pass "
        "jars=[...] or ivy_settings='ivysettings.xml' to session(). {pair}",
    ),
    (
        r"io\.delta\.sql\.DeltaSparkSessionExtension|find the data source: delta|DeltaCatalog",
        "Delta's jars are not on Spark's class path. On AWS Glue give the job "
        "'--datalake-formats delta'; elsewhere let session() start Spark. {pair}",
    ),
    (
        # Not the package alone: each of the source's own exceptions is of it.
        r"(ClassNotFoundException|NoClassDefFoundError)[^\n]{0,40}"
        r"org[./]apache[./]spark[./]sql[./]kafka010|find the data source: kafka",
        "Spark's Kafka source is not on its class path: add the package "
        "org.apache.spark:spark-sql-kafka-0-10_2.13 in Spark's own version",
    ),
)
"""What Spark's JVM says when its parts do not belong together."""
