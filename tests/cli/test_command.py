"""Help at every width, of every command."""

import pytest

from ottla.cli.app import root
from ottla.cli.command import Group, reflowed, with_headings
from ottla.cli.main import main


def test_each_paragraph_becomes_one_line() -> None:
    assert reflowed("  One\n    two.\n\n  Three\n four.\n") == "One two.\n\nThree four."


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_help_has_whole_sentences_no_types_and_fits(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERMINAL_WIDTH", str(columns))
    paths: list[list[str]] = [[]] + [[name] for name in root().names()]
    paths += [name.split() for name in root().leaves()]
    for path in paths:
        main([*path, "--help"])
        out = capsys.readouterr().out
        for name in ("<bool>", "<str>", "<list", "<int"):
            assert name not in out, (path, name)
        assert max(map(len, out.splitlines())) <= max(columns, 46), path
    assert " stored, which groups have read it, which Delta" in " ".join(
        str(root().leaves()["journey"].help).split()
    )


def test_no_line_of_a_help_text_breaks_a_sentence() -> None:
    for leaf in root().leaves().values():
        for line in filter(None, str(leaf.help).splitlines()):
            assert line.endswith((".", "3600000")), (leaf.name, line)
        assert len(str(leaf.help).splitlines()[0]) <= 100, leaf.name


def test_summaries_in_a_list_of_commands_are_whole(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    for path in ([], ["topic"]):
        main([*path, "--help"])
        listed = " ".join(capsys.readouterr().out.partition("Commands:")[2].split())
        assert "..." not in listed
    assert "Delete the oldest records of a topic (KIP-107). Asks first, unless --yes." in listed


def test_summaries_are_those_of_the_commands_without_importing_them() -> None:
    groups = [(name, each) for name, each in root().all().items() if isinstance(each, Group)]
    for name, group in groups:
        commands = group.all()
        assert group.summaries() == {each: commands[each].short_help for each in commands}, name
        groups += [(f"{name} {each}", of) for each, of in commands.items() if isinstance(of, Group)]
    assert {"topic", "pipeline", "log stray"} <= {name for name, _ in groups}


def test_headings_are_bold_unless_the_user_wants_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "Usage: ottla\n\nOptions:\n  --times  Options: none."
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert with_headings(text) == (
        "\x1b[1mUsage:\x1b[0m ottla\n\n\x1b[1mOptions:\x1b[0m\n  --times  Options: none."
    )
    monkeypatch.setenv("NO_COLOR", "1")
    assert with_headings(text) == text


@pytest.mark.parametrize("words", [["topic"], ["topic", "--help"]])
def test_no_escape_sequences_outside_a_terminal(
    capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    main(words)
    assert "\x1b" not in "".join(capsys.readouterr())
