"""Fixtures: a console with a schema registry. A test module names those that it uses."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from components.registry_server import RegistryServer, run_registry
from tests.console.served_console import Visitor, console_of, serving

from ottla.console.schemas import Schemas
from ottla.registry.client import registry_at
from ottla.testing import SharedBroker


@pytest.fixture
def registry() -> Iterator[RegistryServer]:
    with run_registry() as found:
        yield found


@pytest.fixture
def schemas(registry: RegistryServer) -> Schemas:
    return Schemas(registry_at(registry.url), registry.url)


@pytest.fixture
def visitor(ottla_session_broker: SharedBroker, schemas: Schemas) -> Iterator[Visitor]:
    with serving(console_of(ottla_session_broker.bootstrap, schemas=schemas)) as found:
        yield found
