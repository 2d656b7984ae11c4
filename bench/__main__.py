"""`python -m bench`: measure Ottla and Apache Kafka in turn, and write bench/RESULTS.md."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from components.apache_kafka import KafkaError, KafkaJars
from components.child import ChildDiedError
from components.packages import PackageError
from components.postgres import PostgresError
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench import machine, profiling, rdkafka, report, results
from bench.clusters import SSL
from bench.figures import delta, delta_keys
from bench.figures.cluster_idle import ClusterIdle
from bench.figures.cluster_throughput import ClusterThroughput
from bench.figures.cold_reads import ColdReads
from bench.figures.commit_visibility import ClusterCommitVisibility, CommitVisibility
from bench.figures.compressed import CompressedProduce
from bench.figures.consumer_groups import ConsumerGroups, GroupMemory
from bench.figures.controller_failover import ControllerFailover
from bench.figures.delta_limit import DeltaLimit
from bench.figures.java_clients import JavaClients
from bench.figures.jdbc import Jdbc
from bench.figures.kfake import Kfake
from bench.figures.latency import ClusterLatency, Latency
from bench.figures.leader_loss import LeaderLoss
from bench.figures.memory import Memory
from bench.figures.mirror import Mirror
from bench.figures.partitions import Partitions
from bench.figures.read_committed import ReadCommitted
from bench.figures.secured_connections import SecuredConnections
from bench.figures.secured_requests import SecuredRequests
from bench.figures.secured_throughput import SecuredThroughput
from bench.figures.share_groups import ShareGroups
from bench.figures.small_requests import SmallRequests
from bench.figures.start import Start
from bench.figures.test_kit import TestKit
from bench.figures.throughput import Throughput
from bench.figures.topic import Topic
from bench.figures.transactions import ClusterTransactions, Transactions
from bench.figures.transactions_copy import TransactionsCopy
from bench.figures.worst_ping import WorstPing
from bench.measure import KAFKA, OTTLA, Bench, ClientError, Figure
from components import ivy, java
from ottla.accelerator import why_from_source
from ottla.testing.zookeeper_server import ZooKeeperError

FIGURES: tuple[Figure, ...] = (
    Start(),
    TestKit(),
    Kfake(),
    Memory(),
    Throughput("1 KB", 1000, 2_000_000),
    Throughput("100 B", 100, 8_000_000),
    CompressedProduce(),
    SmallRequests(),
    ConsumerGroups(),
    GroupMemory(),
    ShareGroups(),
    JavaClients(),
    Latency(),
    ColdReads(),
    WorstPing(),
    Transactions(10),
    Transactions(100),
    TransactionsCopy(),
    ReadCommitted(),
    CommitVisibility(),
    Mirror(),
    SecuredThroughput("1 KB", 1000, 1_000_000),
    SecuredThroughput("100 B", 100, 4_000_000),
    SecuredRequests(),
    SecuredConnections(),
    Partitions(),
    ClusterThroughput("1 KB", 1000, 1_000_000),
    ClusterThroughput("100 B", 100, 5_000_000),
    ClusterThroughput("1 KB", 1000, 1_000_000, SSL),
    ClusterThroughput("100 B", 100, 5_000_000, SSL),
    ClusterLatency(),
    ClusterTransactions(10),
    ClusterTransactions(100),
    ClusterCommitVisibility(),
    LeaderLoss(),
    ControllerFailover(),
    ClusterIdle(),
    delta.BULK,
    DeltaLimit(),
    delta.Backfill(),
    delta.SMALL,
    delta.STEADY,
    delta.BURSTS,
    delta.BadRows(),
    delta_keys.Upsert(),
    delta_keys.LargeUpsert(),
    delta_keys.History(),
    Jdbc(),
    Topic(),
    delta.Cold(),
    delta.ClassArchive(),
)
FOLDER = Path(__file__).parent
FAULTS = (
    *(ClientError, ChildDiedError, KafkaError, PackageError, PostgresError, ZooKeeperError),
    *(ivy.FetchError, java.NoJavaError),
)


def arguments() -> argparse.Namespace:
    names = [figure.name for figure in FIGURES]
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="runs of each broker (5)")
    parser.add_argument(
        "--only", action="append", choices=names, help="only this figure; repeat for more"
    )
    parser.add_argument(
        "--quick", action="store_true", help="a tenth of the load; does not change RESULTS.md"
    )
    parser.add_argument(
        "--ottla-alone", action="store_true", help="without Apache Kafka; stores no results"
    )
    parser.add_argument(
        "--profile", action="store_true", help="instead, one run of Ottla under a profiler"
    )
    parser.add_argument("--json", action="store_true", help="print the values as JSON")
    parser.add_argument(
        "--report",
        action="store_true",
        help="rewrite RESULTS.md from the stored results, without runs",
    )
    parser.add_argument("--ivy-settings", type=Path, help="an Ivy settings file, to name a mirror")
    return parser.parse_args()


def order(run: int, contestants: Sequence[str]) -> list[str]:
    """The order of the brokers, which alternates from run to run."""
    return list(contestants) if run % 2 == 0 else list(reversed(contestants))


def measure(
    figure: Figure, bench: Bench, runs: int, contestants: Sequence[str], console: Console
) -> dict[str, Any]:
    """Measure one figure in alternating runs; return the entry to store."""
    runs = min(runs, figure.runs or runs)
    values: dict[str, dict[str, list[float]]] = {name: {} for name in contestants}
    load = machine.load()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(figure.name, total=runs * len(contestants))
        for run in range(runs):
            for name in order(run, contestants):
                progress.update(task, description=f"{figure.name}: {name}, run {run + 1}")
                found = figure.measure(name, bench)
                for measured, value in found.items():
                    values[name].setdefault(measured, []).append(value)
                if not console.is_terminal:
                    told = ", ".join(f"{one} {results.number(found[one])}" for one in found)
                    console.print(f"{name}, run {run + 1}: {told}", soft_wrap=True)
                progress.advance(task)
        progress.update(task, description=figure.name)
    return {
        "values": values,
        "runs": runs,
        "load": f"{load:.1f} to {machine.load():.1f}",
        "nice": os.nice(0),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": machine.describe(),
    }


def run_all(options: argparse.Namespace, console: Console) -> dict[str, Any]:
    """Measure the requested figures; return the entries by figure."""
    chosen = [figure for figure in FIGURES if not options.only or figure.name in options.only]
    jars = KafkaJars.fetched(options.ivy_settings)
    bench = Bench(jars, rdkafka.built(), options.quick)
    if options.profile:
        for figure in chosen:
            kept = profiling.profile(figure, bench, FOLDER / "profiles")
            console.print(f"{kept}\n{kept.read_text()}", markup=False, highlight=False)
        return {}
    contestants = [OTTLA] if options.ottla_alone else [OTTLA, KAFKA]
    entries: dict[str, Any] = {}
    for figure in chosen:
        entries[figure.name] = measure(figure, bench, options.runs, contestants, console)
        if not options.quick and not options.ottla_alone:
            results.keep(FOLDER / "results.json", figure.name, entries[figure.name])
            write_report()
    return entries


def write_report() -> None:
    kept = results.load(FOLDER / "results.json")
    (FOLDER / "RESULTS.md").write_text(report.markdown(FIGURES, kept, FOLDER / "profiles"))


def main() -> int:
    options = arguments()
    console = Console(stderr=True)
    if options.report:
        write_report()
        return 0
    if (why := why_from_source()) is not None:
        console.print(f"Ottla runs from source, which is slower: {why}", highlight=False)
        if not (options.quick or options.ottla_alone or options.profile):
            print("bench: that is nothing for RESULTS.md (--quick stores nothing)", file=sys.stderr)
            return 1
    try:
        entries = run_all(options, console)
    except FAULTS as fault:
        print(f"bench: {fault}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped.", file=sys.stderr)
        return 130
    if options.json:
        print(json.dumps(entries, indent=1))
    elif entries:
        report.show(Console(), FIGURES, entries)
    return 0


if __name__ == "__main__":
    sys.exit(main())
