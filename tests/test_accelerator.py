"""Compiled modules are used all together or not at all."""

import os
import shutil
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from ottla import accelerator
from ottla.accelerator import COMPILED, LIBRARY, PURE_PYTHON, why_from_source

FILES = "import importlib, sys; print(*(importlib.import_module(n).__file__ for n in sys.argv[1:]))"
MODULES = [f"ottla.{path.replace('/', '.')}" for path in COMPILED]


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sources and a library that is newer than they are; returns the package's folder."""
    monkeypatch.delenv(PURE_PYTHON, raising=False)
    package = tmp_path / "src" / "ottla"
    for path in COMPILED:
        (package / path).parent.mkdir(parents=True, exist_ok=True)
        (package / f"{path}.py").touch()
        os.utime(package / f"{path}.py", (100, 100))
    (package / f"{LIBRARY}{EXTENSION_SUFFIXES[0]}").touch()
    (tmp_path / "pyproject.toml").touch()
    return package


def test_what_was_built_is_used(checkout: Path) -> None:
    assert why_from_source(str(checkout)) is None


def test_an_edited_source_puts_all_of_them_out_of_use(checkout: Path) -> None:
    edited = checkout / f"{COMPILED[-1]}.py"
    shutil.copy(__file__, edited)
    os.utime(edited, (2e9, 2e9))
    why = why_from_source(str(checkout))
    assert why is not None
    assert COMPILED[-1] in why
    assert "make" in why
    # An installation's files have any time.
    (checkout.parent.parent / "pyproject.toml").unlink()
    assert why_from_source(str(checkout)) is None


def test_without_a_library_extensions_are_not_used(checkout: Path) -> None:
    (checkout / f"{LIBRARY}{EXTENSION_SUFFIXES[0]}").unlink()
    why = why_from_source(str(checkout))
    assert why is not None
    assert "without compiled modules" in why
    assert "C compiler" in why
    assert "\n" not in why


def test_pure_python_can_be_required(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PURE_PYTHON, "1")
    assert why_from_source(str(checkout)) == f"{PURE_PYTHON} is set"


def _imported(environment: dict[str, str]) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", FILES, *MODULES],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout.split()


def test_the_modules_that_a_process_imports() -> None:
    ends = {".py"} if accelerator.why_from_source() else {EXTENSION_SUFFIXES[0]}
    for environment, expected in (({}, ends), ({PURE_PYTHON: "1"}, {".py"})):
        found = {"." + Path(file).name.partition(".")[2] for file in _imported(environment)}
        assert found == expected
