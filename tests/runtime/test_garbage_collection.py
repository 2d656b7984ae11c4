"""Tests for `ottla.runtime.garbage_collection`."""

import gc
from collections.abc import Iterator

import pytest

from ottla.runtime.garbage_collection import no_collection


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    yield
    gc.enable()


def test_the_collector_runs_again_after_the_block() -> None:
    with no_collection():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_what_the_block_leaves_behind_is_old() -> None:
    with no_collection():
        left: list[object] = []
    assert any(each is left for each in gc.get_objects(generation=2))


def test_the_collector_runs_again_after_an_error() -> None:
    with pytest.raises(ValueError, match="inside"), no_collection():
        raise ValueError("inside")
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    with no_collection():
        pass
    assert not gc.isenabled()
