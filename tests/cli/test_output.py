"""Output that cannot be written ends a command, once and in one line."""

from __future__ import annotations

import os
from typing import TextIO

import pytest

from ottla.cli.output import Output, OutputClosed, OutputFailed, discard_output, output_errors


@pytest.fixture
def full() -> TextIO:
    """A file on a full disk."""
    return open("/dev/full", "w")


@pytest.fixture
def closed() -> TextIO:
    """A pipe whose reader has gone."""
    reading, writing = os.pipe()
    os.close(reading)
    return os.fdopen(writing, "w")


def discard(stream: TextIO) -> None:
    """Let it be closed without an error."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)
    stream.close()


def test_a_full_disk_is_a_failure_with_its_reason(full: TextIO) -> None:
    output = Output(full)
    assert output.write("buffered") == 8
    with pytest.raises(OutputFailed, match="cannot write the output: No space left on device"):
        output.flush()
    discard(full)


def test_a_reader_that_has_gone_is_an_ending(closed: TextIO) -> None:
    output = Output(closed)
    output.write("buffered")
    with pytest.raises(OutputClosed):
        output.flush()
    with pytest.raises(OutputClosed), output_errors():
        closed.flush()
    discard(closed)


def test_what_is_discarded_does_not_fail_again(
    full: TextIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout", full)
    full.write("buffered")
    with pytest.raises(OutputFailed):
        Output(full).flush()
    discard_output()
    full.close()


def test_everything_else_is_the_streams_own(closed: TextIO) -> None:
    output = Output(closed)
    assert output.fileno() == closed.fileno()
    assert not output.isatty()
