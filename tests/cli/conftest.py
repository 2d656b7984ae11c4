"""What the commands look at in their environment is the same wherever the tests run."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "OTTLA_BOOTSTRAP", "OTTLA_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    # Not the profiles of the developer.
    monkeypatch.setenv("OTTLA_PROFILES", str(tmp_path / "no-profiles.toml"))
