"""Changing the registry: checked first, with a token, not what somebody else has changed."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from components.registry_server import RegistryServer
from tests.console import registry_console
from tests.console.served_console import Visitor, console_of, serving

from ottla.console.errors import BadFormError
from ottla.console.pages.schema_changes import MAX_TEXT, read_references
from ottla.console.pages.schemas import written_references
from ottla.console.schemas import Schemas
from ottla.testing import SharedBroker

registry, schemas = registry_console.registry, registry_console.schemas
visitor = registry_console.visitor

EVIL = "a/b <script>alert(1)</script>"
FLIGHT: dict[str, Any] = {
    "type": "record",
    "name": "Flight",
    "fields": [{"name": "id", "type": "long"}],
}
LATER = {**FLIGHT, "fields": [*FLIGHT["fields"], {"name": "gate", "type": "string", "default": ""}]}


def hidden(text: str, name: str) -> str:
    found = re.search(rf'name="{name}" value="([^"]*)"', text)
    assert found is not None
    return found[1]


def new_version(subject: str, schema: Any = LATER, **more: Any) -> dict[str, Any]:
    text = schema if isinstance(schema, str) else json.dumps(schema)
    return {"subject": subject, "format": "AVRO", "schema": text, "references": "", **more}


def test_a_new_version_is_checked_and_then_registered(
    visitor: Visitor, registry: RegistryServer
) -> None:
    registry.register(EVIL, FLIGHT)
    page = visitor.get("/schemas")
    assert "A new subject" in page.words
    checked = visitor.post("/schema/check", **new_version(EVIL))
    assert "<script>alert" not in checked.text
    assert "allowed" in checked.words
    assert re.search(r'<span class="added">.*gate', checked.text)
    assert len(registry.subjects[EVIL]) == 1, "a check changes nothing"
    assert hidden(checked.text, "seen") == "1"
    done = visitor.post("/schema/register", **new_version(EVIL, seen=1))
    assert "Registered it as schema 2." in done.words
    assert [each["version"] for each in registry.subjects[EVIL]] == [1, 2]
    assert json.loads(registry.subjects[EVIL][1]["schema"]) == LATER


def test_what_somebody_has_registered_meanwhile_is_not_passed_over(
    visitor: Visitor, registry: RegistryServer
) -> None:
    registry.register("s", FLIGHT)
    registry.register("s", LATER)
    refused = visitor.post("/schema/register", **new_version("s", seen=1))
    assert refused.status == 409
    assert "has version 2 by now" in refused.words
    assert len(registry.subjects["s"]) == 2


def test_what_the_level_does_not_allow_is_not_registered(
    visitor: Visitor, registry: RegistryServer
) -> None:
    registry.register("s", FLIGHT)
    registry.levels[""] = "BACKWARD_TRANSITIVE"
    registry.is_compatible = False
    checked = visitor.post("/schema/check", **new_version("s"))
    assert "not allowed New versions must be backward transitive" in checked.words
    assert "Register it" not in checked.words
    refused = visitor.post("/schema/register", **new_version("s", seen=1))
    assert refused.status == 400
    assert len(registry.subjects["s"]) == 1


def test_a_new_subject_with_a_reference(visitor: Visitor, registry: RegistryServer) -> None:
    registry.register("airports", {"type": "string"})
    fields = new_version("new", references="Airport = airports : 1\n")
    checked = visitor.post("/schema/check", **fields)
    assert "A new subject" in checked.words
    assert "new has no version yet" in checked.words
    visitor.post("/schema/register", **fields, seen=0)
    (version,) = registry.subjects["new"]
    used = {"name": "Airport", "subject": "airports", "version": 1}
    assert version["references"] == [used]
    assert "Airport = airports : 1" in visitor.get("/schema?subject=new").text


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"subject": " "}, "needs a name"),
        ({"subject": "x" * 1001}, "needs a name"),
        ({"format": "XML"}, "must be one of AVRO"),
        ({"schema": ""}, "1 to 1,048,576 characters"),
        ({"schema": "x" * (MAX_TEXT + 1)}, "1 to 1,048,576 characters"),
        ({"schema": "{"}, "is not JSON"),
        ({"schema": "[" * 100_000}, "nested too deep"),
        ({"references": "what"}, "must be NAME = SUBJECT : VERSION"),
    ],
    ids=["none", "long", "kind", "empty", "large", "json", "deep", "reference"],
)
def test_what_cannot_be_used_is_said(visitor: Visitor, wrong: dict[str, Any], why: str) -> None:
    found = visitor.post("/schema/check", **new_version("s", FLIGHT) | wrong)
    assert found.status == 400
    assert why in found.words


def test_references_are_read_as_they_are_written() -> None:
    text = "a.B = s:t : 3\nc = d : 1\n"
    assert written_references(read_references(f"\n {text}\n")) == text
    with pytest.raises(BadFormError, match="200 others, not 201"):
        read_references("a = b : 1\n" * 201)


def test_the_level_of_a_subject(visitor: Visitor, registry: RegistryServer) -> None:
    registry.register("s", FLIGHT)
    registry.levels[""] = "BACKWARD"
    assert hidden(visitor.get("/schema?subject=s").text, "seen") == "BACKWARD"
    done = visitor.post("/schema/level", subject="s", level="FULL", seen="BACKWARD")
    assert "The level of s is FULL now." in done.words
    assert registry.levels["s"] == "FULL"
    late = visitor.post("/schema/level", subject="s", level="NONE", seen="BACKWARD")
    assert late.status == 409
    assert "is FULL by now" in late.words
    assert visitor.post("/schema/level", subject="s", level="ANY", seen="FULL").status == 400
    assert registry.levels["s"] == "FULL"


def test_versions_and_subjects_are_deleted_once_they_are_typed(
    visitor: Visitor, registry: RegistryServer
) -> None:
    registry.register(EVIL, FLIGHT)
    registry.register(EVIL, LATER)
    for typed in ("", "2", EVIL):
        wrong = visitor.post("/schema/delete-version", subject=EVIL, version=1, typed=typed)
        assert wrong.status == 400
        assert "Nothing was deleted." in wrong.words
    gone = visitor.post("/schema/delete-version", subject=EVIL, version=1, typed="1")
    assert "Deleted version 1 of" in gone.words
    assert [each["version"] for each in registry.subjects[EVIL]] == [2]
    again = visitor.post("/schema/delete-version", subject=EVIL, version=1, typed="1")
    assert again.status == 409
    assert visitor.post("/schema/delete", subject=EVIL, typed="a/b").status == 400
    assert EVIL in registry.subjects
    gone = visitor.post("/schema/delete", subject=EVIL, typed=EVIL)
    assert "with 1 version." in gone.words
    assert registry.subjects == {}
    assert visitor.post("/schema/delete", subject=EVIL, typed=EVIL).status == 409


def test_a_registry_that_is_away_or_refuses(visitor: Visitor, registry: RegistryServer) -> None:
    registry.register("s", FLIGHT)
    registry.fail_with = [503] * 10
    found = visitor.post("/schema/check", **new_version("s"))
    assert found.status == 502
    assert "cannot be asked" in found.words


CHANGES = ("check", "register", "delete-version", "delete", "level")


def test_a_console_that_only_reads_changes_nothing(
    ottla_session_broker: SharedBroker, schemas: Schemas, registry: RegistryServer
) -> None:
    registry.register("s", FLIGHT)
    console = console_of(ottla_session_broker.bootstrap, schemas=schemas, read_only=True)
    with serving(console) as visitor:
        for page in ("/schemas", "/schema?subject=s"):
            assert 'method="post" action="/schema' not in visitor.get(page).text
        for each in CHANGES:
            found = visitor.send(f"/schema/{each}", token="x", **new_version("s"))
            assert found.status == 403
    assert not [each for each in registry.asked if each.startswith(("POST", "PUT", "DELETE"))]


def test_a_form_without_the_token_is_refused(visitor: Visitor, registry: RegistryServer) -> None:
    registry.register("s", FLIGHT)
    for each in CHANGES:
        assert visitor.send(f"/schema/{each}", token="x", **new_version("s")).status == 403


def test_where_each_visitor_has_his_own_rights_nobody_changes_it(
    visitor: Visitor, registry: RegistryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The registry knows none of them."""
    registry.register("s", FLIGHT)
    monkeypatch.setattr("ottla.console.pages.schemas.SaslLogin", object)
    assert "A new subject" not in visitor.get("/schemas").words
    found = visitor.post("/schema/delete", subject="s", typed="s")
    assert found.status == 403
    assert "does not know who you are" in found.words
    assert "s" in registry.subjects
