import shutil
from pathlib import Path

import pytest
from bench.figures.kfake import Kfake, run
from bench.measure import OTTLA, Bench, ClientError


def program(folder: Path, *lines: str) -> Path:
    made = folder / "job"
    made.write_text("\n".join(("#!/bin/sh", *lines)))
    made.chmod(0o755)
    return made


def test_the_first_line_ends_the_first_test(tmp_path: Path) -> None:
    first_s, further_ms = run(program(tmp_path, "echo first", "sleep 0.2", 'echo "$1.5"'))
    assert first_s > 0
    assert further_ms == 20.5


def test_a_job_that_fails_has_no_values(tmp_path: Path) -> None:
    with pytest.raises(ClientError, match="ended with 3: no cluster"):
        run(program(tmp_path, "echo no cluster", "exit 3"))


def test_without_go_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(ClientError, match="install Go"):
        Kfake().measure(OTTLA, Bench(None, Path(), quick=True))
