"""Suite C: Apache Kafka's own tools from Maven Central, with its log dump tool at the end."""

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from components.apache_kafka import KafkaError, KafkaJars

from conformance import log_dump
from conformance.outcome import Outcome
from conformance.replicas import Replicas
from conformance.target import Target
from conformance.tools import clients, cluster, features, groups, security, topics
from conformance.tools.base import Tools, properties_of
from ottla.testing import KitError

SUITE = "C"
TESTS: tuple[Callable[[Tools], None], ...] = (
    *topics.TESTS,
    *clients.TESTS,
    *groups.TESTS,
    *features.TESTS,
)
WITH_SEVERAL: tuple[Callable[[Tools], None], ...] = cluster.TESTS
WITH_USERS: tuple[Callable[[Tools], None], ...] = security.TESTS
WITHOUT_LOGIN: tuple[Callable[[Tools], None], ...] = (cluster.every_replica_answers_the_same,)
"""Kafka's tool takes no settings of a client, so it cannot log in."""
STOP = "the_brokers_stop"
DUMP = "log_dump_finds_no_fault"
IDENTICAL = "replicas_are_identical"


def names() -> list[str]:
    return [*(test.__name__ for test in (*TESTS, *WITH_SEVERAL, *WITH_USERS)), DUMP, IDENTICAL]


def _judge(name: str, test: Callable[[], None]) -> Outcome:
    began = time.monotonic()
    try:
        test()
    except (AssertionError, KafkaError, KitError) as fault:
        why = " ".join(str(fault).split())[:600]
        return Outcome(SUITE, name, "failed", time.monotonic() - began, why)
    return Outcome(SUITE, name, "passed", time.monotonic() - began)


def run(jars: KafkaJars, target: Target, wanted: Sequence[str]) -> Iterator[Outcome]:
    """Run each test of the tools, or those in `wanted` if it is not empty; with fewer than three
    brokers, leave out tests that need three; those of users and ACLs are for secured brokers."""
    with tempfile.TemporaryDirectory() as scratch:
        config = None
        if target.is_secured:
            config = Path(scratch) / "admin.properties"
            given = properties_of(target.admin)
            config.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
        tools = Tools(jars, target.bootstrap, Path(scratch), config)
        for test in (*TESTS, *WITH_SEVERAL, *WITH_USERS):
            if test in WITH_SEVERAL and tools.replicas < 3:
                continue
            if test in WITH_USERS and not target.is_secured:
                continue
            if wanted and test.__name__ not in wanted:
                continue
            if test in WITHOUT_LOGIN and target.is_secured:
                reason = "Kafka's tool takes no settings of a client, so it cannot log in"
                yield Outcome(SUITE, test.__name__, "skipped", reason=reason)
            else:
                yield _judge(test.__name__, lambda test=test: test(tools))  # type: ignore[misc]


def after_the_stop(jars: KafkaJars, target: Target, wanted: Sequence[str]) -> Iterator[Outcome]:
    """Stop our own brokers, and check all data that the suites wrote: each folder with the log dump
    tool, and the replicas against each other."""
    if wanted and not {DUMP, IDENTICAL} & set(wanted):
        return
    if not target.folders:
        yield Outcome(SUITE, DUMP, "skipped", reason="no --data for brokers of somebody else")
        return
    stopped = _judge(STOP, target.stop)
    if stopped.state == "failed":
        yield stopped
        return
    if not wanted or DUMP in wanted:
        yield _judge(DUMP, lambda: _no_fault(jars, target.folders))
    if target.replicas is not None and (not wanted or IDENTICAL in wanted):
        yield _judge(IDENTICAL, lambda: _no_difference(target.replicas))


def _no_fault(jars: KafkaJars, folders: Sequence[Path]) -> None:
    found = [fault for folder in folders for fault in log_dump.faults(jars, folder)]
    assert not found, f"{len(found)} faults: {found[:5]}"


def _no_difference(replicas: Replicas | None) -> None:
    assert replicas is not None
    assert replicas.comparable(), "there is no partition with several replicas"
    found = replicas.differences()
    assert not found, f"{len(found)} differences: {found[:5]}"
