"""`python -m conformance`: run the suites; print one line per test and a summary."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from bench.brokers import running
from components.apache_kafka import KafkaJars
from components.packages import PackageError

from components import cache, ivy, java
from conformance import (
    aiokafka,
    apache_tools,
    kafka_python,
    kafka_python_secured,
    librdkafka,
    librdkafka_alone,
    sarama,
)
from conformance.authorization import suite as authorization
from conformance.differential import suite as differential
from conformance.differential.as_broker import introduce, secret_in
from conformance.outcome import Outcome, as_json, summary, table
from conformance.target import Target
from conformance.warm_up import NotReadyError, warm_up
from ottla.testing import KitError

SUITES = "ABCDEFGH"


def chosen(only: str) -> dict[str, list[str]]:
    """`A:0001,B` as {"A": ["0001"], "B": []}; all suites when empty. A:0174.do_test_8p_2c is a part
    of a test.

    Raises ValueError, with the allowed values, for any other form.
    """
    if not only:
        return {suite: [] for suite in SUITES}
    wanted: dict[str, list[str]] = {}
    for item in only.split(","):
        suite, _, name = item.partition(":")
        if suite not in SUITES or not suite:
            raise ValueError(
                f"--only has {item!r}; wanted a letter from A to H, or one test as in A:0001"
            )
        names = wanted.setdefault(suite, [])
        known = {
            "A": (
                *librdkafka.NUMBERS,
                *librdkafka.WITH_SEVERAL,
                *librdkafka.LOCAL,
                *librdkafka.WITH_SASL,
                *librdkafka.WITH_SASL_ON_SEVERAL,
                *librdkafka.IN_CONSUMER_GROUPS,
                *librdkafka.IN_SHARE_GROUPS,
                *librdkafka.PARTS_WITH_SASL.values(),
                *(f"{part}{librdkafka.CONSUMER}" for part in librdkafka.PARTS_WITH_SASL.values()),
            ),
            "C": apache_tools.names(),
            "D": list(differential.scripts()),
            "G": authorization.names(),
            "H": list(librdkafka_alone.TESTS),
        }.get(suite)
        is_part = suite == "A" and known is not None and librdkafka.whole(name) in known
        if name and known is not None and name not in known and not is_part:
            raise ValueError(f"suite {suite} has no {name!r}; it has: {' '.join(known)}")
        if name:
            names.append(name)
    return wanted


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m conformance", description=__doc__)
    parser.add_argument(
        "--bootstrap",
        metavar="HOST:PORT,...",
        help="all brokers of a running cluster; default: start Ottla",
    )
    parser.add_argument(
        "--brokers", type=int, default=1, help="number of Ottla brokers to start (1)"
    )
    parser.add_argument(
        "--secure", action="store_true", help="start them with SASL_SSL and an authorizer (A, C)"
    )
    parser.add_argument(
        "--data",
        type=Path,
        nargs="+",
        default=[],
        help="the data folders of those brokers once they have stopped, for the log dump tool",
    )
    parser.add_argument("--only", default="", help="suites or tests: A:0001,B,C:offsets")
    parser.add_argument("--jobs", type=int, default=1, help="librdkafka tests in parallel (1)")
    parser.add_argument("--ivy-settings", type=Path, help="an Ivy settings file, to name a mirror")
    parser.add_argument(
        "--aiokafka",
        type=Path,
        metavar="FOLDER",
        help=f"a checkout of {aiokafka.REPOSITORY} at v{aiokafka.VERSION}; default: clone it",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the outcomes as JSON")
    return parser.parse_args()


def suite_a(target: Target, names: Sequence[str], options: argparse.Namespace) -> Iterator[Outcome]:
    suite = librdkafka.prepare(logs())
    with ThreadPoolExecutor(options.jobs) as pool:
        waiting = [
            pool.submit(librdkafka.run_one, suite, number, target.bootstrap, target.client)
            for number in librdkafka.tests(
                names, len(target.addresses), is_secured=target.is_secured
            )
        ]
        try:
            for job in waiting:
                yield job.result()
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def suite_b(target: Target, names: Sequence[str], options: argparse.Namespace) -> Iterator[Outcome]:
    suite = kafka_python.prepare(logs())
    print("Running kafka-python's tests, half a minute ...", flush=True)
    yield from kafka_python.run(suite, target.addresses, names)
    if not options.bootstrap:
        yield from kafka_python_secured.run(suite, names)


def suite_d(target: Target, names: Sequence[str], jars: KafkaJars) -> Iterator[Outcome]:
    if len(target.addresses) > 1:
        reason = "its requests are for one broker, which leads and coordinates everything"
        yield Outcome("D", "differential", "skipped", reason=reason)
        return
    with running("Apache Kafka", jars) as kafka:
        as_broker = None
        if target.folders:
            as_broker = partial(introduce, secret=secret_in(target.folders[0]))
        yield from differential.run(target.bootstrap, kafka.address, names, as_broker)


def suite_e(names: Sequence[str], options: argparse.Namespace) -> Iterator[Outcome]:
    if options.bootstrap:
        reason = "it starts five brokers of Ottla itself"
        yield Outcome("E", "sarama", "skipped", reason=reason)
        return
    try:
        suite = sarama.prepare(logs())
    except PackageError as fault:
        yield not_had("E", "sarama", fault, names, options)
        return
    print("Running sarama's tests on a cluster of their own, some minutes ...", flush=True)
    yield from sarama.run(suite, names)


def suite_f(
    names: Sequence[str], jars: KafkaJars, options: argparse.Namespace
) -> Iterator[Outcome]:
    if options.bootstrap:
        reason = "it starts a broker of Ottla itself"
        yield Outcome("F", "aiokafka", "skipped", reason=reason)
        return
    try:
        suite = aiokafka.prepare(logs(), options.aiokafka)
    except PackageError as fault:
        yield not_had("F", "aiokafka", fault, names, options)
        return
    print("Running aiokafka's tests on a broker of their own, some minutes ...", flush=True)
    yield from aiokafka.run_on_ottla(suite, jars, names)


def suite_g(
    names: Sequence[str], jars: KafkaJars, options: argparse.Namespace
) -> Iterator[Outcome]:
    if options.bootstrap:
        reason = "it starts brokers of Ottla itself, with users"
        yield Outcome("G", "authorization", "skipped", reason=reason)
        return
    yield from authorization.run(jars, names)


def suite_h(
    names: Sequence[str], jars: KafkaJars, options: argparse.Namespace
) -> Iterator[Outcome]:
    if options.bootstrap:
        reason = "it starts brokers of Ottla itself, with certificates and ACLs"
        yield Outcome("H", "librdkafka", "skipped", reason=reason)
        return
    yield from librdkafka_alone.run(librdkafka.prepare(logs()), jars, names)


def not_had(
    letter: str, name: str, fault: PackageError, names: Sequence[str], options: argparse.Namespace
) -> Outcome:
    """A suite that could not be fetched is left out; raises the fault if nothing else was asked."""
    if names or options.only == letter:
        raise fault
    reason = " ".join(str(fault).split())
    return Outcome(letter, name, "skipped", reason=f"it could not be had: {reason}")


def logs() -> Path:
    """The folder with the suites' own output, to read after a failure."""
    folder = cache.folder("conformance-logs")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def keep_logs(target: Target) -> None:
    """Keep the brokers' logs beside those of the suites."""
    for name, text in target.logs().items():
        (logs() / name).write_text(text)


