"""A test with the test kit, with librdkafka's mock, and with Apache Kafka itself."""

import json
import sys
import time
from typing import Final

from bench import rdkafka
from bench.figures import test_kit_job as job
from bench.measure import OTTLA, Bench, Measure

JOB_SECONDS: Final = 300.0
MOCK: Final = "librdkafka's mock"
_NAMES: Final = {"first": ("first test", 1), "further": ("further test", 1000)}
"""The measures of the job's values, and their units in a second."""


class TestKit:
    """The mock is measured in the runs of both, beside which it stands."""

    __test__ = False  # for pytest, which would take the class for a test by its name

    name = "test-kit"
    runs = None
    settings = (
        "one process a run: Python's start, the imports, the start of what the test runs against,"
        " and the test (confluent-kafka: a new topic, one record in and out; the consumer has its"
        " partition assigned, and commits its offset to a group when it closes). A further test is"
        f" the median of {job.FURTHER_TESTS}, each with a new topic. Ottla: `ottla.testing.Broker`."
        " Apache Kafka: format and start of the JVM, as in the container of testcontainers, without"
        f" the container. {MOCK}: `test.mock.num.brokers=1`, which makes topics by itself; it does"
        " not depend on the column. import: of confluent-kafka, and of ottla.testing.broker"
    )
    measures = (
        Measure("first test", "s", more_is_better=False, ratio=1.0),
        Measure("further test", "ms", more_is_better=False, ratio=1.0),
        Measure("import", "ms", more_is_better=False),
        Measure(f"first test, {MOCK}", "s", more_is_better=False),
        Measure(f"further test, {MOCK}", "ms", more_is_better=False),
    )

    def measure(self, contestant: str, bench: Bench) -> dict[str, float]:
        jars = bench.jars
        if contestant == OTTLA:
            found = run(job.KIT)
        else:
            assert jars is not None
            found = run(job.KAFKA, str(jars.folder), jars.java)
        mock = run(job.MOCK)
        values = {"import": found["import"] * 1000}
        for key, (name, factor) in _NAMES.items():
            values[name] = found[key] * factor
            values[f"{name}, {MOCK}"] = mock[key] * factor
        return values


def run(way: str, *given: str) -> dict[str, float]:
    """One process; seconds by name. Raises ClientError."""
    program = [sys.executable, "-m", "bench.figures.test_kit_job", way]
    output = rdkafka.run([*program, str(time.monotonic()), *given], JOB_SECONDS)
    found: dict[str, float] = json.loads(output.splitlines()[-1])
    return found
