"""`ottla certificate show`."""

from pathlib import Path

import pytest

from ottla.cli.app import carry_out


def test_a_file_that_cannot_be_shown_is_named_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "c.pem"
    assert carry_out(["certificate", "show", str(file)]) == 1
    assert capsys.readouterr().err.count("c.pem") == 1
    file.write_text("no certificate")
    assert carry_out(["certificate", "show", str(file)]) == 1
    assert capsys.readouterr().err.count("c.pem") == 1
