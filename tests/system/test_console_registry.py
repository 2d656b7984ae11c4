"""Schemas changed in the console, with Apicurio's registry."""

from __future__ import annotations

import pytest
from tests.console.pages.test_schema_changes import FLIGHT, LATER, hidden, new_version
from tests.console.served_console import console_of, serving

from components import fixture
from ottla.console.schemas import Schemas
from ottla.registry.client import registry_at
from ottla.testing import SharedBroker

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]

registry = fixture.registry


def test_schemas_are_registered_changed_and_deleted(
    ottla_session_broker: SharedBroker, registry: str
) -> None:
    """Apicurio's, by its interface of Confluent's."""
    schemas = Schemas(registry_at(registry), registry)
    with serving(console_of(ottla_session_broker.bootstrap, schemas=schemas)) as visitor:
        first = visitor.post("/schema/register", **new_version("flights", FLIGHT, seen=0))
        assert "Registered it as schema" in first.words
        level = hidden(first.text, "seen")
        set_to = visitor.post("/schema/level", subject="flights", level="BACKWARD", seen=level)
        assert "The level of flights is BACKWARD now." in set_to.words
        wrong = {**FLIGHT, "fields": [{"name": "other", "type": "string"}]}
        checked = visitor.post("/schema/check", **new_version("flights", wrong))
        assert "not allowed" in checked.words
        refused = visitor.post("/schema/register", **new_version("flights", wrong, seen=1))
        assert refused.status == 400
        checked = visitor.post("/schema/check", **new_version("flights", LATER))
        assert "allowed" in checked.words.replace("not allowed", "")
        again = visitor.post("/schema/register", **new_version("flights", LATER, seen=1))
        assert "Registered it as schema" in again.words
        gone = visitor.post("/schema/delete-version", subject="flights", version=1, typed="1")
        assert "Deleted version 1" in gone.words
        gone = visitor.post("/schema/delete", subject="flights", typed="flights")
        assert "Deleted flights with 1 version." in gone.words
