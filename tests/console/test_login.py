"""Passwords, and the file that has one."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.console.access import Access
from ottla.console.errors import ForbiddenError
from ottla.console.login import PasswordFileError, PasswordLogin, SaslLogin, read_password

ACCESS = Access("localhost:1", {}, "tests")


def written(folder: Path, text: str, mode: int = 0o600) -> Path:
    path = folder / "password"
    path.write_text(text)
    path.chmod(mode)
    return path


def test_the_first_line_is_the_password(tmp_path: Path) -> None:
    assert read_password(written(tmp_path, "long enough it is\nnot this\n")) == "long enough it is"


@pytest.mark.parametrize(
    ("text", "mode", "why"),
    [
        ("long enough it is\n", 0o644, "may be read by others"),
        ("short\n", 0o600, "has 5 characters"),
        ("", 0o600, "has 0 characters"),
    ],
)
def test_a_file_that_is_no_secret_is_refused(
    tmp_path: Path, text: str, mode: int, why: str
) -> None:
    with pytest.raises(PasswordFileError, match=why):
        read_password(written(tmp_path, text, mode))


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(PasswordFileError, match="cannot read"):
        read_password(tmp_path / "none")


def test_only_the_password_enters() -> None:
    login = PasswordLogin("long enough it is", ACCESS)
    assert login.enter("", "long enough it is") == (ACCESS, None)
    for wrong in ("", "long enough it i", "long enough it is ", "\udcff"):
        with pytest.raises(ForbiddenError):
            login.enter("", wrong)


def test_a_user_of_the_cluster_has_a_name() -> None:
    with pytest.raises(ForbiddenError, match="are needed"):
        SaslLogin("localhost:1", {}, "tests").enter("", "x")
