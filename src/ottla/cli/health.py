"""`ottla health`: whether a cluster works, as an exit code for scripts."""

from __future__ import annotations

from collections.abc import Iterator

import click

from ottla.cli.command import command
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.failures import EXIT_FAILED
from ottla.cli.options import AS_JSON
from ottla.cli.rows import emit
from ottla.cli.screen import note, say
from ottla.cli.value_types import Age
from ottla.client.admin.health import Health, health_of
from ottla.wording.plural import plural


@command()
@click.option(
    "--allow-degraded",
    is_flag=True,
    help="Do not fail for what still works: brokers down, under-replicated partitions.",
)
@click.option(
    "--max-loss-in",
    "max_loss_in_ms",
    type=Age(),
    help="Fail if retention removes records that a group has not read within this time, as 6h.",
)
@AS_JSON
@cluster_options
def health(
    cluster: Cluster, allow_degraded: bool, max_loss_in_ms: int | None, as_json: bool
) -> int:
    """Check a cluster: exit code 0 if everything works, 1 if not.

    Checked are the controller, brokers that hold replicas, every partition, and hanging
    transactions.
    """
    found = health_of(cluster.client, max_loss_in_ms)
    emit(found, as_json=as_json, show=show_health)
    return EXIT_FAILED if found.broken or (found.degraded and not allow_degraded) else 0


def show_health(found: Health) -> None:
    say(
        f"{found.state}: {plural(found.brokers, 'broker')}, {plural(found.partitions, 'partition')}"
    )
    problems = found.broken + found.degraded
    for problem in problems:
        say(f"  {problem}")
    if problems:
        note(f"To see which: {' and '.join(where_to_look(found))}")


def where_to_look(found: Health) -> Iterator[str]:
    """The commands that show what is wrong."""
    hanging = bool(found.hanging_transactions)
    of_groups = tuple(f"group {name}: " for name in found.losing_groups or ())
    others = [each for each in found.broken + found.degraded if not each.startswith(of_groups)]
    if len(others) > hanging:
        yield "ottla cluster describe"
    if hanging:
        yield "ottla transaction hanging"
    if of_groups:
        yield "ottla group describe"
