import click
import pytest

from ottla.cli import confirmation
from ottla.cli.deletion import delete_all
from ottla.cli.failures import EXIT_FAILED, Failed


class Broker:
    """Deletes what it is told to, but for those that it refuses."""

    def __init__(self, *refused: str) -> None:
        self.refused = refused
        self.deleted: list[str] = []

    def delete(self, name: str) -> None:
        if name in self.refused:
            raise Failed(f"cannot delete topic {name!r}")
        self.deleted.append(name)


def delete(broker: Broker, *names: str, yes: bool = True, as_json: bool = False) -> None:
    delete_all("topic", names, broker.delete, "records", yes=yes, as_json=as_json)


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
