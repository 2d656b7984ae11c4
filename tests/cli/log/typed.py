"""`ottla log`, as typed."""

import pytest

from ottla.cli.app import carry_out


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = carry_out(["log", *map(str, words)])
    said = capsys.readouterr()
    return code, said.out, said.err
