"""What a function with typer's annotations gets from click."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import click
import pytest
import typer

from ottla.cli.typer_bridge import bridged


class Colour(StrEnum):
    RED = "red"


TAKEN: list[Any] = []


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
    bridged("taken", taken).main(list(words), standalone_mode=False)
    return TAKEN.pop()


def test_defaults_have_their_type() -> None:
    assert take() == (None, None, 3, 0.5, Colour.RED, None, False, None)


def test_text_is_taken_and_the_rest_converted() -> None:
    words = ("--number", "7", "--ratio", "2", "--colour", "red", "--path", "x", "--flag")
    found = take("a", "b", "--text", "12", *words, "--each", "1", "--each", "2")
    assert found == (["a", "b"], "12", 7, 2.0, Colour.RED, Path("x"), True, [1, 2])


@pytest.mark.parametrize("words", [("--number", "0"), ("--colour", "blue"), ("--each", "x")])
def test_what_cannot_be_taken_is_refused(words: tuple[str, ...]) -> None:
    with pytest.raises(click.BadParameter):
        take(*words)
