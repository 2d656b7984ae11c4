"""`ottla log stray`, as typed beside a loop."""

from __future__ import annotations

import pytest
from tests.cli.log.stray.stray_node import Typed


@pytest.fixture
def typed(capsys: pytest.CaptureFixture[str]) -> Typed:
    return Typed(capsys)
