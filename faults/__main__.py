"""`python -m faults`: run a cluster of real processes under load with faults from a seed, and check
its history. Exits with 0 if the history satisfies the policy, with 1 if not."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from faults.anomaly import Policy
from faults.clients import LoadError, Rate
from faults.run import Outcome, Plan, forget, run
from faults.schedule import NEED_OTHERS, Kind
from ottla.testing import KitError

MAX_SHOWN = 20
MIN_REPLICAS = 3


def arguments() -> argparse.Namespace:
    kinds = (f"  {each.name:16} {each.value}" for each in Kind)
    parser = argparse.ArgumentParser(
        prog="python -m faults",
        description=__doc__,
        epilog="\n".join(("the faults:", *kinds)),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seed", type=int, help="seed of the faults (random)")
    parser.add_argument("--seconds", type=float, default=60, help="how long faults run (60)")
    parser.add_argument("--policy", choices=[each.value for each in Policy], default="strict")
    parser.add_argument("--brokers", type=int, default=3, help="number of brokers: 1 or >= 3 (3)")
    parser.add_argument("--ensemble", type=int, default=1, help="members of ZooKeeper (1)")
    parser.add_argument(
        "--transactions", action="store_true", help="transactional producers (policy strict)"
    )
    parser.add_argument(
        "--secure", action="store_true", help="TLS, SCRAM and ACLs, between brokers too"
    )
    parser.add_argument("--rate", type=int, default=400, help="records per second (400)")
    parser.add_argument(
        "--only",
        action="append",
        choices=[each.name for each in Kind],
        default=[],
        help="only this fault; repeat for more (see below)",
    )
    parser.add_argument("--folder", type=Path, help="keep history, data and logs here")
    given = parser.parse_args()
    if given.policy != Policy.strict.value and (given.transactions or given.brokers < MIN_REPLICAS):
        parser.error("--transactions and one broker need --policy strict")
    if given.brokers != 1 and given.brokers < MIN_REPLICAS:
        parser.error(f"--brokers must be 1, or at least {MIN_REPLICAS}, not {given.brokers}")
    if given.brokers == 1 and given.only and {Kind[each] for each in given.only} <= NEED_OTHERS:
        parser.error(f"one broker alone has none of these faults: {', '.join(given.only)}")
    return given


def table(plan: Plan, outcome: Outcome) -> Table:
    made = Table(title=f"Seed {plan.seed}, policy {plan.policy.value}", show_header=False)
    made.add_column()
    made.add_column(justify="right")
    for name, number in outcome.numbers.items():
        made.add_row(name, f"{number:,}")
    return made


def show(outcome: Outcome, console: Console) -> None:
    for title, anomalies in (
        ("Allowed", outcome.verdict.allowed),
        ("FORBIDDEN", outcome.verdict.forbidden),
    ):
        for anomaly in anomalies[:MAX_SHOWN]:
            why = f" ({anomaly.because})" if anomaly.because else ""
            where = f"{anomaly.kind.value}, partition {anomaly.partition}"
            console.print(f"{title}: {where}: {anomaly.what}{why}", markup=False, soft_wrap=True)
        if len(anomalies) > MAX_SHOWN:
            console.print(f"... and {len(anomalies) - MAX_SHOWN} more")


def main() -> int:
    given = arguments()
    console = Console(highlight=False)
    seed = given.seed if given.seed is not None else time.time_ns() % 1_000_000
    plan = Plan(
        seed,
        given.seconds,
        Policy(given.policy),
        given.folder or Path(tempfile.mkdtemp(prefix="ottla-faults-")),
        brokers=given.brokers,
        ensemble=given.ensemble,
        kinds=tuple(Kind[name] for name in given.only),
        rate=Rate(records_per_s=given.rate),
        transactions=given.transactions,
        secure=given.secure,
    )
    began = time.monotonic()

    def say(what: str) -> None:
        console.print(f"{time.monotonic() - began:7.1f} s  {what}", markup=False, soft_wrap=True)

    say(f"seed {seed}, policy {given.policy}")
    try:
        outcome = run(plan, say)
    except (KitError, LoadError) as fault:
        console.print(str(fault), markup=False, soft_wrap=True)
        console.print(f"The run was aborted. History and logs: {plan.folder}")
        return 1
    console.print(table(plan, outcome))
    show(outcome, console)
    if not outcome.verdict.is_good:
        console.print(f"History and logs: {plan.folder}")
        return 1
    if given.folder is None:
        forget(plan)
    return 0


if __name__ == "__main__":
    sys.exit(main())
