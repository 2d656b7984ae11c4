"""Which records are shown."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.messaging.test_rendering import FakeMessage

from ottla.messaging.patterns import PatternError, compiled
from ottla.messaging.selection import (
    SIGNS,
    Newest,
    both,
    header_matcher,
    json_matcher,
    key_matcher,
    matcher,
    needed_bytes,
)


@pytest.mark.parametrize(
    ("pattern", "key", "value", "found"),
    [
        ("ORD", b"k", b"EWR-ORD", True),
        ("^ORD", b"k", b"EWR-ORD", False),
        ("N1.1", b"N101", b"x", True),
        ("x", None, None, False),
        ("a.c", b"k", b"a\xffc", True),
        ("é", b"k", "café".encode(), True),
        ("(?i)ord", b"k", b"ORD", True),
        ("ord-1", b"my ord-1", None, True),
        ("ord 1/2", b"k", b"ord 1", False),
        ("", b"", None, True),
    ],
)
def test_key_or_value_match(
    pattern: str, key: bytes | None, value: bytes | None, found: bool
) -> None:
    assert matcher(pattern)(FakeMessage(key, value)) is found


@given(st.text("ab0_-/:,=<>@#%&~'\" \tà", max_size=4), st.binary(max_size=8))
def test_a_text_without_signs_is_looked_for_as_it_is(text: str, value: bytes) -> None:
    assert SIGNS.isdisjoint(text)
    expression = compiled("--grep", text, "", of_bytes=True)
    for data in (value, value + text.encode() + value):
        assert matcher(text)(FakeMessage(None, data)) is (expression.search(data) is not None)


@pytest.mark.parametrize(
    ("stored", "found"),
    [(b"N101", True), (b"N1011", False), (b"n101", False), (b"", False), (None, False)],
)
def test_a_key_matches_whole(stored: bytes | None, found: bool) -> None:
    assert key_matcher("N101")(FakeMessage(stored, b"N101")) is found


def test_a_key_is_utf_8_and_may_be_empty() -> None:
    assert key_matcher("é")(FakeMessage("é".encode(), b""))
    assert key_matcher("")(FakeMessage(b"", b""))
    assert not key_matcher("")(FakeMessage(None, b""))


def test_a_record_must_match_all_that_is_given() -> None:
    key, pattern = key_matcher("N101"), matcher("ORD")
    assert both(None, None) is None
    assert both(key, None) is key
    assert both(None, pattern) is pattern
    chosen = both(key, pattern)
    assert chosen is not None
    assert chosen(FakeMessage(b"N101", b"EWR-ORD"))
    assert not chosen(FakeMessage(b"N101", b"JFK-LAX"))
    assert not chosen(FakeMessage(b"N102", b"EWR-ORD"))


@pytest.mark.parametrize("pattern", ["(", "[a", "a**", "(?=x)"])
def test_a_bad_pattern_is_a_usage_error(pattern: str) -> None:
    with pytest.raises(PatternError, match="is not a regular expression") as caught:
        matcher(pattern)
    assert "RE2" in str(caught.value.hint)


def test_the_newest_by_time_oldest_first() -> None:
    messages = [FakeMessage(value_=b"%d" % at, timestamp_=(1, at)) for at in (5, 1, 9, 5, 7)]
    newest = Newest(3)
    newest.add(messages[:2])
    newest.add(messages[2:])
    assert [message.value() for message in newest.in_order()] == [b"5", b"7", b"9"]
    same = Newest(2)
    same.add([FakeMessage(value_=value, timestamp_=(1, 3)) for value in (b"a", b"b", b"c")])
    assert [message.value() for message in same.in_order()] == [b"b", b"c"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("source", True),
        ("source=shop", True),
        ("source=sho", False),
        ("trace=", False),
        ("empty=", True),
        ("none", True),
        ("none=", False),
        ("Source", False),
    ],
)
def test_a_header_by_its_name_or_value(text: str, found: bool) -> None:
    headers = [("source", b"shop"), ("trace", b"\xff"), ("empty", b""), ("none", None)]
    assert header_matcher(text)(FakeMessage(b"k", b"v", headers)) is found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a.b", True),
        ("a.b=7", True),
        ("a.b=7.0", False),
        ("a.c=x y", True),
        ('a.c="x y"', True),
        ("l.1=true", True),
        ("l.2", False),
        ("a.b.c", False),
        ("nothing", False),
        ("a.d=null", True),
    ],
)
def test_a_path_in_json(text: str, found: bool) -> None:
    value = b'{"a": {"b": 7, "c": "x y", "d": null}, "l": [0, true]}'
    assert json_matcher(text)(FakeMessage(b"k", value)) is found


def test_what_is_no_json_has_no_path() -> None:
    for value in (None, b"", b"{", b"a", b"[" * 100_000, b"\xff"):
        assert not json_matcher("a")(FakeMessage(b"k", value))
    for text in ("", "a..b", ".a", f"l.{'9' * 5000}"):
        with pytest.raises(PatternError):
            json_matcher(text)


def test_what_json_must_have_to_match() -> None:
    assert needed_bytes(["a", "0", "né"], "") == [b"a", "né".encode()]
    assert needed_bytes(["a"], "7.0") == [b"a"]
    assert needed_bytes(["a"], "Ada Byron") == [b"a", b"Ada Byron"]


@pytest.mark.parametrize(
    ("value", "matches"),
    [
        (b'{"name": "x"}', True),
        (b' \n\t{"name": "x"}', True),
        (b'{"n\\u0061me": "x"}', True),
        (b'{"other": "x"}', False),
        ('{"name": "x"}'.encode("utf-16-le"), True),
    ],
)
def test_json_that_lacks_a_name_is_not_parsed_and_no_other_is_missed(
    value: bytes, matches: bool
) -> None:
    record = SimpleNamespace(value=lambda: value)
    assert json_matcher("name=x")(record) is matches
