"""What a worker of the tests did when it ended in the middle of a test.

A pytest plugin for `pytest -n`. A test that takes longer than its timeout ends its worker, even
while it holds Python's global lock; so does a fatal signal. Both write the stacks of all threads
into a file of the worker, which becomes a part of the failure. Whatever the worker has printed is
far above it, or nowhere.
"""

from __future__ import annotations

import faulthandler
import os
import tempfile
from pathlib import Path
from typing import Any, TextIO

import pytest

FOLDER = "OTTLA_TESTS_STACKS"
"""In the environment: where the workers of a run have their files."""
MAX_SHOWN_CHARS = 20_000

_folder = pytest.StashKey[tempfile.TemporaryDirectory[str]]()
_stacks = pytest.StashKey[TextIO]()


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is None:
        config.stash[_folder] = folder = tempfile.TemporaryDirectory(prefix="stacks-")
        os.environ[FOLDER] = folder.name
    else:
        config.stash[_stacks] = _path(worker).open("w")
        faulthandler.enable(config.stash[_stacks])


@pytest.hookimpl(tryfirst=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    if _folder in config.stash:
        config.stash[_folder].cleanup()
    if _stacks in config.stash:
        faulthandler.disable()
        config.stash[_stacks].close()


@pytest.hookimpl(optionalhook=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> bool | None:
    """Instead of pytest-timeout's own timer, which needs the lock and prints."""
    if _stacks not in item.config.stash:
        return None
    faulthandler.dump_traceback_later(settings.timeout, exit=True, file=item.config.stash[_stacks])
    return True


@pytest.hookimpl(optionalhook=True)
def pytest_timeout_cancel_timer(item: pytest.Item) -> bool | None:
    if _stacks not in item.config.stash:
        return None
    faulthandler.cancel_dump_traceback_later()
    return True


@pytest.hookimpl(optionalhook=True)
def pytest_handlecrashitem(report: Any) -> None:
    """In the process that started the workers."""
    found = _path(report.node.gateway.id).read_text(errors="replace")
    said = found or "It wrote no stack: it was killed, or it left by itself."
    report.longrepr = f"{report.longrepr}\n{said[-MAX_SHOWN_CHARS:]}"


def _path(worker: str) -> Path:
    return Path(os.environ[FOLDER], f"{worker}.txt")
