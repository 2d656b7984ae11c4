"""Schemas of a registry: subjects, versions, what changed, and records decoded by them."""

from __future__ import annotations

import json
import re
from io import BytesIO
from typing import Any

import fastavro
import pytest
from components.registry_server import RegistryServer
from confluent_kafka import Producer
from tests.console import registry_console
from tests.console.served_console import Got, Visitor, console_of, serving

from ottla.console.pages.schemas import Line, compared
from ottla.console.schemas import MAX_ASKED_A_SECOND, Decoded, Schemas
from ottla.registry.client import registry_at
from ottla.registry.framing import head
from ottla.registry.protobuf_framing import write_indexes
from ottla.testing import SharedBroker, Topic

registry, schemas = registry_console.registry, registry_console.schemas
visitor = registry_console.visitor

EVIL = "<script>alert(1)</script>"
FLIGHT: dict[str, Any] = {
    "type": "record",
    "name": "Flight",
    "fields": [{"name": "id", "type": "long"}, {"name": "tail", "type": "string"}],
}
LATER = {**FLIGHT, "fields": [*FLIGHT["fields"], {"name": "gate", "type": "string", "default": ""}]}
PROTO = 'syntax = "proto3"; message Delay { int32 minutes = 1; string why = 2; }'


def avro(schema_id: int, value: dict[str, Any]) -> bytes:
    out = BytesIO()
    fastavro.schemaless_writer(out, FLIGHT, value)
    return head(schema_id) + out.getvalue()


def test_subjects_versions_and_what_changed(visitor: Visitor, registry: RegistryServer) -> None:
    registry.register(f"flights-{EVIL}", FLIGHT)
    registry.register(f"flights-{EVIL}", LATER)
    listed = visitor.get("/schemas?q=flights")
    assert f"flights-{EVIL}" in listed.words
    page = visitor.get(f"/schema?subject=flights-{EVIL}")
    assert "Version 2 of 2 Id 2 Kind AVRO" in page.words
    assert "From version 1 to 2" in page.words
    assert '+ "name": "gate"' in page.words
    assert EVIL not in page.text + listed.text
    first = visitor.get(f"/schema?subject=flights-{EVIL}&version=1").words
    assert "From version" not in first
    assert "gate" not in first
    by_id = visitor.get("/schemas/ids/2").words
    assert "gate" in by_id


def test_what_is_not_there_says_so(visitor: Visitor, registry: RegistryServer) -> None:
    registry.register("flights-value", FLIGHT)
    near = visitor.get("/schema?subject=flight-value")
    assert near.status == 404
    assert "flights-value" in near.words
    assert visitor.get("/schema?subject=flights-value&version=7").status == 404
    assert visitor.get("/schemas/ids/99").status == 404
    registry.fail_with = [500] * 4
    down = visitor.get("/schemas")
    assert down.status == 502
    assert "the schema registry cannot be asked" in down.words.lower()


def test_a_console_without_a_registry(ottla_session_broker: SharedBroker) -> None:
    with serving(console_of(ottla_session_broker.bootstrap)) as visitor:
        assert "Start it with --registry" in visitor.get("/schemas").words
        assert "Schemas" not in visitor.get("/").words


def test_records_are_decoded_shown_and_found(
    visitor: Visitor, registry: RegistryServer, ottla_topic: Topic
) -> None:
    name = ottla_topic.name
    of_avro = registry.register(f"{name}-value", FLIGHT)
    of_proto = registry.register("delays", PROTO, "PROTOBUF")
    of_json = registry.register("plain", {"type": "object"}, "JSON")
    producer = Producer({"bootstrap.servers": ottla_topic.bootstrap})
    proto = head(of_proto) + write_indexes((0,)) + b"\x08\x0c\x12\x03fog"
    framed_json = head(of_json) + json.dumps({"kind": "json"}).encode()
    for value in (
        avro(of_avro, {"id": 7, "tail": EVIL}), proto, framed_json,
        head(99) + b"x", head(of_avro) + b"\xff",
    ):  # fmt: skip
        producer.produce(name, value, "k", partition=0)
    producer.flush()
    page = f"/topics/{name}/messages"
    words = visitor.get(page).words
    assert f'{{"id": 7, "tail": "{EVIL}"}}' in words
    assert '{"minutes": 12, "why": "fog"}' in words
    assert '{"kind": "json"}' in words
    assert r"\x00\x00\x00\x00cx" in words
    assert "fog" not in visitor.get(f"{page}?json=id=7").words
    assert "1 found" in visitor.get(f"{page}?json=id=7").words
    assert "1 found" in visitor.get(f"{page}?text=minutes").words
    assert "00 00 00 00" in visitor.get(f"{page}?form=hex").words
    assert "The key is looked for as it is stored: " in visitor.get(f"{page}?key=k").words
    assert "5 found" in visitor.get(f"{page}?key=k").words
    assert "Every record is looked at: its key may" in visitor.get(f"{page}?key=7").words
    assert "looked for as it is stored." in visitor.get(f"{page}?key=7&form=text").words
    whole = visitor.get(f"{page}/0/0")
    assert f"by schema {of_avro} (AVRO)" in whole.words
    assert EVIL not in whole.text
    unknown = visitor.get(f"{page}/0/3").words
    assert "Cannot decode the value with schema 99: Schema not found." in unknown
    assert "Cannot decode the value of this record" in visitor.get(f"{page}/0/4").words
    assert "with schema" not in visitor.get(f"{page}/0/4?form=hex").words


