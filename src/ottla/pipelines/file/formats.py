"""Which of Spark's modules for formats a file's pipelines need: their registries know.

Spark's class path is chosen before it starts, so the registries are asked before.
"""

from __future__ import annotations

from ottla.pipelines.registry.client import Registry
from ottla.pipelines.registry.registered import is_wanted, read_wanted
from ottla.pipelines.registry.settings import RegistrySettings
from ottla.pipelines.spark.versions import NEEDED_FORMATS
from ottla.pipelines.spec.pipeline import FileSpec, SourceSpec


def formats_of(spec: FileSpec) -> list[str]:
    """Return the formats that nothing else reads.

    Raises PipelineError where a registry does not answer.
    """
    registries: dict[RegistrySettings, Registry] = {}
    found: dict[str, None] = {}
    for pipeline in spec.pipelines:
        source = pipeline.source
        if source.registry is None:
            continue
        registry = registries.setdefault(source.registry, Registry(source.registry))
        for column, word in words_of(source).items():
            format_ = registry.reader(read_wanted(word, source.topic, column)).format.lower()
            if format_ in NEEDED_FORMATS:
                found[format_] = None
    return list(found)


def words_of(source: SourceSpec) -> dict[str, str]:
    """Return what a source asks its registry for, by column. Pure."""
    schemas = {"key": source.key_schema, "value": source.schema or "registry"}
    return {name: word for name, word in schemas.items() if word is not None and is_wanted(word)}
