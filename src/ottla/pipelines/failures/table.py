"""The known failures of Spark, Delta, Kafka, databases and storage: one row each.

Conditions are Spark's and Delta's own names (error-conditions.json of Spark,
delta-error-classes.json of Delta) and SQL's codes; where a failure has none, the exception's class
or text decides. More specific rows come first. Pure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ottla.pipelines.errors import INSTALL_JAVA
from ottla.pipelines.failures import words
from ottla.pipelines.failures.marks import (
    CONFLICT,
    NO_PROTOBUF,
    SET_BACK,
    SHARED,
    UNKNOWN_ID,
    UNORDERED,
)
from ottla.pipelines.failures.words import Found

BROKER: Final = "broker"
TOPIC: Final = "topic"
STORAGE: Final = "storage"
COMMIT: Final = "commit"
DATABASE: Final = "database"
WRITE: Final = "write"
SCHEMA: Final = "schema"
CONSTRAINT: Final = "constraint"

WAITS: Final = {
    BROKER: "{servers} does not answer",
    TOPIC: "{topics} is not on {servers}",
    STORAGE: "The storage of {target} does not answer or slows requests down",
    WRITE: "A transaction of {target} was not committed",
    DATABASE: "The database of {target} does not answer",
    COMMIT: "Another job committed to {target} at the same time",
    CONSTRAINT: "{target} has a new constraint, and rejects rows that violate it",
    SCHEMA: "{topics} has data of a schema that the plan does not know",
}
"""Why a query is started again, by what is waited for."""

LASTING: Final = (
    r"(Authentication|Authorization|AccessControl|AccessDenied|UnknownHost|Config)\w*Exception|"
    r"No resolvable bootstrap urls"
)
"""A retry does not help where one of the causes is this, whatever the others are."""


@dataclass(frozen=True, slots=True)
class Known:
    """A failure: one of its causes matches each pattern that is given.

    `condition` is matched as a whole, `kind` is searched in the exception's class, `text` in class
    and message, the innermost cause first. `retry` names what is waited for, None where a retry
    cannot help. `sentence` is a text whose fields `words.fields` lists, or makes one from what was
    found, and may return None; an empty one leaves the sentence to another row.
    """

    sentence: str | Callable[[Found], str | None] = ""
    condition: str = ""
    kind: str = ""
    text: str = ""
    retry: str | None = None


_CONTINUES: Final = "The next start continues from the checkpoint"
_START_IT: Final = "Start it: the next start continues from the checkpoint"
_KAFKA: Final = r"^org\.apache\.kafka\.common\."
_LIBRDKAFKA: Final = r"^(cimpl|confluent_kafka\..*)\.?KafkaException$"
_AWAY: Final = "{servers} does not answer: {plain}. " + _START_IT
_DATABASE_AWAY: Final = "The database of {target} does not answer: {reason}. " + _START_IT
_STORAGE: Final = (
    "The storage of {target} does not answer or slows requests down ({found}). " + _CONTINUES
)
_REFUSED_ROW: Final = (
    "The database refused a row of {target}: {reason}. Filter such rows in the query, or drop the "
    "constraint"
)
_REFUSED_VALUE: Final = (
    "The database refused a value for {target}: {reason}. Cast it in the query, or filter such rows"
)

KNOWN: Final = (
    # ---- the schemas of a registry ----
    Known(
        "{Topics}: {1}, which the plan of the query does not know. Start the query again, or give "
        "to_delta(), to_files() or to_postgresql() a function that returns the frame: then it is "
        "planned again by itself",
        text=rf"{UNKNOWN_ID}: (.+?)(?: SQLSTATE|\n|$)",
        retry=SCHEMA,
    ),
    Known(
        "{Topics}: {1}. Register a version that can read both, name a version to read by "
        "(schema='registry:SUBJECT@VERSION'), or begin after these records (starting=)",
        text=rf"{CONFLICT}: ([^\n]+?)(?: SQLSTATE|\n|$)",
    ),
    Known("{Topics}: {1}", text=rf"{NO_PROTOBUF}: ([^\n]+)"),
    # ---- a database; the codes are PostgreSQL's (appendix A of its manual) ----
    Known(
        "The database of {target} refused the login: {reason}. Check user= and password=",
        condition=r"SQLSTATE 28\w{3}",
    ),
    Known(words.unknown_host, condition=r"SQLSTATE 08\w{3}"),
    Known(_DATABASE_AWAY, condition=r"SQLSTATE (08\w{3}|57P0[1-35]|53300)", retry=DATABASE),
    Known(_DATABASE_AWAY, condition=r"SQLSTATE 57P0\w"),
    Known(
        "There is no such database for {target}: {reason}. Create it, or correct url=",
        condition="SQLSTATE 3D000",
    ),
    Known(
        "The disk of the database of {target} is full: {reason}. Free some space: the next start "
        "continues from the checkpoint",
        condition="SQLSTATE 53100",
    ),
    Known(
        "This user may not write {target}: {reason}. GRANT the right in the database",
        condition="SQLSTATE 42501",
    ),
    Known(
        "{target} was changed or deleted while the query ran: {reason}. Start again to compare its "
        "columns",
        condition="SQLSTATE (42P01|42703)",
    ),
    # NOT NULL and the length of a text are constraints that are known at a start.
    Known(_REFUSED_ROW, condition="SQLSTATE 23502", retry=CONSTRAINT),
    Known(_REFUSED_ROW, condition=r"SQLSTATE 23\w{3}"),
    Known(_REFUSED_VALUE, condition="SQLSTATE 22001", retry=CONSTRAINT),
    Known(_REFUSED_VALUE, condition=r"SQLSTATE (22\w{3}|42804)"),
    # A transaction that met another one.
    Known(words.other_database, condition="SQLSTATE (40001|40P01)", retry=DATABASE),
    Known(words.other_database, condition=r"SQLSTATE \w{5}"),
    # ---- the machine ----
    Known(words.disk_full, text=r"No space left on device|Disk quota exceeded|not enough space"),
    Known(words.memory, text=r"OutOfMemoryError:? ?([\w ]*)|exit code 52\b|Cannot allocate memory"),
    # ---- the schema of the rows and of the table ----
    Known(words.other_columns, condition="_LEGACY_ERROR_TEMP_DELTA_0007|DELTA_SCHEMA_MISMATCH"),
    Known(words.other_type, condition="DELTA_FAILED_TO_MERGE_FIELDS"),
    Known(words.other_type, text=words.INCOMPATIBLE),
    Known(
        words.check_violated,
        condition="DELTA_VIOLATE_CONSTRAINT_WITH_VALUES",
        retry=CONSTRAINT,
    ),
    Known(words.null_refused, condition="DELTA_NOT_NULL_CONSTRAINT_VIOLATED", retry=CONSTRAINT),
    # ---- a task of to_topic; its trace also has librdkafka's exception ----
    Known(
        "{target} could not be written: {1}. Check {servers}; the next start continues from the "
        "checkpoint",
        text=r"\bNotWrittenError: (.+)",
        retry=WRITE,
    ),
    Known(
        "{servers} refused the rows for {target}: {1}. Nothing of these transactions is visible; "
        "the next start continues from the checkpoint",
        text=r"\bRefusedError: (.+)",
    ),
    Known(
        SET_BACK.replace("{place}", "{checkpoint}").replace("{found}", "{1}"),
        text=r"\bSetBackError: (.+)",
    ),
    # ---- a value that cannot be computed ----
    Known(words.python_function, text=r"Traceback \(most recent call last\)"),
    Known(
        "The key {1} has records whose order is not known: they are not all in one partition of "
        "{topics}. Name the column that orders them, such as order_by='timestamp'",
        text=rf"{UNORDERED} (\{{.*?\}})(?:\s|$)",
    ),
    Known(
        "The key {1} has several rows of one record of {topics}, and nothing says which of them is "
        "the last: an explode, a join or a union of the query makes them. Add the column that "
        "tells them apart to keys=, or name one that orders them in order_by",
        text=rf"{SHARED} (\{{.*?\}})(?:\s|$)",
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
    # ---- places: folders and file systems ----
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
        condition="CONCURRENT_STREAM_LOG_UPDATE|DELTA_CONCURRENT_TRANSACTION|CONCURRENT_QUERY",
    ),
    Known(
        words.other_commit,
        kind=r"^io\.delta\.exceptions\.(ConcurrentWrite|MetadataChanged|ProtocolChanged|"
        r"ConcurrentAppend|ConcurrentDeleteRead|ConcurrentDeleteDelete)Exception$|"
        r"\.CommitFailedException$",
        retry=COMMIT,
    ),
    Known(words.other_commit, kind=r"io\.delta\.exceptions\.\w+Exception|CommitFailedException"),
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
        r"NOT_LEADER|BROKER_NOT_AVAILABLE|COORDINATOR_|NETWORK_EXCEPTION",
        retry=BROKER,
    ),
    Known(kind=_LIBRDKAFKA, text=r"UNKNOWN_TOPIC", retry=TOPIC),
    # ---- storage, and Spark itself ----
    Known(words.not_writable, condition="DELTA_CANNOT_CREATE_LOG_PATH"),
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
        r"org\.apache\.spark\.sql\.kafka010|find the data source: kafka",
        "Spark's Kafka source is not on its class path: add the package "
        "org.apache.spark:spark-sql-kafka-0-10_2.13 in Spark's own version",
    ),
)
"""What Spark's JVM says when its parts do not belong together."""
