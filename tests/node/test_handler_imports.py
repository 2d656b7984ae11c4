"""The handlers are imported in a thread, soon after the start."""

import threading
from collections.abc import Callable

import pytest

from ottla.api.table import HANDLERS
from ottla.network.handlers import Handler, Handlers
from ottla.node import handler_imports
from ottla.node.handler_imports import KEYS, HandlerImports
from ottla.protocol.versions import ENVELOPE

WITHIN_S = 60


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handler_imports, "AFTER_START_S", 0)
    monkeypatch.setattr(handler_imports, "PAUSE_S", 0)


def found_by(find: Callable[[int], Handler | None]) -> HandlerImports:
    return HandlerImports(Handlers((), find))


def test_every_handler_is_imported_in_another_thread() -> None:
    found: dict[int, int] = {}
    done = threading.Event()

    def find(key: int) -> Handler | None:
        found[key] = threading.get_ident()
        if len(found) == len(KEYS):
            done.set()
        return HANDLERS.find(key)

    imports = found_by(find)
    imports.start()
    assert done.wait(WITHIN_S)
    imports.stop()
    assert set(found.values()).isdisjoint({threading.get_ident()})
    advertised = {key for key, _, _ in HANDLERS.advertised}
    assert advertised <= found.keys()
    assert [key for key in found if HANDLERS.find(key) is None] == [ENVELOPE]


def test_a_stop_waits_for_one_import_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handler_imports, "PAUSE_S", WITHIN_S)
    found: list[int] = []
    begun, may_end = threading.Event(), threading.Event()

    def find(key: int) -> None:
        begun.set()
        assert may_end.wait(WITHIN_S)
        found.append(key)

    imports = found_by(find)
    imports.start()
    assert begun.wait(WITHIN_S)
    stopping = threading.Thread(target=imports.stop)
    stopping.start()
    may_end.set()
    stopping.join(WITHIN_S)
    assert found == [KEYS[0]]
