"""Where `ottla group import` reads its lines."""

import io
from pathlib import Path

import pytest

from ottla.cli.failures import Failed
from ottla.cli.group.import_ import text_of


def test_lines_come_from_a_file_or_from_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "offsets").write_text("t,0,1\n")
    assert text_of(str(tmp_path / "offsets")) == "t,0,1\n"
    monkeypatch.setattr("sys.stdin", io.StringIO("t,0,2\n"))
    assert text_of(None) == "t,0,2\n"


def test_an_unreadable_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(Failed, match=r"cannot read .*no: No such file or directory"):
        text_of(str(tmp_path / "no"))
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(Failed, match="is not UTF-8 text"):
        text_of(str(tmp_path / "bytes"))
