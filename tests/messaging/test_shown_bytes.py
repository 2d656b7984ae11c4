"""Keys and values for people."""

from __future__ import annotations

import pytest

from ottla.messaging.shown_bytes import ShownBytes, shown_in_line, shown_whole


@pytest.mark.parametrize(
    ("data", "most", "form", "shown"),
    [
        (None, 99, "auto", ShownBytes("null", "null", 0)),
        (b"", 99, "hex", ShownBytes("empty", "", 0)),
        (b"abc", 99, "auto", ShownBytes("text", "abc", 3)),
        ("ä\n\t\x07\u202e".encode(), 99, "auto", ShownBytes("text", "ä\\n\\t\\x07\\u202e", 8)),
        (b"\xff\x00", 99, "auto", ShownBytes("hex", "ff 00", 2)),
        (b"\xffa", 99, "text", ShownBytes("text", "\\xffa", 2)),
        (b"abc", 99, "hex", ShownBytes("hex", "61 62 63", 3)),
        (b"abcdefgh", 5, "auto", ShownBytes("text", "abcde", 8, 3)),
        ("abcdä".encode(), 5, "auto", ShownBytes("text", "abcd", 6, 1)),
        (b"\xff" * 8, 5, "auto", ShownBytes("hex", "ff ff ff ff ff", 8, 3)),
    ],
)
def test_in_a_line(data: bytes | None, most: int, form: str, shown: ShownBytes) -> None:
    assert shown_in_line(data, most, form) == shown


def test_json_is_indented_and_other_values_are_as_they_are() -> None:
    assert shown_whole('{"a":[1,"ä"]}'.encode(), 99) == ShownBytes(
        "json", '{\n  "a": [\n    1,\n    "ä"\n  ]\n}', 14
    )
    assert shown_whole(b'{"a":', 99).kind == "text"
    assert shown_whole(b"[" * 99_999, 999_999).kind == "text"
    assert shown_whole(b'{"a":1}', 3) == ShownBytes("text", '{"a', 7, 4)
    assert shown_whole(b"a\nb\x00", 99).text == "a\nb\\x00"


def test_bytes_are_in_columns() -> None:
    text = shown_whole(bytes(range(60, 80)), 99, "hex").text
    assert text.splitlines() == [
        "00000000  3c 3d 3e 3f 40 41 42 43 44 45 46 47 48 49 4a 4b  |<=>?@ABCDEFGHIJK|",
        "00000010  4c 4d 4e 4f                                      |LMNO|",
    ]
