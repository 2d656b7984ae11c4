"""JSON that is parsed in turns is the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.runtime.interruptible_json import parsed_in_turns

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON, st.booleans())
def test_any_json(value: Any, escapes: bool) -> None:
    assert parsed_in_turns(json.dumps(value, ensure_ascii=escapes)) == value


@pytest.mark.parametrize("text", ["", "{", "[1,]", "{'a':1}", '"\x00"', "[1] 2", "nul", '{"a"}'])
def test_what_is_no_json(text: str) -> None:
    with pytest.raises(ValueError):
        parsed_in_turns(text)


def test_what_is_too_deep() -> None:
    with pytest.raises(RecursionError):
        parsed_in_turns("[" * 100_000)
