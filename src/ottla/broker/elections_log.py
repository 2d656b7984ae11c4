"""What the controller's log says of brokers that come and go, and of the leaders elected."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from ottla.controller.broker_changes import BrokersChanged
from ottla.controller.leadership import Election

MAX_NAMED: Final = 10
"""Elections and partitions that get a line of their own; more of them are counted."""

log = logging.getLogger("ottla.controller")


def say_brokers(changed: BrokersChanged) -> None:
    """One line for the brokers, and those of the elections that follow."""
    parts = [
        f"{what} {', '.join(map(str, brokers))}"
        for what, brokers in (
            ("gone:", changed.vanished),
            ("new:", changed.appeared),
            ("restarted:", changed.bounced),
            ("with another disk:", changed.without_disk),
        )
        if brokers
    ]
    if parts:
        log.info("brokers %s", "; ".join(parts))
    say_elections(changed.elections)
    for topic, index in changed.offline[:MAX_NAMED]:
        log.warning("%s-%d is offline: no in-sync replica is alive", topic, index)
    if len(changed.offline) > MAX_NAMED:
        log.warning("%d partitions are offline", len(changed.offline))


def say_elections(elections: Sequence[Election]) -> None:
    """Unclean ones are warnings: what only the other replicas had is lost."""
    for each in [each for each in elections if each.unclean]:
        log.warning(
            "unclean election: %s-%d is led by %d (epoch %d), which was not in sync",
            each.topic,
            each.partition,
            each.leader,
            each.leader_epoch,
        )
    clean = [each for each in elections if not each.unclean]
    for each in clean[:MAX_NAMED]:
        log.info(
            "%s-%d: leader %d after %d (epoch %d)",
            each.topic,
            each.partition,
            each.leader,
            each.former,
            each.leader_epoch,
        )
    if len(clean) > MAX_NAMED:
        log.info("%d partitions have a new leader", len(clean))
