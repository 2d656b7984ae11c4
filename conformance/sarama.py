"""Suite E: sarama's functional tests from its Go module, on five brokers of Ottla.

The tests expect five brokers in racks, TCP proxies that Toxiproxy steers, and brokers in Docker.
The brokers are those of a cluster that is started here, and proxies of ours (`toxiproxy.py`) are
between them and the tests, which can close them, delay answers and reset connections. Tests that
call Docker are left out.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from components import cache, packages
from conformance.outcome import Outcome, State
from conformance.target import own_bug_in
from conformance.toxiproxy import Toxiproxy
from ottla.testing import Cluster
from ottla.testing.ports import HOST, free_ports

SUITE: Final = "E"
MODULE: Final = "github.com/IBM/sarama@v1.61.1"
CHECKSUM: Final = "h1:I59MWPHQUWqJNdRpsDUcbeCriog8SxjQaPfHNWxidEg="
"""As go.sum has it: over every file of the module."""
TESTS: Final = "sarama.test"
BROKERS: Final = 5
SECONDS: Final = 900
SETTINGS: Final[Mapping[str, object]] = {
    "default.replication.factor": 2,
    "offsets.topic.replication.factor": 2,
    "transaction.state.log.replication.factor": 2,
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": 0,
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
}
"""Those of the suite's own cluster."""
ADDRESS: Final = (
    'env.KafkaBrokerAddrs = append(env.KafkaBrokerAddrs, fmt.Sprintf("127.0.0.1:%d", 29090+i))'
)
OWN_ADDRESS: Final = (
    "env.KafkaBrokerAddrs = append(env.KafkaBrokerAddrs, "
    'strings.Split(os.Getenv("KAFKA_ADDRESSES"), ",")[i-1])'
)
_DOCKER: Final = "it stops and starts brokers with Docker"
_JAVA: Final = "it runs Java clients in the brokers' Docker containers"
LEFT_OUT: Final[Mapping[str, str]] = {
    "TestConsumerFetchFollowerFailover": _DOCKER,
    "TestFuncAdminListConsumerGroupOffsets": _DOCKER,
    "TestFuncTxnProduceWithBrokerFailure": _DOCKER,
    "TestFuncIdempotentBufferedSequence": "it reads the brokers' logs with Docker",
    "TestFuncJavaInteropCooperativeRebalance": _JAVA,
    "TestJavaConsumerCompressionRoundTrip": _JAVA,
    "TestJavaMurmur2PartitionerInterop": _JAVA,
    "TestJavaProducerCompressionRoundTrip": _JAVA,
}
_RESULT: Final = re.compile(r"^--- (PASS|FAIL|SKIP): (\w+) \(([\d.]+)s\)$", re.MULTILINE)
_STATES: Final[Mapping[str, State]] = {"PASS": "passed", "FAIL": "failed", "SKIP": "skipped"}
_BEGUN: Final = re.compile(r"^=== RUN   (\w+)$", re.MULTILINE)
_SPEAKS: Final = re.compile(r"=== (?:RUN|CONT|NAME) +(\w+)")
_MAX_OF_A_REASON: Final = 300


@dataclass(frozen=True)
class Suite:
    """The module with its compiled tests in `folder`."""

    folder: Path
    logs: Path

    def names(self) -> list[str]:
        """The functional tests; the module's other tests need no broker."""
        files = sorted(self.folder.glob("functional_*_test.go"))
        found = (
            re.findall(r"^func (Test\w+)\(t ", file.read_text(), re.MULTILINE) for file in files
        )
        return [name for names in found for name in names]


def prepare(logs: Path) -> Suite:
    """Fetch and build the suite unless it is in the cache (a minute). Raises PackageError."""
    folder = cache.folder(f"sarama-{MODULE.rpartition('@v')[2]}")
    if not cache.is_ready(folder):
        if shutil.which("go") is None:
            raise packages.PackageError("go is not installed. On Debian: apt-get install golang")
        print(f"Building the tests of {MODULE}, a minute ...", flush=True)
        with cache.making(folder) as into:
            told = packages.run(["go", "mod", "download", "-json", MODULE], into)
            _take(_downloaded(told), into / "sarama")
            build = ["nice", "go", "test", "-tags", "functional", "-c", "-o", TESTS, "."]
            packages.run(build, into / "sarama")
    return Suite(folder / "sarama", logs)


def _downloaded(told: str) -> Path:
    """The module's folder in Go's cache. Raises PackageError if it is not the one we know."""
    # Progress lines may come before the object.
    answer = json.loads(told[told.index("{") :])
    if answer.get("Sum") != CHECKSUM:
        raise packages.PackageError(
            f"{MODULE} has the checksum {answer.get('Sum')}, and should have {CHECKSUM}"
        )
    return Path(answer["Dir"])


