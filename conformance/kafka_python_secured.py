"""kafka-python's tests over SASL and TLS, on a broker made for them.

They start a broker for each mechanism. A plugin gives them one that runs, with a listener for all.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from conformance.kafka_python import SECONDS, SUITE, Suite
from conformance.outcome import Outcome
from conformance.pytest_report import outcomes_of
from conformance.secured_broker import running
from conformance.target import SETTINGS, own_bug_in

TESTS: Final = ("test_sasl_integration", "test_ssl_integration")
"""Files."""
PLUGIN: Final = '''"""Points the suite at a broker with listeners for SASL and for TLS."""

import json
import os

from kafka import KafkaAdminClient
from test.integration.fixtures import KafkaFixture

PORTS = json.loads(os.environ["KAFKA_PORTS"])
make = KafkaFixture.__init__


def make_external(self, host, port, broker_id, **options):
    transport = options.get("transport", "PLAINTEXT").upper()
    make(self, "localhost", PORTS[transport], broker_id, **{**options, "external": True})
    if transport == "SSL":
        self.ssl_dir = os.environ["KAFKA_CERTIFICATES"]


def topic_names(self):
    with KafkaAdminClient(**self._enrich_client_params({"client_id": "topics"})) as admin:
        return list(admin.list_topics())


KafkaFixture.__init__ = make_external
KafkaFixture.get_topic_names = topic_names
'''


def run(suite: Suite, wanted: Sequence[str]) -> Iterator[Outcome]:
    """Run the tests, or those in `wanted`; return each outcome. Raises KitError."""
    scratch = tempfile.TemporaryDirectory(prefix="ottla-", ignore_cleanup_errors=True)
    with scratch as folder, running(Path(folder), SETTINGS) as broker:
        (suite.folder / "secured_broker.py").write_text(PLUGIN)
        plain_port = broker.plaintext.rpartition(":")[2]
        ports = f'{{"PLAINTEXT": {plain_port}, "SASL_PLAINTEXT": {broker.sasl_port}'
        given = {
            "KAFKA_PORTS": f'{ports}, "SSL": {broker.tls_port}}}',
            "KAFKA_CERTIFICATES": str(broker.certificates),
        }
        yield from _test(suite, given, wanted)
        log = broker.process.said()
    (suite.logs / "B-secured-broker.log").write_text(log)
    if bug := own_bug_in(log):
        yield Outcome(SUITE, "the log has no traceback", "failed", reason=bug)


def _test(suite: Suite, given: dict[str, str], wanted: Sequence[str]) -> Iterator[Outcome]:
    report = suite.logs / "B-secured-report.xml"
    report.unlink(missing_ok=True)
    command = [str(suite.python), "-m", "pytest", "-v", "-p", "no:cacheprovider"]
    command += ["-p", "secured_broker", "--timeout=60", "--timeout-method=signal"]
    command += [f"--junitxml={report}", *(f"test/integration/{name}.py" for name in TESTS)]
    if wanted:
        command += ["-k", " or ".join(wanted)]
    environment = {name: value for name, value in os.environ.items() if name != "KAFKA_URI"}
    environment |= {"PYTHONPATH": ".", "KAFKA_ROOT": str(suite.folder), "KAFKA_VERSION": "4.1.0"}
    with (suite.logs / "B-secured.log").open("wb") as output:
        subprocess.run(
            command,
            cwd=suite.folder,
            env=environment | given,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=SECONDS,
        )
    if report.is_file():
        yield from outcomes_of(report, SUITE)
    elif not wanted:
        reason = f"no report; see {suite.logs / 'B-secured.log'}"
        yield Outcome(SUITE, "pytest over SASL", "failed", reason=reason)
