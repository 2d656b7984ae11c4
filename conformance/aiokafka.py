"""Suite F: aiokafka's integration tests from its repository, against a broker of their own.

The package's distributions have no tests. The tests come from a checkout of the release's tag,
and test the released package with its C extension. They expect a Kafka in Docker, which their
`conftest.py` starts; one of ours takes its place and gives them a broker that runs.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from components.apache_kafka import KafkaJars

from components import cache, packages
from conformance.kafka_scripts import write_scripts
from conformance.outcome import Outcome
from conformance.pytest_report import outcomes_of
from conformance.secured_broker import running
from conformance.target import own_bug_in

SUITE: Final = "F"
VERSION: Final = "0.14.0"
REPOSITORY: Final = "https://github.com/aio-libs/aiokafka"
NEEDS: Final = (
    f"aiokafka=={VERSION}",
    *("pytest==9.0.2", "pytest-asyncio==1.3.0", "pytest-mock==3.15.1", "pytest-timeout==2.4.0"),
    *("async-timeout==5.0.1", "cramjam==2.11.0"),
)
"""The versions that its own tests take."""
CLONE_WITHIN_S: Final = 300.0
SECONDS: Final = 1200
MAX_REPEATED: Final = 10
"""Failed tests of one run; more than these have another reason than a busy machine."""
SETTINGS: Final[Mapping[str, str]] = {
    "broker.id": "0",
    "num.partitions": "2",
    "auto.create.topics.enable": "true",
    "group.initial.rebalance.delay.ms": "0",
}
"""Those of the broker."""
NO_KERBEROS: Final = "Ottla does not serve Kerberos (docs/differences.md)"
LEFT_OUT: Final[Mapping[str, str]] = {
    "test_sasl_plaintext_gssapi": NO_KERBEROS,
    "test_admin_client_sasl_plaintext_gssapi": NO_KERBEROS,
    "test_no_concurrent_send_on_connection": (
        "it wants a request behind a fetch that waits to wait as well (docs/differences.md)"
    ),
}
"""Tests, or a file of them, by name."""
INI: Final = """[pytest]
asyncio_mode = auto
addopts = --strict-config --strict-markers
markers =
    ssl: it needs certificates
filterwarnings =
    error
    default:unclosed event loop:ResourceWarning
"""
CONFTEST: Final = '''"""Gives the tests a broker that runs, and leaves out those that use none."""

import asyncio
import gc
import os
import shlex
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from aiokafka.record import default_records

from ._testutil import ACLManager, KafkaConfig

HOST, _, PORT = os.environ["KAFKA_ADDRESS"].rpartition(":")
SCRIPTS = Path(os.environ["KAFKA_SCRIPTS"])
# The newest broker that these tests know.
VERSION = "2.8.1"


def pytest_sessionstart():
    compiled = default_records.DefaultRecordBatchBuilder
    if compiled is default_records._DefaultRecordBatchBuilderPy:
        pytest.exit("aiokafka is here without its C extension", returncode=3)


def pytest_collection_modifyitems(config, items):
    with_broker = [item for item in items if "kafka_server" in item.fixturenames]
    without = [item for item in items if "kafka_server" not in item.fixturenames]
    config.hook.pytest_deselected(items=without)
    items[:] = with_broker


@pytest.fixture(autouse=True)
def collect_garbage():
    # What a test leaves open is a warning of that test, not of a later one.
    yield
    gc.collect()


@pytest.fixture(scope="class")
def loop():
    made = asyncio.new_event_loop()
    asyncio.set_event_loop(made)
    yield made
    if not made.is_closed():
        # Connections that tests have closed end in the loop's next turn.
        made.run_until_complete(asyncio.sleep(0))
        made.close()
    gc.collect()
    asyncio.set_event_loop(None)


class Script:
    """One of Kafka's scripts, run here instead of in a container."""

    def __init__(self, name):
        self.name = name

    def run(self, options):
        words = [word for option in options for word in shlex.split(option)]
        command = [SCRIPTS / self.name, "--bootstrap-server", f"{HOST}:{PORT}", *words]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
        if done.returncode != 0:
            raise RuntimeError((done.stdout + done.stderr).decode(errors="replace"))
        return done.stdout


class Acls(ACLManager):
    def __init__(self):
        super().__init__(None, None)

    def _exec(self, *options):
        return Script("kafka-acls.sh").run(["--force", *options])


class Config(KafkaConfig):
    def __init__(self):
        super().__init__(None, None)

    def add_scram_user(self, username, password):
        # A request to a broker changes a user once (KIP-554), as none to ZooKeeper had to.
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            change = f"{mechanism}=[password={password}]"
            entity = ["--entity-type", "users", "--entity-name", username]
            Script("kafka-configs.sh").run(["--alter", "--add-config", change, *entity])


@pytest.fixture(scope="session")
def ssl_folder():
    return Path(os.environ["KAFKA_CERTIFICATES"])


@pytest.fixture(scope="session")
def kafka_server():
    return SimpleNamespace(host=HOST, port=int(PORT), hosts=[f"{HOST}:{PORT}"])


@pytest.fixture(scope="class")
def setup_test_class_serverless(request, loop):
    request.cls.loop = loop


@pytest.fixture(scope="class")
def setup_test_class(request, loop, kafka_server):
    tests = request.cls
    tests.loop = loop
    tests.kafka_version = VERSION
    tests.kafka_host, tests.kafka_port = kafka_server.host, kafka_server.port
    tests.hosts = kafka_server.hosts
    tests.kafka_sasl_plain_port = int(os.environ["KAFKA_SASL_PORT"])
    tests.kafka_ssl_port = int(os.environ["KAFKA_TLS_PORT"])
    tests.ssl_folder = Path(os.environ["KAFKA_CERTIFICATES"])
    tests.acl_manager, tests.kafka_config = Acls(), Config()
