from concurrent.futures import Future
from typing import Any

import click
import pytest

from ottla.cli import confirmation
from ottla.cli.deletion import delete_all
from ottla.cli.failures import EXIT_FAILED, Failed


class Broker:
    """Deletes what it is told to, but for those that it refuses."""

    answer_timeout_s = 7.0

    def __init__(self, *refused: str) -> None:
        self.refused = refused
        self.deleted: list[str] = []

    def begin(self, names: list[str], *, request_timeout: float) -> dict[str, Future[None]]:
        assert request_timeout == self.answer_timeout_s
        self.deleted += [name for name in names if name not in self.refused]
        return {name: Future() for name in names}

    def wait(self, future: Future[None], doing: str) -> None:
        if any(repr(name) in doing for name in self.refused):
            raise Failed(f"cannot {doing}")


def delete(broker: Any, *names: str, yes: bool = True, as_json: bool = False) -> None:
    delete_all(broker, "topic", names, broker.begin, with_what="records", yes=yes, as_json=as_json)


def test_each_deletion_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    broker = Broker()
    delete(broker, "a", "b")
    assert capsys.readouterr().out == "Deleted topic a.\nDeleted topic b.\n"
    delete(broker, "c", as_json=True)
    assert '"topic": "c"' in capsys.readouterr().out
    assert broker.deleted == ["a", "b", "c"]


def test_a_no_deletes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    broker, asked = Broker(), []

    def say_no(question: str, *, what_else: str) -> bool:
        asked.append((question, what_else))
        return False

    monkeypatch.setattr(confirmation, "ask", say_no)
    with pytest.raises(click.exceptions.Exit) as ended:
        delete(broker, "a", "b", yes=False)
    assert (ended.value.exit_code, broker.deleted) == (EXIT_FAILED, [])
    how = "To delete without confirmation: ottla topic delete a b --yes"
    assert asked == [("Delete a, b with all records?", how)]


def test_the_first_error_stops_the_deletion(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(Failed, match="cannot delete topic 'b'"):
        delete(Broker("b"), "a", "b")
    assert capsys.readouterr().out == "Deleted topic a.\n"
