"""Completion of names that only a broker knows."""

from typing import Any

import pytest

from ottla.cli import client
from ottla.cli.main import COMPLETION_VARIABLE, main


class KnownTopics:
    def topics(self) -> list[str]:
        return ["orders", "returns", "__consumer_offsets"]


@pytest.mark.parametrize(
    ("line", "asked"),
    [
        ("ottla topic describe or", "localhost:9092"),
        ("ottla topic describe --bootstrap other:9093 or", "other:9093"),
    ],
)
def test_topics_come_from_the_broker_that_the_command_would_use(
    line: str, asked: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    addresses: list[str] = []

    def connect(bootstrap: str, *_: Any, **__: Any) -> KnownTopics:
        addresses.append(bootstrap)
        return KnownTopics()

    monkeypatch.setattr(client, "connect", connect)
    words = line.split()
    monkeypatch.setenv(COMPLETION_VARIABLE, "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    with pytest.raises(SystemExit) as end:
        main(words[1:])
    assert end.value.code == 0
    assert capsys.readouterr().out == "orders\n"
    assert addresses == [asked]