def all_outcomes(options: argparse.Namespace, wanted: dict[str, list[str]]) -> Iterator[Outcome]:
    with_jars = {"C", "D", "F", "G", "H"} & wanted.keys()
    jars = KafkaJars.fetched(options.ivy_settings) if with_jars else None
    if options.secure and (options.bootstrap or not wanted.keys() <= {"A", "C"}):
        raise ValueError("--secure is for brokers that are started here, and suites A and C")
    with Target(
        options.bootstrap, options.data, options.brokers, is_secured=options.secure
    ) as target:
        print(f"Under test: {target.bootstrap}", flush=True)
        try:
            warm_up(target.bootstrap, target.client)
            if "A" in wanted:
                yield from suite_a(target, wanted["A"], options)
            if "B" in wanted:
                yield from suite_b(target, wanted["B"], options)
            if "E" in wanted:
                yield from suite_e(wanted["E"], options)
            if jars is not None and "F" in wanted:
                yield from suite_f(wanted["F"], jars, options)
            if jars is not None and "D" in wanted:
                yield from suite_d(target, wanted["D"], jars)
            if jars is not None and "G" in wanted:
                yield from suite_g(wanted["G"], jars, options)
            if jars is not None and "H" in wanted:
                yield from suite_h(wanted["H"], jars, options)
            if jars is not None and "C" in wanted:
                yield from apache_tools.run(jars, target, wanted["C"])
                if target.died() is None:
                    yield from apache_tools.after_the_stop(jars, target, wanted["C"])
            if last_words := target.died():
                yield Outcome("-", "the brokers ran to the end", "failed", reason=last_words)
            for bug in target.own_bugs():
                yield Outcome("-", "the logs have no traceback", "failed", reason=bug)
        finally:
            keep_logs(target)


def main() -> int:
    options = arguments()
    outcomes: list[Outcome] = []
    try:
        wanted = chosen(options.only)
        for outcome in all_outcomes(options, wanted):
            outcomes.append(outcome)
            print(outcome.line(), flush=True)
    except (
        PackageError,
        ivy.FetchError,
        java.NoJavaError,
        KitError,
        NotReadyError,
        ValueError,
    ) as fault:
        print(f"conformance: {fault}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nStopped.", file=sys.stderr)
        return 130
    failed = [outcome for outcome in outcomes if outcome.state == "failed"]
    if failed:
        print(f"\nWhat failed (the suites' own output is in {logs()}):")
        for outcome in failed:
            print(outcome.line())
    print(f"\n{table(outcomes)}\n{summary(outcomes)}")
    if options.json:
        options.json.write_text(as_json(outcomes) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
