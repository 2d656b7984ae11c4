"""Which cluster a command line means, and when it is connected to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from ottla.cli.context import DEFAULT_BOOTSTRAP, Cluster, cluster_options, complete_profile
from ottla.cli.failures import UsageFailed
from ottla.client.profiles import Profile, Profiles, write_profiles

PROD = Profile("prod:1", {"security.protocol": "SSL", "sasl.password": "p=w"})
OF_PROD = ("sasl.password=p=w", "security.protocol=SSL")


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

    @click.command()
    @click.option("--number", default=3)
    @cluster_options
    def reach(cluster: Cluster, number: int) -> None:
        assert number == 3
        seen.append((cluster.bootstrap, tuple(cluster.client_config)))

    result = CliRunner().invoke(reach, list(words), env=variables)
    return seen[0] if seen else result.exception


def test_the_current_profile_is_used_unless_another_cluster_is_named() -> None:
    assert used() == ("prod:1", OF_PROD)
    assert used("--bootstrap", "x:9") == ("x:9", ())
    assert used(OTTLA_BOOTSTRAP="y:9") == ("y:9", ())
    assert used(OTTLA_PROFILE="dev") == ("dev:2", ())
    assert used(OTTLA_PROFILE="dev", OTTLA_BOOTSTRAP="y:9") == ("y:9", ())
    assert used("--profile", "dev", OTTLA_BOOTSTRAP="y:9") == ("dev:2", ())


def test_settings_are_merged() -> None:
    assert used("--client-config", "sasl.password=other") == (
        "prod:1",
        ("security.protocol=SSL", "sasl.password=other"),
    )
    # The same settings at another address, such as a tunnel's.
    assert used("--profile", "prod", "-b", "localhost:7") == ("localhost:7", OF_PROD)


def test_an_unknown_profile_fails() -> None:
    assert "there is no profile 'prd'. Did you mean 'prod'" in str(used("--profile", "prd"))
    assert "there is no profile 'x'" in str(used(OTTLA_PROFILE="x"))


def test_without_a_file_nothing_changes(file: Path) -> None:
    file.unlink()
    assert used() == (DEFAULT_BOOTSTRAP, ())


def test_names_are_completed(file: Path) -> None:
    def names(incomplete: str) -> list[str]:
        command = click.Command("reach")
        return complete_profile(click.Context(command), click.Option(["--profile"]), incomplete)

    assert names("p") == ["prod"]
    assert names("") == ["dev", "prod"]
    file.write_text("nonsense")
    assert names("") == []


def test_a_cluster_has_one_client_with_its_settings() -> None:
    cluster = Cluster("h:1", ["client.id=me"])
    assert cluster.client is cluster.client
    assert cluster.settings == {"bootstrap.servers": "h:1", "client.id": "me"}


def test_a_setting_that_librdkafka_does_not_know_is_wrong_use() -> None:
    with pytest.raises(UsageFailed, match='No such configuration property: "foo"'):
        _ = Cluster("h:1", ["foo=bar"]).client
