"""A console of the run's broker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from tests.console.served_console import Visitor, console_of, serving

if TYPE_CHECKING:
    from ottla.testing import SharedBroker


@pytest.fixture(scope="package")
def visitor(ottla_session_broker: SharedBroker) -> Iterator[Visitor]:
    with serving(console_of(ottla_session_broker.bootstrap)) as found:
        yield found
