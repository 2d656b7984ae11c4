from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.config.error import ConfigError
from ottla.config.properties import FILE_BYTES_MAX, parse_properties, read_properties


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a=1", {"a": "1"}),
        ("a = 1 ", {"a": "1 "}),
        ("a:1\nb 2\nc\t=\t3", {"a": "1", "b": "2", "c": "3"}),
        ("# comment\n! comment\n\n   # indented\na=b#c", {"a": "b#c"}),
        ("a=1\\\n   ,2\\\n,3\nb=2", {"a": "1,2,3", "b": "2"}),
        ("a=ends in a backslash\\\\\nb=2", {"a": "ends in a backslash\\", "b": "2"}),
        ("a=tail\\", {"a": "tail"}),
        (r"a\:b=\u00e9\t\n\q", {"a:b": "é\t\nq"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=1\na=2", {"a": "2"}),
        ("lonely", {"lonely": ""}),
        ("a==1", {"a": "=1"}),
        ("a\\ b = c", {"a b": "c"}),
        ("# comment \\\na=1", {"a": "1"}),
        ("", {}),
    ],
)
def test_parses_like_java(text: str, found: dict[str, str]) -> None:
    assert parse_properties(text) == found


def test_a_broken_escape_names_its_line() -> None:
    with pytest.raises(ConfigError, match="line 2: "):
        parse_properties("a=1\nb=\\u00g1")


def escaped(text: str) -> str:
    return "".join(f"\\u{ord(character):04x}" for character in text)


bmp = st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]), min_size=1)


@given(st.dictionaries(bmp, bmp, max_size=5))
def test_what_is_written_with_escapes_comes_back(found: dict[str, str]) -> None:
    text = "\n".join(f"{escaped(name)}={escaped(value)}" for name, value in found.items())
    assert parse_properties(text) == found


@given(st.text())
def test_any_text_is_read_or_refused_in_one_line(text: str) -> None:
    message = ""
    try:
        parse_properties(text)
    except ConfigError as error:
        message = str(error)
    assert "\n" not in message


def test_reads_a_file_in_either_encoding(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_bytes("broker.rack=süd\n".encode())
    assert read_properties(file) == {"broker.rack": "süd"}
    file.write_bytes("broker.rack=süd\n".encode("latin-1"))
    assert read_properties(file) == {"broker.rack": "süd"}


def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file or directory"):
        read_properties(tmp_path / "none.properties")
    with pytest.raises(ConfigError, match="Is a directory"):
        read_properties(tmp_path)
    large = tmp_path / "large.properties"
    large.write_bytes(b"#" * (FILE_BYTES_MAX + 1))
    with pytest.raises(ConfigError, match="larger than"):
        read_properties(large)
    broken = tmp_path / "broken.properties"
    broken.write_text("a=\\u12")
    with pytest.raises(ConfigError, match=r"broken\.properties: line 1: "):
        read_properties(broken)
