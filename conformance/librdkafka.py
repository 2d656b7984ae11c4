"""Suite A: librdkafka's own tests, from the npm package that ships them with its source.

Each test number runs in its own process, because a timeout inside a test kills the whole process.
Do not use `-Q` alone: it skips every sub-test and still reports that the test passed.
"""

import os
import re
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from components import packages
from conformance.outcome import Outcome

SUITE = "A"
PACKAGE = "@confluentinc/kafka-javascript@1.10.1"
DEBIAN = (*packages.OF_LIBRDKAFKA, "rapidjson-dev")
# Each of these passes on Apache Kafka 4.3.1 with one broker and with three. 0127 allows a fetch
# 30 ms by the wall clock; a busy machine takes longer, with Apache Kafka as with Ottla.
NUMBERS = tuple(
    f"{number:04}"
    for number in (
        1, 2, 3, 5, 7, 8, 11, 12, 13, 14, 15, 17, 18, 19, 20, 21, 22, 26, 29, 30, 31, 33, 34, 36,
        38, 40, 41, 42, 44, 45, 48, 50, 51, 53, 54, 56, 57, 59, 60, 61, 64, 67, 69, 70, 73, 82, 83,
        84, 85, 86, 89, 90, 91, 93, 99, 102, 110, 112, 114, 118, 122, 123, 125, 127, 129, 130, 132,
        137, 140,
    )
)  # fmt: skip
WITH_SEVERAL = ("0103",)
"""Its topics have three replicas."""
LOCAL = ("0128", "0133")
"""Of TLS and SASL, within the client: they connect to no broker."""
WITH_SASL = ("0081",)
"""Over SASL_SSL with an authorizer. On a broker without, it leaves out what it is for."""
WITH_SASL_ON_SEVERAL = (
    "0135.do_test",
    *(
        f"0142.do_test_{what}"
        for what in ("consumer", "producer", "txn_producer", "reauth_failure")
    ),
)
"""Passwords that change, and authentication while a client works (KIP-368), on topics with three
replicas. Only these parts: the others are of share groups."""
PARTS_WITH_SASL = {"0018": "0018.do_test"}
"""Their other parts are on a broker that librdkafka plays, without TLS and SASL."""
CONSUMER = "-consumer"
NOT_IN_CONSUMER_GROUPS = {
    "0045": "fails on Apache Kafka 4.3.1 with that protocol, too: it expects partitions of two "
    "topics, and still has those of ten",
    "0084": "leaves itself out with that protocol",
    "0132": "leaves itself out: it is of assignors of the classic protocol",
}
"""Each with the reason."""
IN_CONSUMER_GROUPS = tuple(
    f"{number}{CONSUMER}" for number in NUMBERS if number not in NOT_IN_CONSUMER_GROUPS
)
"""Once more with group.protocol=consumer (KIP-848)."""
IN_SHARE_GROUPS = (
    *(f"{number:04}" for number in (*range(170, 179), 180, 181, 184, 185)),
    "0179.do_test_destroy_with_subscribe_unsubscribe",
    "0179.do_test_destroy_with_mixed_acks_and_commits",
)
"""Of share consumers (KIP-932). For 0182, 0183 and 0186 librdkafka plays the broker. 0179 without
its explicit and implicit acks: they want the records of one partition in the first response, and
those of the other in the next one. Ottla has read both states by then, and sends both."""
KAFKA_VERSION = "4.1.0"
KAFKA_VERSION_OF = dict.fromkeys(IN_SHARE_GROUPS, "4.3.0")
"""Share consumers are tested from 4.2 on."""
SECONDS = 240
SECONDS_OF = {"0081": 900, "0126": 600, **dict.fromkeys(IN_SHARE_GROUPS, 600)}
"""0081 waits for each of its ACLs, and takes 190 s of a quiet machine. 0126 waits for refusals. In
share groups each change of a subscription waits for the next heartbeat, 5 s."""
STRETCHED = {"test.timeout.multiplier": "3"}
"""Of the tests of share groups: 0170 has some forty such changes and allows itself 200 s."""
TIMED_OUT = 124
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Suite:
    """The built suite: `folder` contains its test-runner."""

    folder: Path
    logs: Path


def whole(number: str) -> str:
    """The test of which this is a part: 0174 of 0174.do_test_8p_2c. Long tests run so, in turn."""
    test, _, part = number.partition(".")
    return f"{test}{CONSUMER}" if part.endswith(CONSUMER) else test


def prepare(logs: Path) -> Suite:
    """Fetch and build the suite unless it is in the cache (three minutes). Raises PackageError."""
    built = packages.librdkafka("librdkafka-tests", PACKAGE, DEBIAN, "-C", "tests", "build")
    return Suite(built / "tests", logs)


