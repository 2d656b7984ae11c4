"""Large JSON is parsed as `json.loads` does it, and others have their turn."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.messaging import json_values
from ottla.messaging.json_values import parsed

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.fixture
def all_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_values, "MAX_AT_ONCE_BYTES", 0)


@given(JSON, st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32"]), st.booleans())
def test_any_json(value: Any, encoding: str, escapes: bool) -> None:
    data = json.dumps(value, ensure_ascii=escapes).encode(encoding, "surrogatepass")
    assert parsed(data) == json.loads(data)


@pytest.mark.parametrize(
    "data", [b"{", b"[1,]", b"{'a':1}", b'"\x00"', b"[1] 2", b"\xff\xfe\xff", b"nul", b'{"a"}']
)
def test_what_is_no_json_is_refused(all_is_large: None, data: bytes) -> None:
    with pytest.raises(ValueError):
        parsed(data)


def test_what_is_nested_too_deep_is_refused(all_is_large: None) -> None:
    with pytest.raises(RecursionError):
        parsed(b"[" * 100_000)


def test_a_large_value(all_is_large: None) -> None:
    value = {"a": [{"n": at, "t": "text \u00e9"} for at in range(1000)], "b": [1.5, -2, None, True]}
    assert parsed(json.dumps(value).encode()) == value


def test_others_run_meanwhile() -> None:
    """Also beside the worst case: the parser in C would let nobody run until its end."""
    data = b"[" + b"[]," * 400_000 + b"1]"
    turns = 0
    done = threading.Event()

    def parse() -> None:
        assert len(parsed(data)) == 400_001
        done.set()

    thread = threading.Thread(target=parse)
    thread.start()
    while not done.is_set():
        time.sleep(0.001)
        turns += 1
    thread.join()
    assert turns > 3
