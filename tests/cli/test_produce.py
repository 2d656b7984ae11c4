"""`ottla produce`: options that contradict each other, its input, and what a bad line stops."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from ottla.cli.failures import Failed, UsageFailed
from ottla.cli.main import main
from ottla.cli.produce import (
    check_together,
    input_bytes,
    open_input,
    parse_headers,
    parse_separator,
    send_lines,
)
from ottla.messaging.lines import text_decoder


@pytest.mark.parametrize(
    ("as_json", "options", "message"),
    [
        (False, {"key": "k", "key_separator": ":"}, "--key and --key-separator exclude"),
        (True, {"key": "k"}, "--key is for plain lines"),
        (True, {"key_separator": ":"}, "--key-separator is for plain lines"),
        (True, {"null": ""}, "--null is for plain lines"),
        (False, {"repartition": True}, "--repartition needs --json"),
    ],
)
def test_options_that_contradict(as_json: bool, options: dict[str, Any], message: str) -> None:
    rest = {"key_separator": None, "key": None, "null": None, "repartition": False}
    with pytest.raises(UsageFailed, match=message):
        check_together(as_json, **(rest | options))


def test_options_that_do_not() -> None:
    check_together(True, None, None, None, True)
    check_together(False, None, "k", "NULL", False)


def test_the_help_says_whose_partitioner_is_which(capsys: pytest.CaptureFixture[str]) -> None:
    main(["produce", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "murmur2, as Java clients do, or crc32, as librdkafka and confluent-kafka do" in said


def test_the_size_of_a_file_is_known(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"one\ntwo\n")
    with open_input(path) as stream:
        assert input_bytes(stream) == 8
    with Path("/dev/null").open("rb") as stream:
        assert input_bytes(stream) is None
    with pytest.raises(Failed, match=r"cannot read .*missing: No such file"):
        open_input(tmp_path / "missing")


class Client:
    def poll(self, _timeout: float) -> int:
        return 0


class Producer:
    """Notes what it is to send."""

    def __init__(self) -> None:
        self.client = Client()
        self.sent: list[tuple[int, bytes | None, bytes | None]] = []

    def send(self, record: Any, line: int) -> None:
        self.sent.append((line, record.key, record.value))


def sent_from(path: Path, content: bytes, key_separator: str) -> tuple[Producer, str | None]:
    path.write_bytes(content)
    producer = Producer()
    decode = text_decoder(separator=key_separator, key=None, null=None, headers=[], partition=None)
    with path.open("rb") as stream:
        return producer, send_lines(producer, stream, decode)  # type: ignore[arg-type]


def test_every_line_is_a_record(tmp_path: Path) -> None:
    producer, stopped = sent_from(tmp_path / "lines", b"a:1\nb:2", ":")
    assert stopped is None
    assert producer.sent == [(1, b"a", b"1"), (2, b"b", b"2")]


def test_a_line_that_is_no_record_stops_before_the_rest(tmp_path: Path) -> None:
    producer, stopped = sent_from(tmp_path / "lines", b"a:1\nb\nc:3\n", ":")
    assert stopped is not None
    assert stopped.startswith("line 2 ")
    assert stopped.endswith("This line and all after it were not sent.")
    assert [line for line, *_ in producer.sent] == [1]


def test_an_input_that_breaks_off() -> None:
    class Broken(io.FileIO):
        def readline(self, size: int | None = -1, /) -> bytes:
            raise OSError(5, "Input/output error")

    decode = text_decoder(separator=None, key=None, null=None, headers=[], partition=None)
    stopped = send_lines(Producer(), Broken("/dev/null"), decode)  # type: ignore[arg-type]
    assert stopped == "cannot read after line 0: Input/output error."


def test_headers_and_separator_from_the_command_line() -> None:
    assert parse_headers(["a=1", "a=", "b=x=y"]) == [("a", b"1"), ("a", b""), ("b", b"x=y")]
    assert parse_headers(None) == []
    assert parse_separator("\\t") == "\t"
    assert parse_separator(None) is None
    with pytest.raises(UsageFailed):
        parse_headers(["=x"])
