"""Suite C: Apache Kafka's own tools, from Maven Central, and at the end its log dump tool."""

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bench.apache_kafka import KafkaError, KafkaJars

from conformance import log_dump
from conformance.outcome import Outcome
from conformance.target import Target
from conformance.tools import clients, topics
from conformance.tools.base import Tools

SUITE = "C"
TESTS: tuple[Callable[[Tools], None], ...] = (*topics.TESTS, *clients.TESTS)
DUMP = "log_dump_finds_no_fault"


def names() -> list[str]:
    return [*(test.__name__ for test in TESTS), DUMP]


def _judge(name: str, test: Callable[[], None]) -> Outcome:
    began = time.monotonic()
    try:
        test()
    except (AssertionError, KafkaError) as fault:
        why = " ".join(str(fault).split())[:600]
        return Outcome(SUITE, name, "failed", time.monotonic() - began, why)
    return Outcome(SUITE, name, "passed", time.monotonic() - began)


def run(jars: KafkaJars, bootstrap: str, wanted: Sequence[str]) -> Iterator[Outcome]:
    """Each test of the tools, or those in `wanted` where it has any."""
    with tempfile.TemporaryDirectory() as scratch:
        tools = Tools(jars, bootstrap, Path(scratch))
        for test in TESTS:
            if not wanted or test.__name__ in wanted:
                yield _judge(test.__name__, lambda test=test: test(tools))  # type: ignore[misc]


def dump(jars: KafkaJars, target: Target, wanted: Sequence[str]) -> Iterator[Outcome]:
    """Stop the broker, if it is ours, and let the log dump tool read all that the suites wrote."""
    if wanted and DUMP not in wanted:
        return
    data = target.data
    if data is None:
        yield Outcome(SUITE, DUMP, "skipped", reason="no --data for a broker of somebody else")
        return
    target.stop()

    def no_fault() -> None:
        found = log_dump.faults(jars, data)
        assert not found, f"{len(found)} faults: {found[:5]}"

    yield _judge(DUMP, no_fault)
