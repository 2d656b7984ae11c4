"""`ottla certificate`: one session in a folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ottla.cli.app import carry_out


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def typed(words: str, capsys: pytest.CaptureFixture[str], code: int = 0) -> str:
    assert carry_out(words.split()) == code
    captured = capsys.readouterr()
    return captured.err if code else captured.out


def test_from_nothing_to_a_broker(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert "ottla certificate authority" in typed("certificate broker", capsys, 1)
    typed("certificate authority", capsys)
    assert "exists" in typed("certificate authority", capsys, 1)
    shown = typed("certificate broker kafka.example.org 10.0.0.5", capsys)
    assert "CN=kafka.example.org, for kafka.example.org, 10.0.0.5" in shown
    path = tmp_path / "certificates" / "broker.pem"
    assert f"ssl.keystore.location={path}" in shown
    assert "exists" in typed("certificate broker", capsys, 1)
    typed("certificate broker --replace --days 20", capsys)
    typed("certificate client alice", capsys)
    (broker,) = json.loads(typed("certificate show certificates/broker.pem --json", capsys))
    assert broker["days_left"] == 19
    assert {"localhost", "127.0.0.1"} <= set(broker["names"])
    table = typed("certificate show certificates/alice.pem certificates/authority.pem", capsys)
    assert "(396 days)" in table
    assert "itself" in table
    for file in (tmp_path / "certificates").iterdir():
        secret = b"PRIVATE KEY" in file.read_bytes()
        assert not secret or file.stat().st_mode & 0o777 == 0o600, file


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("certificate client authority", "cannot have the name"),
        ("certificate client ..", "cannot have the name"),
        ("certificate broker --name authority --replace", "cannot have the name"),
        ("certificate broker --days 0", "1 or more"),
    ],
)
def test_wrong_usage(words: str, why: str, capsys: pytest.CaptureFixture[str]) -> None:
    typed("certificate authority", capsys)
    assert why in typed(words, capsys, 2)


def test_a_file_without_a_certificate(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "empty.pem").touch()
    said = typed("certificate show empty.pem", capsys, 1)
    assert "empty.pem: there is no certificate in PEM" in said
