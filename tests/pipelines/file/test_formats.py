"""Which of Spark's modules a file's pipelines need."""

from dataclasses import replace
from pathlib import Path

import pytest
from components.registry_server import run_registry
from tests.pipelines.file.test_read import SMALLEST

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.file.formats import formats_of, words_of
from ottla.pipelines.file.read import read_text
from ottla.pipelines.spec.pipeline import FileSpec


def spec(url: str = "", **source: str) -> FileSpec:
    lines = "".join(f"{name} = '{value}'\n" for name, value in source.items())
    if url:
        lines += f"[source.registry]\nurl = '{url}'\nmax.retries = 0\n"
    return read_text(Path("/f.toml"), SMALLEST.replace("[sink]", f"{lines}[sink]"), {})


def test_the_registry_knows_the_formats() -> None:
    with run_registry() as registry:
        registry.register("flights-value", '"string"')
        registry.register("keys", "{}", "JSON")
        assert formats_of(spec(registry.url)) == ["avro"]
        assert formats_of(spec(registry.url, schema="registry:keys")) == []
        both = spec(registry.url, schema="registry:keys", key_schema="registry:flights-value")
        assert formats_of(both) == ["avro"]
        assert formats_of(replace(both, pipelines=both.pipelines * 2)) == ["avro"]


def test_without_a_registry_nothing_is_asked() -> None:
    assert formats_of(spec(schema="a INT")) == []
    assert words_of(spec(schema="a INT").pipelines[0].source) == {}


def test_a_registry_that_is_away_is_an_error() -> None:
    with pytest.raises(PipelineError, match="does not answer"):
        formats_of(spec("http://127.0.0.1:1"))
