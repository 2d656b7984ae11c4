"""A visit, and what it leaves for the next one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ottla.client.errors import NoAnswerError
from ottla.console.access import Access
from ottla.console.visit import Visit, visited


@pytest.mark.parametrize(("method", "found"), [("GET", 1), ("POST", 2)])
def test_what_may_have_changed_is_asked_again_after_an_error(method: str, found: int) -> None:
    access, asked = Access("localhost:1", {}, "tests"), []

    def count() -> int:
        asked.append(1)
        return len(asked)

    def page(visit: Visit) -> Any:
        assert visit.access.kept("a", 60, count) == 1
        raise NoAnswerError("no answer.")

    session: Any = SimpleNamespace(access=access)
    request: Any = SimpleNamespace(method=method, path_params={}, query_params={})
    console: Any = None
    with pytest.raises(NoAnswerError):
        visited(console, session, page, request, "/", {}, "")
    assert access.kept("a", 60, count) == found
    access.close()