'''


@dataclass(frozen=True)
class Suite:
    """The tests in `folder`, and the Python of an environment with what they need."""

    folder: Path
    python: Path
    logs: Path


def prepare(logs: Path, checkout: Path | None) -> Suite:
    """Fetch the suite unless it is in the cache. Raises PackageError.

    `checkout`: a folder with aiokafka's repository at this release; by default it is cloned.
    """
    folder = cache.folder(f"aiokafka-tests-{VERSION}")
    if checkout is not None or not cache.is_ready(folder):
        with cache.making(folder) as into:
            _take(checkout or _cloned(into), into)
    # Written each time, as the cache may be older than these.
    (folder / "pytest.ini").write_text(INI)
    (folder / "tests" / "conftest.py").write_text(CONFTEST)
    return Suite(folder, packages.python_environment("aiokafka", NEEDS), logs)


def _cloned(into: Path) -> Path:
    print(f"Fetching the tests of aiokafka {VERSION} ...", flush=True)
    clone = ["git", "clone", "--quiet", "--depth", "1", "--branch", f"v{VERSION}", REPOSITORY]
    # Git asks for a password where a repository is not public.
    never_ask = {"GIT_TERMINAL_PROMPT": "0"}
    try:
        packages.run([*clone, "checkout"], into, never_ask, CLONE_WITHIN_S)
    except packages.PackageError as fault:
        raise packages.PackageError(f"{fault}\nGive a checkout with --aiokafka FOLDER.") from fault
    return into / "checkout"


def _take(checkout: Path, into: Path) -> None:
    """Copy the tests, away from the sources, which have no compiled extension."""
    named = checkout / "aiokafka" / "__init__.py"
    found = re.search(r'__version__ = "(.+)"', named.read_text()) if named.is_file() else None
    if found is None or found[1] != VERSION or not (checkout / "tests").is_dir():
        what = "no aiokafka" if found is None else f"aiokafka {found[1]}"
        raise packages.PackageError(f"{checkout} has {what}; wanted a checkout of v{VERSION}")
    shutil.copytree(checkout / "tests", into / "tests")


def run_on_ottla(suite: Suite, jars: KafkaJars, wanted: Sequence[str]) -> Iterator[Outcome]:
    """Run the tests on a broker started here. `jars`: tests change ACLs with Kafka's scripts.

    Raises KitError if the broker does not start.
    """
    scratch = tempfile.TemporaryDirectory(prefix="ottla-", ignore_cleanup_errors=True)
    with scratch as folder, running(Path(folder), SETTINGS) as broker:
        given = {
            "KAFKA_SCRIPTS": str(write_scripts(jars, Path(folder))),
            "KAFKA_CERTIFICATES": str(broker.certificates),
            "KAFKA_SASL_PORT": str(broker.sasl_port),
            "KAFKA_TLS_PORT": str(broker.tls_port),
        }
        yield from run(suite, broker.plaintext, given, wanted)
        log, ran_on = broker.process.said(), broker.process.running
    (suite.logs / "F-broker.log").write_text(log)
    if bug := own_bug_in(log):
        yield Outcome(SUITE, "the log has no traceback", "failed", reason=bug)
    if not ran_on:
        yield Outcome(SUITE, "the broker ran to the end", "failed", reason="it ended")


def run(
    suite: Suite, address: str, given: Mapping[str, str], wanted: Sequence[str]
) -> Iterator[Outcome]:
    """Run the tests (only those in `wanted` if it is not empty); return each outcome.

    A test that failed is repeated, as many of them measure time on a machine that they expect to be
    idle. `address`: `HOST:PORT` of the broker; `given`: further variables of the environment.
    """
    chosen = [f"not {name}" for name in LEFT_OUT]
    if wanted:
        chosen.append(f"({' or '.join(wanted)})")
    outcomes = _test(suite, address, given, " and ".join(chosen), "F")
    if not outcomes:
        yield Outcome(SUITE, "pytest", "failed", reason=f"no test ran; see {suite.logs / 'F.log'}")
    failed = [outcome.name for outcome in outcomes if outcome.state == "failed"]
    if 0 < len(failed) <= MAX_REPEATED:
        again = _test(suite, address, given, " or ".join(failed), "F-repeated")
        mended = {outcome.name for outcome in again if outcome.state == "passed"}
        mended -= {outcome.name for outcome in again if outcome.state == "failed"}
        outcomes = [
            replace(each, state="passed", reason=f"when repeated; at first {each.reason}")
            if each.state == "failed" and each.name in mended
            else each
            for each in outcomes
        ]
    yield from outcomes
    if not wanted:
        yield from (Outcome(SUITE, name, "skipped", reason=why) for name, why in LEFT_OUT.items())


def _test(
    suite: Suite, address: str, given: Mapping[str, str], keywords: str, log: str
) -> list[Outcome]:
    """Run the tests that pytest's `-k` chooses; their output is in `log`.log."""
    report = suite.logs / f"{log}-report.xml"
    report.unlink(missing_ok=True)
    command = [str(suite.python), "-m", "pytest", "-v", "tests", "-p", "no:cacheprovider"]
    command += ["--timeout=180", "--timeout-method=signal", f"--junitxml={report}"]
    command += ["-k", keywords]
    with (suite.logs / f"{log}.log").open("wb") as output:
        subprocess.run(
            command,
            cwd=suite.folder,
            env={**os.environ, **given, "KAFKA_ADDRESS": address},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=SECONDS,
        )
    return outcomes_of(report, SUITE) if report.is_file() else []
