"""`ottla mirror` between two secured clusters, by profiles: TLS, passwords, and exact ACLs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from ottla.client.admin.committed_offsets import commit_offsets, commits_of
from ottla.client.client import Client
from ottla.client.profiles import Profile, Profiles, write_profiles
from ottla.client.topic_partition import TopicPartition
from ottla.testing import Cluster, Security

WITHIN_S = 90.0
PASSWORDS = {"reader": "reader-secret", "writer": "writer-secret"}
OF_SOURCE = (
    "reader Read,DescribeConfigs topic orders",
    "reader Describe group billing",
)
OF_TARGET = (
    "writer Create cluster",
    "writer Read,Write,Alter,AlterConfigs topic orders",
    "writer Read,Write topic ottla-mirror-mirror",
    "writer Read group ottla-mirror-mirror",
    "writer Read group billing",
    "writer Write transactional-id ottla-mirror-mirror --prefixed",
)
"""As in docs/mirror.md."""


class Sides:
    """A source and a target, and a mirror between them with these ACLs."""

    def __init__(self, source: Cluster, target: Cluster, folder: Path) -> None:
        self.source, self.target = source, target
        self.file = folder / "profiles.toml"
        self.write_profiles()

    def write_profiles(self, **passwords: str) -> None:
        """The profiles `old` and `new`."""
        users = (("old", self.source, "reader"), ("new", self.target, "writer"))
        profiles = {}
        for name, cluster, user in users:
            settings = cluster.client(user, passwords.get(user))
            bootstrap = settings.pop("bootstrap.servers")
            profiles[name] = Profile(bootstrap, settings)
        write_profiles(self.file, Profiles(profiles, None))

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "ottla", "mirror", "--source", "old", "--profile", "new"]
        return subprocess.run(
            [*command, "--refresh-every", "1", *words, "orders"],
            env={**os.environ, "OTTLA_PROFILES": str(self.file), "COLUMNS": "1000"},
            capture_output=True,
            text=True,
            timeout=WITHIN_S,
            check=False,
        )


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    security = Security(users=PASSWORDS)
    with ExitStack() as ending:
        source = ending.enter_context(Cluster(2, security=security))
        target = ending.enter_context(Cluster(2, security=security))
        source.add_acls(*OF_SOURCE)
        target.add_acls(*OF_TARGET)
        source.create_topic("orders", partitions=2).produce("a", "b", "c", partition=1)
        with Client(source.bootstrap, source.kit_settings) as client:
            assert not commit_offsets(client, "billing", {TopicPartition("orders", 1): 2})
        yield Sides(source, target, tmp_path_factory.mktemp("sides"))


def test_records_and_groups_with_no_more_than_the_documented_acls(sides: Sides) -> None:
    done = sides.run("--once")
    assert (done.returncode, done.stdout) == (0, "3 records mirrored, lag 0.\n"), done.stderr
    assert [each.text for each in sides.target.consume("orders")] == ["a", "b", "c"]
    with Client(sides.target.bootstrap, sides.target.kit_settings) as client:
        assert commits_of(client, "billing")[TopicPartition("orders", 1)].offset == 2
    moved = sides.run("--switch", "billing")
    assert moved.returncode == 0, moved.stderr


@pytest.mark.parametrize("user", ["reader", "writer"])
def test_a_wrong_password_is_one_line(sides: Sides, user: str) -> None:
    sides.write_profiles(**{user: "wrong"})
    try:
        done = sides.run("--once")
    finally:
        sides.write_profiles()
    assert (done.returncode, done.stdout) == (1, "")
    said = done.stderr.strip().splitlines()
    assert len(said) <= 2, done.stderr
    assert "password" in said[0] or "uthentication" in said[0]
    assert ("source" if user == "reader" else "target") in said[0]


MISSING = [
    ("source", "reader Read topic orders", "Read topic orders"),
    ("source", "reader DescribeConfigs topic orders", "DescribeConfigs topic orders"),
    ("target", "writer Read topic orders", "Read topic orders"),
    ("target", "writer Write topic orders", "Write topic orders"),
    ("target", "writer Write topic ottla-mirror-mirror", "Write topic ottla-mirror-mirror"),
    ("target", "writer Read group ottla-mirror-mirror", "Read group ottla-mirror-mirror"),
    (
        "target",
        "writer Write transactional-id ottla-mirror-mirror --prefixed",
        "Write transactional-id ottla-mirror-mirror",
    ),
]


@pytest.mark.parametrize(("side", "acl", "said"), MISSING, ids=[each[2] for each in MISSING])
def test_a_missing_acl_is_named(sides: Sides, side: str, acl: str, said: str) -> None:
    cluster = sides.source if side == "source" else sides.target
    sides.source.topic("orders").produce("more", partition=0)
    cluster.delete_acls(acl)
    try:
        done = sides.run("--once")
    finally:
        cluster.add_acls(acl)
    lines = [line for line in done.stderr.strip().splitlines() if line]
    assert done.returncode == 1, done.stderr
    assert len(lines) <= 2, done.stderr
    assert side in lines[0]
    assert said in done.stderr
