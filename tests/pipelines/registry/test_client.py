"""Fetching schemas through confluent-kafka's client, from the REST interface."""

from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import pytest
from components.registry_server import RegistryServer, run_registry

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.registry.client import Registry
from ottla.pipelines.registry.registered import Wanted
from ottla.pipelines.registry.settings import read_registry

FAST = {"retries.wait.ms": 1, "retries.max.wait.ms": 1}


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    with run_registry() as registry:
        yield registry


def registry(server: RegistryServer, **settings: Any) -> Registry:
    return Registry(read_registry({"url": server.url, **FAST, **settings}))


def test_the_latest_version_reads_and_the_others_are_known(server: RegistryServer) -> None:
    first = server.register("f-value", '"string"')
    last = server.register("f-value", '"bytes"')

    found = registry(server).fetch(Wanted("f-value"))

    assert (found.reader.id, found.reader.text, found.reader.version) == (last, '"bytes"', 2)
    assert [one.id for one in found.others] == [first]


def test_a_version_that_is_asked_for_reads(server: RegistryServer) -> None:
    first = server.register("f-value", '"string"')
    server.register("f-value", '"bytes"')

    assert registry(server).fetch(Wanted("f-value", 1)).reader.id == first
    with pytest.raises(PipelineError, match="f-value has no version 3: it has 1, 2"):
        registry(server).fetch(Wanted("f-value", 3))


def test_ids_that_were_met_are_found_or_missing(server: RegistryServer) -> None:
    server.register("f-value", '"string"')
    other = server.register("g-value", '"bytes"')

    found = registry(server).fetch(Wanted("f-value"), {other, 4711})

    assert [one.shown for one in found.others] == [f"schema {other}"]
    assert found.missing == {4711}


def test_references_are_fetched(server: RegistryServer) -> None:
    server.register("plane", '{"type": "enum", "name": "Plane", "symbols": []}')
    reference = {"name": "Plane", "subject": "plane", "version": 1}
    server.register("f-value", '"Plane"', references=(reference,))

    ((name, plane),) = registry(server).fetch(Wanted("f-value")).reader.references

    assert (name, plane.shown) == ("Plane", "version 1 of plane (schema 1)")


def test_a_subject_that_is_not_there(server: RegistryServer) -> None:
    with pytest.raises(PipelineError, match="has no subject 'f-value': register its schema"):
        registry(server).fetch(Wanted("f-value"))


def test_a_registry_that_fails_is_asked_again_with_a_limit(server: RegistryServer) -> None:
    server.register("f-value", '"string"')
    server.fail_with = [500, 503]
    assert registry(server).fetch(Wanted("f-value")).reader.text == '"string"'

    server.fail_with = [500] * 100
    server.asked.clear()
    with pytest.raises(PipelineError, match=r"127.0.0.1:\d+ failed \(HTTP 500\): down"):
        registry(server).fetch(Wanted("f-value"))
    assert len(server.asked) == 4


def test_no_registry_is_one_sentence() -> None:
    nowhere = Registry(read_registry({"url": "http://127.0.0.1:1", **FAST}))
    with pytest.raises(PipelineError, match=r"127.0.0.1:1 does not answer \(Connect\w+\): start"):
        nowhere.fetch(Wanted("f-value"))


def test_credentials_are_sent_and_never_shown(server: RegistryServer) -> None:
    server.register("f-value", '"string"')
    server.user = "Basic " + b64encode(b"me:word").decode()

    assert registry(server, **{"basic.auth.user.info": "me:word"}).fetch(Wanted("f-value"))
    with pytest.raises(PipelineError, match="refused the request") as refused:
        registry(server, **{"basic.auth.user.info": "me:wrong-word"}).fetch(Wanted("f-value"))
    assert "word" not in str(refused.value)


def test_a_setting_that_the_client_does_not_know(server: RegistryServer) -> None:
    with pytest.raises(PipelineError, match=r"Unrecognized properties: basic\.auth"):
        registry(server, **{"basic.auth": "me:word"})


def test_another_format_is_refused(server: RegistryServer) -> None:
    server.register("f-value", '"string"')
    with pytest.raises(PipelineError, match=r"is AVRO, and only Protobuf has messages: leave out"):
        registry(server).fetch(Wanted("f-value", message="air.Flight"))
    server.register("g-value", "<g/>", "XML")
    with pytest.raises(PipelineError, match="is XML; pipelines read AVRO, JSON, PROTOBUF"):
        registry(server).fetch(Wanted("g-value"))
