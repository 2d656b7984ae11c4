"""What the commands look at in their environment is the same wherever the tests run."""

import pytest


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "OTTLA_BOOTSTRAP"):
        monkeypatch.delenv(name, raising=False)
