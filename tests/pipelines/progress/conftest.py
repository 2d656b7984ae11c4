"""Groups on the test's broker."""

import uuid
from collections.abc import Callable

import pytest

from ottla.pipelines.progress.group import Group


@pytest.fixture
def new_group(bootstrap: str) -> Callable[[], Group]:
    """Gives a group with a fresh name, without commits."""
    return lambda: Group({"bootstrap.servers": bootstrap}, f"group-{uuid.uuid4().hex[:8]}")
