"""From a subject of a schema registry to the plan by which a topic's data is read."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from ottla.pipelines.registry import avro_schema, json_schema
from ottla.pipelines.registry.client import Registry
from ottla.pipelines.registry.framed import Framed, branches_of
from ottla.pipelines.registry.registered import AVRO, JSON, Fetched, Registered, read_wanted
from ottla.pipelines.registry.settings import RegistrySettings
from ottla.pipelines.source.avro_classes import AvroClasses

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log: Final = logging.getLogger("ottla.pipelines")

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
    framed = _avro(spark, fetched) if fetched.reader.format == AVRO else _json(fetched)
    log.info(
        "%s of %s is read by %s; known are %d schemas",
        column, topic, fetched.reader.shown, len(framed.branches),
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