def test_hostile_ids_and_a_registry_that_is_away_cost_little(
    schemas: Schemas, registry: RegistryServer
) -> None:
    for number in range(500):
        schemas.read(head(number) + b"x", "t", "value")
    assert len(registry.asked) <= 2 * MAX_ASKED_A_SECOND
    before = len(registry.asked)
    schemas.read(head(0) + b"x", "t", "value")
    assert len(registry.asked) == before
    away = Schemas(registry_at("http://127.0.0.1:1", 1.0), "")
    assert "decode" in away.read(head(1) + b"x", "t", "value").why
    assert away.read(head(2) + b"x", "t", "value").why == "The registry does not answer."
    assert away.read(b"plain", "t", "value") == Decoded(b"plain")


def test_a_slow_registry_is_asked_once_for_a_page(
    schemas: Schemas, registry: RegistryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ottla.console.schemas.SLOW_S", 0.0)
    known = registry.register("t-value", FLIGHT)
    other = registry.register("u-value", LATER)
    first = schemas.read(avro(known, {"id": 7, "tail": "x"}), "t", "value")
    assert (first.why, first.format) == ("", "AVRO")
    second = schemas.read(head(other) + b"x", "u", "value")
    assert second.why.startswith("The registry answers slowly")
    assert schemas.read(avro(known, {"id": 8, "tail": "x"}), "t", "value").why == ""


def test_nothing_is_sent_again_while_the_registry_does_not_say_what_matches(
    ottla_session_broker: SharedBroker, ottla_topic: Topic
) -> None:
    producer = Producer({"bootstrap.servers": ottla_topic.bootstrap})
    for value in (head(1) + b"x", b"a text"):
        producer.produce(ottla_topic.name, value, partition=0)
    producer.flush()
    away = Schemas(registry_at("http://127.0.0.1:1", 1.0), "")
    page = f"/topics/{ottla_topic.name}/send-again"
    with serving(console_of(ottla_session_broker.bootstrap, schemas=away)) as visitor:
        for _ in range(2):
            refused = visitor.get(f"{page}?text=text")
            assert refused.status == 502
            assert "which records match is not known: schema 1." in refused.words.lower()
        # Which match is known without it.
        assert "2 records match" in visitor.get(page).words


def test_who_searches_is_told_what_the_registry_does_not_say(
    ottla_session_broker: SharedBroker, ottla_topic: Topic
) -> None:
    """Bytes that look like what is searched, and others that may be it, say nothing of it."""
    producer = Producer({"bootstrap.servers": ottla_topic.bootstrap})
    for value in (head(1) + b"x", head(1) + b"text", b"a text"):
        producer.produce(ottla_topic.name, value, partition=0)
    producer.flush()
    away = Schemas(registry_at("http://127.0.0.1:1", 1.0), "")
    place = f"/topics/{ottla_topic.name}"
    with serving(console_of(ottla_session_broker.bootstrap, schemas=away)) as visitor:
        found = visitor.get(f"{place}/messages?text=text")
        assert found.status == 200
        assert "2 records were searched as bytes" in found.words
        assert "The registry does not answer." in found.words
        searched = visitor.get(f"{place}/search?text=text").text
        assert '"unasked": 2, "why": "The registry does not answer."' in searched
        # A file would look whole.
        exported = visitor.get(f"{place}/export?text=text").text.splitlines()
        assert "which records match is not known" in json.loads(exported[-1])["error"].lower()
        # Nothing is said where nothing is searched in what the registry knows.
        assert "were searched" not in shown(visitor.get(f"{place}/messages"))
        assert "unasked" not in visitor.get(f"{place}/search?header=h").text
        assert len(visitor.get(f"{place}/export").text.splitlines()) == 3


def shown(page: Got) -> str:
    """Without the warning that is hidden."""
    assert 'id="unasked" hidden' in page.text
    return re.sub(r'<p class="hint" id="unasked" hidden>.*?</p>', "", page.text)


@pytest.mark.parametrize("status", [401, 429, 503])
def test_a_registry_that_refuses_does_not_say_that_there_is_no_schema(
    schemas: Schemas, registry: RegistryServer, status: int
) -> None:
    registry.fail_with = [status] * 100
    for _ in range(2):
        assert schemas.read(head(1) + b"x", "t", "value").is_unasked


def test_an_array_of_items_without_bytes_is_not_decoded(
    schemas: Schemas, registry: RegistryServer
) -> None:
    number = registry.register("t-value", {"type": "array", "items": "null"})
    many = head(number) + b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f\x00"
    read = schemas.read(many, "t", "value")
    assert read.data == many
    assert "items take no bytes" in read.why
    assert not read.is_unasked


def test_texts_of_a_few_lines_in_turn_are_compared_too() -> None:
    found = compared("x\ny\n" * 750, "x\n" * 1500)
    assert found is not None
    assert {each.kind for each in found} <= {"same", "added", "removed", "gap"}


def test_a_comparison_shows_what_changed_with_some_lines_around() -> None:
    old = "\n".join(map(str, range(20)))
    new = old.replace("10", "ten")
    assert compared(old, new) == [
        Line("gap", "7 lines are the same"),
        *(Line("same", each) for each in "789"),
        Line("removed", "10"),
        Line("added", "ten"),
        *(Line("same", each) for each in ("11", "12", "13")),
        Line("gap", "6 lines are the same"),
    ]
    assert compared("a\n" * 4000, "a") is None
    assert compared("a", "a") == [Line("same", "a")]
