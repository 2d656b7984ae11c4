"""A row is printed as a table or as JSON."""

from __future__ import annotations

import json

import pytest

from ottla.cli.rows import (
    NOT_ASKED,
    NotAsked,
    column,
    document,
    emit,
    only_json,
    row,
    show_rows,
)
from ottla.cli.screen import say


@row
class Part:
    number: int
    start_offset: int | None
    brokers: list[int] = column("on", lambda each: "+".join(map(str, each.brokers)))
    why: str = column("problem", is_optional=True)
    id: str = only_json(default="x")
    shown: str = column(in_json=False, default="s")


@row
class Whole:
    name: str
    parts: list[Part]

    def show(self) -> None:
        show_rows(self.parts, title=self.name, like=Part)


PARTS = [Part(0, 5, [1, 2], ""), Part(1, None, [3], "")]


def test_json_has_the_fields_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    emit(PARTS, as_json=True)
    (first, _) = json.loads(capsys.readouterr().out)
    assert list(first) == ["number", "start_offset", "brokers", "why", "id"]
    emit(Whole("w", PARTS[:1]), as_json=True)
    assert json.loads(capsys.readouterr().out)["parts"] == [first]


@row
class Late:
    name: str
    behind_ms: int | NotAsked | None = NOT_ASKED


def test_json_leaves_out_what_nobody_asked_for() -> None:
    assert document([Late("a"), Late("b", None)]) == [
        {"name": "a"},
        {"name": "b", "behind_ms": None},
    ]


def test_a_table_has_the_columns_that_have_cells(capsys: pytest.CaptureFixture[str]) -> None:
    emit(PARTS, as_json=False)
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["number", "start", "offset", "on", "shown"],
        ["0", "5", "1+2", "s"],
        ["1", "-", "3", "s"],
    ]
    emit([Part(0, 1, [1], "lost")], as_json=False)
    assert "problem" in capsys.readouterr().out


def test_a_field_may_have_the_name_of_a_word_of_python(
    capsys: pytest.CaptureFixture[str],
) -> None:
    @row
    class Moved:
        from_: int
        to: int

    emit(Moved(1, 2), as_json=True)
    assert json.loads(capsys.readouterr().out) == {"from": 1, "to": 2}
    emit(Moved(1, 2), as_json=False)
    assert capsys.readouterr().out.splitlines()[0] == "from  to"


def test_no_rows_are_a_sentence_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    emit([], as_json=False, none="No parts.")
    assert capsys.readouterr() == ("", "No parts.\n")
    emit([], as_json=True, none="No parts.")
    assert capsys.readouterr() == ("[]\n", "")


@row
class Sentence:
    words: str

    def show(self) -> None:
        say(self.words)


def test_what_is_no_table_shows_itself(capsys: pytest.CaptureFixture[str]) -> None:
    emit([Sentence("one."), Sentence("two.")], as_json=False)
    assert capsys.readouterr().out == "one.\n\ntwo.\n"
    emit(Whole("w", []), as_json=False)
    assert capsys.readouterr().out.splitlines()[0] == "w"
