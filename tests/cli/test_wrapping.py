"""Sentences on narrow terminals."""

import io

import pytest

from ottla.cli.wrapping import print_error, wrapped

SENTENCE = "Delivered 1 record to a-topic-with-a-long-name, partition 0, offset 17."


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("columns", [20, 40, 60])
def test_a_sentence_fits_and_keeps_its_words(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = wrapped(SENTENCE, Terminal()).splitlines()
    assert max(map(len, lines)) <= columns
    # A word that is longer than the terminal is wide is cut.
    assert "".join(lines).replace(" ", "") == SENTENCE.replace(" ", "")


def test_lines_stay_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    lines = wrapped(f"{SENTENCE}\n  one problem\n  another one", Terminal()).splitlines()
    assert lines[-2:] == ["  one problem", "  another one"]


@pytest.mark.parametrize(
    ("text", "stream", "columns"),
    [
        (SENTENCE, io.StringIO(), "40"),
        (SENTENCE, Terminal(), "80"),
        ("To delete it without confirmation: ottla topic delete orders --yes", Terminal(), "40"),
    ],
)
def test_pipes_wide_terminals_and_commands_get_one_line(
    text: str, stream: io.StringIO, columns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert wrapped(text, stream) == text


def test_an_error_goes_to_standard_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_error(SENTENCE)
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", f"{SENTENCE}\n")