def _take(module: Path, into: Path) -> None:
    """Copy the module, as Go's cache is read-only, and let its tests take other addresses."""
    shutil.copytree(module, into)
    for path in (into, *into.rglob("*")):
        path.chmod(path.stat().st_mode | 0o200)
    file = into / "functional_test.go"
    source = file.read_text()
    if source.count(ADDRESS) != 1:
        raise packages.PackageError(f"{MODULE}: functional_test.go has no fixed addresses")
    file.write_text(source.replace(ADDRESS, OWN_ADDRESS))


def outcomes_of(output: str, exit_code: int) -> list[Outcome]:
    """Each test in the output of `go test -v`; a failure too if it ended before its last line."""
    outcomes = []
    told = _told(output)
    for result, name, seconds in _RESULT.findall(output):
        reason = "" if result == "PASS" else " ".join(told.get(name, ()))[:_MAX_OF_A_REASON]
        outcomes.append(Outcome(SUITE, name, _STATES[result], float(seconds), reason))
    ended = {outcome.name for outcome in outcomes}
    for name in _BEGUN.findall(output):
        if name not in ended:
            outcomes.append(Outcome(SUITE, name, "failed", reason="it did not end"))
    if exit_code != 0 and not any(each.state == "failed" for each in outcomes):
        reason = f"it ended with {exit_code}: {' '.join(output[-_MAX_OF_A_REASON:].split())}"
        outcomes.append(Outcome(SUITE, "sarama", "failed", reason=reason))
    return outcomes


def _told(output: str) -> dict[str, list[str]]:
    """What each test said. Tests run beside each other; a line says which one speaks next."""
    told: dict[str, list[str]] = {}
    name = ""
    for line in output.splitlines():
        if speaks := _SPEAKS.match(line):
            name = speaks[1]
        elif "_test.go:" in line or "Error:" in line:
            told.setdefault(name, []).append(line.strip())
    return told


def run(suite: Suite, wanted: Sequence[str]) -> Iterator[Outcome]:
    """Start a cluster and run the tests (only those in `wanted` if it is not empty).

    Raises ValueError for an unknown test, KitError if the cluster does not start.
    """
    known = suite.names()
    for name in wanted:
        if name not in known or name in LEFT_OUT:
            reason = LEFT_OUT.get(name, f"it has: {' '.join(known)}")
            raise ValueError(f"suite {SUITE} does not run {name!r}: {reason}")
    names = [name for name in wanted or known if name not in LEFT_OUT]
    racks = [str(number) for number in range(1, BROKERS + 1)]
    ports = free_ports(2 * BROKERS)
    own, proxied = ports[:BROKERS], ports[BROKERS:]
    between = {f"kafka{at}": pair for at, pair in enumerate(zip(proxied, own, strict=True), 1)}
    cluster = Cluster(BROKERS, SETTINGS, racks=racks, ports=own, advertised_ports=proxied)
    with cluster, Toxiproxy(between) as proxies:
        code = _test(suite, names, ",".join(f"{HOST}:{port}" for port in proxied), proxies.url)
        logs = {number: broker.said() for number, broker in cluster.brokers.items()}
        down = [number for number, broker in cluster.brokers.items() if not broker.running]
    yield from outcomes_of((suite.logs / "E.log").read_text(errors="replace"), code)
    if not wanted:
        left_out = ((name, why) for name, why in LEFT_OUT.items() if name in known)
        yield from (Outcome(SUITE, name, "skipped", reason=why) for name, why in left_out)
    for number, text in logs.items():
        (suite.logs / f"E-broker-{number}.log").write_text(text)
        if bug := own_bug_in(text):
            yield Outcome(SUITE, "the logs have no traceback", "failed", reason=bug)
    if down:
        yield Outcome(SUITE, "the brokers ran to the end", "failed", reason=f"{down} ended")


def _test(suite: Suite, names: Sequence[str], bootstrap: str, url: str) -> int:
    """Run the compiled tests; their output is in E.log. Returns their exit code."""
    environment = {**os.environ, "KAFKA_ADDRESSES": bootstrap, "TOXIPROXY_ADDR": url}
    environment["KAFKA_VERSION"] = "4.3.1"
    command = [f"./{TESTS}", "-test.v", f"-test.timeout={SECONDS}s"]
    command.append(f"-test.run=^({'|'.join(names)})$")
    with (suite.logs / "E.log").open("wb") as output:
        # The tests end themselves with their stacks after SECONDS.
        return subprocess.run(
            command,
            cwd=suite.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=SECONDS + 60,
        ).returncode
