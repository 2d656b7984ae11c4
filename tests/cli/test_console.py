"""`ottla console`: what is refused before anything is served."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.cli.app import carry_out


def refused(words: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert carry_out(["console", *words.split()]) == 2
    return " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("--listen 8095", "--listen must be HOST:PORT"),
        ("--listen 127.0.0.1:99999", "--listen must be HOST:PORT"),
        ("--listen 0.0.0.0:0", "so it needs a login"),
        ("--listen :0", "so it needs a login"),
        ("--sasl-login", "needs a cluster with SASL"),
        ("--bootstrap http://a", "Kafka's protocol is not HTTP"),
    ],
)
def test_what_is_refused(words: str, why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert why in refused(words, capsys)


def test_beyond_loopback_it_has_a_login_and_a_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "password"
    path.write_text("long enough it is\n")
    path.chmod(0o600)
    given = f"--listen 0.0.0.0:0 --password-file {path}"
    assert "names of the console have to be given" in refused(given, capsys)
    path.chmod(0o644)
    assert "may be read by others" in refused(given, capsys)
    assert "exclude each other" in refused(f"{given} --sasl-login", capsys)
    assert "given together" in refused(f"--certificate {path}", capsys)


def test_a_certificate_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "broken.pem"
    path.write_text("broken\n")
    given = ["--listen", "127.0.0.1:0", "--certificate", str(path), "--key", str(path)]
    assert carry_out(["console", *given]) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "cannot listen with the certificate" in said
    assert "Both are PEM files" in said


def test_a_port_that_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert carry_out(["console", "--listen", f"127.0.0.1:{port}"]) == 1
    assert "cannot listen" in capsys.readouterr().err
