"""kcat's placeholders."""

import pytest
from tests.messaging.test_rendering import FakeMessage

from ottla.messaging.format import FormatError, format_renderer


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("%t-%p@%o", b"t-2@17"),
        (r"%k=%s\n", b"k=v\n"),
        ("%K %S %T", b"1 1 1700000000123"),
        (r"100%% \t\r\0\\\x41é", b"100% \t\r\0\\A" + "é".encode()),
        ("", b""),
    ],
)
def test_each_placeholder(text: str, line: bytes) -> None:
    assert format_renderer(text, for_terminal=False)(FakeMessage()) == line


def test_null_bytes_and_headers() -> None:
    message = FakeMessage(None, b"\x00\xff", [("a", b"1"), ("b", None)], (0, -1))
    pipe, terminal = (
        format_renderer("%k %K %s %T %h", for_terminal=each) for each in (False, True)
    )
    assert pipe(message) == b"null -1 \x00\xff -1 a=1,b=null"
    assert terminal(message) == rb"null -1 \x00\xff -1 a=1,b=null"


@pytest.mark.parametrize("text", ["%x", "50%", r"\q", "\\", r"\x4", r"\xzz"])
def test_what_kcat_does_not_have_is_refused_with_what_there_is(text: str) -> None:
    with pytest.raises(FormatError, match="there are") as caught:
        format_renderer(text, for_terminal=False)
    assert "For example" in str(caught.value.hint)
