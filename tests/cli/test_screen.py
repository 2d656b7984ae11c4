"""Tables on narrow, wide and no terminals: nothing is cut."""

import io
import json
import re

import pytest

from ottla.cli import screen
from ottla.cli.failures import UsageFailed
from ottla.cli.output import OutputClosed
from ottla.cli.screen import ask, say, show_json, show_table
from ottla.cli.wrapping import printable

LONG = "a-topic-with-quite-a-long-name-as-people-have-them"
ROWS: list[list[object]] = [[LONG, 0, 12345, "x"], ["short", None, 7, "y"]]
COLUMNS = ["topic", "partition", "offset", "client"]


def table(capsys: pytest.CaptureFixture[str]) -> str:
    show_table(COLUMNS, ROWS, title="Title")
    return capsys.readouterr().out


def test_a_pipe_is_as_wide_as_needed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    lines = [line.rstrip() for line in table(capsys).splitlines()]
    assert lines == [
        "Title",
        f"{'topic':<50}  partition  offset  client",
        f"{LONG:<50}          0   12345  x",
        f"{'short':<50}          -       7  y",
    ]


def test_the_widest_column_is_folded(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    out = table(capsys)
    assert max(map(len, out.splitlines())) <= 60
    first_column = "".join(line[:33].strip() for line in out.splitlines()[2:4])
    assert first_column == LONG
    assert "12345" in out


@pytest.mark.parametrize("columns", [10, 20, 40])
def test_too_narrow_for_a_table_becomes_blocks(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    out = table(capsys)
    assert max(map(len, out.splitlines())) <= columns
    for word in COLUMNS:
        assert [line.split()[0] for line in out.splitlines() if line.strip()].count(word) == 2
    for cell in (LONG, "12345", "short"):
        assert cell in "".join(line[-columns:] for line in out.split())


def test_empty_columns_can_be_left_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show_table(["a", "b", "c"], [["1", "", ""], ["2", "", "x"]], drop_empty=["b", "c"])
    assert capsys.readouterr().out.split() == ["a", "c", "1", "2", "x"]


def test_text_that_looks_like_markup_is_printed_verbatim(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show_table(["name"], [["[red]x[/red]"], [":smile:"], ["[/]"]])
    assert capsys.readouterr().out.split() == ["name", "[red]x[/red]", ":smile:", "[/]"]


def test_control_characters_cannot_reach_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert printable("a\x1b[2Jb\n") == "a\\x1b[2Jb\\n"
    show_table(["name"], [["\x1b[31m"]])
    assert "\x1b" not in capsys.readouterr().out


def test_no_colour_off_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert "\x1b" not in table(capsys)


def test_json_keeps_order_and_letters(capsys: pytest.CaptureFixture[str]) -> None:
    show_json({"b": "é", "a": None})
    out = capsys.readouterr().out
    assert out == '{\n  "b": "é",\n  "a": null\n}\n'
    assert json.loads(out) == {"b": "é", "a": None}


def test_a_closed_pipe_ends_the_output(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    monkeypatch.setattr("sys.stdout", Gone())
    with pytest.raises(OutputClosed):
        say("x")
    with pytest.raises(OutputClosed):
        show_table(["a"], [["b"]])


def test_without_a_terminal_the_answer_is_no(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    with pytest.raises(UsageFailed, match="without a terminal"):
        ask("Really?", what_else="Say --yes.")


@pytest.mark.parametrize(
    ("typed", "meant"), [("y\n", True), ("YES\n", True), ("n\n", False), ("", False)]
)
def test_only_an_explicit_yes_confirms(
    monkeypatch: pytest.MonkeyPatch, typed: str, meant: bool
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Terminal(typed))
    assert ask("Really?", what_else="") is meant


@pytest.mark.parametrize("columns", [12, 26])
def test_in_blocks_an_empty_cell_of_a_nameless_column_is_no_line(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    show_table(["broker", "address", ""], [[1, "127.0.0.1:9092", "down"], [2, "h:1", ""]])
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert lines.count("") == 1 + (columns == 12)
    assert "down" in lines


def test_an_empty_column_is_left_out_and_a_zero_is_something(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = [["t", 0, None, ""], ["u", 0, None, ""]]
    show_table(
        ["topic", "rejected", "host", "state"], rows, drop_empty=["rejected", "host", "state"]
    )
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["topic", "rejected"],
        ["t", "0"],
        ["u", "0"],
    ]


def test_a_table_that_fits_is_the_same_with_and_without_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows: list[list[object]] = [["日本語", 7, "x"], ["a", None, ""]]
    expected = ["name    n  state", "日本語  7  x", "a       -"]
    show_table(["name", "n", "state"], rows)
    assert capsys.readouterr().out.splitlines() == expected
    monkeypatch.setenv("COLUMNS", "80")
    show_table(["name", "n", "state"], rows)
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == expected


def test_a_pipe_needs_no_rich(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screen, "console", lambda: pytest.fail("rich is used"))
    show_table(COLUMNS, ROWS, title="Title")


@pytest.mark.parametrize("has_colour", [False, True])
@pytest.mark.parametrize("columns", [20, 40, 50, 60])
def test_no_line_ends_with_spaces(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    columns: int,
    has_colour: bool,
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    if has_colour:
        monkeypatch.setenv("FORCE_COLOR", "1")
    show_table(["name", "value", "from"], [["x" * 70, None, "y"], ["a", "b", None]])
    out = capsys.readouterr().out
    assert ("\x1b" in out) is has_colour
    for line in re.sub(r"\x1b\[[0-9;]*m", "", out).splitlines():
        assert line == line.rstrip()