def verdict(output: str, exit_code: int) -> tuple[bool, str]:
    """Whether the runner's output says that the test ran and passed, and if not, why."""
    text = COLOURS.sub("", output)
    failures = re.findall(r'### Test "[^"]*" failed at ([^#]*?): ###\n(.*)', text)
    if failures:
        at, why = failures[0]
        return False, f"{why.strip()} [{at.strip()}]"
    if exit_code == TIMED_OUT:
        return False, "not ended in time"
    if exit_code != 0:
        return False, f"the runner ended with {exit_code}"
    if not re.search(r"=== Test \S+ PASSED ===", text):
        return False, "the runner did not say that it ran this test"
    return True, ""


def _run(
    folder: Path, environment: Mapping[str, str], log: Path, seconds: int, *, is_local: bool
) -> int:
    """The runner's exit code; TIMED_OUT if it had to be killed."""
    with log.open("wb") as output:
        try:
            return subprocess.run(
                ["./test-runner", "-E", "-l" if is_local else "-L", "-p1"],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=seconds,
            ).returncode
        except subprocess.TimeoutExpired:
            return TIMED_OUT


def run_one(
    suite: Suite,
    number: str,
    bootstrap: str,
    client: Mapping[str, str] | None = None,
    given: Mapping[str, str] | None = None,
    letter: str = SUITE,
) -> Outcome:
    """Run one test number in its own process; with CONSUMER behind it, in that protocol. `client`:
    librdkafka's settings without the address; `given`: variables of the environment.
    """
    log = suite.logs / f"{letter}-{number}.log"
    settings = suite.logs / f"{letter}-{number}.conf"
    test, _, part = number.removesuffix(CONSUMER).partition(".")
    common = {"bootstrap.servers": bootstrap, "test.topic.random": "true", **(client or {})}
    # What holds of a whole test holds of its parts, unless they are named themselves.
    listed = number if number in SECONDS_OF else whole(number)
    if listed in IN_SHARE_GROUPS:
        common |= STRETCHED
    settings.write_text("".join(f"{name}={value}\n" for name, value in common.items()))
    environment = {
        **os.environ,
        **({"SUBTESTS": f"{part}:"} if part else {}),
        **(given or {}),
        "TEST_KAFKA_VERSION": KAFKA_VERSION_OF.get(listed, KAFKA_VERSION),
        "TESTS": test,
        "TEST_CONSUMER_GROUP_PROTOCOL": "consumer" if number.endswith(CONSUMER) else "classic",
    }
    environment |= {"LD_LIBRARY_PATH": "../src:../src-cpp", "RDKAFKA_TEST_CONF": str(settings)}
    began = time.monotonic()
    seconds = SECONDS_OF.get(listed, SECONDS)
    code = _run(suite.folder, environment, log, seconds, is_local=number in LOCAL)
    passed, why = verdict(log.read_text(errors="replace"), code)
    for statistics in suite.folder.glob(f"stats_{environment['TESTS']}_*.json"):
        statistics.unlink(missing_ok=True)
    took = time.monotonic() - began
    return Outcome(letter, number, "passed" if passed else "failed", took, why)


def tests(wanted: Sequence[str], brokers: int, *, is_secured: bool) -> Sequence[str]:
    """The tests to run on so many brokers: all, or those wanted, also parts of tests. Raises
    ValueError if a wanted one needs more brokers, or secured ones.
    """
    several = WITH_SEVERAL if brokers >= 3 else ()
    secured: tuple[str, ...] = (*LOCAL, *WITH_SASL) if is_secured else LOCAL
    if is_secured and brokers >= 3:
        secured += WITH_SASL_ON_SEVERAL
    shares = () if is_secured else IN_SHARE_GROUPS
    numbers: tuple[str, ...] = (*NUMBERS, *several, *secured, *IN_CONSUMER_GROUPS, *shares)
    if is_secured:
        parts = PARTS_WITH_SASL | {
            f"{number}{CONSUMER}": f"{part}{CONSUMER}" for number, part in PARTS_WITH_SASL.items()
        }
        numbers = tuple(parts.get(number, number) for number in numbers)
    for number in wanted:
        if number in (*WITH_SASL, *WITH_SASL_ON_SEVERAL) and not is_secured:
            raise ValueError(f"test {number} of suite A needs secured brokers: --secure")
        if number not in numbers and whole(number) not in numbers:
            raise ValueError(f"test {number} of suite A needs three brokers: --brokers 3")
    parts_wanted = [number for number in wanted if number not in numbers]
    return [*(number for number in numbers if not wanted or number in wanted), *parts_wanted]
