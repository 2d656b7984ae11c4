"""Where a list of records begins and goes on."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.client.topic_partition import TopicPartition
from ottla.console.errors import BadFormError
from ottla.console.record_query import (
    MAX_CONTINUED,
    RecordQuery,
    read_rest,
    written_rest,
)


def test_the_rest_of_a_list_in_an_address() -> None:
    spans = {TopicPartition("t", number): (number, 10 + number) for number in range(3)}
    text = written_rest(spans)
    assert text == "0:0-10,1:1-11,2:2-12"
    assert read_rest("t", text) == spans
    many = {TopicPartition("t", number): (0, 1) for number in range(MAX_CONTINUED + 1)}
    assert written_rest(many) is None


@pytest.mark.parametrize(
    ("key", "form", "is_stored"),
    [
        ("order-17", "auto", True),
        ("17", "auto", False),
        ("17", "text", True),
        ("17", "hex", True),
        ('"k"', "json", False),
        # Decoded keys have a space there.
        ('{"id":7}', "auto", True),
        ('{"id": 7}', "auto", False),
        ("1.10", "auto", True),
        # Deeper than Python reads it.
        ("[" * 2000, "auto", False),
    ],
)
def test_which_keys_a_schema_may_have_made(key: str, form: str, is_stored: bool) -> None:
    query = RecordQuery("newest", None, None, "", key, "", "", "", form, "")
    schemas: Any = object()
    assert query.has_stored_key(None)
    assert query.has_stored_key(schemas) is is_stored


@pytest.mark.parametrize(
    "text", ["", "1", "1:2", "1:2-x", "1:-2", "a:1-2", "1:1-99999999999999999999"]
)
def test_what_is_no_rest(text: str) -> None:
    with pytest.raises(BadFormError):
        read_rest("t", text)
