"""From a subject of a schema registry to the plan by which a topic's data is read."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.registry import avro_schema, json_schema, protobuf_schema
from ottla.pipelines.registry.client import Registry
from ottla.pipelines.registry.framed import Framed, branches_of
from ottla.pipelines.registry.left_out import left_out
from ottla.pipelines.registry.registered import Fetched, Wanted, read_wanted
from ottla.pipelines.registry.settings import RegistrySettings
from ottla.pipelines.source import protobuf_column
from ottla.pipelines.spark.jvm.avro_classes import AvroClasses
from ottla.registry.protobuf_messages import Messages
from ottla.registry.registered import AVRO, JSON, PROTOBUF, Registered, SchemaError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log: Final = logging.getLogger("ottla.pipelines")

MAX_NAMED: Final = 5

# The registries of this process, and the ids that were met in data read with each.
_REGISTRIES: Final[dict[RegistrySettings, Registry]] = {}
_MET: Final[dict[RegistrySettings, set[int]]] = {}


def note_met(settings: RegistrySettings, ids: Iterable[int]) -> None:
    """Note ids that data has: the next plan knows them, or knows that the registry does not."""
    _MET.setdefault(settings, set()).update(ids)


def framed_schema(
    spark: SparkSession, settings: RegistrySettings, topic: str, column: str, word: str
) -> Framed:
    """Ask the registry and return how the column is read.

    Raises PipelineError: a registry that does not answer, a schema that Spark cannot read.
    """
    wanted = read_wanted(word, topic, column)
    if settings not in _REGISTRIES:
        _REGISTRIES[settings] = Registry(settings)
    fetched = _REGISTRIES[settings].fetch(wanted, _MET.get(settings, ()))
    if fetched.reader.format == AVRO:
        framed = _avro(spark, fetched)
    elif fetched.reader.format == PROTOBUF:
        framed = _protobuf(fetched, wanted)
    else:
        framed = _json(fetched)
    log.info(
        "%s of %s is read by %s; known are %d schemas",
        column, topic, fetched.reader.shown, len(framed.branches),
    )  # fmt: skip
    if lacking := left_out(fetched.reader, fetched.others):
        log.warning(
            "%s of %s is read by %s, which lacks fields that other data may have: %s. They are "
            "left out",
            column, topic, fetched.reader.shown,
            ", ".join(f"{name} of {one.shown}" for name, one in list(lacking.items())[:MAX_NAMED]),
        )  # fmt: skip
    return framed


def _avro(spark: SparkSession, fetched: Fetched) -> Framed:
    classes = AvroClasses(spark)
    text = avro_schema.envelope(fetched.reader)
    reader = classes.parse(text, fetched.reader.shown)

    def conflict(one: Registered) -> str | None:
        return classes.conflict(reader, classes.parse(avro_schema.envelope(one), one.shown))

    enveloped = json.loads(classes.spark_type(reader, fetched.reader.shown))
    return Framed(
        AVRO,
        json.dumps(enveloped["fields"][0]["type"]),
        branches_of(fetched, avro_schema.envelope, conflict),
        text,
        missing=tuple(sorted(fetched.missing)),
    )


def _json(fetched: Fetched) -> Framed:
    type_ = json_schema.spark_type(fetched.reader)

    def conflict(one: Registered) -> str | None:
        return json_schema.conflict(type_, json_schema.spark_type(one), "value")

    return Framed(
        JSON,
        json.dumps(type_),
        branches_of(fetched, lambda _: "", conflict),
        missing=tuple(sorted(fetched.missing)),
    )


def _protobuf(fetched: Fetched, wanted: Wanted) -> Framed:
    messages = _messages(fetched.reader)
    name = _message(messages, wanted)
    message = messages.by_name[name]
    shape = protobuf_schema.shape_of(message, fetched.reader.shown)

    def conflict(one: Registered) -> str | None:
        try:
            theirs = Messages(one).by_name.get(name)
        except SchemaError as error:
            return str(error)
        return protobuf_schema.conflict(message, theirs, "value") if theirs is not None else None

    return Framed(
        PROTOBUF,
        json.dumps(protobuf_schema.spark_type(shape)),
        branches_of(fetched, lambda one: protobuf_column.writer_of(_messages(one)), conflict),
        protobuf_column.reader_of(messages, name, shape),
        missing=tuple(sorted(fetched.missing)),
    )


def _messages(schema: Registered) -> Messages:
    """Return the messages of a schema. Raises PipelineError where it cannot be used."""
    try:
        return Messages(schema)
    except SchemaError as error:
        raise PipelineError(str(error)) from error


def _message(messages: Messages, wanted: Wanted) -> str:
    """Return the name of the message to read by."""
    shown = messages.schema.shown
    if wanted.message and wanted.message not in messages.by_name:
        raise PipelineError(
            f"{shown} has no message {wanted.message}: it has {', '.join(messages.by_name)}"
        )
    found = wanted.message or messages.main()
    if found is None:
        first = messages.roots()[0]
        raise PipelineError(
            f"{shown} has the messages {', '.join(messages.roots())}: name the one to read, "
            f"'registry:{wanted.subject}#{first}'"
        )
    return found
