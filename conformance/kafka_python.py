"""Suite B: kafka-python's integration tests from its source distribution, in their own venv.

kafka-python 3.0.12 names the requests of the newer group protocols (KIP-848, KIP-932, KIP-1071),
but has no member of them: its consumers are classic.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from components import cache, packages
from conformance.outcome import Outcome
from conformance.pytest_report import outcomes_of
from conformance.target import replication_factor

SUITE = "B"
PACKAGE = "kafka-python==3.0.12"
NEEDS = (
    *("pytest", "pytest-timeout", "pytest-mock", "pytest-asyncio", "py"),
    *("lz4", "zstandard", "python-snappy", "crc32c", "xxhash"),
)
# kafka-python starts brokers through this module, which is not in its source distribution.
SERVICE = '''"""Stands for the module that starts brokers: here one runs already."""


class ExternalService:
    def __init__(self, host, port):
        self.host, self.port = host, port

    def open(self):
        pass

    def close(self):
        pass

    def wait_for(self, *arguments, **options):
        pass

    def dump_logs(self):
        pass


class SpawnedService:
    def __init__(self, *arguments, **options):
        raise RuntimeError("these tests start no broker of their own")
'''
# The suite expects one broker and topics with one replica. On a cluster, this plugin gives clients
# all addresses, and topics the brokers' default number of replicas. With one replica on three
# brokers, test_alter_replica_log_dirs asks a broker that may have none, and fails on Apache Kafka
# as here (5 of 6 runs).
PLUGIN = '''"""Points the suite at all brokers of a cluster."""

import os

from test.integration.fixtures import KafkaFixture

make = KafkaFixture.__init__


def make_replicated(self, *arguments, **options):
    make(self, *arguments, **{**options, "replicas": int(os.environ["KAFKA_REPLICAS"])})


KafkaFixture.__init__ = make_replicated
KafkaFixture.bootstrap_server = lambda self: os.environ["KAFKA_BROKERS"]
'''
NOT_ON_KAFKA = {
    "test_create_describe_delete_acls": "fails on Apache Kafka too: no authorizer",
    "test_create_partitions": "fails on Apache Kafka too: wants a broker 0",
    "test_kafka_version_infer": "fails on Apache Kafka 4.3 too: knows no such version",
    "test_group": "fails on Apache Kafka 4.3 too",
}
NOT_ON_SEVERAL = {
    "test_delete_records": "fails on three brokers of Apache Kafka too",
}
"""Left out on several brokers. It allows three leaders a second together, and Kafka's followers
learn of a deletion after half a second each. Its single poll expects the records of all leaders,
and returns those of the leader that answers first."""
SECONDS = 600


@dataclass(frozen=True)
class Suite:
    """The unpacked tests, and the Python of an environment with their dependencies."""

    folder: Path
    python: Path
    logs: Path


def prepare(logs: Path) -> Suite:
    """Fetch the suite unless it is in the cache. Raises PackageError."""
    folder = cache.folder("kafka-python-tests")
    if not cache.is_ready(folder):
        print(f"Fetching the tests of {PACKAGE} ...", flush=True)
        with cache.making(folder) as into:
            source = packages.source_distribution(PACKAGE, into)
            (source / "test" / "__init__.py").touch()
            (source / "test" / "service.py").write_text(SERVICE)
            packages.run([sys.executable, "-m", "venv", "venv"], into)
            packages.run(["venv/bin/pip", "install", "--quiet", *NEEDS], into)
    source = next(folder.glob("kafka_python-*[0-9]"))
    (source / "all_brokers.py").write_text(PLUGIN)
    return Suite(source, folder / "venv" / "bin" / "python", logs)


def run(suite: Suite, addresses: Sequence[str], wanted: Sequence[str]) -> Iterator[Outcome]:
    """Run the tests (only those in `wanted` if it is not empty); return each outcome.

    `addresses`: `HOST:PORT` of each broker.
    """
    report = suite.logs / "B-report.xml"
    report.unlink(missing_ok=True)
    chosen = [f"not {name}" for name in NOT_ON_KAFKA if name != "test_group"]
    # `-k` matches parts of names, and other tests' names also contain "test_group".
    command = [str(suite.python), "-m", "pytest", "-v", "test/integration"]
    command += ["-p", "no:cacheprovider", "-p", "all_brokers"]
    command += ["--timeout=60", "--timeout-method=signal", f"--junitxml={report}"]
    command += ["--deselect", "test/integration/test_ssl_integration.py"]
    command += ["--deselect", "test/integration/test_sasl_integration.py"]
    command += ["--deselect", "test/integration/test_consumer_integration.py::test_group"]
    left_out = dict(NOT_ON_KAFKA)
    if len(addresses) > 1:
        left_out |= NOT_ON_SEVERAL
        admin = "test/integration/test_admin_integration.py"
        # Another test's name begins with this one's, so `-k` cannot leave it out.
        command += [f"--deselect={admin}::{name}" for name in NOT_ON_SEVERAL]
    if wanted:
        chosen.append("(" + " or ".join(wanted) + ")")
    command += ["-k", " and ".join(chosen)]
    environment = {**os.environ, "PYTHONPATH": ".", "KAFKA_ROOT": str(suite.folder)}
    environment |= {"KAFKA_VERSION": "4.1.0", "KAFKA_URI": f"kafka://{addresses[0]}"}
    environment |= {
        "KAFKA_BROKERS": ",".join(addresses),
        "KAFKA_REPLICAS": str(replication_factor(len(addresses))),
    }
    with (suite.logs / "B.log").open("wb") as output:
        subprocess.run(
            command,
            cwd=suite.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=SECONDS,
        )
    if not wanted:
        yield from (Outcome(SUITE, name, "skipped", reason=why) for name, why in left_out.items())
    if report.is_file():
        yield from outcomes_of(report, SUITE)
    else:
        yield Outcome(SUITE, "pytest", "failed", reason=f"no report; see {suite.logs / 'B.log'}")
