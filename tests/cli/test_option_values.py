"""What was typed is taken as it is, without pydantic; what has to be converted is converted."""

from __future__ import annotations

import json
import subprocess
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer

from ottla.cli.help import Command


class Colour(StrEnum):
    RED = "red"


TAKEN: list[Any] = []
app = typer.Typer(pretty_exceptions_enable=False)


@app.command(cls=Command)
def taken(
    names: Annotated[list[str] | None, typer.Argument()] = None,
    text: Annotated[str | None, typer.Option()] = None,
    number: Annotated[int, typer.Option(min=1)] = 3,
    ratio: Annotated[float, typer.Option()] = 0.5,
    colour: Annotated[Colour, typer.Option()] = Colour.RED,
    path: Annotated[Path | None, typer.Option()] = None,
    flag: Annotated[bool, typer.Option()] = False,
    each: Annotated[list[int] | None, typer.Option()] = None,
) -> None:
    TAKEN.append((names, text, number, ratio, colour, path, flag, each))


def take(*words: str) -> Any:
    app(list(words), standalone_mode=False)
    return TAKEN.pop()


def test_defaults_have_their_type() -> None:
    assert take() == (None, None, 3, 0.5, Colour.RED, None, False, None)


def test_text_is_taken_and_the_rest_converted() -> None:
    assert take("a", "b", "--text", "12") == (
        ["a", "b"],
        "12",
        3,
        0.5,
        Colour.RED,
        None,
        False,
        None,
    )
    words = ("--number", "7", "--ratio", "2", "--colour", "red", "--path", "x", "--flag")
    found = take(*words, "--each", "1", "--each", "2")
    assert found == (None, None, 7, 2.0, Colour.RED, Path("x"), True, [1, 2])
    assert isinstance(found[3], float)


def test_repeated_values_stay_in_order_whatever_they_need() -> None:
    assert take("--each", "1", "--each", "+2", "--each", "-3")[-1] == [1, 2, -3]
    assert take("--number", " 7")[2] == 7
    assert take("--number", "9" * 30)[2] == int("9" * 30)


@pytest.mark.parametrize(
    "words",
    [
        ("--number", "many"),
        ("--number", "0"),
        ("--number", "-1"),
        ("--number", "1.5"),
        ("--colour", "blue"),
        ("--each", "1", "--each", "x"),
    ],
)
def test_what_cannot_be_taken_is_refused(words: tuple[str, ...]) -> None:
    with pytest.raises(typer.BadParameter):
        take(*words)


@pytest.mark.parametrize(
    "words",
    [
        ["topic", "list"],
        ["topic", "create", "t", "--partitions", "3"],
        ["consume", "t", "-p", "0", "-p", "1"],
        ["config", "describe", "topic", "t"],
    ],
)
def test_a_plain_command_imports_neither_pydantic_nor_asyncio(words: list[str]) -> None:
    program = (
        "import json, sys; from ottla.cli.main import main; sys.argv[1:] = sys.argv[2:]; main(); "
        "print(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    )
    words = [*words, "--bootstrap", "127.0.0.1:1"]
    done = subprocess.run(
        [sys.executable, "-c", program, "--", *words], capture_output=True, text=True, timeout=60
    )
    *_, last = done.stderr.splitlines()
    loaded = json.loads(last)
    assert "confluent_kafka.admin" in loaded
    heavy = {"pydantic", "asyncio.events", "ssl", "rich.console", "importlib.metadata"}
    assert heavy.isdisjoint(loaded)
