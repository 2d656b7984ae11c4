import json

import pytest

from ottla.network.json_text import MAX_PARTS, is_long, read_message


@pytest.mark.parametrize(
    ("text", "long"),
    [
        (b"[" + b"[]," * MAX_PARTS + b"[]]", True),
        (b"{" + b'"a":1,' * MAX_PARTS + b'"a":1}', True),
        (b'["' + b"a" * 10 * MAX_PARTS + b'"]', False),
        (b"[1]", False),
    ],
)
def test_which_texts_have_many_elements(text: bytes, long: bool) -> None:
    assert is_long(text) is long


@pytest.mark.parametrize("slowly", [False, True])
@pytest.mark.parametrize(
    "message",
    [{}, {"id": 7, "value": [[], {"a": None}, 1.5, "\u20ac\n", True]}, {"id": "a" * 100}],
)
def test_both_parsers_read_the_same(message: dict[str, object], slowly: bool) -> None:
    assert read_message(json.dumps(message).encode(), slowly=slowly) == message


@pytest.mark.parametrize("slowly", [False, True])
@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"[]", b"\xff", b'{"id":[]}', b'{"id":"' + b"a" * 101 + b'"}', b"[" * 100_000],
)
def test_what_is_no_message(text: bytes, slowly: bool) -> None:
    assert read_message(text, slowly=slowly) is None
