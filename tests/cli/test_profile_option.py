"""Which cluster a command line means."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from ottla.cli.options import DEFAULT_BOOTSTRAP, Bootstrap, ClientConfig
from ottla.cli.profile_option import profile_names, with_profile
from ottla.cli.profiles import Profile, Profiles, write_profiles

PROD = Profile("prod:1", {"security.protocol": "SSL", "sasl.password": "p=w"})
OF_PROD = ["sasl.password=p=w", "security.protocol=SSL"]


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "profiles.toml"
    monkeypatch.setenv("OTTLA_PROFILES", str(path))
    monkeypatch.delenv("OTTLA_PROFILE", raising=False)
    write_profiles(path, Profiles({"prod": PROD, "dev": Profile("dev:2")}, "prod"))
    return path


def used(*words: str, **variables: str) -> Any:
    """The addresses and settings that a command gets; its failure."""
    seen: list[Any] = []

    def reach(
        number: Annotated[int, typer.Option("--number")] = 3,
        bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
        client_config: ClientConfig = None,
    ) -> None:
        assert number == 3
        seen.append((bootstrap, client_config))

    app = typer.Typer()
    app.command()(with_profile(with_profile(reach)))
    result = CliRunner().invoke(app, list(words), env=variables)
    return seen[0] if seen else result.exception


def test_the_current_profile_is_used_unless_another_cluster_is_named() -> None:
    assert used() == ("prod:1", OF_PROD)
    assert used("--bootstrap", "x:9") == ("x:9", None)
    assert used(OTTLA_BOOTSTRAP="y:9") == ("y:9", None)
    assert used(OTTLA_PROFILE="dev") == ("dev:2", None)
    assert used(OTTLA_PROFILE="dev", OTTLA_BOOTSTRAP="y:9") == ("y:9", None)
    assert used("--profile", "dev", OTTLA_BOOTSTRAP="y:9") == ("dev:2", None)


def test_settings_are_merged() -> None:
    assert used("--client-config", "sasl.password=other") == (
        "prod:1",
        ["security.protocol=SSL", "sasl.password=other"],
    )
    # The same settings at another address, such as a tunnel's.
    assert used("--profile", "prod", "-b", "localhost:7") == ("localhost:7", OF_PROD)


def test_an_unknown_profile_fails() -> None:
    assert "there is no profile 'prd'. Did you mean 'prod'" in str(used("--profile", "prd"))
    assert "there is no profile 'x'" in str(used(OTTLA_PROFILE="x"))


def test_without_a_file_nothing_changes(file: Path) -> None:
    file.unlink()
    assert used() == (DEFAULT_BOOTSTRAP, None)


def test_names_are_completed(file: Path) -> None:
    assert profile_names("p") == ["prod"]
    assert profile_names("") == ["dev", "prod"]
    file.write_text("nonsense")
    assert profile_names("") == []


def test_a_command_without_a_cluster_is_left_alone() -> None:
    def local() -> None:
        pass

    assert with_profile(local) is local
