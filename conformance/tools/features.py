"""Tests of the cluster's features (KIP-584) with Apache Kafka's own `kafka-features`."""

import re

from components.apache_kafka import KafkaError

from conformance.tools.base import TOOLS, Tools, contains, equal

COMMAND = f"{TOOLS}.FeatureCommand"
NEWEST = {"group.version": 1, "share.version": 2, "transaction.version": 2}
"""Those that this test lowers and raises again; the levels of a new cluster."""


def _run(tools: Tools, *arguments: str) -> str:
    """The tool wants the address before what it is to do."""
    connect = ("--bootstrap-server", tools.bootstrap, *tools.config())
    return tools.jars.run(COMMAND, *connect, *arguments)


def _refused(tools: Tools, *arguments: str) -> None:
    try:
        said = _run(tools, *arguments)
    except KafkaError:
        return
    raise AssertionError(f"{arguments} should have failed, and said: {said}")


def _levels(tools: Tools) -> dict[str, tuple[int, int]]:
    """The highest supported and the finalized level of each feature."""
    said = _run(tools, "describe")
    found = re.findall(
        r"Feature: (\S+)\s+SupportedMinVersion: \d+\s+SupportedMaxVersion: (\d+)"
        r"\s+FinalizedVersionLevel: (\d+)",
        said,
    )
    return {name: (int(supported), int(level)) for name, supported, level in found}


def features_are_described(tools: Tools) -> None:
    levels = _levels(tools)
    for name, level in NEWEST.items():
        equal(levels[name], (level, level))


def features_go_down_and_up(tools: Tools) -> None:
    """A dry run changes nothing; what is not possible is refused."""
    for name, level in NEWEST.items():
        lower = f"{name}={level - 1}"
        contains(_run(tools, "downgrade", "--feature", lower, "--dry-run"), "can be")
        equal(_levels(tools)[name][1], level)
        contains(_run(tools, "downgrade", "--feature", lower), "was downgraded")
        equal(_levels(tools)[name][1], level - 1)
        higher = f"{name}={level}"
        contains(_run(tools, "upgrade", "--feature", higher, "--dry-run"), "can be")
        equal(_levels(tools)[name][1], level - 1)
        contains(_run(tools, "upgrade", "--feature", higher), "was upgraded")
        equal(_levels(tools)[name][1], level)
        _refused(tools, "upgrade", "--feature", f"{name}={level + 9}")
        _refused(tools, "upgrade", "--feature", lower)
    _refused(tools, "upgrade", "--feature", "no.such.version=1")


TESTS = (features_are_described, features_go_down_and_up)
